"""What is proved of a submission's entry for all sizes, and refutations run on the engine before anybody is accused.

A refutation is a call for which a formula says that memory goes wrong. Where that call can be run, what the engine
finds is what counts; for sizes that fit nowhere, the programs that are to blame are run alone. What the engine does not
see becomes open, and where the formulas were exact it is written down as a fault of the proof.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradekit import domain, reuse
from gradekit.assignment import Assignment, UsageError, beside, of_path
from gradekit.causes import Cause
from gradekit.engine.budget import OverBudget, Unsupported
from gradekit.engine.def_use import LOADS, STORES
from gradekit.engine.ttir_locations import line_of
from gradekit.inputs import value_kinds
from gradekit.inputs.draws import promised
from gradekit.inputs.spec import Input
from gradekit.judge.failure import Failure, sentence
from gradekit.judge.memory_checks import assert_memory_clean
from gradekit.origins import Origins
from gradekit.program import Argument, Program, Scalar, View
from gradekit.prove.probe import outside
from gradekit.prove.prover import ProofBudget, Proofs, prove
from gradekit.prove.question import BOUNDS, COVERED, GRID, OPEN, REFUTED, TILE, ProofVerdict
from gradekit.prove.setting import calls_of, dense, may_lie_so, names_of
from gradekit.prove.symbolic_host import NotFollowed
from gradekit.report.proofs import sized
from gradekit.report.text import shortened
from gradekit.sandbox import Form, TraceError, Tracer
from gradekit.subject import Limit
from gradekit.subject.call_spec import call_spec
from gradekit.subject.subject import Subject
from gradekit.submission import read


def proved(subject: Subject, entry: domain.EntryDomain, budget: ProofBudget, *, gradient: bool = False) -> Proofs:
    """What holds of all calls of `entry` within its domain; refutations are those that the engine confirms."""
    wanted = _wanted(entry) if gradient else ()
    found = _decided(subject, entry, budget, gradient)
    if any(tensor.written for tensor in entry.tensors):
        found.gaps.append("calls that write to tensors with gaps were not looked at")
    if entry.optional:
        found.gaps.append(f"calls without {' and '.join(entry.optional)} were not looked at")
    for index, verdict in enumerate(found.verdicts):
        if verdict.verdict == REFUTED:
            _confirm(subject, entry, found, index, wanted)
    found.failures.sort(key=lambda failure: failure.cause is Cause.OUT_OF_BOUNDS_LOAD)  # others are graver
    return found


_PROOFS: reuse.SharedCache[str, Proofs] = reuse.shared(32)
"""What was decided, by the submission's text and the question."""


def _decided(subject: Subject, entry: domain.EntryDomain, budget: ProofBudget, gradient: bool) -> Proofs:
    question = repr((subject.submission.text, subject.assignment.calling, entry, budget, gradient))
    found = _PROOFS.get(question)
    if found is None:
        found, is_whole = _prove(subject, entry, budget, gradient)
        if is_whole:
            _PROOFS.put(question, found)
    return replace(found, verdicts=[*found.verdicts], gaps=[*found.gaps], faults=[*found.faults], failures=[])


def _prove(subject: Subject, entry: domain.EntryDomain, budget: ProofBudget, gradient: bool) -> tuple[Proofs, bool]:
    wanted, failed = _wanted(entry) if gradient else (), list[TraceError]()

    def follow(call: Sequence[Argument]) -> tuple[Program, Origins]:
        args = call[:-1] if wanted else call
        try:
            return subject.follow(Form(entry.name, tuple(args), wanted))
        except TraceError as error:
            failed.append(error)
            shapes = " and ".join(f"a {one.dtype} tensor of {list(one.shape)}" for one in call if isinstance(one, View))
            raise NotFollowed(f"a call with {shapes} does not run: {shortened(str(error), 500)}") from None

    calls = [call for call in calls_of(entry, gradient) if _is_dense(entry, call)]
    return prove(calls, names_of(entry, gradient), follow, entry, budget), not failed


