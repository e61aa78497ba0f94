"""The calls that an assignment's tests time: sizes on which the kernels are worth looking at.

Checks of speed are called with a stand-in for the submission, which takes note of the call and ends the check there.
"""

import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from gradekit.assignment import Assignment, module_of
from gradekit.findings import Kind
from gradekit.plugin.check_points import Worth
from gradekit.subject.timed_call import TimedCall


class _CallFound(BaseException):
    """Ends a check once the call is known; no Exception, so that no test takes it for a failure of its own."""

    def __init__(self, call: TimedCall) -> None:
        self.call = call


class _FakeSubmission:
    def __getattr__(self, entry: str) -> Any:
        def timed(*args: Any, against: Callable[..., Any], expected: Callable[..., Any]) -> None:
            raise _CallFound(TimedCall(entry, args, against, expected))

        return SimpleNamespace(timed=timed)


def timed_calls(assignment: Assignment) -> list[TimedCall]:
    """The calls, in the order of the tests, each once; [] where the tests time nothing."""
    found: list[TimedCall] = []
    for check in _checks_of_speed(assignment):
        for values in _parameters(check):
            call = _call(check, values)
            if call is not None and not any((call.entry, call.args) == (c.entry, c.args) for c in found):
                found.append(call)
    return found


def _checks_of_speed(assignment: Assignment) -> Iterator[Callable[..., Any]]:
    if not assignment.tests.is_file():
        return
    for name, value in vars(module_of(f"gradekit_timed_{assignment.id}", assignment.tests)).items():
        marks = [mark.args[0] for mark in getattr(value, "pytestmark", ()) if mark.name == "points"]
        if name.startswith("test_") and any(isinstance(w, Worth) and w.kind is Kind.SPEED for w in marks):
            yield value


def _parameters(check: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    marks = [mark for mark in getattr(check, "pytestmark", ()) if mark.name == "parametrize"]
    for chosen in itertools.product(*(mark.args[1] for mark in marks)):
        values: dict[str, Any] = {}
        for mark, value in zip(marks, chosen, strict=True):
            names = mark.args[0].replace(" ", "").split(",") if isinstance(mark.args[0], str) else list(mark.args[0])
            values |= dict(zip(names, _values(value, len(names)), strict=True))
        yield values


def _values(value: Any, count: int) -> tuple[Any, ...]:
    inner = getattr(value, "values", value)  # pytest.param keeps its own
    if callable(inner) or inner is value:
        return tuple(value) if count > 1 else (value,)
    return tuple(inner)


def _call(check: Callable[..., Any], values: dict[str, Any]) -> TimedCall | None:
    try:
        check(_FakeSubmission(), **values)
    except _CallFound as seen:
        return seen.call
    except TypeError:  # it wants more than a submission: not for us
        return None
    return None
