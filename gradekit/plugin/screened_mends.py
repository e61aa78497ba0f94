"""Mends that no rule names: changes of a text that seem right at a first look (see gradekit.repair) at the failing
call, at calls of other examples of its check, and at calls of other checks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from gradekit.causes import Cause
from gradekit.plugin.every_check import elements_of
from gradekit.repair.unexpected import survived

if TYPE_CHECKING:
    from gradekit.interpreter.shown_call import ShownCall
    from gradekit.plugin.examples import Example
    from gradekit.plugin.mend_tries import MendTries
    from gradekit.repair.host_screen import HostScreen
    from gradekit.repair.mend import Mend
    from gradekit.repair.operators.changes import Change
    from gradekit.repair.screen import Screen
    from gradekit.subject.subject import Subject
    from gradekit.submission.parsed_source import ParsedSource

_OUTSIDE = {Cause.OUT_OF_BOUNDS_LOAD, Cause.OUT_OF_BOUNDS_STORE}

MOST_WALKED = 20_000
"""Of the inputs of such an example on which changes are looked at."""

MOST_SHOWN = 12
"""So many examples of other checks."""

FEW_ELEMENTS = 64
"""Of the inputs of an example: with fewer, much seems right."""

MOST_OF_A_TELLING = 4_000
"""Of the inputs of an example that has failed, and on which all changes are looked at."""


class ScreenedMends:
    """The first look at all changes of the text that `tries` are about; `in_part` has then mends that make the failing
    call right in part."""

    def __init__(self, tries: MendTries) -> None:
        self._tries = tries
        self.in_part: list[Mend] = []

    def mends(self) -> list[Mend]:
        """Those that seem right at all of these calls, in the order in which they are to be tried."""
        from gradekit.plugin.screened_calls import failing, not_worse
        from gradekit.repair.operators.changes import LIKELY
        from gradekit.repair.survivor_mends import halves_of, mends_of, mends_of_host

        shown, screen = failing(self._tries.failing.error, self._tries.failing.call), self._screen()
        if shown is None or screen is None:
            return []
        large = self._telling()
        rest = [one for one in self._tries.others if one not in large and elements_of(one) <= MOST_WALKED]
        larger = sorted((one for one in rest if elements_of(one) > self._elements_of_mine()), key=elements_of)
        calls = [shown, *self._shown(large)]
        compared = (one for one in self._tries.held() if one.compares)
        held = sorted(compared, key=lambda one: (one.elements < FEW_ELEMENTS, one.elements))[:MOST_SHOWN]
        others = (not_worse(shown) for one in held if (shown := self._run_once(one.run, None)) is not None)
        small = (one for one in rest if one not in larger)  # which tell little that the failing call does not
        more, again = itertools.tee(itertools.chain(self._shown(larger), others, self._shown(small)))
        source, clues, astray = screen.draft.source, self._tries.clues, self._astray(screen)
        confirmed = lambda change: self._confirmed(change, source)
        found = screen.survivors(calls, clues.kernels, clues.others, more, astray, confirmed)
        if any(change.kind in LIKELY for change in found):
            return mends_of(found, source)
        self.in_part = halves_of(screen.in_part(), source) if not found else []
        on_host = self._host_screen(screen).survivors(shown, itertools.chain(calls[1:], again))
        likelier = not found or any(change.kind < min(one.kind for one in found) for change in on_host)
        return [*(mends_of_host(on_host, source) if likelier else ()), *mends_of(found, source)]

    def _host_screen(self, screen: Screen) -> HostScreen:
        """What looks at the host code of the same text."""
        from gradekit.repair.host_screen import HostScreen

        return self._tries.run.host_screens.setdefault(self._tries.text, HostScreen(screen.draft.source, screen.code))

    def _astray(self, screen: Screen) -> set[int]:
        """The lines of the accesses that go out of bounds; of all stores, where something is never written."""
        observation = self._tries.failing.call.observation
        findings = observation.findings if observation is not None else ()
        outside = {one.line for one in findings if one.cause in _OUTSIDE and one.line is not None}
        inside = {access.line for kernel in screen.draft.kernels for access in kernel.accesses}
        unread = {one.line for one in findings if one.cause is Cause.UNINITIALIZED_READ}
        is_unwritten = Cause.UNWRITTEN_OUTPUT in self._tries.clues.causes or bool(unread) and not unread & inside
        if outside or not is_unwritten:
            return outside
        mine = {*self._tries.clues.kernels, *self._tries.clues.others}
        kernels = (kernel for kernel in screen.draft.kernels if kernel.name in mine)
        return {access.line for kernel in kernels for access in kernel.accesses if not access.is_load}

    def _screen(self) -> Screen | None:
        """What looks at the text: one for all checks of the submission itself."""
        from gradekit.repair.screen import MOST_WORK, WORK_OF_A_SECOND, Screen
        from gradekit.source.draft import draft_of

        screens = self._tries.run.screens
        if self._tries.text not in screens:
            mending = self._tries.run.mending
            draft = draft_of(self._tries.text)
            if draft is None:
                return None
            draft.numbers = mending.numbers if mending is not None else ()
            work = MOST_WORK if not screens else WORK_OF_A_SECOND
            screens[self._tries.text] = Screen(draft, self._tries.run.request.assignment.allow, work)
        return screens[self._tries.text]

    def _telling(self) -> list[Example]:
        """The largest example that failed, of those that cost little: in a call of few elements much seems right."""
        failures = self._tries.examples.failures if self._tries.examples is not None else []
        found = (one.example for one in failures if one.example is not self._tries.failing.example)
        little = [one for one in found if self._elements_of_mine() < elements_of(one) <= MOST_OF_A_TELLING]
        return sorted(little, key=elements_of)[-1:]

    def _elements_of_mine(self) -> int:
        """Of the inputs of the failing example; 0 where they are not known."""
        return elements_of(self._tries.failing.example) if self._tries.failing.example is not None else 0

    def _shown(self, wanted: Iterable[Example]) -> Iterator[ShownCall]:
        """The calls of examples, as the submission is."""
        for example in wanted:
            shown = self._shown_one(example)
            if shown is not None:
                yield shown

    def _shown_one(self, example: Example) -> ShownCall | None:
        from gradekit.plugin.screened_calls import place_of_wrong

        examples = self._tries.examples
        if examples is None:
            return None
        place = place_of_wrong(self._tries.failing.error, self._tries.failing.call)
        return self._run_once(lambda subject: examples.again(example, submission=subject), place)

    def _run_once(self, run: Callable[[Subject], BaseException | None], compared: int | None) -> ShownCall | None:
        """The last call of what is run on the submission as it is; the result of the number `compared` is looked at."""
        from gradekit.plugin.screened_calls import shown_by

        is_own = self._tries.run.submission is not None and self._tries.text == self._tries.run.submission.text
        subject = self._tries.run.subject if is_own else self._tries.subject_of(self._tries.text)
        return shown_by(run, subject, compared) if subject is not None else None

    def _confirmed(self, change: Change, source: ParsedSource) -> int | None:
        """How many other examples are right with a change, by walks; see `other_checks.confirmed`."""
        from gradekit.plugin.other_checks import confirmed
        from gradekit.repair.survivor_mends import mend_of

        mend, examples = mend_of(change, source), self._tries.examples
        walked = self._tries.walked_examples(mend.applied(self._tries.text)) if mend is not None else None
        if walked is None or examples is None:
            return None
        again = lambda example: lambda subject: examples.again(example, submission=subject)
        own = {example.key: again(example) for example in self._tries.others}
        return confirmed(walked, own, self._tries.held(), self._tries.before)


def screened(tries: MendTries) -> list[Mend]:
    """Mends that seem right at a first look at the failing call, and at calls of the other examples; none where the
    look itself fails. `tries.in_part` has then those that make the failing call right in part."""
    with survived("The first look at all changes"):
        found = ScreenedMends(tries)
        mends = found.mends()
        tries.in_part = found.in_part
        return mends
    return []
