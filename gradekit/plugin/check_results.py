"""From what happened in pytest to the report record: the outcome of a check, its message, its counterexample.

The type of an exception decides of right and wrong. A line is blamed only where what failed says which one it must be.
"""

from __future__ import annotations

import ast
import re
import shlex
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from inspect import CO_VARARGS
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from gradekit.credit import rounded
from gradekit.engine.budget import AGAIN, OverBudget, Unsupported
from gradekit.engine.host import ForbiddenOp
from gradekit.engine.observer import Owners
from gradekit.findings import Cause, Check, Outcome, Report, SourceLine, Status
from gradekit.inputs.as_text import MADE_BY_GRADEKIT, as_data, dumps, expression, few
from gradekit.inputs.spec import Input, values_of
from gradekit.judge.by_finding import other_strides
from gradekit.judge.by_running import ran, shared_draws, special_origin
from gradekit.judge.by_text import missing_gradient, operator_mistake, refused_gradient
from gradekit.judge.comparison import Comparison
from gradekit.judge.diagnose import diagnose, evidence_of
from gradekit.judge.evidence import Diagnosis, errors_are_small
from gradekit.judge.failure import Failure, NeedsPerson
from gradekit.judge.left_out import never_read, unwritten
from gradekit.judge.result_map import result_map
from gradekit.plugin import check_points
from gradekit.plugin.beside_examples import measured_rounding
from gradekit.plugin.profiles import Limit
from gradekit.plugin.run_state import GradingRun, Rejection
from gradekit.program import Allocate, Program, View, every_step
from gradekit.sandbox import TraceError
from gradekit.source.draft import draft_of, loads_by_pointer
from gradekit.subject.device import NeedsCard
from gradekit.subject.rules import argument_names
from gradekit.subject.runs import Observation
from gradekit.subject.subject import Call, Subject
from gradekit.submission.parsed_source import ParsedSource, called
from gradekit.versions import environment

DEFERRED = Unsupported, NeedsCard, NeedsPerson
"""What leaves an example undecided: others go on, and one that fails decides."""


def check_of(item: pytest.Item, run: GradingRun, error: BaseException | None, evidence: CheckEvidence) -> Check:
    """The check of `item`, which ended with `error` (None: it passed)."""
    error = evidence.repeated or error
    verdict = _passed(evidence) if error is None else verdict_of(error)
    if verdict.outcome is Outcome.FAILED and evidence.diagnosis is not None:
        verdict = _diagnosed(verdict, evidence.diagnosis)
    has_place = verdict.line is not None or verdict.source is not None or run.rejection
    if run.submission and verdict.outcome is Outcome.FAILED and not has_place and run.request.options.diagnose:
        with run.looking_for_a_cause(evidence.details):
            verdict = replace(verdict, line=blamed_line(verdict, evidence, run.submission.text))
    possible = run.possible.get(item.nodeid, 0.0)
    source = run.submission.line(verdict.line) if run.submission and verdict.line else None
    failed = verdict.outcome is Outcome.FAILED and not run.rejection
    example = None
    with run.looking_for_a_cause(evidence.details):
        example = counterexample(item, run, error, evidence) if failed else None
    trivially = {"trivially": "right"} if run.trivial is not None and run.trivial.all_right() else {}
    return Check(
        id=item.name, title=check_points.title(item), kind=check_points.worth(item).kind, outcome=verdict.outcome,
        earned=_earned(verdict, error, evidence, possible), possible=possible, message=verdict.message,
        cause=verdict.cause, source=verdict.source or source,
        counterexample=example,
        details=_whose(item) | trivially | evidence.details | verdict.details, bonus=check_points.worth(item).bonus,
    )  # fmt: skip


def _whose(item: pytest.Item) -> dict[str, Any]:
    hidden, words = item.path.stem.endswith("_hidden"), check_points.worth(item).handout
    return ({"hidden": True} if hidden else {}) | ({"handout": words} if words else {})


