"""Examples of all checks, on which a change that makes one check right is held before its line is blamed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.findings import Kind
from gradekit.plugin.check_points import worth
from gradekit.plugin.design import DESIGN, design_of
from gradekit.plugin.example_cache import flattened

if TYPE_CHECKING:
    from gradekit.plugin.run_state import GradingRun
    from gradekit.subject.subject import Subject

MOST_ELEMENTS = 20_000
"""Of the inputs of an example."""

SHARES = (1.0, 0.6, 0.3)
"""Which of a check's examples are taken, in the order of their sizes: the largest, and two below."""


@dataclass(frozen=True)
class HeldExample:
    """The `test` function of a `check` with its `arguments`, but for the submission."""

    check: str
    test: Callable[..., Any]
    arguments: Mapping[str, Any]

    def comes_out_right(self, subject: Subject, kernel: str) -> bool:
        """Whether no result is wrong that comes of a `kernel` ("" for any)."""
        from gradekit.judge.failure import Failure

        subject.forget_calls()
        try:
            self.test(**self.arguments, submission=subject)
        except Failure as failure:
            return failure.comparison is None or not any(_launches(call, kernel) for call in subject.calls)
        except (Exception, pytest.fail.Exception):  # noqa: BLE001  (nothing of values is known)
            return True
        return True


def held_examples(run: GradingRun) -> list[HeldExample]:
    """Some examples of each check of results, different in sizes, dtypes and layouts."""
    wanted = (item for item in run.items if worth(item).kind in (Kind.CORRECTNESS, Kind.MEMORY))
    return [held for item in wanted if isinstance(item, pytest.Function) for held in _of(item, run)]


def _of(item: pytest.Function, run: GradingRun) -> Iterator[HeldExample]:
    handle = getattr(item.obj, "hypothesis", None)
    design = item.stash.get(DESIGN, None) or design_of(item.obj, run.profile, run.request.seed)
    if handle is None or design is None:
        return
    test = inspect.unwrap(handle.inner_test)
    fixed = {**getattr(getattr(item, "callspec", None), "params", {})}
    if set(inspect.signature(test).parameters) != {"submission", *fixed, *(design.given[0] if design.given else ())}:
        return
    ordered = sorted((given for given in design.given if 0 < _elements(given) <= MOST_ELEMENTS), key=_elements)
    for place in sorted({int(share * len(ordered) + 0.5) - 1 for share in SHARES} if ordered else ()):
        yield HeldExample(item.name, test, {**fixed, **ordered[max(place, 0)]})


def _elements(given: Mapping[str, Any]) -> int:
    return sum(spec.numel for spec in flattened(tuple(given.values())) if isinstance(getattr(spec, "numel", None), int))


def _launches(call: Any, kernel: str) -> bool:
    program = call.observation.program if call.observation is not None else None
    if program is None or not kernel:
        return program is not None
    return any(program.kernels[launch.kernel].name == kernel for launch in program.launches())
