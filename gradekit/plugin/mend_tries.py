"""The failing example of a check, and others of it, tried on other texts of the submission.

Such a text comes from the student's, so it runs where that ran: in the confined tracer alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from gradekit.causes import IN_MEMORY, Cause
from gradekit.compat.pytest import arguments
from gradekit.findings import Kind
from gradekit.mending.unexpected import survived
from gradekit.plugin.check_points import awarding, worth
from gradekit.plugin.design import DESIGN
from gradekit.plugin.every_check import held_examples
from gradekit.plugin.mend_clues import clues_of
from gradekit.plugin.other_checks import alike, is_emptied, untouched, with_a_mend

if TYPE_CHECKING:
    from gradekit.judge.failure import Failure
    from gradekit.mending.mend import Clues, Mend
    from gradekit.mending.search import OtherChecks, Tries
    from gradekit.plugin.every_check import HeldExample
    from gradekit.plugin.examples import Example, Examples
    from gradekit.plugin.run_state import GradingRun
    from gradekit.screening.host_screen import HostScreen
    from gradekit.screening.screen import Screen
    from gradekit.screening.shown_call import ShownCall
    from gradekit.screening.walked_text import WalkedText
    from gradekit.subject.subject import Call, Subject
    from gradekit.submission import Submission

_CHANGES_VALUES = {Cause.RACE, Cause.WRITE_CONFLICT, Cause.UNINITIALIZED_READ, Cause.UNDEFINED_LANES}
"""What goes wrong in memory that makes results wrong, too."""

_OUTSIDE = {Cause.OUT_OF_BOUNDS_LOAD, Cause.OUT_OF_BOUNDS_STORE}

MOST_ELEMENTS = 100_000
"""Of the inputs of an example beside the failing one."""

MOST_WALKED = 20_000
"""Of the inputs of such an example on which changes are looked at."""

MOST_SHOWN = 12
"""So many examples of other checks."""

FEW_ELEMENTS = 64
"""Of the inputs of an example: with fewer, much seems right."""

MOST_OF_A_TELLING = 4_000
"""Of the inputs of an example that has failed, and on which all changes are looked at."""


@dataclass(frozen=True)
class Failing:
    """An error, the call that it is of, and the example in which it was made; None where there are no examples."""

    error: Failure
    call: Call
    example: Example | None


class MendTries:
    """The failing example of a check, and others of it, for any text of the submission.

    Args:
        item: the check.
        run: the grading run.
        examples: those of the check, where it has any.
        failing: what failed.
        text: the text that fails, the submission's or that with one of two mistakes mended.
    """

    def __init__(
        self, item: pytest.Function, run: GradingRun, examples: Examples | None, failing: Failing, text: str
    ) -> None:
        self._item, self._run, self._examples, self._text = item, run, examples, text
        self._error, self._call, self._failing = failing.error, failing.call, failing.example
        self._subject: Subject | None = None
        self._passed, self._repeats = 0, False
        self._cut_off: list[Example] = []  # of the last text
        self._long: dict[Hashable, bool] = {}  # whether an example is cut off with the text that fails
        self.in_part: list[Mend] = []  # that make the failing call right in part, at the first look
        findings = self._call.observation.findings if self._call.observation is not None else ()
        self._mine = {finding.cause for finding in findings}
        self._known = {cause for cause, _, _ in run.subject.found_in_memory} if run.subject is not None else set()

    @cached_property
    def clues(self) -> Clues:
        """What is known of the failure."""
        return clues_of(self._error, self._call, self._text)

    def asked(self) -> Tries:
        """What the search for a mend asks."""
        from gradekit.mending.search import Tries

        repeats = lambda: self._repeats
        return Tries(self.is_right, self.spent, lambda: self._passed, self.screened, self.holds, repeats, self.refutes)

    def after(self, text: str) -> MendTries | None:
        """The same for another text, with the first example that fails for it; None where none does."""
        from gradekit.judge.failure import Failure

        if self._examples is None or self._failing is None:
            return None
        subject = self._subject_of(text)
        for example in [self._failing, *self._others]:
            subject.forget_calls()
            with awarding():
                error = self._examples.again(example, submission=subject)
            if isinstance(error, Failure) and subject.calls and subject.calls[-1].observation is not None:
                failing = Failing(error, subject.calls[-1], example)
                return MendTries(self._item, self._run, self._examples, failing, text)
            if error is not None:
                return None
        return None

    def is_right(self, text: str) -> bool:
        """Whether the failing example and the others pass with `text` for the submission, and no other mistake is made
        in memory than before, none of this call's among them."""
        subject, self._passed, self._repeats, emptied = self._subject_of(text), 0, False, True
        self._cut_off.clear()
        with awarding():
            for one in self._wanted():
                if not (self._passes(subject, one) and self._makes_no_other(subject)):
                    return False
                emptied = emptied and is_emptied(self._error, subject)
                self._passed += 1
                self._repeats |= _stores_again(subject)
            is_kept = self._keeps_values(subject, text) and self._makes_no_other(subject)
            return is_kept and not emptied and (not self._cut_off or self._took_as_long(text))

    def _took_as_long(self, text: str) -> bool:
        """Whether what was cut off with another `text` is cut off with this one, too: a grid of too many programs never
        comes to an end that could be wrong."""
        before, new = self._subject_of(self._text), [one for one in self._cut_off if one.key not in self._long]
        for one in new:
            assert self._examples is not None
            self._long[one.key] = _is_too_long(self._examples.again(one, submission=before))
        self._subject_of(text)
        return all(self._long[one.key] for one in self._cut_off)

    def refutes(self, text: str) -> bool:
        """Whether the failing call is wrong with a text whose host code is the same, at a walk; False where that is
        not known."""
        if self._walked is None:
            return False
        with survived("A walk of a mended kernel"):
            return self._walked.is_wrong_with(text)
        return False

    @cached_property
    def _walked(self) -> WalkedText | None:
        from gradekit.mending.draft import draft_of
        from gradekit.plugin.screened_calls import failing
        from gradekit.screening.walked_text import walked_text

        comparison = self._error.comparison
        if comparison is None or comparison.reference.key is None:
            return None  # what is right may follow from the result: which elements were dropped
        shown, draft = failing(self._error, self._call), draft_of(self._text)
        allow = self._run.request.assignment.allow
        return walked_text(shown, draft.source, allow) if shown is not None and draft is not None else None

    def _makes_no_other(self, subject: Subject) -> bool:
        """Whether nothing goes wrong in memory but what other calls of the submission had shown, and this one not."""
        seen = {cause for cause, _, _ in subject.found_in_memory}
        return seen <= self._known and not seen & self._mine

    def holds(self, mend: Mend) -> OtherChecks:
        """What becomes of the other checks with the last text that was right, that of a mend of a kernel, where that
        kernel takes part in what they compare."""
        assert self._subject is not None
        program = self._call.observation.program if self._call.observation is not None else None
        launched = {kernel.name for kernel in program.kernels.values()} if program is not None else set()
        kernel = mend.kernel if mend.kernel in launched else ""  # that of a helper takes part in any
        with awarding():
            return with_a_mend(self._held(), self._subject, kernel, self._before)

    def _before(self, held: HeldExample) -> BaseException | None:
        """What an example of another check raises with the submission as it is."""
        subject, known = self._run.subject, self._run.held_before
        if held not in known and subject is not None:
            with untouched(subject):
                known[held] = held.failure(subject, "")
        return known.get(held)

    def _held(self) -> list[HeldExample]:
        """Examples of the other checks."""
        if self._run.held is None:
            self._run.held = held_examples(self._run)
        return [held for held in self._run.held if held.check != self._item.name]

    def screened(self) -> list[Mend]:
        """Mends that seem right at a first look at the failing call, and at calls of the other examples; none where
        the look itself fails."""
        with survived("The first look at all changes"):
            return self._screened()
        return []

    def _screened(self) -> list[Mend]:
        from gradekit.plugin.screened_calls import failing, not_worse
        from gradekit.screening.changes import LIKELY
        from gradekit.screening.survivor_mends import halves_of, mends_of, mends_of_host

        shown, screen = failing(self._error, self._call), self._screen()
        if shown is None or screen is None:
            return []
        large = self._telling()
        rest = [one for one in self._others if one not in large and _elements(one) <= MOST_WALKED]
        larger = sorted((one for one in rest if _elements(one) > self._elements_of_mine()), key=_elements)
        calls = [shown, *self._shown(large)]
        compared = (one for one in self._held() if one.compares)
        held = sorted(compared, key=lambda one: (one.elements < FEW_ELEMENTS, one.elements))[:MOST_SHOWN]
        others = (not_worse(shown) for one in held if (shown := self._run_once(one.run, None)) is not None)
        small = (one for one in rest if one not in larger)  # which tell little that the failing call does not
        more, again = itertools.tee(itertools.chain(self._shown(larger), others, self._shown(small)))
        found = screen.survivors(calls, self.clues.kernels, self.clues.others, more, self._astray(screen))
        source = screen.draft.source
        if any(change.kind in LIKELY for change in found):
            return mends_of(found, source)
        self.in_part = halves_of(screen.in_part(), source) if not found else []
        on_host = self._host_screen(screen).survivors(shown, itertools.chain(calls[1:], again))
        likelier = not found or any(change.kind < min(one.kind for one in found) for change in on_host)
        return [*(mends_of_host(on_host, source) if likelier else ()), *mends_of(found, source)]

    def _host_screen(self, screen: Screen) -> HostScreen:
        """What looks at the host code of the same text."""
        from gradekit.screening.host_screen import HostScreen

        return self._run.host_screens.setdefault(self._text, HostScreen(screen.draft.source, screen.code))

    def _astray(self, screen: Screen) -> set[int]:
        """The lines of the accesses that go out of bounds; of all stores, where something is never written."""
        findings = self._call.observation.findings if self._call.observation is not None else ()
        outside = {one.line for one in findings if one.cause in _OUTSIDE and one.line is not None}
        inside = {access.line for kernel in screen.draft.kernels for access in kernel.accesses}
        unread = {one.line for one in findings if one.cause is Cause.UNINITIALIZED_READ}
        is_unwritten = Cause.UNWRITTEN_OUTPUT in self.clues.causes or bool(unread) and not unread & inside
        if outside or not is_unwritten:
            return outside
        mine = {*self.clues.kernels, *self.clues.others}
        kernels = (kernel for kernel in screen.draft.kernels if kernel.name in mine)
        return {access.line for kernel in kernels for access in kernel.accesses if not access.is_load}

    def _screen(self) -> Screen | None:
        """What looks at the text: one for all checks of the submission itself."""
        from gradekit.mending.draft import draft_of
        from gradekit.screening.screen import MOST_WORK, WORK_OF_A_SECOND, Screen

        screens = self._run.screens
        if self._text not in screens:
            draft = draft_of(self._text)
            if draft is None:
                return None
            work = MOST_WORK if not screens else WORK_OF_A_SECOND
            screens[self._text] = Screen(draft, self._run.request.assignment.allow, work)
        return screens[self._text]

    def _telling(self) -> list[Example]:
        """The largest example that failed, of those that cost little: in a call of few elements much seems right."""
        failures = self._examples.failures if self._examples is not None else []
        found = (one.example for one in failures if one.example is not self._failing)
        little = [one for one in found if self._elements_of_mine() < _elements(one) <= MOST_OF_A_TELLING]
        return sorted(little, key=_elements)[-1:]

    def _elements_of_mine(self) -> int:
        """Of the inputs of the failing example; 0 where they are not known."""
        return _elements(self._failing) if self._failing is not None else 0

    def _shown(self, wanted: Iterable[Example]) -> Iterator[ShownCall]:
        """The calls of examples, as the submission is."""
        for example in wanted:
            shown = self._shown_one(example)
            if shown is not None:
                yield shown

    def _shown_one(self, example: Example) -> ShownCall | None:
        from gradekit.plugin.screened_calls import place_of_wrong

        examples = self._examples
        if examples is None:
            return None
        place = place_of_wrong(self._error, self._call)
        return self._run_once(lambda subject: examples.again(example, submission=subject), place)

    def _run_once(self, run: Callable[[Subject], BaseException | None], compared: int | None) -> ShownCall | None:
        """The last call of what is run on the submission as it is; the result of the number `compared` is looked at."""
        from gradekit.plugin.screened_calls import shown_by

        is_own = self._run.submission is not None and self._text == self._run.submission.text
        subject = self._run.subject if is_own else self._subject_of(self._text)
        return shown_by(run, subject, compared) if subject is not None else None

    def spent(self) -> int:
        """The units of work that the last text has cost."""
        from gradekit.mending.search import work_of

        return work_of(self._subject.programs) if self._subject is not None else 0

    def _keeps_values(self, subject: Subject, text: str) -> bool:
        """Whether a check of memory has the results that it had: one that does nothing touches nothing outside. Of
        elements that programs compete for, or that begin with what nobody wrote, nothing is asked, nor where a `text`
        has made other checks right."""
        observation, mending = self._call.observation, self._run.mending
        if worth(self._item).kind is not Kind.MEMORY or observation is None or self._mine & _CHANGES_VALUES:
            return True
        if mending is not None and mending.has_made_right(text):
            return True
        try:
            results = subject.call(self._call.entry, self._call.args, self._call.wanted).results
        except Exception:  # noqa: BLE001  (whatever it is, this is no mend)
            return False
        return len(results) == len(observation.results) and all(map(alike, observation.results, results))

    def _subject_of(self, text: str) -> Subject:
        """A subject in the process that all tries of the run share, which `GradingRun` ends."""
        assert self._run.submission is not None
        submission = replace(self._run.submission, text=text)
        before = self._run.mended
        self._subject = self._started(submission) if before is None else before.of_another_text(submission)
        self._run.mended = self._subject
        return self._subject

    def _started(self, submission: Submission) -> Subject:
        from gradekit.sandbox import Tracer
        from gradekit.subject.subject import Subject

        request = self._run.request
        start = lambda: Tracer(submission, limits=request.limits)
        return Subject(submission, request.assignment, start, is_brief=True)

    def _wanted(self) -> Iterator[Example | None]:
        yield self._failing
        yield from self._others

    @cached_property
    def _others(self) -> list[Example]:
        """The examples beside the failing one that a mend must make right, too."""
        design, every = self._item.stash.get(DESIGN, None), self._examples
        planned = design.given if design is not None else []
        return every.beside(planned, arguments(self._item), _elements) if every is not None else []

    def _passes(self, subject: Subject, example: Example | None) -> bool:
        try:
            if example is None and self._error.repeat is not None:
                self._error.repeat(subject)
                return True
            if example is not None and self._examples is not None:
                error = self._examples.again(example, submission=subject)
                if self._passed > 1 and _is_too_long(error):
                    self._cut_off.append(example)
                    return True
                return error is None
            if self._examples is not None:
                return self._is_clean(subject)
            self._item.obj(**{**arguments(self._item), "submission": subject})
        except (Exception, pytest.fail.Exception):  # noqa: BLE001  (whatever it is, this is no mend)
            return False
        return True

    def _is_clean(self, subject: Subject) -> bool:
        """Whether the call that another check made finds nothing wrong in memory."""
        seen = subject.call(self._call.entry, self._call.args, self._call.wanted)
        return not any(finding.cause.traits & IN_MEMORY for finding in seen.findings)


def _is_too_long(error: BaseException | None) -> bool:
    """Whether an example takes more than a try may: the submission, which has more, may well have had the time."""
    return getattr(error, "cause", None) is Cause.BUDGET_EXCEEDED


def _stores_again(subject: Subject) -> bool:
    """Whether the last call stores clearly more than all that it allocates; what atomics added twice would be wrong."""
    seen = subject.calls[-1].observation if subject.calls else None
    has_atomics = seen is not None and any("tt.atomic_rmw" in one.ttir for one in seen.program.kernels.values())
    return seen is not None and not has_atomics and 2 * seen.counters.bytes_stored > 3 * seen.counters.bytes_allocated


def _elements(example: Example) -> int:
    """The elements of all inputs of an example; far too many where they are not known."""
    given = [
        part for value in example.given.values() for part in (value if isinstance(value, (tuple, list)) else [value])
    ]
    sizes = [part.numel for part in given if hasattr(part, "numel") and isinstance(part.numel, int)]
    return sum(sizes) if sizes and sum(sizes) <= MOST_ELEMENTS else 0