def report_of(run: GradingRun) -> Report:
    """The record of the whole run."""
    status = Status.FAULT if run.faults else Status.REJECTED if run.rejection else Status.GRADED
    rejection = run.rejection if status is Status.REJECTED else None
    return Report(
        assignment=run.request.assignment.id, status=status,
        submission=run.submission.facts() if run.submission else {"path": str(run.request.path), "sha256": ""},
        checks=tuple(run.checks), environment=environment() | (run.device.names if run.device else {}),
        seconds=round(time.monotonic() - run.began, 3),
        message=rejection.message if rejection else " ".join(run.faults), cause=rejection.cause if rejection else None,
        source=rejection.source if rejection else None, notes=tuple(run.notes), seed=run.request.seed,
    )  # fmt: skip


# --- outcomes and points ---------------------------------------------------------------------------------------------


def _passed(evidence: CheckEvidence) -> CheckVerdict:
    if evidence.award.fraction == 1:
        return CheckVerdict(Outcome.PASSED)
    cause = Cause(evidence.award.cause) if evidence.award.cause else None
    return CheckVerdict(Outcome.FAILED, evidence.award.why, cause)


def _earned(verdict: CheckVerdict, error: BaseException | None, evidence: CheckEvidence, possible: float) -> float:
    if error is not None:
        return 0.0
    return rounded(possible * evidence.award.fraction) if verdict.outcome is Outcome.FAILED else possible


# --- what the student reads ------------------------------------------------------------------------------------------


def diagnosis(
    error: BaseException, evidence: CheckEvidence, run: GradingRun, found: Diagnosis | None = None
) -> Diagnosis | None:
    """What is wrong with the submission where a check ended with `error`, in one order of evidence: what an edit
    repairs (`found`), behind the step that made the first NaN, unless one place's rounding moves as much; then what was
    seen in memory, what the values show, and that some dtype is too narrow. None where none is clear.

    May run further examples: call it while the check is open.
    """
    call = evidence.call
    if call is None or run.submission is None:
        return found
    if found is not None and not _may_be_rounding(error, found):
        return _behind_the_fact(found, error, call, run)
    text = run.submission.text
    if isinstance(error, Failure) and error.cause is Cause.WRONG_TYPE:
        return missing_gradient(text, error.message, error.cause)
    no_kernel = getattr(error, "cause", None) is Cause.NO_KERNEL
    if isinstance(error, Failure) and error.seen is not None:
        return found or diagnose(error, None, _named(call, run), text)
    if (call.observation is None or no_kernel) and isinstance(error, (Failure, TraceError)):
        if error.cause is not Cause.EXCEPTION and not no_kernel:
            return None
        refused = refused_gradient(text, call.entry, str(error), error.cause)
        return refused or operator_mistake(text, error.cause)
    if not isinstance(error, Failure) or call.observation is None:
        return None
    if run.subject is None:
        return found
    if found is None:
        return explained(error, call, run.subject, run, evidence.wrong)
    rounding = measured_rounding(run.subject, call.observation, error)
    return rounding if rounding and not rounding.vague else found


def explained(
    error: Failure, call: Call, subject: Subject, run: GradingRun,
    wrong: Sequence[tuple[Sequence[Any], Comparison]] = (),
) -> Diagnosis | None:  # fmt: skip
    """What is wrong with a subject, by the rounding of one place, and the memory and values of `wrong` calls."""
    if (seen := call.observation) is None:
        return None
    rounding = measured_rounding(subject, seen, error)
    if rounding and not rounding.vague:
        return rounding
    inputs, text = _named(call, run), subject.submission.text
    values, called = _values_compared(error, seen, run), names(call, run)
    if BY_CHANCE in error.message and (shared := shared_draws(values[0], values[1], values[3])) is not None:
        return shared
    every = [(call.args, error.comparison), *wrong] if error.comparison is not None else []
    calls = [(dict(zip(called, args, strict=True)), one) for args, one in every if len(args) == len(called)]
    ways = [lambda: diagnose(error, seen, inputs, text, calls), lambda: special_origin(*values)]
    told = next(filter(None, (way() for way in ways[:: -1 if error.cause is Cause.NAN else 1])), None)
    if Cause.UNWRITTEN_OUTPUT in (error.told, told.cause if told is not None else None):
        line, why = unwritten(seen.program, values[1], values[3]) or (None, "")
        return replace(told or Diagnosis(error.told, ""), line=line, hint=why) if told or line else None
    named = zip(call.args, called, strict=True)
    told = told or never_read(*values, [f"`{name}`" for arg, name in named if hasattr(arg, "stride")])
    return told or (rounding if error.comparison is not None and errors_are_small(error.comparison) else None)


