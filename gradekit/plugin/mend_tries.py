"""The failing example of a check, and others of it, tried on other texts of the submission.

Such a text comes from the student's, so it runs where that ran: in the confined tracer alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from gradekit.causes import IN_MEMORY, Cause
from gradekit.compat.pytest import arguments
from gradekit.findings import Kind
from gradekit.plugin.check_points import awarding, worth
from gradekit.plugin.design import DESIGN
from gradekit.plugin.every_check import elements_of, held_examples
from gradekit.plugin.mend_clues import clues_of
from gradekit.plugin.other_checks import alike, is_emptied, untouched, with_a_mend
from gradekit.repair.unexpected import survived

if TYPE_CHECKING:
    from gradekit.interpreter.walked_text import WalkedText
    from gradekit.judge.failure import Failure
    from gradekit.plugin.every_check import HeldExample
    from gradekit.plugin.examples import Example, Examples
    from gradekit.plugin.run_state import GradingRun
    from gradekit.plugin.walked_submission import WalkedExamples
    from gradekit.repair.mend import Clues, Mend
    from gradekit.repair.search import OtherChecks, Tries
    from gradekit.subject.subject import Call, Subject
    from gradekit.submission import Submission

_CHANGES_VALUES = {Cause.RACE, Cause.WRITE_CONFLICT, Cause.UNINITIALIZED_READ, Cause.UNDEFINED_LANES}
"""What goes wrong in memory that makes results wrong, too."""

MOST_RUN = 2
"""So many examples are traced and run with a text before others of its check, where walks find those right."""


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
        self._item, self.run, self.examples, self.text = item, run, examples, text
        self.failing = failing
        self._error, self._call, self._failing = failing.error, failing.call, failing.example
        self._subject: Subject | None = None
        self._passed, self._repeats = 0, False
        self._cut_off: list[Example] = []  # of the last text
        self._long: dict[Hashable, bool] = {}  # whether an example is cut off with the text that fails
        self._by_walks: dict[str, WalkedExamples] = {}
        self.in_part: list[Mend] = []  # that make the failing call right in part, at the first look
        findings = self._call.observation.findings if self._call.observation is not None else ()
        self._mine = {finding.cause for finding in findings}
        self._known = {cause for cause, _, _ in run.subject.found_in_memory} if run.subject is not None else set()

    @cached_property
    def clues(self) -> Clues:
        """What is known of the failure."""
        return clues_of(self._error, self._call, self.text)

    def asked(self, screened: Callable[[MendTries], list[Mend]]) -> Tries:
        """What the search for a mend asks; `screened` gives mends that seem right at a first look."""
        from gradekit.repair.search import Tries

        passed, repeats = lambda: self._passed, lambda: self._repeats
        seen = (lambda: screened(self), self.holds, repeats, self.refutes, self.fails_alone)
        return Tries(self.is_right, self.spent, passed, *seen)

    def after(self, text: str) -> MendTries | None:
        """The same for another text, with the first example that fails for it; None where none does."""
        from gradekit.judge.failure import Failure

        if self.examples is None or self._failing is None:
            return None
        subject = self.subject_of(text)
        for example in [self._failing, *self.others]:
            subject.forget_calls()
            with awarding():
                error = self.examples.again(example, submission=subject)
            if isinstance(error, Failure) and subject.calls and subject.calls[-1].observation is not None:
                failing = Failing(error, subject.calls[-1], example)
                return MendTries(self._item, self.run, self.examples, failing, text)
            if error is not None:
                return None
        return None

    def is_right(self, text: str) -> bool:
        """Whether the failing example and the others pass with `text` for the submission, and no other mistake is made
        in memory than before, none of this call's among them."""
        subject, self._passed, self._repeats, emptied = self.subject_of(text), 0, False, True
        self._cut_off.clear()
        with awarding():
            for one in self._wanted():
                if self._passed >= MOST_RUN and not emptied and self._is_right_by_walks(text, one):
                    self._passed += 1
                    continue
                if not (self._passes(subject, one) and self._makes_no_other(subject)):
                    return False
                emptied = emptied and is_emptied(self._error, subject)
                self._passed += 1
                self._repeats |= _stores_again(subject)
            is_kept = self._keeps_values(subject, text) and self._makes_no_other(subject)
            return is_kept and not emptied and (not self._cut_off or self._took_as_long(text))

    def _is_right_by_walks(self, text: str, example: Example | None) -> bool:
        """Whether a walk finds an example of a check of results right with a text; False where that is not known."""
        examples, walked = self.examples, self.walked_examples(text)
        if example is None or examples is None or walked is None or worth(self._item).kind is not Kind.CORRECTNESS:
            return False
        return walked.error(example.key, lambda subject: examples.again(example, submission=subject)) is None

    def _took_as_long(self, text: str) -> bool:
        """Whether what was cut off with another `text` is cut off with this one, too: a grid of too many programs never
        comes to an end that could be wrong."""
        before, new = self.subject_of(self.text), [one for one in self._cut_off if one.key not in self._long]
        for one in new:
            assert self.examples is not None
            self._long[one.key] = _is_too_long(self.examples.again(one, submission=before))
        self.subject_of(text)
        return all(self._long[one.key] for one in self._cut_off)

    def refutes(self, text: str) -> bool:
        """Whether the failing call is wrong with a text whose host code is the same, at a walk; False where that is
        not known."""
        if self._walked is None:
            return False
        with survived("A walk of a mended kernel"):
            return self._walked.is_wrong_with(text)
        return False

    def fails_alone(self) -> bool:
        """Whether the failing call is wrong without the calls before it, at a walk; False where that is not known."""
        with survived("A walk of a call alone"):
            return self._walked is not None and self._walked.is_wrong_alone
        return False

    @cached_property
    def _walked(self) -> WalkedText | None:
        from gradekit.interpreter.walked_text import walked_text
        from gradekit.plugin.screened_calls import failing
        from gradekit.source.draft import draft_of

        comparison = self._error.comparison
        if comparison is None or comparison.reference.key is None:
            return None  # what is right may follow from the result: which elements were dropped
        shown, draft = failing(self._error, self._call), draft_of(self.text)
        allow = self.run.request.assignment.allow
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
            walked = self.walked_examples(self._subject.submission.text)
            return with_a_mend(self.held(), self._subject, kernel, self.before, walked)

    def walked_examples(self, text: str) -> WalkedExamples | None:
        """Examples with another text, by walks."""
        from gradekit.plugin.walked_submission import WalkedExamples

        observation = self._call.observation
        if text not in self._by_walks and observation is not None:
            with survived("A walk of host code"):
                self._by_walks[text] = WalkedExamples(text, observation.program)
        return self._by_walks.get(text)

    def before(self, held: HeldExample) -> BaseException | None:
        """What an example of another check raises with the submission as it is."""
        subject, known = self.run.subject, self.run.held_before
        if held not in known and subject is not None:
            with untouched(subject):
                known[held] = held.failure(subject, "")
        return known.get(held)

    def held(self) -> list[HeldExample]:
        """Examples of the other checks."""
        if self.run.held is None:
            self.run.held = held_examples(self.run.items, self.run.profile, self.run.request.seed)
        return [held for held in self.run.held if held.check != self._item.name]

    def spent(self) -> int:
        """The units of work that the last text has cost."""
        from gradekit.repair.search import work_of

        return work_of(self._subject.programs) if self._subject is not None else 0

    def _keeps_values(self, subject: Subject, text: str) -> bool:
        """Whether a check of memory has the results that it had: one that does nothing touches nothing outside. Of
        elements that programs compete for, or that begin with what nobody wrote, nothing is asked, nor where a `text`
        has made other checks right."""
        observation, mending = self._call.observation, self.run.mending
        if worth(self._item).kind is not Kind.MEMORY or observation is None or self._mine & _CHANGES_VALUES:
            return True
        if mending is not None and mending.has_made_right(text):
            return True
        try:
            results = subject.call(self._call.entry, self._call.args, self._call.wanted).results
        except Exception:  # noqa: BLE001  (whatever it is, this is no mend)
            return False
        return len(results) == len(observation.results) and all(map(alike, observation.results, results))

    def subject_of(self, text: str) -> Subject:
        """A subject in the process that all tries of the run share, which `GradingRun` ends."""
        assert self.run.submission is not None
        submission = replace(self.run.submission, text=text)
        before = self.run.mended
        self._subject = self._started(submission) if before is None else before.of_another_text(submission)
        self.run.mended = self._subject
        return self._subject

    def _started(self, submission: Submission) -> Subject:
        from gradekit.sandbox import Tracer
        from gradekit.subject.subject import Subject

        request = self.run.request
        start = lambda: Tracer(submission, limits=request.limits)
        return Subject(submission, request.assignment, start, is_brief=True)

    def _wanted(self) -> Iterator[Example | None]:
        yield self._failing
        yield from self.others

    @cached_property
    def others(self) -> list[Example]:
        """The examples beside the failing one that a mend must make right, too."""
        design, every = self._item.stash.get(DESIGN, None), self.examples
        planned = design.given if design is not None else []
        return every.beside(planned, arguments(self._item), elements_of) if every is not None else []

    def _passes(self, subject: Subject, example: Example | None) -> bool:
        try:
            if example is None and self._error.repeat is not None:
                self._error.repeat(subject)
                return True
            if example is not None and self.examples is not None:
                error = self.examples.again(example, submission=subject)
                if self._passed > 1 and _is_too_long(error):
                    self._cut_off.append(example)
                    return True
                return error is None
            if self.examples is not None:
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
