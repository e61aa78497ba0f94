"""The rules that a call's program must keep, whatever its result: who computed it, and from what.

Runs in the grader's process on data alone. The tracer reports what the host did; here stands what of it is allowed.
"""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradekit.engine.executor import Counters, OverBudget
from gradekit.findings import Cause
from gradekit.judge.failure import Failure, Idle
from gradekit.program import Allocate, Aten, Launch, Program, Step, View, every_step, run_steps, views_in
from gradekit.subject import handed_numbers, provenance

if TYPE_CHECKING:
    from gradekit.submission import Submission

SUMS = frozenset({"aten::sum"})
"""Operations that may read whole tensors, where an assignment allows them."""

LAUNCHED = "TracedKernel"
"""What `kernel[grid](...)` gives in the tracer, by the name of its type."""

DEADLY = frozenset({Cause.TIMEOUT, Cause.CRASH, Cause.OUT_OF_MEMORY})
"""Causes after which the student's process cannot be used again, and which cost seconds each time."""


def check_program(
    program: Program, entry: str, allow: Collection[str], submission: Submission, *, writes: bool = False
) -> Idle | None:
    """Hold `program` against the rules for every entry; `allow` names the ATen operations that may compute, `writes`
    says that its results are arguments (gradekit.subject.written).

    What is given back says of a call whose result no kernel has made that nothing may have been left to compute: its
    result does not depend on what the inputs hold, or is one of them. Whether it is right decides.

    Raises:
        Failure: torch computed, a kernel ran that is not the submission's, or the result is not a new tensor,
            or from none.
    """
    _only_allowed_operations(program, entry, allow)
    handed_numbers.check(program, entry)
    _returns_tensors(program, entry, submission)
    _launches_only_own_kernels(program, entry)
    _returns_what_it_made(program, entry)
    return _without_kernels(program, entry, writes=writes)


def check_gradients(program: Program, entry: str, allow: Collection[str], names: Sequence[str]) -> Idle | None:
    """Hold `program`, a call with its backward pass, against the rules; `names` are the arguments of its results.

    A gradient may be the gradient of the result itself: that is what an identity hands back. What is given back is what
    `check_program` gives.

    Raises:
        Failure: torch computed, a kernel ran that is not the submission's, or a gradient is missing.
    """
    _only_allowed_operations(program, entry, allow)
    handed_numbers.check(program, entry)
    for name, result in zip(names, program.results, strict=True):
        if not isinstance(result, View):
            message = f"The backward pass of {entry} gives no gradient for {name}: its `backward` returns None there."
            hint = "return one gradient for each argument of forward; None is for arguments that can have none"
            raise Failure(Cause.WRONG_TYPE, message, facts={"hint": hint})
    _launches_only_own_kernels(program, entry)
    return None if any(program.launches()) else _without_kernels(program, entry)


@contextlib.contextmanager
def within_budget(entry: str, label: str = "") -> Iterator[None]:
    """Open while `entry` runs (in the configuration `label`): a run that is cut off has no result to judge.

    Raises:
        Failure: the run exceeded its budget.
    """
    try:
        yield
    except OverBudget as error:
        where = f", in the configuration {label}," if label else ""
        raise Failure(Cause.BUDGET_EXCEEDED, f"{entry} was stopped{where} {_why(error)}", line=error.line) from None


def _why(error: OverBudget) -> str:
    if error.resource == "bytes":
        return f"because it asks for more than {error.limit / 2**20:,.0f} MiB at a time."
    if error.resource == "programs":
        return f"because one launch has more than {error.limit:,.0f} programs."
    work = f"{error.limit:,.0f} element operations"
    return f"because it takes more than {work} in its kernels. Does a loop in one never end?"


def options(program: Program) -> list[tuple[int, str]]:
    """The options that differ in what they compute, each with its label: (0, "") where nothing is autotuned.

    Configurations that differ in warps or stages alone have the same TTIR and the same grid: one run serves them all.
    """
    choices = program.choices()
    if not choices:
        return [(0, "")]
    distinct: dict[str, tuple[int, str]] = {}
    for option in range(max(len(choice.options) for choice in choices)):
        chosen = [choice.options[option % len(choice.options)] for choice in choices]
        labels = dict.fromkeys(choice.labels[option % len(choice.options)] for choice in choices)
        distinct.setdefault(repr(list(map(_computation(program), chosen))), (option, "; ".join(labels)))
    return list(distinct.values())


def _computation(program: Program) -> Any:
    """A function that shows of steps what they compute: launches with their TTIR in place of the kernel's key."""

    def show(steps: tuple[Step, ...]) -> list[Any]:
        return [
            (program.kernels[step.kernel].ttir, step.grid, step.args) if isinstance(step, Launch) else step
            for step in steps
        ]

    return show


def host_counters(program: Program, option: int) -> Counters:
    """What the program alone tells of a run of configuration `option`: its launches and allocations, no traffic."""
    steps = list(run_steps(program.steps, option))
    made = [step.nbytes for step in steps if isinstance(step, Allocate)]
    launches = sum(isinstance(step, Launch) for step in steps)
    return Counters(launches=launches, bytes_allocated=sum(made), allocations=len(made))


def _only_allowed_operations(program: Program, entry: str, allow: Collection[str]) -> None:
    before: list[Step] = []
    for step in every_step(program.steps):
        if isinstance(step, Aten):
            why = (
                "where the assignment asks for a Triton kernel"
                if step.op not in allow
                else _beyond(program, step, before)
            )
            if why:
                message = f"{entry} computes with torch ({step.op}) {why}."
                line = step.source.line if step.source else None
                raise Failure(Cause.FORBIDDEN_OP, message, line=line, facts={"op": step.op})
        before.append(step)


