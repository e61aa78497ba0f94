"""What a failing check says of its submission's mistake: the submission with one small edit, or two, is traced, run and
judged like any other.

The edited text comes from the student's, so it runs where that ran: in the confined tracer alone. Its verdict is for
the diagnosis; the check has failed before, and earns nothing by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradekit.causes import SAYS_ALL, Cause
from gradekit.judge.by_gradient import line_of_refused
from gradekit.judge.evidence import Diagnosis
from gradekit.judge.failure import Failure
from gradekit.repair.failed_check import FailedCheck
from gradekit.repair.first_look import screened
from gradekit.repair.loop_bounds import bounds_from_memory
from gradekit.repair.mend import Mend
from gradekit.repair.mend_tries import MendTries
from gradekit.repair.missing_launch import launch_missing
from gradekit.repair.search import MOST_HALVES, RIGHT, Mending, OtherChecks, Tries, diagnosis_of
from gradekit.repair.texts import Texts
from gradekit.repair.two_mistakes import diagnosis_as_one, diagnosis_of_both, mend_of_both, one_alone
from gradekit.repair.unexpected import survived
from gradekit.subject.subject import Call

MOST_WALKED = 12
"""So many of the smallest examples tell which mends help most."""


class Tutor:
    """The diagnoses of one submission's failing checks: what has helped one is tried first for the next.

    Args:
        texts: the submission, and what tries other texts of it.
    """

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._mending = Mending(texts.submission.text, texts.numbers)
        self.work = self._mending.work

    def diagnosis(self, check: FailedCheck) -> Diagnosis | None:
        """What a mended program shows to be wrong; None where nothing does."""
        mending, error = self._mending, check.error
        if error.cause is Cause.EXCEPTION and check.call.observation is None:
            line = line_of_refused(mending.text, error.message)
            return self._of_refused(replace(check, error=Failure(error.cause, error.message, line=line)))
        if error.cause is Cause.COMPILATION_ERROR:
            return self._of_refused(check)
        if error.cause is Cause.BUDGET_EXCEEDED:
            return bounds_from_memory(mending.text, error.line) or self._of_refused(check)
        if not _is_mendable(error, check.call):
            return None
        tries = MendTries(check, self._texts, mending.text)
        launch = launch_missing(mending.text, tries.clues)
        if launch is not None:
            return launch
        asked = self._asked(tries, mending)
        mend = mending.found(tries.clues, asked)
        if mend is None:
            return self._of_two(tries, self._halves(tries))
        both = self._of_two(tries, [mend]) if mend in mending.in_part else None
        return both or mending.told(mend, tries.clues, asked)

    def _asked(self, tries: MendTries, mending: Mending) -> Tries:
        return tries.asked(lambda tries: screened(tries, mending.work), self._mending)

    def _halves(self, tries: MendTries) -> list[Mend]:
        """The mends that may be one of two, those first that make most of a few examples right."""
        mended = lambda mend: tries.mended(mend.applied(self._mending.text), MOST_WALKED)
        with survived("The look at what helps in part"):
            return sorted(self._mending.halves(tries.in_part), key=mended, reverse=True)[:MOST_HALVES]
        return []

    def _of_refused(self, check: FailedCheck) -> Diagnosis | None:
        """What is told where a mend lets Triton compile a kernel, or a run come to its end, and makes everything
        right."""
        if check.error.line is None:
            return None
        tries = MendTries(check, self._texts, self._mending.text)
        found = self._mending.diagnosis(tries.clues, self._asked(tries, self._mending))
        return replace(found, cause=check.error.cause) if found is not None else None

    def _of_two(self, tries: MendTries, halves: Sequence[Mend]) -> Diagnosis | None:
        """What is told where two mends make everything right, one of them of the `halves`, and neither alone."""
        mending = self._mending
        for half in halves:
            with survived("The search for a second mistake"):
                after, second = tries.after(half.applied(mending.text)), mending.on_top(half)
                if after is None or second is None:
                    continue
                other = second.found(after.clues, self._asked(after, second))
                if other is None or after.holds(other) is OtherChecks.NOT:
                    continue
                both = other.applied(second.text)
                alone = one_alone(mending.text, second.text, both)
                if alone is None:
                    return self._remembered(half, both, diagnosis_as_one(half, tries.clues))
                if not tries.is_right(alone):
                    return self._remembered(half, both, diagnosis_of_both(half, other, tries.clues))
                if tries.holds(other) is OtherChecks.ALL:  # the first of the two was right by chance
                    return self._remembered(other, alone, diagnosis_of(other, tries.clues, RIGHT))
        return None

    def _remembered(self, mend: Mend, text: str, found: Diagnosis) -> Diagnosis:
        """A diagnosis, which other checks have, too, that the same text makes right."""
        self._mending.remember(mend_of_both(self._mending.text, text, mend), found)
        return found

    def close(self) -> None:
        """Ends the process in which other texts are tried."""
        self._texts.close()


def _is_mendable(error: Failure, call: Call) -> bool:
    """Whether another program could help: not where a message says all, nor where nothing
    was run but for want of programs."""
    if call.observation is None or error.cause is Cause.NO_KERNEL:
        return error.cause is Cause.NO_KERNEL
    return error.repeat is not None or not error.cause.traits & SAYS_ALL
