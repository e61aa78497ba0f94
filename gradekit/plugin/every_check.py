"""Examples of all checks, on which a change that makes one check right is held before its line is blamed."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.causes import Cause
from gradekit.findings import Kind
from gradekit.inputs.spec import Input
from gradekit.plugin.check_points import worth
from gradekit.plugin.design import DESIGN, design_of
from gradekit.plugin.example_cache import flattened

if TYPE_CHECKING:
    from gradekit.plugin.examples import Example
    from gradekit.plugin.profiles import Profile
    from gradekit.plugin.walked_submission import WalkedSubmission
    from gradekit.subject.subject import Subject

MOST_ELEMENTS = 20_000
"""Of the inputs of an example."""

MOST_BESIDE = 100_000
"""Of the inputs of another example of the check that fails."""

FROM_EACH = 3
"""So many of a check's examples are taken: the largest, then those whose inputs are least like those taken before."""

OF_MEMORY = 1
"""Of a check of memory: every other example that is run is watched, too."""


@dataclass(frozen=True, eq=False)
class HeldExample:
    """The `test` function of a `check` with its `arguments`, but for the submission; whether it `compares` results."""

    check: str
    compares: bool
    test: Callable[..., Any]
    arguments: Mapping[str, Any]

    def failure(self, subject: Subject, kernel: str) -> BaseException | None:
        """What the test raises, where a `kernel` ("" for any) takes part in it; None where it passes, or took longer
        than a try may."""
        subject.forget_calls()
        error = self.run(subject)
        is_too_long = getattr(error, "cause", None) is Cause.BUDGET_EXCEEDED
        concerned = not subject.calls or any(_launches(call, kernel) for call in subject.calls)
        return error if concerned and not is_too_long else None

    def run(self, subject: Subject | WalkedSubmission) -> BaseException | None:
        """Runs the test on a subject; what it raises."""
        try:
            self.test(**self.arguments, submission=subject)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  (whatever it is, it is the answer)
            return error
        return None

    @property
    def is_strided(self) -> bool:
        """Whether an input is not contiguous."""
        every = flattened(tuple(self.arguments.values()))
        return any(isinstance(spec, Input) and not spec.is_contiguous for spec in every)

    @property
    def elements(self) -> int:
        """Those of all inputs."""
        return _elements(self.arguments)


def held_examples(items: Sequence[pytest.Item], profile: Profile, seed: int) -> list[HeldExample]:
    """Some examples of each check of results, different in sizes, dtypes and layouts: one of each, then the others."""
    wanted = (item for item in items if worth(item).kind in (Kind.CORRECTNESS, Kind.MEMORY))
    of_each = [list(_of(item, profile, seed)) for item in wanted if isinstance(item, pytest.Function)]
    return [held for turn in itertools.zip_longest(*of_each) for held in turn if held is not None]


def _of(item: pytest.Function, profile: Profile, seed: int) -> Iterator[HeldExample]:
    handle = getattr(item.obj, "hypothesis", None)
    design = item.stash.get(DESIGN, None) or design_of(item.obj, profile, seed)
    if handle is None or design is None:
        return
    test = inspect.unwrap(handle.inner_test)
    fixed = {**getattr(getattr(item, "callspec", None), "params", {})}
    if set(inspect.signature(test).parameters) != {"submission", *fixed, *(design.given[0] if design.given else ())}:
        return
    given = [one for one in design.given if 0 < _elements(one) <= MOST_ELEMENTS]
    compares = worth(item).kind is Kind.CORRECTNESS
    for one in _unlike(sorted(given, key=_elements, reverse=True), FROM_EACH if compares else OF_MEMORY):
        yield HeldExample(item.name, compares, test, {**fixed, **one})


def _unlike(given: Sequence[Mapping[str, Any]], most: int) -> Iterator[Mapping[str, Any]]:
    """The first of some examples, and those that have most of what none before has: a rank, a layout, a dtype."""
    left, seen = list(given), set[Hashable]()
    for _ in range(min(most, len(left))):
        best = max(left, key=lambda one: len(_traits(one) - seen))
        left.remove(best)
        seen |= _traits(best)
        yield best


def _traits(given: Mapping[str, Any]) -> set[Hashable]:
    found: set[Hashable] = set()
    for name, value in given.items():
        for number, spec in enumerate(flattened(value)):
            if isinstance(spec, Input):
                layout = tuple(stride == 0 for stride in spec.stride), spec.is_contiguous
                found |= {(name, number, trait) for trait in (len(spec.shape), layout, spec.dtype)}
            else:
                found.add((name, number, repr(spec)))
    return found


def _elements(given: Mapping[str, Any]) -> int:
    return sum(spec.numel for spec in flattened(tuple(given.values())) if isinstance(getattr(spec, "numel", None), int))


def _launches(call: Any, kernel: str) -> bool:
    program = call.observation.program if call.observation is not None else None
    if program is None or not kernel:
        return program is not None
    return any(program.kernels[launch.kernel].name == kernel for launch in program.launches())


def elements_of(example: Example) -> int:
    """The elements of all inputs of an example; 0 where they are not known, or more than MOST_BESIDE."""
    given = [
        part for value in example.given.values() for part in (value if isinstance(value, (tuple, list)) else [value])
    ]
    sizes = [part.numel for part in given if hasattr(part, "numel") and isinstance(part.numel, int)]
    return sum(sizes) if sizes and sum(sizes) <= MOST_BESIDE else 0