def _beyond(program: Program, step: Aten, before: Sequence[Step]) -> str:
    """Why an operation that the assignment allows is more than it allows; "" where it is not.

    Numbers that kernels have made may be added up, and single numbers may be worked with: what is left to do on the
    host after a kernel. With whole tensors, a few operations make any loss.
    """
    given, made = list(views_in((step.args, step.kwargs))), sum(view.numel for view in step.outputs)
    if step.op in SUMS:
        known = provenance.computed_by_kernels(program, before) | provenance.constants(program, before)
        if any(view.numel > 1 and view.storage not in known for view in given):
            return "with numbers that no kernel has made; it may only add up what a kernel has stored"
        return ""
    most = max([made, *(view.numel for view in given)])
    return f"with {most:,} numbers; it may only be used with single numbers" if most > 1 else ""


def _returns_tensors(program: Program, entry: str, submission: Submission) -> None:
    if program.results and all(isinstance(result, View) for result in program.results):
        return
    definition = _definition(submission, entry)
    message = f"{entry} returns {program.returned}; it must return a torch tensor."
    if program.returned in ("none", "None", "NoneType"):
        message = f"{entry} returns nothing; it must return a torch tensor. Is its `return` missing?"
    if program.returned == LAUNCHED:
        message = (
            f"{entry} returns what its launch gives, which is no tensor: a kernel's results are what it stores. Launch "
            "the kernel on a line of its own, then return the tensor that it writes to."
        )
    raise Failure(Cause.WRONG_TYPE, message, line=definition.lineno if definition else None)


def _launches_only_own_kernels(program: Program, entry: str) -> None:
    for step in every_step(program.steps):
        if isinstance(step, Launch) and (file := provenance.foreign_file(program, program.kernels[step.kernel])):
            name = program.kernels[step.kernel].name
            message = (
                f"{entry} launches {name}, which has code of {file}: only kernels of the submission's own may run."
            )
            raise Failure(Cause.NO_KERNEL, message, line=step.source.line if step.source else None)


def _without_kernels(program: Program, entry: str, *, writes: bool = False) -> Idle | None:
    """An empty result needs no kernel; any other one that stores to it, where anything is left to compute."""
    computed = provenance.computed_by_kernels(program)
    views = [result for result in program.results if isinstance(result, View) and result.numel]
    others = [view for view in views if view.storage not in computed]
    if not others:
        return None
    failure = Failure(Cause.NO_KERNEL, f"{entry} launches no Triton kernel.")
    if any(program.launches()):
        by_torch = any(_set_by_torch(program, view) for view in others)
        why = "torch copied or computed its values" if by_torch else "nothing gave it any values"
        message = f"{entry} returns a tensor that no kernel has stored to: {why}."
        if writes:
            message = f"No kernel of {entry} has stored to the argument that it must write: store there, not to a copy."
        failure = Failure(Cause.NO_KERNEL, message)
    constant = provenance.constants(program)
    if all(view.storage in constant for view in others):
        return Idle(failure)
    if provenance.copied_inputs(program, others):
        return Idle(failure, copies=True)
    raise failure


def _set_by_torch(program: Program, result: View) -> bool:
    """Whether a step beside the launches gives the memory of a result its values."""
    steps = (step for step in every_step(program.steps) if not isinstance(step, (Allocate, Launch)))
    return any(view.storage == result.storage for step in steps for view in views_in(tuple(vars(step).values())))


def _returns_what_it_made(program: Program, entry: str) -> None:
    made = {step.storage for step in every_step(program.steps) if isinstance(step, Allocate)}
    for result in program.results:
        if not isinstance(result, View) or result.numel == 0 or result.storage in made:
            continue
        if result.storage in program.storages:
            message = f"{entry} returns an input, or a view of one; the result must be a new tensor."
            raise Failure(Cause.UNCHANGED_INPUT, message)
        message = f"{entry} returns a tensor that this call did not make: no step that was recorded produces it."
        raise Failure(Cause.NO_KERNEL, message)


def argument_names(
    args: Sequence[Any], entry: str, submission: Submission, lists: Mapping[str, Sequence[tuple[int, int]]]
) -> tuple[str, ...]:
    """What the student calls each of `args`: by the test's name, else as the entry's parameter; "xs[0]" in one of
    the `lists` (domain.EntryDomain.lists, by entry)."""
    named = list(_parameters(submission, entry))
    for first, length in lists.get(entry, ()):
        named[first : first + 1] = [f"{name}[{place}]" for name in named[first : first + 1] for place in range(length)]
    parameters = dict(enumerate(named))
    return tuple(getattr(arg, "name", "") or parameters.get(i, f"argument {i + 1}") for i, arg in enumerate(args))


@functools.lru_cache(maxsize=64)
def _parameters(submission: Submission, entry: str) -> tuple[str, ...]:
    found = _definition(submission, entry)
    return tuple(a.arg for a in (*found.args.posonlyargs, *found.args.args)) if found else ()


def _definition(submission: Submission, entry: str) -> ast.FunctionDef | None:
    nodes = [n for n in ast.walk(ast.parse(submission.text)) if isinstance(n, ast.FunctionDef) and n.name == entry]
    return nodes[-1] if nodes else None