def _is_dense(entry: domain.EntryDomain, call: Sequence[Argument]) -> bool:
    """Whether what may be written is contiguous: of its strides nothing says here that no two elements share memory."""
    pairs = ((getattr(what, "written", ""), arg) for what, arg in zip(entry.arguments, call, strict=False))
    return all(dense(arg) for written, arg in pairs if written and isinstance(arg, View))


def _wanted(entry: domain.EntryDomain) -> tuple[int, ...]:
    return tuple(n for n, argument in enumerate(entry.arguments) if argument.name in entry.gradients)


def _confirm(subject: Subject, entry: domain.EntryDomain, found: Proofs, index: int, wanted: tuple[int, ...]) -> None:
    verdict = found.verdicts[index]
    tensors = [(what, arg) for what, arg in zip(entry.arguments, verdict.call, strict=False) if isinstance(arg, View)]
    is_promised = all(isinstance(what, domain.Tensor) and may_lie_so(what, arg) for what, arg in tensors)
    seen = _looked_at(subject, entry, verdict, wanted) if is_promised else NOT_RUN
    if isinstance(seen, Failure):
        is_own = verdict.kind != BOUNDS or (seen.cause, seen.line) == _blamed(verdict)
        found.verdicts[index] = replace(verdict, finding=seen.message) if is_own else _open(verdict, NOTHING)
        if verdict.kind not in ADVICE:
            found.failures.append(seen.naming(f"For {sized(verdict.sizes)}: "))
        return
    found.verdicts[index] = _open(verdict, seen)
    if seen == NOTHING and verdict.exact and verdict.kind == BOUNDS:
        why = f"{_open(verdict, seen).why}, and nothing in it was approximated"
        found.faults.append(f"{verdict.subject}, line {verdict.line}: {why}")


def _blamed(verdict: ProofVerdict) -> tuple[Cause, int | None]:
    """What the engine sees where the claim's own access leaves its tensor."""
    is_load = verdict.subject.startswith("load")
    return Cause.OUT_OF_BOUNDS_LOAD if is_load else Cause.OUT_OF_BOUNDS_STORE, verdict.line


def _looked_at(
    subject: Subject, entry: domain.EntryDomain, verdict: ProofVerdict, wanted: tuple[int, ...]
) -> Failure | str:
    """What goes wrong in the call; where its values cannot be made up, in the program alone that is to blame."""
    args = _specs(entry, verdict)
    if args is not None:
        return _seen(subject, entry.name, args, verdict, wanted)
    try:
        return _probed(subject.program(call_spec(entry.name, tuple(map(_given, verdict.call)), wanted)), verdict)
    except (TraceError, Failure, Unsupported, OverBudget, ValueError):
        return NOT_RUN


def _given(argument: Argument, kind: str = "zeros") -> Any:
    if isinstance(argument, View):
        return Input(argument.dtype, argument.shape, argument.stride, argument.offset, kind, 1)
    return argument.value if isinstance(argument, Scalar) else None


def _open(verdict: ProofVerdict, seen: str) -> ProofVerdict:
    why = f"the solver says no at {sized(verdict.sizes)}, and the engine finds nothing there"
    if verdict.kind == COVERED:
        why = "which program writes each element was not worked out"
    elif not verdict.exact:
        why = "it depends on data, or on arithmetic that is not followed"
    elif seen == NOT_RUN:
        why = f"the solver says no at {sized(verdict.sizes)}, and the engine cannot run that"
    return replace(verdict, verdict=OPEN, why=why)


NOTHING, NOT_RUN = "nothing", "not run"  # why nothing was seen to go wrong: nothing does, or the call cannot be run

ADVICE = (GRID, TILE)  # what costs no points: many right kernels count rows by y, of which 65,535 are enough for them