def _behind_the_fact(found: Diagnosis, error: BaseException, call: Call, run: GradingRun) -> Diagnosis:
    """What an edit repairs, behind the line that goes by other strides, or the step of the first NaN; that alone, where
    the edit hides what made it."""
    if not isinstance(error, Failure) or call.observation is None:
        return found
    fact = None
    if found.cause is Cause.IGNORES_STRIDES:
        fact = other_strides(evidence_of(error, call.observation, _named(call, run)))
    elif error.cause is Cause.NAN:
        fact = special_origin(*_values_compared(error, call.observation, run))
    if fact is None or found.line in fact.passed:
        return fact or found
    return replace(found, sentence=f"{fact.sentence} {found.sentence}")


def _values_compared(
    error: Failure, seen: Observation, run: GradingRun
) -> tuple[Program, list[Tensor], Comparison | None, Collection[str]]:
    tensors = [values_of(arg) for arg in seen.inputs if hasattr(arg, "stride")]
    return seen.program, tensors, error.comparison, run.request.assignment.allow


def _named(call: Call, run: GradingRun) -> list[Any]:
    named = zip(call.args, names(call, run), strict=True)
    return [arg.named(name) if hasattr(arg, "named") else arg for arg, name in named]


def _may_be_rounding(error: BaseException, found: Diagnosis) -> bool:
    """Whether results are off by so little that rounding may be why, where an edit was found of something else."""
    comparison = error.comparison if isinstance(error, Failure) else None
    return comparison is not None and errors_are_small(comparison) and found.cause is not Cause.LOW_PRECISION


def _diagnosed(verdict: CheckVerdict, diagnosis: Diagnosis) -> CheckVerdict:
    end = "" if not verdict.message or verdict.message.endswith((".", "!", "?", ":")) else "."
    message = f"{verdict.message}{end} {diagnosis.sentence}".strip()
    details = verdict.details | {"observed_cause": verdict.cause} | ({"hint": diagnosis.hint} if diagnosis.hint else {})
    details |= {} if diagnosis.line else {"observation": diagnosis.sentence}
    line = diagnosis.line or verdict.line
    return replace(verdict, message=message, cause=diagnosis.cause, line=line, details=details)


# --- counterexample ---------------------------------------------------------------------------------------------------


def counterexample(
    item: pytest.Item, run: GradingRun, error: BaseException | None, evidence: CheckEvidence
) -> dict[str, Any] | None:  # fmt: skip
    """The counterexample of a check that failed with `error`, as its record has it; None where nothing was called."""
    if not (evidence.call or evidence.drawn):
        return None
    named = zip(names(evidence.call, run), evidence.call.args, strict=True) if evidence.call else evidence.drawn.items()
    inputs = [as_data(value, name) | _values(value) for name, value in named]
    found: dict[str, Any] = {"inputs": inputs, "replay": replay(item, run, evidence)}
    found |= {"origin": evidence.origin} if evidence.origin else {}
    found |= {"example": text} if (text := dumps(evidence.drawn)) else {}
    code = _code(item, run, evidence.call, error) if evidence.call else {}
    return found | _results(error) | code


def replay(item: pytest.Item, run: GradingRun, evidence: CheckEvidence) -> str:
    """The command that shows the same failure again; it names the inputs where the seed that drew them is secret."""
    words = ["gradekit", "check", str(run.request.path), "-a", run.request.assignment.id, "-k", item.name]
    inputs = run.request.options.inputs or (dumps(evidence.drawn) if evidence.is_secret else None)
    words += ["--inputs", inputs] if inputs else ["--seed", str(run.request.seed)]
    words += ["--quick"] if run.profile.name == "quick" else []
    words += ["--device", run.request.options.device] if run.request.options.device != "auto" else []
    return shlex.join(words)


