"""The rules that a call's program must keep, whatever its result: who computed it, and from what."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import re
import weakref
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradekit.engine.budget import OverBudget, Unsupported
from gradekit.engine.def_use import STORES
from gradekit.engine.host import ForbiddenOp
from gradekit.engine.kernel_facts import every_operation, parsed
from gradekit.engine.ttir import TTIRError
from gradekit.findings import Cause
from gradekit.inputs.layouts import row_major
from gradekit.judge.failure import Failure, Idle, sentence
from gradekit.judge.memory_checks import line_of
from gradekit.observations import Counters
from gradekit.program import (
    Allocate,
    Argument,
    Aten,
    Copy,
    Descriptor,
    Fill,
    Kernel,
    Launch,
    Literal,
    Program,
    Step,
    View,
    every_step,
    reads,
    run_steps,
    views_in,
    writes,
)
from gradekit.reuse import SharedCache, shared
from gradekit.sandbox import NO_SUBMISSION, TraceError, Tracer
from gradekit.subject import Limit
from gradekit.subject.digest import of_kernel

if TYPE_CHECKING:
    from gradekit.submission import Submission

SUMS = frozenset({"aten::sum"})  # operations that may read whole tensors, where an assignment allows them

LAUNCHED = "TracedKernel"  # what `kernel[grid](...)` gives in the tracer, by the name of its type

DEADLY = frozenset({Cause.TIMEOUT, Cause.CRASH, Cause.OUT_OF_MEMORY})
"""Causes after which the student's process cannot be used again, and which cost seconds each time."""


def check_program(
    program: Program, entry: str, allow: Collection[str], submission: Submission, *, writes: bool = False
) -> Idle | None:
    """Hold `program` against the rules for every entry; `allow` names the ATen operations that may compute, `writes`
    says that its results are arguments (gradekit.subject.written).

    What is given back says of a call whose result no kernel has made that nothing may have been left to compute: its
    result does not depend on what the inputs hold, or is one of them. Whether it is right decides. Raises Failure where
    torch computed, a kernel ran that is not the submission's, or the result is not a new tensor, or from none.
    """
    _only_allowed_operations(program, entry, allow)
    check_handed_numbers(program, entry)
    _returns_tensors(program, entry, submission)
    _launches_only_own_kernels(program, entry)
    _returns_what_it_made(program, entry)
    return _without_kernels(program, entry, writes=writes)


def check_gradients(program: Program, entry: str, allow: Collection[str], names: Sequence[str]) -> Idle | None:
    """Hold `program`, a call with its backward pass, against the rules; `names` are the arguments of its results.

    A gradient may be the gradient of the result itself: that is what an identity hands back. What is given back is what
    `check_program` gives. Raises Failure where torch computed, a kernel ran that is not the submission's, or a gradient
    is missing.
    """
    _only_allowed_operations(program, entry, allow)
    check_handed_numbers(program, entry)
    for name, result in zip(names, program.results, strict=True):
        if not isinstance(result, View):
            message = f"The backward pass of {entry} gives no gradient for {name}: its `backward` returns None there."
            hint = "return one gradient for each argument of forward; None is for arguments that can have none"
            raise Failure(Cause.WRONG_TYPE, message, facts={"hint": hint})
    _launches_only_own_kernels(program, entry)
    return None if any(program.launches()) else _without_kernels(program, entry)


@contextlib.contextmanager
def within_budget(entry: str, label: str = "") -> Iterator[None]:
    """Open while `entry` runs (in the configuration `label`). Raises Failure where it exceeds its budget."""
    try:
        yield
    except OverBudget as error:
        where = f", in the configuration {label}," if label else ""
        message, seen = f"{entry} was stopped{where} {_why(error)}", next(iter(error.findings), None)
        if seen is not None:  # what is wrong in memory may be why there is so much to do
            message = sentence(seen) if _is_left_by_others(error) else f"{sentence(seen)} {message}"
        line = seen.line if seen is not None else None if _is_left_by_others(error) else error.line
        raise Failure(Cause.BUDGET_EXCEEDED, message, line=line, seen=seen) from None