def _seen(
    subject: Subject, entry: str, args: Sequence[Any], verdict: ProofVerdict, wanted: tuple[int, ...]
) -> Failure | str:
    small = max((a.storage_size for a in args if isinstance(a, Input)), default=0) <= Limit.RUNNABLE
    try:
        if not small:
            return _probed(subject.program(call_spec(entry, tuple(args), wanted)), verdict)
        seen = subject.call(entry, args, wanted)
    except TraceError as error:
        return Failure(error.cause, str(error), line=error.line) if verdict.kind in ADVICE else NOT_RUN
    except (Failure, Unsupported, OverBudget, ValueError):
        return NOT_RUN
    try:
        assert_memory_clean(seen)
    except Failure as failure:
        alike = [f for f in seen.findings if (f.cause, f.line) == _blamed(verdict)]
        own = max(alike, key=lambda f: verdict.subject.endswith(f.tensor), default=None)
        if own is not None and verdict.kind == BOUNDS:
            failure = Failure(own.cause, sentence(own), line=own.line, facts=failure.facts)
        failure.given = tuple(args)
        return failure if failure.cause is not Cause.BUDGET_EXCEEDED else NOT_RUN
    return NOTHING


def _probed(program: Program, verdict: ProofVerdict) -> Failure | str:
    if not verdict.exact or len(verdict.program) != 3:
        return NOT_RUN
    x, y, z = verdict.program
    wrong = outside(program, verdict.launch, (x, y, z))
    if wrong is None:
        return NOTHING
    op, element, count = wrong
    what = "loads" if op.name in LOADS else "stores to" if op.name in STORES else "updates"
    cause = Cause.OUT_OF_BOUNDS_LOAD if op.name in LOADS else Cause.OUT_OF_BOUNDS_STORE
    line = line_of(op.location, program.path)
    said = f"Line {line}: program {(x, y, z)} {what} element {element:,} of a tensor of {count:,}."
    return Failure(cause, said, line=line)


def _specs(entry: domain.EntryDomain, verdict: ProofVerdict) -> tuple[Any, ...] | None:
    """The call with values, as a test would make it; None where its values cannot be made up."""
    found: list[Any] = []
    for argument, what in zip(verdict.call, [*entry.arguments, *entry.results], strict=False):
        if isinstance(argument, View):
            kinds = getattr(what, "values", ("normal",)) or ("normal",)
            kind = _kind(entry, str(kinds[0]), verdict)
            if kind is None or not value_kinds.is_known(kind):
                return None
            spec = _given(argument, kind)
            found.append(promised(what, spec, verdict.sizes) if isinstance(what, domain.Tensor) else spec)
        elif isinstance(argument, Scalar):
            found.append(argument.value)
    return tuple(found)


def _kind(entry: domain.EntryDomain, kind: str, verdict: ProofVerdict) -> str | None:
    if any(size.derived for size in entry.sizes.values()):
        return None if "{" in kind else kind
    chosen = {name: options[0] for name, options in entry.choices.items()}
    return kind.format(**chosen, **verdict.sizes, seed=1)


# --- a submission's proofs as a record --------------------------------------------------------------------------------

SCHEMA = "gradekit/proofs/1"


def prove_submission(path: Path, id: str | None = None) -> dict[str, Any]:
    """What holds of the submission at `path` for all sizes that its assignment promises, as a record. Raises
    NoSuchSubmission and SubmissionError where there is nothing to prove anything of, and UsageError where there is no
    such assignment, or it has no domain."""
    assignment = of_path(path, id)
    if not assignment.domain:
        raise UsageError(f"{assignment.id} has no domain.toml, which says for which sizes something is to be proved")
    load_kinds(assignment)
    submission = read(path)
    passes: dict[str, dict[str, Any]] = {}
    subject = Subject(submission, assignment, lambda: Tracer(submission, calling=assignment.calling))
    with contextlib.closing(subject):
        for name, entry in assignment.domain.items():
            for title, gradient in {name: False, f"{name}, backward": True}.items():
                if not gradient or entry.gradients:
                    passes[title] = proved(subject, entry, ProofBudget(), gradient=gradient).as_data()
    return {"schema": SCHEMA, "assignment": assignment.id, "submission": str(path), "passes": passes}


def load_kinds(assignment: Assignment) -> None:
    """Makes the kinds of values known that stand beside an assignment's tests: refutations are run with them."""
    for file in sorted(assignment.folder.glob("*.py")):
        if "@value_kind" in file.read_text(encoding="utf-8"):
            beside(assignment.tests, file.stem)