def names(call: Call, run: GradingRun) -> tuple[str, ...]:
    """What the student calls the arguments of `call`."""
    assert run.submission is not None
    return argument_names(call.args, call.entry, run.submission, run.request.assignment.lists)


# --- inputs and results -----------------------------------------------------------------------------------------------


def _values(value: Any) -> dict[str, Any]:
    has_few = isinstance(value, Input) and 0 < value.numel <= Limit.SHOWN
    return {"values": few(value.tensor(), Limit.SHOWN)} if has_few else {}


def _results(error: BaseException | None) -> dict[str, Any]:
    comparison = getattr(error, "comparison", None)
    if comparison is None or not 0 < comparison.actual.numel() <= Limit.SHOWN:
        return {}
    got, expected = comparison.actual.detach(), comparison.reference.rounded
    return {"got": few(got, Limit.SHOWN), "expected": few(expected, Limit.SHOWN)}


# --- Python -----------------------------------------------------------------------------------------------------------


def _code(item: pytest.Item, run: GradingRun, call: Call, error: BaseException | None) -> dict[str, str]:
    """`snippet` makes the arguments, `call` calls the submission with them, `reference` the function of the
    assignment's tests that says what is right; the last is left out where no function there does."""
    parameters = [name if name.isidentifier() else f"argument_{n}" for n, name in enumerate(names(call, run), 1)]
    parameters[-1:] = ["upstream"] if call.wanted else parameters[-1:]
    lines = [*_makers(parameters, call.args)]
    if any("= Input(" in line for line in lines):
        lines.insert(0, MADE_BY_GRADEKIT)
    lines += [f"{parameters[place]}.requires_grad_()" for place in call.wanted]
    comparison = getattr(error, "comparison", None)
    tensors = sum(hasattr(arg, "stride") for arg in call.args)
    if comparison is not None and call.wanted and len(comparison.reference.inputs) == tensors - 1:
        call = replace(call, args=call.args[:-1], wanted=())  # the result itself is wrong, and no gradient
    given = parameters[: len(call.args)]
    lists = run.request.assignment.lists.get(call.entry, ())
    found = {"snippet": "\n".join(lines), "call": _called(call, given, lists)}
    named = _reference(comparison.reference.function) if comparison is not None else ""
    reference = f"{named}({', '.join(given)})" if named else _of_the_tests(item, call, given)
    return found | ({"reference": reference} if reference else {})


def _makers(parameters: Sequence[str], args: Sequence[Any]) -> Iterator[str]:
    """A line that makes each argument; those that lie in one storage are made from the first of them."""
    storages: dict[Any, str] = {}
    for name, arg in zip(parameters, args, strict=True):
        identity = getattr(arg, "identity", None)
        base = getattr(arg, "base", 0)
        if base and identity not in storages:
            yield f"storage_of_{name} = {_made(arg.whole)}"
        first = storages.setdefault(identity, f"storage_of_{name}" if base else name)
        if base:
            yield f"{name} = {first}.as_strided({list(arg.shape)}, {list(arg.stride)}, {arg.offset})"
        else:
            yield f"{name} = {_made(arg) if identity is None or first == name else first}"


def _made(argument: Any) -> str:
    if hasattr(argument, "to_json"):
        return expression(argument)
    if hasattr(argument, "stride"):
        return f'torch.randn({list(argument.shape)}).to({argument.dtype}).to("cuda")'
    return repr(argument)


def _called(call: Call, parameters: Sequence[str], lists: Sequence[tuple[int, int]]) -> str:
    given = list(parameters[:-1] if call.wanted else parameters)
    for first, length in reversed(lists):
        given[first : first + length] = [f"[{', '.join(given[first : first + length])}]"]
    called = f"{call.entry}({', '.join(given)})"
    if not call.wanted:
        return called
    leaves = ", ".join(parameters[place] for place in call.wanted)
    return f"torch.autograd.grad({called}, [{leaves}], {parameters[-1]})"