def _is_left_by_others(error: OverBudget) -> bool:
    """Whether it had only what earlier calls have left of the work: no line of it is to blame."""
    return error.resource == "work" and error.limit < Limit.HURRY


def _why(error: OverBudget) -> str:
    if error.resource == "bytes":
        return f"because it asks for more than {error.limit / 2**20:,.0f} MiB at a time."
    if error.resource == "programs":
        many = f"because one launch has more than {error.limit:,.0f} programs."
        return many if error.limit else "because its programs depend on each other."
    if _is_left_by_others(error):
        return f"because it takes more than the {error.limit:,.0f} element operations that earlier calls have left."
    reason = "" if error.findings else " Does a loop in one never end, or is a tile much larger than the data?"
    return f"because it takes more than {error.limit:,.0f} element operations in its kernels.{reason}"


def options(program: Program) -> list[tuple[int, str]]:
    """The options that differ in what they compute, each with its label: (0, "") where nothing is autotuned.
    Configurations that differ in warps or stages alone have the same TTIR and the same grid: one run serves them
    all."""
    choices = program.choices()
    if not choices:
        return [(0, "")]
    distinct: dict[str, tuple[int, str]] = {}
    for option in range(max(len(choice.options) for choice in choices)):
        chosen = [choice.options[option % len(choice.options)] for choice in choices]
        labels = dict.fromkeys(choice.labels[option % len(choice.options)] for choice in choices)
        distinct.setdefault(repr([_computation(program, steps) for steps in chosen]), (option, "; ".join(labels)))
    return list(distinct.values())


def _computation(program: Program, steps: tuple[Step, ...]) -> list[Any]:
    texts = {key: kernel.ttir for key, kernel in program.kernels.items()}
    return [(texts[step.kernel], step.grid, step.args) if isinstance(step, Launch) else step for step in steps]


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
            unasked = "where the assignment asks for a Triton kernel"
            why = _beyond(program, step, before) if step.op in allow else unasked
            if why:
                message = f"{entry} computes with torch ({step.op}) {why}."
                raise Failure(Cause.FORBIDDEN_OP, message, line=line_of(step), facts={"op": step.op})
        before.append(step)


def _beyond(program: Program, step: Aten, before: Sequence[Step]) -> str:
    """Why it is more than allowed, or "": what kernels made may be added up, and single numbers may be worked with."""
    given, made = list(views_in((step.args, step.kwargs))), sum(view.numel for view in step.outputs)
    if step.op in SUMS:
        known = set[int]().union(*_made(program, before))
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
            f"{entry} returns what its launch gives, which is not a tensor: a kernel's results are what it stores. "
            "Launch the kernel on a line of its own, then return the tensor that it writes to."
        )
    raise Failure(Cause.WRONG_TYPE, message, line=definition.lineno if definition else None)


def _launches_only_own_kernels(program: Program, entry: str) -> None:
    for step in program.every_launch:
        if file := foreign_file(program, program.kernels[step.kernel]):
            why = f"which has code of {file}: only kernels of the submission's own may run."
            message = f"{entry} launches {program.kernels[step.kernel].name}, {why}"
            hint = "a kernel and all that it calls stand in the submission: copy their text into it"
            raise Failure(Cause.NO_KERNEL, message, line=line_of(step), facts={"hint": hint})


def _without_kernels(program: Program, entry: str, *, writes: bool = False) -> Idle | None:
    """An empty result needs no kernel; any other one that stores to it, where anything is left to compute."""
    computed, constant = _made(program, every_step(program.steps))
    views = [result for result in program.results if isinstance(result, View) and result.numel]
    others = [view for view in views if view.storage not in computed]
    if not others:
        return None
    failure = _not_stored(program, entry, {view.storage for view in others}, writes=writes)
    if all(view.storage in constant for view in others):
        return Idle(failure)
    if copied_inputs(program, others):
        return Idle(failure, copies=True)
    raise failure


