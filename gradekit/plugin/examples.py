"""Stands between Hypothesis and a test function: how many examples run, and which one failed.

Hypothesis draws and shrinks; this decides when to stop. It counts examples and looks at no clock, so that a busy
machine tries what a quiet one does. Stopping must never turn a failure into a pass: each outcome is remembered by the
drawn arguments, and once enough has run, an example that has been seen keeps its outcome and an unseen one counts as
passed without being run. Hypothesis then finds nothing smaller, replays the smallest failure that was seen, and ends.
"""

import contextlib
import functools
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import pytest
from hypothesis import seed as hypothesis_seed
from hypothesis.errors import HypothesisException
from hypothesis.strategies import DataObject

from gradekit.plugin.profiles import Profile


class Example:
    """One execution of a test: its arguments, and those among them that Hypothesis drew."""

    def __init__(self, arguments: dict[str, Any], fixtures: frozenset[str]) -> None:
        self.arguments = arguments
        self.given = {name: value for name, value in arguments.items() if name not in fixtures}

    @property
    def key(self) -> str:
        """What tells this example from others."""
        return repr(sorted(self.given.items(), key=lambda item: item[0]))


@dataclass(frozen=True)
class FailedExample:
    """A failure: its example, and the error with the innermost entry of its traceback, by which Hypothesis knows it."""

    example: Example
    error: BaseException
    entry: TracebackType | None


