"""The failing call of a check, and others of it, as calls on which changes of a kernel are screened."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradekit.causes import OUT_OF_BOUNDS, Cause
from gradekit.inputs.spec import Input
from gradekit.interpreter.shown_call import HostCall, ShownCall, alike, is_like
from gradekit.judge.compare import telling
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import factors_of
from gradekit.judge.failure import Failure
from gradekit.judge.reference import Reference
from gradekit.program import Launch, Program, run_steps
from gradekit.repair.failed_check import Example, untouched
from gradekit.repair.work import Limit
from gradekit.subject.rules import options
from gradekit.subject.runs import Observation
from gradekit.subject.subject import Call, Subject


def failing(error: Failure, call: Call) -> ShownCall | None:
    """The call whose result was wrong; None where no result was compared with what it must be."""
    comparison = error.comparison
    if comparison is None or call.observation is None:
        return None
    observation, places = _in_its_configuration(comparison, call.observation)
    if (
        not places
        or sum(one.numel() for one in observation.results if isinstance(one, torch.Tensor)) > Limit.RESULT_ELEMENTS
    ):
        return None
    reference, may_be = comparison.reference, _first_wrong(comparison)

    def is_right(results: Sequence[Any]) -> bool:
        given = [results[place] for place in places if results[place] is not None]
        alike = (one for one in given if one.shape == comparison.actual.shape)  # host code may make another
        return any(bool(may_be(one[None])) and Comparison(one, reference).wrong_count == 0 for one in alike)

    any_may_be = lambda results: torch.stack([may_be(results[place]) for place in places]).any(0)

    def wrong(results: Sequence[Any]) -> torch.Tensor:
        return torch.stack([_wrong_of_each(results[place], comparison, may_be) for place in places]).amin(0)

    astray = any(finding.cause in OUT_OF_BOUNDS for finding in observation.findings)
    lacks = float(1 / factors) if (factors := factors_of(comparison)) is not None else None
    few = comparison.actual.numel() <= Limit.COUNTED_ELEMENTS
    return ShownCall(
        _program(observation), as_called(call).tensors, observation.results, is_right, wrong if few else None,
        as_called(call) if error.repeat is None else None, may_be=any_may_be, compared=tuple(places), astray=astray,
        lacks=lacks,
    )  # fmt: skip


MayBe = Callable[[torch.Tensor], torch.Tensor]
"""Which of several results may be right."""


def _wrong_of_each(results: torch.Tensor, before: Comparison, may_be: MayBe) -> torch.Tensor:
    """How many elements are wrong in each of several results; one that is nearer than before counts as a part."""
    after, exact = Comparison(results, before.reference), before.reference.exact.double()
    share = ((after.value.double() - exact).abs() / (before.value.double() - exact).abs()).nan_to_num(1.0, 1.0)
    left = (share.clamp(max=1.0) * after.wrong).reshape(len(results), -1).sum(1)
    return torch.where((left == 0.0) & ~may_be(results), 1.0, left)


def _first_wrong(comparison: Comparison) -> MayBe:
    """Whether the first element that was wrong is right in each of several results: most changes leave it as it is."""
    at = int(comparison.wrong.reshape(-1).byte().argmax())
    wanted = [tensor.reshape(-1)[at].item() for tensor in (comparison.reference.exact, comparison.reference.native)]
    allowed = comparison.reference.allowance.expand(comparison.actual.shape).reshape(-1)[at].item()
    if not all(map(math.isfinite, (*wanted, allowed))) or not comparison.actual.is_floating_point():
        return lambda results: torch.ones(len(results), dtype=torch.bool)
    return lambda results: (results.reshape(len(results), -1)[:, at].double() - wanted[0]).abs() <= allowed


def not_worse(shown: ShownCall) -> ShownCall:
    """A call that another check has made: where it fails, it may have a mistake of its own, and stay as it is."""
    seen = list(shown.results)
    mended = None if shown.is_right(seen) else shown.is_right
    is_right = lambda results: shown.is_right(results) or is_like(results, seen)
    return replace(shown, is_right=is_right, mended=mended, may_be=None, compared=None)


def shown_by(example: Example, subject: Subject, compared: int | None) -> ShownCall | None:
    """The last call of an example on a subject, of which the result of the number `compared` is looked at."""
    wanted: list[Reference] = []
    with untouched(subject), telling(lambda _, expected: wanted.__setitem__(slice(None), expected)):
        error = example.run(subject)
        call = subject.calls[-1] if subject.calls else None
    if call is None or error is not None and not isinstance(error, Failure):
        return None
    return failing(error, call) if error is not None else passing(call, compared, wanted)


def passing(call: Call, compared: int | None, wanted: Sequence[Reference] = ()) -> ShownCall | None:
    """A call whose result was right, that of the number `compared`: it is to stay as it is but for rounding, or to be
    what is `wanted`, which may be as far from it as the check allows. None where there are several results, and it is
    not known which was compared."""
    observation = call.observation
    if observation is None:
        return None
    seen = list(observation.results)
    if compared is None and len(seen) > 1:
        return None
    place = compared or 0
    reference = wanted[place] if len(wanted) == len(seen) else wanted[0] if len(wanted) == 1 else None

    def is_right(results: Sequence[Any]) -> bool:
        now = results[place] if place < len(results) else None
        return now is not None and (alike(now, seen[place]) or _is_within(now, reference))

    host = as_called(call)
    return ShownCall(_program(observation), host.tensors, seen, is_right, host=host, compared=(place,))


def wrong_in_memory(call: Call) -> ShownCall | None:
    """A call whose results are as they must be, but accesses go out of bounds, or several programs store to one
    element: without that, they are to stay so. None where it does nothing of the kind."""
    observation, host = call.observation, as_called(call)
    causes = {finding.cause for finding in observation.findings} if observation is not None else set()
    if observation is None or not causes & {*OUT_OF_BOUNDS, Cause.WRITE_CONFLICT}:
        return None
    is_right = lambda results: is_like(results, observation.results)
    return ShownCall(
        _program(observation), host.tensors, observation.results, is_right, host=host,
        astray=bool(causes & OUT_OF_BOUNDS), alone=True,
    )  # fmt: skip


def place_of_wrong(error: Failure, call: Call) -> int | None:
    """The number of the result that an error is about; None where it is not known."""
    if error.comparison is None or call.observation is None:
        return None
    places = _places(error.comparison.actual, call.observation.results)
    return places[0] if len(places) == 1 else None


def _in_its_configuration(comparison: Comparison, first: Observation) -> tuple[Observation, list[int]]:
    """What was seen with the configuration of an autotuner that was compared, as if the program had no other, and where
    the result stands that was."""
    if places := _places(comparison.actual, first.results):
        return first, places
    for one in first.variants:
        if places := _places(comparison.actual, one.results):
            program = one.program
            number = next((option for option, label in options(program) if label == one.label), 0)
            steps = tuple(run_steps(program.steps, number))
            kernels = {step.kernel: program.kernels[step.kernel] for step in steps if isinstance(step, Launch)}
            return replace(one, program=replace(program, steps=steps, kernels=kernels)), places
    return first, []


def _is_within(now: torch.Tensor, reference: Reference | None) -> bool:
    """Whether a result is what a reference expects, as far as that is known."""
    is_one = reference is not None and now.shape == reference.native.shape and now.dtype is reference.native.dtype
    return is_one and reference is not None and Comparison(now, reference).wrong_count == 0


def _places(actual: torch.Tensor, results: Sequence[Any]) -> list[int]:
    """The numbers of the results that may be the one that was compared: several may be alike, all zeros, say."""
    return [
        number for number, one in enumerate(results) if isinstance(one, torch.Tensor)
        if one.shape == actual.shape and torch.equal(one.nan_to_num(), actual.nan_to_num())
    ]  # fmt: skip


def _program(observation: Observation) -> Program:
    """The program of a call, with the results that are compared: not what lies between the elements of an argument."""
    program = observation.program
    return replace(program, results=program.results[: len(observation.results)])


def as_called(call: Call) -> HostCall:
    """What host code was called with."""
    args = tuple(arg.tensor() if isinstance(arg, Input) else arg for arg in call.args)
    return HostCall(call.entry, args, tuple(call.wanted))
