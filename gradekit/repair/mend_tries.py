"""The failing example of a check, and others of it, tried on other texts of the submission.

Such a text comes from the student's, so it runs where that ran: in the confined tracer alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property

from gradekit.causes import IN_MEMORY, Cause
from gradekit.findings import Kind
from gradekit.interpreter.tile_values import NotWalked, OutsideEverywhere
from gradekit.judge.failure import Failure
from gradekit.program import Program
from gradekit.repair.by_chance import breaks, chosen_by, with_another, with_one
from gradekit.repair.clues import clues_of
from gradekit.repair.effort import hides_mistake
from gradekit.repair.failed_check import Example, FailedCheck, WalkedExamples, is_too_long, unlike
from gradekit.repair.mend import Clues, Mend
from gradekit.repair.other_checks import OtherChecks, alike, is_emptied, with_a_mend
from gradekit.repair.texts import Texts
from gradekit.repair.unexpected import survived
from gradekit.repair.work import Limit
from gradekit.subject.runs import Observation
from gradekit.subject.subject import Subject

_CHANGES_VALUES = {Cause.RACE, Cause.WRITE_CONFLICT, Cause.UNINITIALIZED_READ, Cause.UNDEFINED_LANES}
"""What goes wrong in memory that makes results wrong, too."""


class MendTries:
    """The examples of a check that failed, for any text of the submission.

    Args:
        check: what failed.
        texts: the submission, and what is known of other texts.
        text: the text that fails, the submission's or that with one of two mistakes mended.
    """

    def __init__(self, check: FailedCheck, texts: Texts, text: str) -> None:
        self.check, self.texts, self.text = check, texts, text
        self.error, self._call = check.error, check.call
        self._subject: Subject | None = None
        self.passed = 0  # of the examples, with the last text; 1 too where the mend helps in part
        self._cut_off: list[Example] = []  # of the last text
        self._long: dict[Hashable, bool] = {}  # whether an example is cut off with the text that fails
        self._looked_at = set[str]()
        self.in_part: list[Mend] = []  # that make the failing call right in part, at the first look
        self.beside: list[Mend] = []  # of host code, that seem right there
        findings = self._call.observation.findings if self._call.observation is not None else ()
        self._mine = {finding.cause for finding in findings}
        self._known = {cause for cause, _, _ in texts.subject.found_in_memory}

    @cached_property
    def clues(self) -> Clues:
        """What is known of the failure."""
        return clues_of(self.error, self._call, self.text)

    @property
    def goes_astray_anew(self) -> bool:
        """Whether the failing call makes a mistake in memory that no call of the submission has made."""
        return any(cause.traits & IN_MEMORY for cause in self._mine - self._known)

    def after(self, text: str) -> MendTries | None:
        """The same for another text, with an example that fails for it: the simplest one that a walk finds wrong, else
        the first of this check or of another; behind what goes wrong in memory, one whose values do. None where none
        does."""
        tells = lambda error: error.comparison is not None or not error.cause.traits & IN_MEMORY
        return self._first(text, self._simplest_wrong(text), tells)

    def wrong_in(self, text: str, checks: Collection[str]) -> FailedCheck | None:
        """What fails with a text of all examples that are planned for some checks: those that a walk finds wrong, and a
        few of those that it cannot tell, are run. None where none fails."""
        errors = [(one, self._walked(text, one)) for one in self.texts.every if one.check in checks]
        wrong = [one for one, error in errors if isinstance(error, Failure)]
        unknown = [one for one, error in errors if isinstance(error, NotWalked)]
        found = self._first(text, [*wrong, *unlike(unknown, Limit.RUN_OF_OTHERS)], lambda error: True)
        return found.check if found is not None else None

    def makes_a_check_right(self, text: str, checks: Iterable[str]) -> bool:
        """Whether all planned examples of one of some checks are right with a text, several of which are wrong with the
        text as it is; or most of those that are, and many, where what was right stays so."""
        for key in ((self.text, text, check) for check in checks):
            if key not in self.texts.made_right:
                self.texts.made_right[key] = self._is_made_right(text, key[2])
            if self.texts.made_right[key]:
                return True
        return False

    def _is_made_right(self, text: str, check: str) -> bool:
        mine = [one for one in self.texts.every if one.check == check]
        known = [one for one in mine if isinstance(self._walked(self.text, one), Failure)]
        left = [one for one in mine if isinstance(self._walked(text, one), Failure)] if known else []
        if left:
            return len(known) - len(left) >= max(Limit.RUN_FURTHER, len(left)) and {*left} <= {*known}
        few = mine if len(known) < 2 else ()
        wrong = [*known, *(one for one in unlike(few, Limit.RUN_FURTHER) if self.texts.before(one) is not None)]
        return len({*wrong}) > 1 and self.wrong_in(text, {check}) is None

    def _walked(self, text: str, example: Example) -> BaseException | None:
        """What a walk says of an example with a text; NotWalked where that tells nothing, as of memory."""
        walked = self.walked_examples(text) if example.compares else None
        error = walked.error(example) if walked is not None else NotWalked()
        return error if error is None or isinstance(error, Failure) else NotWalked()

    def _first(self, text: str, examples: Iterable[Example], tells: Callable[[Failure], bool]) -> MendTries | None:
        """The same for the first of the examples that fails with a text, or one up to the first failure that `tells`
        enough, whose values are compared."""
        subject, found = self.subject_of(text), None
        for example in examples if self.check.example is not None else ():
            subject.forget_calls()
            error = example.run(subject)
            if is_too_long(error):
                continue
            call = subject.calls[-1] if subject.calls else None
            if isinstance(error, Failure) and call is not None and (error.seen or call.observation is not None):
                failed = self._failed_in(example, error, subject)
                found = failed if found is None or error.comparison is not None else found
                if tells(error):
                    break
            elif error is not None and example in self.check.tried:
                break
        return MendTries(found, self.texts, text) if found is not None else None

    def _failed_in(self, example: Example, error: Failure, subject: Subject) -> FailedCheck:
        """The check, or another, that fails in an example, the last that was run."""
        failed = replace(self.check, error=error, call=subject.calls[-1], example=example)
        if example.check == self.check.name:
            return failed
        beside = [one for one in self.texts.held if one.check == example.check and one != example]
        return replace(failed, name=example.check, others=beside, failed=())

    def by_values(self) -> MendTries | None:
        """The same for an example whose results are compared and wrong, of this check or another, where nothing was
        compared in the failing one: it went wrong in memory, or launched no kernel. None where none is found."""
        if self.error.comparison is not None or self.clues.lines:
            return self
        examples = itertools.islice(self._simplest_wrong(self.text), Limit.RUN_OF_OTHERS)
        found = self._first(self.text, examples, lambda error: error.comparison is not None)
        return found if found is not None and found.error.comparison is not None else None

    def _simplest_wrong(self, text: str) -> Iterator[Example]:
        """The check's examples, further ones and those of other checks that a walk does not find right: what it finds
        wrong, first the simplest that have enough elements to tell much; then what it cannot tell; at last what
        compares nothing, and is watched in memory."""
        walked = self.walked_examples(text)
        every = dict.fromkeys([*self.check.tried, *self._further, *self.held()])
        tells_little = lambda one: (not one.compares, one.elements < Limit.FEW_ELEMENTS, one.is_strided, one.elements)
        unknown: list[Example] = []
        for one in sorted(every, key=tells_little):
            error = walked.error(one) if walked is not None and one.compares else NotWalked()
            if isinstance(error, Failure):
                yield one
            elif error is not None:
                unknown.append(one)
        yield from sorted(unknown, key=lambda one: (not one.compares, one not in self.check.tried))

    def is_right(self, text: str, has_made_right: bool = False) -> bool:
        """Whether the failing example and the others pass with `text`, and nothing goes wrong in memory but what did in
        other calls. Of one that `has_made_right` another check, it is not asked whether results are kept."""
        subject, self.passed, emptied = self.subject_of(text), 0, True
        self._cut_off.clear()
        for one in (self.check.example, *self.check.others):
            if self.passed >= Limit.RUN_FIRST and not emptied and self._is_right_by_walks(text, one):
                self.passed += 1
                continue
            if not (self._passes(subject, one) and self._makes_no_other(subject)):
                self.passed *= not emptied
                self.passed += not self.passed and self._is_put_right_in_part(subject)
                return False
            emptied = emptied and is_emptied(self.error, subject)
            self.passed += 1
        is_kept = (has_made_right or self._keeps_values(subject)) and self._makes_no_other(subject)
        return is_kept and not emptied and (not self._cut_off or self._took_as_long(text))

    def _is_right_by_walks(self, text: str, example: Example | None) -> bool:
        """Whether a walk finds an example of a check of results right with a text; False where that is not known."""
        walked = self.walked_examples(text)
        if example is None or walked is None or self.check.kind is not Kind.CORRECTNESS:
            return False
        return walked.error(example) is None

    def _took_as_long(self, text: str) -> bool:
        """Whether what was cut off with another `text` is cut off with this one, too: a grid of too many programs never
        comes to an end that could be wrong."""
        before, new = self.subject_of(self.text), [one for one in self._cut_off if one.key not in self._long]
        for one in new:
            self._long[one.key] = is_too_long(one.run(before))
        self.subject_of(text)
        return all(self._long[one.key] for one in self._cut_off)

    def refutes(self, text: str) -> bool:
        """Whether walks find the failing example wrong with this text and another; False where that is not known."""
        return self._is_wrong(self.text) and self._is_wrong(text)

    def fails_alone(self) -> bool:
        """Whether a walk finds the failing example wrong without the calls before it; False where that is not known."""
        return self._is_wrong(self.text, but=OutsideEverywhere)

    def _is_wrong(self, text: str, but: type[Exception] | tuple[()] = ()) -> bool:
        walked, example = self.walked_examples(text), self.check.example
        error = walked.error(example) if walked is not None and example is not None else None
        is_known = isinstance(error, OutsideEverywhere) or isinstance(error, Failure) and error.comparison is not None
        return is_known and not isinstance(error, but)

    def _makes_no_other(self, subject: Subject) -> bool:
        """Whether nothing goes wrong in memory but what other calls of the submission had shown, and this one not."""
        seen = {cause for cause, _, _ in subject.found_in_memory}
        return seen <= self._known and not seen & self._mine

    def _is_put_right_in_part(self, subject: Subject) -> bool:
        """Whether less goes wrong in memory, or a call that had none has a result, where something stays wrong: that
        may be one of two mistakes."""
        seen, before = subject.calls[-1].observation if subject.calls else None, self._call.observation
        return seen is not None and (before is None or _in_memory(seen) < _in_memory(before))

    def holds(self, mend: Mend) -> OtherChecks:
        """What becomes of the other checks with the last text that was right, that of a mend of a kernel, where that
        kernel takes part in what they compare; in part, too, where further examples of the check itself are wrong."""
        assert self._subject is not None
        program = self._call.observation.program if self._call.observation is not None else None
        launched = {kernel.name for kernel in program.kernels.values()} if program is not None else set()
        kernel = mend.kernel if mend.kernel in launched else ""  # that of a helper takes part in any
        walked = self.walked_examples(self._subject.submission.text)
        held = with_a_mend(self.held(), self._subject, kernel, self.texts.before, walked)
        is_known = held in (OtherChecks.NOT, OtherChecks.IN_PART)
        return held if is_known or self._is_right_further(self._subject) else OtherChecks.IN_PART

    def _is_right_further(self, subject: Subject) -> bool:
        """Whether the last text makes examples right that are unlike those it was found with: what is so by chance
        seldom does. Those that cannot be walked are run, a few of them."""
        walked = self.walked_examples(subject.submission.text)
        unknown = [one for one in self._further if walked is None or walked.error(one) is not None]
        telling = sorted(unknown, key=lambda one: (one.is_strided, one.elements), reverse=True)[: Limit.RUN_FURTHER]
        return all(one.failure(subject, "") is None for one in telling)

    def does_as_well(self, mend: Mend) -> bool:
        """Whether all checks are right with a mend alone, which hides nothing."""
        is_right = self.is_right(mend.applied(self.text)) and self.holds(mend) is OtherChecks.ALL
        return is_right and not self.is_no_repair(mend)

    def is_no_repair(self, mend: Mend) -> bool:
        """Whether a mend makes examples right by chance, or may only hide a mistake."""
        return self.is_by_chance(mend) or self.hides_mistake(mend.applied(self.text))

    def is_by_chance(self, mend: Mend) -> bool:
        """Whether a mend makes examples right by chance: a call goes wrong with larger inputs, or with another width of
        a tile that it puts in, where the text as it is does not; or a number does as well as a name that it puts in."""
        text, seen = mend.applied(self.text), self._call.observation
        if text not in self._looked_at and text not in self.texts.by_chance and seen is not None:
            self._looked_at.add(text)
            with survived("The look for what is so by chance"):
                depends = any(self._depends_on(number, text) for number in chosen_by(mend, self.text))
                if depends or breaks(self._call, seen.program, self.text, text) or self._is_a_number(mend):
                    self.texts.by_chance.add(text)
        return text in self.texts.by_chance

    def hides_mistake(self, text: str, alone: bool = False) -> bool:
        """Whether a `text` that makes examples right only hides the mistake, by what kernels do in the failing example
        and, unless it is to be looked at `alone`, in larger ones. An edit of a loop's head alone may leave it fewer
        steps."""
        key = self.text, text, alone
        if key not in self.texts.hidden and self.check.example is not None:
            self.texts.hidden[key] = False
            with survived("The look at what kernels do"):
                examples = [self.check.example] if alone else self._telling
                lines = enumerate(zip(self.text.splitlines(), text.splitlines(), strict=False), 1)
                changed = [line for line, (one, other) in lines if one != other][:2]
                before, after = (self.texts.efforts(one, examples) for one in (self.text, text))
                but = changed if len(changed) == 1 else ()
                self.texts.hidden[key] = hides_mistake([*zip(before, after, strict=True)], but)
        return self.texts.hidden.get(key, False)

    @cached_property
    def _own(self) -> list[Example]:
        """The failing example, and the largest that are planned for its check."""
        planned = [one for one in self.texts.planned if one.compares and one.check == self.check.name]
        largest = sorted(planned, key=lambda one: one.elements)[-Limit.LARGEST :]
        return [*dict.fromkeys([*filter(None, [self.check.example]), *largest])]

    @cached_property
    def _telling(self) -> list[Example]:
        """These, and the largest that is planned for any check."""
        compared = sorted((one for one in self.texts.planned if one.compares), key=lambda one: one.elements)
        return [*dict.fromkeys([*self._own, *compared[-1:]])]

    def loads(self, text: str) -> tuple[int, int]:
        """Of the failing example and the largest of its check, how many are wrong with a text, and how many elements
        kernels load in them."""
        each = self.texts.efforts(text, self._own)
        return sum(one.is_wrong for one in each), sum(one.loaded for one in each)

    def _depends_on(self, number: int, text: str) -> bool:
        """Whether examples that are right with a text are wrong where host code has another number, and those that are
        right with the text as it is are not: the number is free."""
        others = sorted(self.held(), key=lambda one: one.elements)
        examples = [one for one in (*self.check.tried, *others) if one.compares][: Limit.SHOWN // 2]

        def wrong(of: str) -> list[bool]:
            then = self.walked_examples(with_another(of, number))
            right = (one for one in examples if self._is_right_at(one, of))
            return [isinstance(then.error(one), Failure) for one in right] if then is not None else []

        before = wrong(self.text)
        return before != [] and not any(before) and any(wrong(text))

    def _is_right_at(self, example: Example, text: str) -> bool:
        """Whether an example is right with a text, by a walk; the failing one by a run, where a walk cannot tell."""
        walked = self.walked_examples(text)
        error = walked.error(example) if walked is not None else NotWalked()
        if example == self.check.example and error is not None and not isinstance(error, Failure):
            error = example.run(self.subject_of(text))
        return error is None

    def _is_a_number(self, mend: Mend) -> bool:
        """Whether 1 in the place of a name that a mend puts in makes right what the mend makes right, in this check, in
        the smallest examples and in those that are unlike: a name that is 1 there by chance may stand for any other."""
        text, rivals, helps = mend.applied(self.text), with_one(mend, self.text), False
        few = dict.fromkeys([*self.check.tried, *self._smallest(2 * Limit.SHOWN), *self._further] if rivals else [])
        for one in (one for one in few if isinstance(self._walked(self.text, one), Failure)):
            if rivals and self._walked(text, one) is None:
                helps, rivals = True, [rival for rival in rivals if self._walked(rival, one) is None]
        return helps and rivals != []

    def mended(self, text: str, most: int) -> int:
        """How many of the smallest examples a text makes right, at a walk."""
        return sum(self._walked(text, one) is None for one in self._smallest(most))

    def _smallest(self, most: int) -> list[Example]:
        """The smallest examples of each check of results in turn, its own first."""
        of_each = dict[str, list[Example]]({self.check.name: []})
        for one in (one for one in self.texts.planned if one.compares):
            of_each.setdefault(one.check, []).append(one)
        in_turn = (one for turn in itertools.zip_longest(*of_each.values()) for one in turn if one is not None)
        return [*itertools.islice(in_turn, most)]

    @cached_property
    def _further(self) -> list[Example]:
        return self.texts.further(self.check)

    def walked_examples(self, text: str) -> WalkedExamples | None:
        """Examples with another text, by walks."""
        program = self._call.observation.program if self._call.observation is not None else None
        key = text, self._call.entry, self._call.wanted, program and program.multiprocessors
        if key not in self.texts.walked and program is not None:
            with survived("A walk of host code"):
                self.texts.walked[key] = WalkedExamples(text, program)
        return self.texts.walked.get(key)

    def held(self) -> list[Example]:
        """Examples of the other checks."""
        return [held for held in self.texts.held if held.check != self.check.name]

    def spent(self) -> int:
        """The work that the last text has cost so far, beyond what every text costs."""
        return _compiling(self._subject.programs) + self._subject.work if self._subject is not None else 0

    def _keeps_values(self, subject: Subject) -> bool:
        """Whether a check of memory has the results that it had: one that does nothing touches nothing outside. Of
        elements that programs compete for, or that begin with what nobody wrote, nothing is asked."""
        observation = self._call.observation
        if self.check.kind is not Kind.MEMORY or observation is None or self._mine & _CHANGES_VALUES:
            return True
        try:
            results = subject.call(self._call.entry, self._call.args, self._call.wanted).results
        except Exception:  # noqa: BLE001  (whatever it is, this is no mend)
            return False
        return len(results) == len(observation.results) and all(map(alike, observation.results, results))

    def subject_of(self, text: str) -> Subject:
        """A subject of a text, the last that is tried."""
        self._subject = self.texts.subject_of(text)
        return self._subject

    def _passes(self, subject: Subject, example: Example | None) -> bool:
        if example is not None:
            error = example.run(subject)
            if self.passed > 1 and is_too_long(error):
                self._cut_off.append(example)
                return True
            return error is None
        if self.check.judge is not None:
            return self.check.judge(subject) is None
        try:  # the call that another check made
            seen = subject.call(self._call.entry, self._call.args, self._call.wanted)
            return not any(finding.cause.traits & IN_MEMORY for finding in seen.findings)
        except Exception:  # noqa: BLE001  (whatever it is, this is no mend)
            return False


def _compiling(programs: Iterable[Program]) -> int:
    """The work of compiling the kernels of programs."""
    return Limit.A_CHARACTER_COMPILED * sum(
        len(kernel.ttir) for program in programs for kernel in program.kernels.values()
    )


def _in_memory(observation: Observation) -> set[tuple[Cause, int | None]]:
    """What goes wrong in memory in a call, and in which lines."""
    return {(one.cause, one.line) for one in observation.findings if one.cause.traits & IN_MEMORY}