@dataclass
class Examples:
    """Runs one check's examples: put in the place of the `test` function that Hypothesis calls.

    `begin` is called before each example that really runs, `ended` after it with what it raised. `deferred` are
    exceptions that say nothing against the submission: the first is kept in `undecided`, the example counts as
    passed, and the search goes on, for a failure found later is still a failure. After a `hopeless` error nothing is
    shrunk, because each further try would take too long.
    """

    test: Callable[..., Any]
    profile: Profile
    fixtures: frozenset[str] = frozenset()
    deferred: tuple[type[Exception], ...] = ()
    hopeless: Callable[[BaseException], bool] = lambda error: False
    begin: Callable[[], None] = lambda: None
    ended: Callable[[BaseException | None], None] = lambda error: None
    ran: int = 0
    undecided: Exception | None = None
    _failures: dict[str, FailedExample] = field(default_factory=dict)
    _passed: dict[str, Example] = field(default_factory=dict)
    _only_drawn: list[dict[str, Any]] | None = None
    _last: int | None = None

    def __call__(self, **arguments: Any) -> None:
        if any(isinstance(value, DataObject) for value in arguments.values()):
            raise TypeError("a check draws its values before it runs: name their strategies in @given, not data()")
        example = Example(arguments, self.fixtures)
        if self._only_drawn is not None:
            self._only_drawn.append(example.given)
            return
        if (failed := self._failures.get(example.key)) is not None:
            # not in the handler of another error, which Hypothesis would take for a part of this one
            raise failed.error.with_traceback(failed.entry)
        if example.key not in self._passed and self.ran < (self.profile.at_most if self._last is None else self._last):
            self._run(example)

    def drawn(self, draw: Callable[[], Any]) -> list[dict[str, Any]]:
        """What Hypothesis draws for a submission that passes, while `draw` runs the test
        in its hands; none of it is tried. Empty where the test is not to be drawn for."""
        self._only_drawn = []
        with contextlib.suppress(Exception, pytest.fail.Exception):  # then it fails again when examples are tried
            draw()
        drawn, self._only_drawn = self._only_drawn, None
        return drawn

    def run_all(self, drawn: Sequence[Mapping[str, Any]], fixtures: Mapping[str, Any]) -> bool:
        """Run the test on `drawn` without Hypothesis, up to the first example that fails; whether every one passed."""
        with contextlib.suppress(Exception, pytest.fail.Exception):  # the caller decides what becomes of it
            for given in drawn:
                self._run(Example({**fixtures, **given}, self.fixtures))
        return not self._failures and self.undecided is None and len(self._passed) == self.ran > 0

    @property
    def first_problem(self) -> BaseException | None:
        """What the first failing example of `run_all` raised; without one, why an example could not be decided."""
        return next((seen.error for seen in self._failures.values()), self.undecided)

    def forgive(self) -> None:
        """Forget the failures: they say nothing against the submission."""
        self._failures.clear()
        self._last = None

    def has_run(self, given: Mapping[str, Any]) -> bool:
        """Whether a test that draws nothing on its way has run with these arguments."""
        key = Example(dict(given), self.fixtures).key
        return key in self._passed or key in self._failures

    @property
    def failed(self) -> Example | None:
        """The example that failed first."""
        return next((seen.example for seen in self._failures.values()), None)

    def failure(self, error: BaseException) -> Example | None:
        """The example that raised `error`, which Hypothesis reported as the smallest."""
        return next((seen.example for seen in self._failures.values() if seen.error is error), None)

    @property
    def failures(self) -> list[FailedExample]:
        """All examples that failed, in the order in which they did."""
        return list(self._failures.values())

    def beside(
        self, planned: Sequence[Mapping[str, Any]], fixtures: Mapping[str, Any], size: Callable[[Example], int]
    ) -> list[Example]:
        """Other examples than the one that fails most simply: the largest that failed, then three of those that are
        `planned` or have passed, from the largest down. Those of `size` 0 are left out."""
        failed = sorted(filter(size, (seen.example for seen in self._failures.values())), key=size)
        others = [Example({**fixtures, **given}, self.fixtures) for given in planned] or list(self._passed.values())
        others = sorted(filter(size, others), key=size)
        chosen = [*failed[-1:], *others[-1:], *others[len(others) * 3 // 4 :][:1], *others[len(others) // 2 :][:1]]
        return list({one.key: one for one in chosen}.values())

    def again(self, example: Example, **instead: Any) -> BaseException | None:
        """Run `example` once more, outside of Hypothesis, with some arguments replaced; what it raises."""
        if not instead:
            self.begin()
        return raised_by(lambda given: self.test(**given))(example.arguments | instead)

    def _run(self, example: Example) -> None:
        self.ran += 1
        self.begin()
        try:
            self.test(**example.arguments)
        except HypothesisException:  # assume() refused the example: neither passed nor failed
            raise
        except self.deferred as error:
            self.undecided = self.undecided or error
        except (Exception, pytest.fail.Exception) as error:
            self._remember(example, error)
            raise
        self._passed[example.key] = example
        self.ended(None)

    def _remember(self, example: Example, error: BaseException) -> None:
        traceback.clear_frames(error.__traceback__)  # else each failure would keep all its tensors
        self._failures[example.key] = FailedExample(example, error, _innermost(error))
        self.ended(error)
        if self._last is None or self.hopeless(error):
            self._last = self.ran + (0 if self.hopeless(error) else self.profile.shrinks)


def raised_by(run: Callable[[Any], object]) -> Callable[[Any], BaseException | None]:
    """What `run` raises with an argument, as a value."""

    def raised(argument: Any) -> BaseException | None:
        try:
            run(argument)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  (whatever it is, it is the answer)
            return error
        return None

    return raised


def _innermost(error: BaseException) -> TracebackType | None:
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry


@contextlib.contextmanager
def controlled(test: Any, seed: int, examples: Callable[[Callable[..., Any]], Examples]) -> Iterator[Examples | None]:
    """While open, the Hypothesis test function `test` draws from `seed` and runs through the `Examples` that is given.
    Gives None, and changes nothing, where `test` does not use Hypothesis."""
    handle = getattr(test, "hypothesis", None)
    if handle is None:
        yield None
        return
    inner, control = handle.inner_test, examples(handle.inner_test)
    hypothesis_seed(seed)(test)
    handle.inner_test = functools.wraps(inner)(lambda **arguments: control(**arguments))
    try:
        yield control
    finally:
        handle.inner_test = inner
        control.ended = lambda error: None  # it knows the check, which knows these: all its tensors would wait for gc
