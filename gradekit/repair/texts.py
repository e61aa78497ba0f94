"""The submission, and other texts of it that a search for a mend tries: all in one confined process, each in turn."""

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from gradekit.assignment import Assignment
from gradekit.judge.evidence import Diagnosis
from gradekit.judge.failure import Failure
from gradekit.repair.effort import Effort
from gradekit.repair.failed_check import Example, FailedCheck, WalkedExamples, unlike, untouched
from gradekit.repair.host_screen import HostScreen
from gradekit.repair.screen import Screen
from gradekit.repair.shown_calls import as_called
from gradekit.repair.work import Limit, Work
from gradekit.sandbox import Limits, Tracer
from gradekit.source.draft import draft_of
from gradekit.subject.subject import Call, Subject
from gradekit.submission import Submission


@dataclass
class Texts:
    """The submission of a grading run with its `subject`, and other texts of it.

    `limits` are those of the submission's own process, `numbers` those of the handout's formulas, and `examples` gives
    what is planned for all checks, whether it ran or not: for each from the smallest on. `explained` says
    what rounding, memory or values show to be wrong in a call that failed with a text. `anew` runs a check with a text,
    or all, as its loops and branches may ask for other examples, and gives what fails.
    """

    submission: Submission
    subject: Subject
    assignment: Assignment
    limits: Limits
    numbers: Sequence[str]
    examples: Callable[[], Sequence[Example]]
    explained: Callable[[Failure, Call, Subject], Diagnosis | None]
    anew: Callable[[Subject, bool], FailedCheck | None] = lambda subject, of_all: None
    by_chance: set[str] = field(default_factory=set)  # those that a mend has made right by chance alone
    hidden: dict[tuple[str, str, bool], bool] = field(default_factory=dict)  # whether a mistake is, by the texts
    made_right: dict[tuple[str, str, str], bool] = field(default_factory=dict)  # whether a check is, by the texts
    walked: dict[Hashable, WalkedExamples] = field(default_factory=dict)  # for all checks
    _tried: Subject | None = None
    _screens: dict[str, Screen] = field(default_factory=dict)
    _host_screens: dict[str, HostScreen] = field(default_factory=dict)
    _efforts: dict[Hashable, Effort] = field(default_factory=dict)
    _before: dict[Example, BaseException | None] = field(default_factory=dict)

    def subject_of(self, text: str) -> Subject:
        """A subject of a text in the process of the text that was tried before, and in its place."""
        submission = replace(self.submission, text=text)
        if self._tried is None:
            start = lambda: Tracer(submission, limits=self.limits, calling=self.assignment.calling)
            self._tried = Subject(submission, self.assignment, start, is_brief=True)
        else:
            self._tried = self._tried.of_another_text(submission)
        return self._tried

    @cached_property
    def every(self) -> Sequence[Example]:
        """Examples of all checks."""
        return self.examples()

    @cached_property
    def planned(self) -> Sequence[Example]:
        """Those that are not large."""
        return [one for one in self.every if one.elements <= Limit.WALKED_ELEMENTS]

    @cached_property
    def held(self) -> Sequence[Example]:
        """Examples of each check, on which mends are tried: one of each, then more of other sizes, dtypes and
        layouts."""
        checks = dict.fromkeys(one.check for one in self.planned)
        of_each = [[one for one in reversed(self.planned) if one.check == check] for check in checks]
        chosen = [list(unlike(every, Limit.FROM_EACH if every[0].compares else Limit.OF_MEMORY)) for every in of_each]
        return [one for turn in itertools.zip_longest(*chosen) for one in turn if one is not None]

    def further(self, check: FailedCheck) -> list[Example]:
        """Examples of any check that are least like those on which a mend of a failed one is tried: what is right by
        chance seldom is for another layout, dtype, size or kind of values."""
        tried = check.tried
        seen = {trait for one in tried for trait in one.traits}
        return list(unlike([one for one in self.planned if one.compares and one not in tried], Limit.FURTHER, seen))

    def efforts(self, text: str, examples: Sequence[Example]) -> list[Effort]:
        """What kernels do in each of some examples with a text, which is loaded once for all of them."""
        unknown = [one for one in examples if (text, one) not in self._efforts]
        subject = self.subject_of(text) if unknown else self.subject
        for example in unknown:
            self._efforts[text, example] = found = Effort()
            subject.forget_calls()
            found.is_wrong = example.run(subject) is not None
            for call in subject.calls:
                if call.observation is not None:
                    found.add(call.observation.program, as_called(call).tensors, self.assignment.allow)
        return [self._efforts[text, one] for one in examples]

    def before(self, example: Example) -> BaseException | None:
        """What an example of another check raises with the submission as it is."""
        if example not in self._before:
            with untouched(self.subject):
                self._before[example] = example.failure(self.subject, "")
        return self._before[example]

    def screen(self, text: str, work: Work) -> Screen | None:
        """What looks at all changes of the kernels of a text, for all checks, with its budget; None where that cannot
        be read."""
        if text not in self._screens:
            draft = draft_of(text)
            if draft is None:
                return None
            draft.numbers = self.numbers
            self._screens[text] = Screen(draft, self.assignment.allow, work.in_kernels)
        return self._screens[text]

    def host_screen(self, text: str, screen: Screen, work: Work) -> HostScreen:
        """What looks at all changes of the host code of the same text."""
        return self._host_screens.setdefault(text, HostScreen(screen.draft.source, screen.code, work.on_host))

    def close(self) -> None:
        """Ends the process."""
        if self._tried is not None:
            self._tried.close()
