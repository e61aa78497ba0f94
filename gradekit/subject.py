"""The submission as a test sees it: something to call, which answers with what a run of the call showed.

    observation = submission.softmax(x)          # x: an Input spec, a tensor, a number, or None

Runs in the grader's process. A call is traced to a program (in the tracer's process, once for each signature: shapes,
strides, offsets, dtypes, scalars, shared storages), the program is held against the host-side rules, and every
distinct configuration of it is run by the engine. A run of the same signature on the same values is not repeated.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from gradekit import rules
from gradekit.engine import run as engine
from gradekit.findings import Cause, Finding
from gradekit.judge.failure import Failure
from gradekit.program import Argument, Program, Scalar, View
from gradekit.sandbox import Loaded, TraceError, Tracer
from gradekit.strategies import Input

if TYPE_CHECKING:
    from gradekit.assignment import Assignment
    from gradekit.submission import Submission

REMEMBERED_BYTES = 128 << 20
"""Results of earlier runs that are kept for the next check: the whole grader must stay under 1.5 GiB."""

PATIENCE = 3
"""A submission whose process hung or died so many times is not called again: each time costs the student ten seconds."""

Mutation = Callable[[Sequence[torch.Tensor], Sequence[Any]], Sequence[torch.Tensor]]


@dataclass(frozen=True, eq=False)
class Observation:
    """What one call of the entry showed.

    `inputs` are the arguments as the test gave them, `results` the tensors and numbers that the call returned, in
    order. `findings` are those of every configuration. `variants` are the same call under the other configurations of
    an autotuned kernel, each with its `label`: they must be right too.
    """

    entry: str
    inputs: tuple[Any, ...]
    results: tuple[Any, ...]
    findings: tuple[Finding, ...]
    counters: Any
    program: Program
    prints: tuple[str, ...] = ()
    label: str = ""
    variants: tuple[Observation, ...] = ()
    mutate: Any = None

    @property
    def tensor(self) -> torch.Tensor:
        """The result, where the call returns exactly one tensor.

        Raises:
            Failure: it returned something else.
        """
        if len(self.results) != 1 or not isinstance(self.results[0], torch.Tensor):
            raise Failure(Cause.WRONG_TYPE, f"{self.entry} returns {self.program.returned}, not one tensor.")
        return self.results[0]


@dataclass(frozen=True, eq=False)
class Call:
    """One call that a test made: the arguments, and what came of it (None where the call failed)."""

    entry: str
    args: tuple[Any, ...]
    observation: Observation | None = None


class Subject:
    """A submission that tests can call, by the name of any function that it defines.

    `start` makes a tracer for the submission: it is called at the first use, and again after one has died. With
    `mutate`, the judge sees a trivial wrong result in place of the submission's. `calls` are those made since
    `forget_calls`.
    """

    def __init__(
        self,
        submission: Submission,
        assignment: Assignment,
        start: Callable[[], Tracer],
        mutate: Mutation | None = None,
    ) -> None:
        self.submission = submission
        self.assignment = assignment
        self.mutate = mutate
        self.calls: list[Call] = []
        self._start = start
        self._tracer: Tracer | None = None
        self._programs: dict[str, Program | TraceError] = {}
        self._runs: collections.OrderedDict[str, Observation] = collections.OrderedDict()
        self._remembered = 0
        self._deaths: list[TraceError] = []

    def __getattr__(self, name: str) -> Callable[..., Observation]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args: Any) -> Observation:
            return self.call(name, args)

        return call

    def __repr__(self) -> str:  # Hypothesis shows the arguments of a failing test: not all that is remembered here
        return f"Subject({self.submission.path!r})"

    def call(self, entry: str, args: Sequence[Any]) -> Observation:
        """The observation of `entry(*args)`.

        Raises:
            TraceError: the student's code could not be traced: it raised, hung, died, or did what it may not.
            Failure: the program breaks a rule, or ran over its budget.
            Unsupported: the engine cannot know what a kernel does.
        """
        self.calls.append(Call(entry, tuple(args)))
        observation = self._observe(entry, tuple(args))
        self.calls[-1] = Call(entry, tuple(args), observation)
        return observation

    def forget_calls(self) -> None:
        """A new example begins: what was called before is not evidence for it."""
        self.calls.clear()

    def load(self) -> Loaded:
        """What the submission defines, once it has been executed in its own process.

        Raises:
            TraceError: executing it failed.
        """
        if self._tracer is None:
            self._tracer = self._start()
        return self._tracer.load()

    def close(self) -> None:
        """End the tracer's process; a later call would start a new one."""
        if self._tracer is not None:
            self._tracer.close()
        self._tracer = None

    # --- tracing ---------------------------------------------------------------------------------------------------

    def _program(self, entry: str, arguments: tuple[Argument, ...]) -> Program:
        signature = repr((entry, arguments))
        if signature not in self._programs:
            self._programs[signature] = self._trace(entry, arguments)
        program = self._programs[signature]
        if isinstance(program, TraceError):
            raise program.with_traceback(None)
        return program

    def _trace(self, entry: str, arguments: tuple[Argument, ...]) -> Program | TraceError:
        if len(self._deaths) >= PATIENCE:
            return self._deaths[-1]
        try:
            self.load()
            assert self._tracer is not None
            return self._tracer.trace(entry, arguments)
        except TraceError as error:
            if error.cause in rules.DEADLY:  # a new process, so that the next call is not blamed for this one
                self._deaths.append(error)
                self.close()
            return error

    # --- running ---------------------------------------------------------------------------------------------------

    def _observe(self, entry: str, args: tuple[Any, ...]) -> Observation:
        key = _values(entry, args)
        if key in self._runs:
            self._runs.move_to_end(key)
            return self._runs[key]
        arguments, tensors = to_arguments(args)
        program = self._program(entry, arguments)
        rules.check_program(program, entry, self.assignment.allow, self.submission)
        observation = self._run_all(entry, args, program, tensors)
        self._remember(key, observation)
        return observation

    def _run_all(self, entry: str, args: tuple[Any, ...], program: Program, tensors: list[torch.Tensor]) -> Observation:
        first, *others = [
            self._run(entry, args, program, tensors, option, label) for option, label in rules.options(program)
        ]
        findings = first.findings + tuple(_in_configuration(f, o.label) for o in others for f in o.findings)
        return replace(first, findings=findings, variants=tuple(others))

    def _run(
        self, entry: str, args: tuple[Any, ...], program: Program, tensors: list[torch.Tensor], option: int, label: str
    ) -> Observation:
        named = zip(rules.argument_names(args, entry, self.submission), args, strict=True)
        names = [name for name, arg in named if isinstance(arg, (Input, torch.Tensor))]
        with rules.within_budget(entry, label):
            run = engine.run(program, tensors, option=option, allow=self.assignment.allow, names=names)
        return Observation(
            entry, args, tuple(run.results), tuple(run.findings), run.counters, program, tuple(run.prints), label,
            mutate=self.mutate and functools.partial(self._mutated, tensors),
        )  # fmt: skip

    def _mutated(self, tensors: list[torch.Tensor], expected: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        assert self.mutate is not None
        return self.mutate(expected, tensors)

    def _remember(self, key: str, observation: Observation) -> None:
        if not key:
            return
        self._runs[key] = observation
        self._remembered += _weight(observation)
        while len(self._runs) > 1 and self._remembered > REMEMBERED_BYTES:
            self._remembered -= _weight(self._runs.popitem(last=False)[1])


def to_arguments(args: Sequence[Any]) -> tuple[tuple[Argument, ...], list[torch.Tensor]]:
    """The arguments of a call as the tracer takes them, and the tensors among them, in order.

    Tensors that share a storage, and specs that are the same object, become views of one storage: so
    `submission.add(x, x)` passes one tensor twice. Equal specs that were drawn apart are two tensors.
    """
    storages: dict[Any, int] = {}
    arguments: list[Argument] = []
    tensors: list[torch.Tensor] = []
    for arg in args:
        if not isinstance(arg, (Input, torch.Tensor)):
            arguments.append(Scalar(arg))
            continue
        tensors.append(arg.tensor() if isinstance(arg, Input) else arg)
        arguments.append(_view(tensors[-1], storages.setdefault(_identity(arg), len(storages))))
    return tuple(arguments), tensors


def _identity(arg: Input | torch.Tensor) -> Any:
    if isinstance(arg, Input):
        return id(arg)
    storage = arg.untyped_storage()
    return ("storage", storage.data_ptr()) if storage.nbytes() else id(arg)


def _view(tensor: torch.Tensor, storage: int) -> View:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return View(storage, dtype, tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset()))


def _values(entry: str, args: tuple[Any, ...]) -> str:
    """What tells one run from another; empty where a tensor without a spec is among the arguments."""
    if any(isinstance(arg, torch.Tensor) for arg in args):
        return ""
    first = {id(arg): position for position, arg in reversed(list(enumerate(args))) if isinstance(arg, Input)}
    return repr([entry, *((arg, first.get(id(arg))) for arg in args)])


def _in_configuration(finding: Finding, label: str) -> Finding:
    return replace(finding, message=f"With the configuration {label}: {finding.message}")


def _weight(observation: Observation) -> int:
    own = sum(r.numel() * r.element_size() for r in observation.results if isinstance(r, torch.Tensor))
    return own + sum(map(_weight, observation.variants))