def _not_stored(program: Program, entry: str, storages: set[int], *, writes: bool) -> Failure:
    if program.empty_grids:
        line = program.empty_grids[0].line
        why = f"the grid in line {line} has a 0, so no program runs"
        message = f"{entry} returns a tensor that no kernel has stored to: {why}."
        return Failure(Cause.NO_KERNEL, message, line=line)
    if not any(program.launches()):
        return Failure(Cause.NO_KERNEL, f"{entry} launches no Triton kernel.")
    if writes:
        copies = (step for step in every_step(program.steps) if isinstance(step, Copy))
        copied = (step for step in copies if step.origin.storage in storages)
        message = f"No kernel of {entry} has stored to the argument that it must write: store there, not to a copy."
        facts = {"hint": "pass the argument itself to the kernel, and the strides that it has"}
        return Failure(Cause.NO_KERNEL, message, line=next(map(line_of, copied), None), facts=facts)
    beside = (step for step in every_step(program.steps) if not isinstance(step, (Allocate, Launch)))
    by_torch = any(view.storage in storages for step in beside for view in views_in(step))
    why = "torch copied or computed its values" if by_torch else "nothing gave it any values"
    return Failure(Cause.NO_KERNEL, f"{entry} returns a tensor that no kernel has stored to: {why}.")


def _returns_what_it_made(program: Program, entry: str) -> None:
    made = program.allocated
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
    """What the student calls each of `args`: as the test does, or else the parameter; "xs[0]" in `lists`."""
    found = _definition(submission, entry)
    named = [a.arg for a in (*found.args.posonlyargs, *found.args.args)] if found else []
    for first, length in lists.get(entry, ()):
        named[first : first + 1] = [f"{name}[{place}]" for name in named[first : first + 1] for place in range(length)]
    parameters = dict(enumerate(named))
    return tuple(getattr(arg, "name", "") or parameters.get(i, f"argument {i + 1}") for i, arg in enumerate(args))


@functools.lru_cache(maxsize=64)
def _definition(submission: Submission, entry: str) -> ast.FunctionDef | None:
    nodes = [n for n in ast.walk(ast.parse(submission.text)) if isinstance(n, ast.FunctionDef) and n.name == entry]
    return nodes[-1] if nodes else None


# --- where the values of a program come from: its submission's own kernels, another's, or torch -----------------------


_FILE = re.compile(r'loc\("([^"\n]+)":\d+:\d+')
_TRITONS_OWN = re.compile(r"(^|/)triton/")


@functools.lru_cache(maxsize=512)
def _files(ttir: str) -> frozenset[str]:
    return frozenset(_FILE.findall(ttir))


def foreign_file(program: Program, kernel: Kernel) -> str:
    """A file that code of the kernel stands in, which is neither the submission nor Triton's own library; "" where all
    of it stands in those, or the program does not say what the submission's file is called."""
    if not program.path:
        return ""
    files = _files(kernel.ttir)
    others = sorted(file for file in files if file != program.path and not _TRITONS_OWN.search(file))
    return others[0] if others else "" if program.path in files else "another file"


@functools.lru_cache(maxsize=512)
def _stores(ttir: str) -> bool:
    """Whether a kernel stores anything at all; one that cannot be read may."""
    try:
        return any(op.name in STORES or op.name.startswith("tt.atomic") for op in every_operation(parsed(ttir)))
    except TTIRError:
        return True


def _made(program: Program, steps: Iterable[Step]) -> tuple[set[int], set[int]]:
    """The storages, after some steps, whose values may come from a kernel of the program: those that a kernel which
    stores has been given, and what was copied or computed from them, but for inputs. And those whose values are the
    same whatever the inputs hold: those that the host has filled, and what it copied or computed from these alone."""
    computed, constant, others = set[int](), set[int](), set[int]()
    for step in steps:
        stored = _written(program, step, computed)
        computed |= stored - program.storages.keys()
        if isinstance(step, Launch):
            others |= stored
        elif not isinstance(step, Allocate):
            alike = {view.storage for view in reads(step)} <= constant - others
            (constant if alike else others).update(view.storage for view in writes(step))
    return computed, constant - others