def _of_the_tests(item: pytest.Item, call: Call, given: Sequence[str]) -> str:
    """A call of what the check's own file says is right: `expected`, whose result has `rounded`, or, for gradients,
    `gradients` or `gradient` with as many parameters; "" where it has none."""
    tests = getattr(item, "module", None)
    if not call.wanted:
        return f"{item.path.stem}.expected({', '.join(given)}).rounded" if hasattr(tests, "expected") else ""
    for name in ("gradients", "gradient"):
        code = getattr(getattr(tests, name, None), "__code__", None)
        if code is not None and code.co_argcount == len(given) and not code.co_flags & CO_VARARGS:
            return f"{item.path.stem}.{name}({', '.join(given)})"
    return ""


def _reference(function: Any) -> str:
    """ "test_softmax.softmax", the module's file and the function's name; "" for a function without one."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", "")
    return f"{Path(code.co_filename).stem}.{name}" if code is not None and name.isidentifier() else ""


# --- pictured ---------------------------------------------------------------------------------------------------------


def pictured(call: Call | None, error: BaseException, run: GradingRun) -> dict[str, Any]:
    """`details` of a check whose `call` failed with `error`: `tiles`, or nothing where there is no map to draw."""
    observation = call.observation if call is not None else None
    if observation is None or not isinstance(error, Failure) or observation.counters.work > AGAIN or observation.card:
        return {}
    if error.comparison is None and "findings" not in error.facts:
        return {}
    program, tensors, _, allow = _values_compared(error, observation, run)
    has_run = ran(program, tensors, allow, owners := Owners())
    tiles = result_map(program, owners, error.comparison, observation.findings) if has_run else {}
    return {"tiles": tiles} if tiles else {}


# --- what an exception says of a check, by its type alone -------------------------------------------------------------


@dataclass(frozen=True)
class CheckVerdict:
    """The part of a check that an exception decides."""

    outcome: Outcome
    message: str = ""
    cause: Cause | None = None
    line: int | None = None
    source: SourceLine | None = None
    details: dict[str, Any] = field(default_factory=dict)


class BrokenOff(Exception):
    """Why a check was not run, which costs no points."""


def verdict_of(error: BaseException) -> CheckVerdict:
    """What `error`, raised by a check, says: by its type alone."""
    detail = getattr(error, "detail", "")
    told = {"detail": detail} if detail else {}
    if isinstance(error, BrokenOff):
        return CheckVerdict(Outcome.FAULT, "This check was not run, because the grading run broke off.")
    if isinstance(error, Rejection):
        return CheckVerdict(Outcome.FAILED, error.message, error.cause, source=error.source, details=told)
    if isinstance(error, Failure):
        return CheckVerdict(Outcome.FAILED, error.message, error.told, error.line, details=error.facts)
    if isinstance(error, TraceError):
        told |= {"hint": error.hint} if error.hint else {}
        return CheckVerdict(Outcome.FAILED, error.said, error.cause, error.line, details=told)
    if isinstance(error, ForbiddenOp):
        message = f"This computes with torch ({error.op}) where the assignment asks for a Triton kernel."
        return CheckVerdict(Outcome.FAILED, message, Cause.FORBIDDEN_OP, error.line)
    if isinstance(error, OverBudget):
        return CheckVerdict(Outcome.FAILED, str(error), Cause.BUDGET_EXCEEDED, getattr(error, "line", None))
    if isinstance(error, Unsupported):
        message = f"This machine cannot check it: gradekit's engine does not know {error.op}."
        return CheckVerdict(Outcome.PENDING, message, line=error.line, details={"op": error.op})
    if isinstance(error, NeedsPerson):
        return CheckVerdict(Outcome.PENDING, error.message)
    if isinstance(error, NeedsCard):
        return CheckVerdict(Outcome.PENDING, f"Not measured: {error.reason.rstrip('.')}.")
    return _ordinary(error)


def _ordinary(error: BaseException) -> CheckVerdict:
    if isinstance(error, pytest.skip.Exception):
        return CheckVerdict(Outcome.PENDING, str(error))
    if isinstance(error, (AssertionError, pytest.fail.Exception)):
        said = str(error).strip().split("\nassert ", 1)[0]  # without the comparison that pytest appends
        return CheckVerdict(Outcome.FAILED, said or "The assertion failed.")
    message = f"The grader failed here, not the submission: {located(error)}"
    text = "".join(traceback.format_exception(error))
    return CheckVerdict(Outcome.FAULT, message, details={"traceback": text[-8000:]})


def located(error: BaseException) -> str:
    """What went wrong in an assignment's own Python, and where it was raised or passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_assignments(Path(frame.filename))]
    return _told(error) + (f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else "")