def copied_inputs(program: Program, results: Iterable[View]) -> bool:
    """Whether each of the results has the elements of an input in their order, and nothing else was ever written."""
    known, storages = set(map(_elements, program.inputs)), set(program.storages)
    for step in every_step(program.steps):
        if isinstance(step, Copy) and step.target.storage not in storages and step.target.numel == step.origin.numel:
            storages.add(step.target.storage)
            known |= {_elements(step.target)} if _elements(step.origin) in known else set()
        elif not isinstance(step, Allocate):
            return False
    return all(_elements(result) in known for result in results)


def _elements(view: View) -> Hashable:
    """What a view shows, in order: the same for two shapes of contiguous elements."""
    contiguous = view.stride == row_major(view.shape)
    return (view.storage, view.dtype, view.offset, *((view.numel,) if contiguous else (view.shape, view.stride)))


def _written(program: Program, step: Step, known: set[int]) -> set[int]:
    if isinstance(step, Launch):
        stored = {view.storage for view in writes(step)} | program.addresses.keys()
        return stored if _stores(program.kernels[step.kernel].unaligned) else set()
    computed = isinstance(step, (Copy, Aten)) and any(view.storage in known for view in reads(step))
    return {view.storage for view in writes(step)} if computed else set()


# --- numbers that host code hands on by itself: many of them may have been computed elsewhere -------------------------
#
# They come as tensors that the host writes out, and one at a time: as the value of a fill, as an argument of a
# launch, or as the place of a view. What follows from the inputs' sizes has few values, or goes on in few different
# steps.

_RANGE = 3  # elements of the shortest tensor that can be a range: any two numbers would be one


def check_handed_numbers(program: Program, entry: str) -> None:
    """Hold what the host hands on against what a computation needs; a range (torch.arange) tells two numbers. Raises
    Failure for more than Limit.WRITTEN floats written out, and Unsupported, for a person to look, for as many integers,
    which may be a schedule of tiles, or too many single numbers."""
    steps = [step for step in every_step(program.steps) if isinstance(step, (Copy, Fill, Launch, Literal))]
    _check_tables([step for step in steps if isinstance(step, Literal)], entry)
    single = {value for step in steps for _, value in _places(program, step) if isinstance(value, float)}
    _wait_for_a_person("different numbers", len(single), Limit.WRITTEN, steps)
    different = sum(len({b - a for a, b in itertools.pairwise([0, *one])}) for one in _sequences(program, steps))
    _wait_for_a_person("integers", different, Limit.PLACES, steps)


def _check_tables(written: Sequence[Literal], entry: str) -> None:
    tables = [step for step in written if not _is_range(step.values)]
    ranges = {(step.values[0], step.values[-1]) for step in written if _is_range(step.values)}
    count = sum(len(step.values) for step in tables) + 2 * len(ranges)
    if count <= Limit.WRITTEN:
        return
    line = line_of(written[0])
    if any(isinstance(value, float) for step in written for value in step.values):
        message = f"{entry} writes out {count:,} numbers as tensors, where {Limit.WRITTEN} are allowed: "
        raise Failure(Cause.FORBIDDEN_OP, f"{message}results are computed from the inputs.", line=line)
    raise Unsupported(f"a table of {count:,} integers that the host writes out", line)


def _is_range(values: Sequence[float]) -> bool:
    if len(values) < _RANGE:
        return False
    step = values[1] - values[0]
    span = max(abs(values[0]), abs(values[-1]), 1.0)
    return all(abs(b - a - step) <= 1e-5 * span for a, b in itertools.pairwise(values))


def _wait_for_a_person(what: str, count: int, most: int, steps: Sequence[Step]) -> None:
    if count > most:
        line = next((step.source.line for step in steps if not isinstance(step, Literal) and step.source), None)
        raise Unsupported(f"{count:,} {what} that the host passes on one at a time", line)