def _told(error: BaseException) -> str:
    if isinstance(error, pytest.FixtureLookupError):
        return f"the test takes {error.argname!r}, which is neither a fixture nor drawn (a check takes submission)"
    return f"{type(error).__name__}: {error}"


def _is_assignments(file: Path) -> bool:
    return (file.parent / "assignment.toml").is_file() or file.parent.parent.name == "solutions"


# --- what stands behind a check's outcome: its failing example, the last call, the examples before it -----------------


@dataclass
class CheckEvidence:
    """What stands behind a check's outcome.

    `drawn` are the arguments of the failing example by name, `call` the last call that it made, `repeated` what it
    raised when it was run once more for this evidence, `diagnosis` what is wrong with it, where that is clear.
    `ran` are the arguments of all examples so far, in order, with what they raised; `error` is what the check ended
    with.
    `is_secret` is whether the example was drawn under the secret seed, `origin` where it came from.
    """

    award: check_points.Award = field(default_factory=check_points.Award)
    drawn: dict[str, Any] = field(default_factory=dict)
    call: Call | None = None
    repeated: BaseException | None = None
    diagnosis: Diagnosis | None = None
    error: BaseException | None = None
    ran: list[tuple[tuple[Any, ...], BaseException | None]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    is_secret: bool = False
    origin: str = ""

    @property
    def wrong(self) -> list[tuple[tuple[Any, ...], Comparison]]:
        """The calls whose results were wrong."""
        return [(args, one.comparison) for args, one in self.ran if isinstance(one, Failure) and one.comparison]


# --- blamed lines -----------------------------------------------------------------------------------------------------


_REFUSED_GRADIENTS = r"Backward returned an (incorrect number of gradients|invalid gradient)|gives no gradient for"
BY_CHANCE = "than chance explains"

_NOT_CONNECTED = r"is not differentiable|no autograd formula was registered"


@dataclass(frozen=True)
class _Failed:
    """What failed: its `message`, the function that was called, the number of the `result` that is wrong, the position
    of the `input` that the diagnosis speaks of, the traced program where there is one, and the submission's text."""

    message: str
    entry: str
    result: int
    input: int | None
    program: Program | None
    source: ParsedSource


def blamed_line(verdict: CheckVerdict, evidence: CheckEvidence, text: str) -> int | None:
    """The line of the submission with this `text` to look at, by the `verdict` of a check that failed, which names
    none, and its `evidence`; None where nothing says which."""
    source = ParsedSource.parsed(text)
    if source is None:
        return None
    call = evidence.call
    program = call.observation.program if call is not None and call.observation is not None else None
    about = evidence.diagnosis.input if evidence.diagnosis is not None else None
    entry, result = call.entry if call is not None else "", verdict.details.get("result", 0)
    seen = _Failed(verdict.message, entry, result, about, program, source)
    rule = _BY_CAUSE.get(verdict.cause) if verdict.cause is not None else None
    return rule(seen) if rule is not None else None


# --- read off the program ---------------------------------------------------------------------------------------------


def _allocation(seen: _Failed) -> int | None:
    if seen.program is None:
        return None
    results = seen.program.results
    result = results[seen.result] if seen.result < len(results) else next(iter(results), None)
    made = [
        step for step in every_step(seen.program.steps)
        if isinstance(step, Allocate) and isinstance(result, View) and step.storage == result.storage
    ]  # fmt: skip
    return made[-1].source.line if made and made[-1].source else None


def _storage(seen: _Failed) -> int | None:
    inputs = seen.program.inputs if seen.program is not None else ()
    return inputs[seen.input].storage if seen.input is not None and seen.input < len(inputs) else None


def _first_load(seen: _Failed) -> int | None:
    """Where a kernel first loads the input whose strides it ignores."""
    wanted = _storage(seen)
    if seen.program is None or wanted is None:
        return None
    loads = loads_by_pointer(seen.source.text)
    for launch in seen.program.launches():
        pointers = [argument for argument in launch.args if isinstance(argument, View)]
        lines = loads.get(seen.program.kernels[launch.kernel].name, ())
        if len(lines) == len(pointers):
            for line, view in zip(lines, pointers, strict=True):
                if line and view.storage == wanted:
                    return line
    return None


# --- read off the text ------------------------------------------------------------------------------------------------


def _functions(seen: _Failed, name: str) -> list[ast.FunctionDef]:
    return [node for node in seen.source.host if node.name == name]


def _returned_input(seen: _Failed) -> int | None:
    """Where the entry, or the function whose result it hands on, returns, or else where that got its one value; None
    where it returns in several places: the call came to one of them."""
    name, line = seen.entry, None
    for _ in range(Limit.HANDING_ON):
        function = next(iter(_functions(seen, name)[-1:]), None)
        returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)] if function is not None else []
        if function is None or len(returns) != 1:
            return line if not returns else None
        value = returns[0].value
        made = [
            node.lineno for node in ast.walk(function)
            if isinstance(node, ast.Assign) and isinstance(value, ast.Name)
            and any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)
        ]  # fmt: skip
        line = made[0] if len(made) == 1 else returns[0].lineno
        to = called(value) if value is not None else ""
        name = "forward" if to.endswith(".apply") else to
    return line