def _sequences(program: Program, steps: Sequence[Step]) -> Iterable[list[int]]:
    """The integers of all steps that came from one place: an argument of a kernel, a fill's value, a view's offset."""
    found: dict[Any, list[int]] = {}
    for step in steps:
        for place, value in _places(program, step):
            if isinstance(value, int):
                found.setdefault(place, []).append(value)
    return found.values()


def _places(program: Program, step: Step) -> Iterator[tuple[Any, Any]]:
    if isinstance(step, Launch):
        name = program.kernels[step.kernel].name
        for position, argument in enumerate(step.args):
            yield (name, position), argument.offset if isinstance(argument, View) else getattr(argument, "value", None)
    elif isinstance(step, Fill):
        yield from (("fill", step.value), ("filled", step.target.offset))
    elif isinstance(step, Copy):
        yield from (("from", step.origin.offset), ("to", step.target.offset))


# --- whether kernels are Triton's, and who is to blame where the engine breaks down over a program --------------------
#
# A submission's process can send whatever program it likes. So each kernel is shown to Triton itself first, in a clean
# and confined process that has met no submission: what its parser and verifier refuse is no kernel, whatever the engine
# would have made of it. Where the engine breaks down nevertheless, the arguments of the launches are compared with the
# kernels: if they do not fit, the program is forged; if they do, gradekit has met a mistake of its own, which costs
# nobody a point.


_accepted: SharedCache[bytes, bool] = shared()
"""Digests of kernels that Triton has accepted, but for names and places: of a class, many have the same."""


class Soundness:
    """What is known of one submission's kernels: `signatures` by their text, None where Triton refuses it. That Triton
    accepts a text is known of every submission's; whatever else its process says is for this one alone."""

    def __init__(self) -> None:
        self.signatures: dict[str, list[str] | None] = {}
        self._fine: set[str] = set()
        self._reader = Tracer(NO_SUBMISSION)  # its process begins with the first question
        weakref.finalize(self, self._reader.abandon)

    def start(self) -> None:
        """Starts the process that shows kernels to Triton."""
        self._reader.start()

    @contextlib.contextmanager
    def answers_for(self, program: Program, entry: str) -> Iterator[None]:
        """Open while the engine runs what `entry` became. Raises Failure for a forged program, or too little memory."""
        if not all(self._is_accepted(kernel.unaligned) for kernel in program.kernels.values()):
            raise _forged(entry)
        try:
            yield
        except (Failure, ForbiddenOp, OverBudget, Unsupported):
            raise
        except Exception as error:
            if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # Python's or torch's
                raise Failure(Cause.BUDGET_EXCEEDED, f"{entry} needs more memory than this machine has.") from None
            if not self._arguments_fit(program):
                raise _forged(entry) from None
            raise

    def _is_accepted(self, ttir: str) -> bool:
        if ttir in self._fine:
            return True
        digest = of_kernel(ttir)
        if _accepted.get(digest) is None and self._signature(ttir) is None:
            return False
        _accepted.put(digest, True)
        self._fine.add(ttir)
        return True

    def _signature(self, ttir: str) -> list[str] | None:
        if ttir not in self.signatures:
            try:
                self.signatures[ttir] = self._reader.signature(ttir)
            except TraceError:
                self.signatures[ttir] = None
        return self.signatures[ttir]

    def _arguments_fit(self, program: Program) -> bool:
        texts = ((program.kernels[one.kernel].unaligned, one.args) for one in program.every_launch)
        return all(_fit(self._signature(text) or [], args) for text, args in texts)


def _forged(entry: str) -> Failure:
    return Failure(Cause.CRASH, f"What {entry} was traced to is not a program that Triton would run.")


def _fit(types: Sequence[str], arguments: Sequence[Argument]) -> bool:
    """With a descriptor, which stands for several arguments by version, the rest cannot be matched one by one."""
    if any(isinstance(argument, Descriptor) for argument in arguments):
        return True
    are_pointers = [kind.startswith("*") or "ptr" in kind for kind in types]
    return are_pointers == [isinstance(argument, View) for argument in arguments]