def _choice(seen: _Failed) -> int | None:
    """Where kernels draw what elements share, or else compare what they have drawn, where they do so in one line."""
    draft = draft_of(seen.source.text) if BY_CHANCE in seen.message else None
    is_meant = _chooses if "kept" in seen.message else _draws
    lines = {
        node.lineno for kernel in (draft.kernels if draft is not None else ()) for node in kernel.nodes
        if isinstance(node, ast.expr) and is_meant(node, kernel.indices)
    }  # fmt: skip
    return lines.pop() if len(lines) == 1 else None


def _draws(node: ast.expr, indices: Collection[str]) -> bool:
    return called(node).startswith("tl.rand")


def _chooses(node: ast.expr, indices: Collection[str]) -> bool:
    """Whether it compares something else than indices: what is computed by a function, or no index."""
    parts = list(ast.walk(node.left)) if isinstance(node, ast.Compare) else []
    is_index = any(isinstance(part, ast.Name) and part.id in indices for part in parts)
    return bool(parts) and (not is_index or any(isinstance(part, ast.Call) for part in parts))


def _gradients(seen: _Failed) -> int | None:
    """Where a function that autograd asks for gradients returns, if there is one with one `return`."""
    found = [n for function in seen.source.backwards for n in ast.walk(function) if isinstance(n, ast.Return)]
    return found[0].lineno if len(found) == 1 else None


def _of_an_exception(seen: _Failed) -> int | None:
    if re.search(_REFUSED_GRADIENTS, seen.message):
        return _gradients(seen)
    if re.search(_NOT_CONNECTED, seen.message):
        return next((function.lineno for function in _functions(seen, seen.entry)[-1:]), None)
    return None


_BY_CAUSE: dict[Cause, Callable[[_Failed], int | None]] = {
    Cause.WRONG_DTYPE: _allocation, Cause.WRONG_SHAPE: _allocation, Cause.WRONG_VALUES: _choice,
    Cause.IGNORES_STRIDES: _first_load, Cause.UNCHANGED_INPUT: _returned_input,
    Cause.WRONG_TYPE: _of_an_exception, Cause.EXCEPTION: _of_an_exception,
}  # fmt: skip
