"""What a failing check says of its submission's mistake: the submission with one small edit, or two, is traced, run and
judged like any other.

The edited text comes from the student's, so it runs where that ran: in the confined tracer alone. Its verdict is for
the diagnosis; the check has failed before, and earns nothing by it.
"""

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradekit.causes import SAYS_ALL, Cause
from gradekit.findings import Kind
from gradekit.inputs.spec import Input
from gradekit.judge.by_text import line_of_refused
from gradekit.judge.evidence import Diagnosis
from gradekit.judge.failure import Failure
from gradekit.repair.failed_check import FailedCheck, is_too_long
from gradekit.repair.idioms.idiom import Idiom, idioms_of
from gradekit.repair.mend import Clues, Mend
from gradekit.repair.mend_tries import MendTries
from gradekit.repair.other_checks import OtherChecks, fail_alike
from gradekit.repair.search import RIGHT, RIGHT_IN_PART, Mending, diagnosis_of, is_of_memory
from gradekit.repair.survivor_mends import LOOK
from gradekit.repair.texts import Texts
from gradekit.repair.unexpected import survived
from gradekit.repair.work import Limit
from gradekit.source.draft import draft_of
from gradekit.subject.subject import Call
from gradekit.submission.parsed_source import Edit


class Tutor:
    """The diagnoses of one submission's failing checks: what has helped one is tried first for the next.

    Args:
        texts: the submission, and what tries other texts of it.
    """

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        own: Sequence[Idiom] = ()
        with survived("The reading of an assignment's idioms"):
            own = idioms_of(texts.assignment.folder / "idioms.toml")
        self._mending = Mending(texts.submission.text, idioms=own)
        self.work = self._mending.work
        self._said: dict[str, tuple[FailedCheck, Mend | None]] = {}  # what each check's diagnosis is about
        self._open: dict[str, tuple[MendTries, list[Mend], list[Mend]]] = {}  # that no mend makes right

    def diagnosis(self, check: FailedCheck) -> Diagnosis | None:
        """What a mended program shows to be wrong; None where nothing does, and of a large call, for which a search
        costs much: it waits for what other checks show."""
        if _is_large(check):
            self._said[check.name] = check, None
            return None
        return self._searched(check)

    def _searched(self, check: FailedCheck) -> Diagnosis | None:
        found, mend = self._mended(check)
        self._said[check.name] = check, mend
        return found

    def at_the_end(self) -> dict[str, Diagnosis | None]:
        """What is said of checks when all have run, by their names, where that differs from what was said when they
        failed; None where that is taken back. Only now it is known which mends make checks right alone: on top of
        these, others are looked for.

        A mend that makes the failing examples of more checks right takes the place of others. What stays wrong with it,
        and nothing is said of, is said with it.
        """
        found: dict[str, Diagnosis | None] = {**self._of_open()}
        said = list(self._said.values())
        mends = list(dict.fromkeys(mend for _, mend in said if mend is not None))
        if not mends or all(mend == mends[0] for _, mend in said):
            return {**found, **(self._anew(mends[0]) if mends else {})}
        after = {mend: self._after(mend, said) for mend in mends}
        best = max(reversed(mends), key=lambda mend: _made_right(after[mend]))  # told where those before did not do
        tries = self._tries(next(check for check, mend in said if mend == best))
        both = self._joined(best, after, tries) if not _all_right(after[best]) else None
        if both is None and not _all_right(after[best]) and self._of_two(tries, [best]):
            both = self._mending.told_first
        if both is not None:
            after[both] = self._after(both, said)
            best = max(best, both, key=lambda mend: _made_right(after[mend]))
        for check, mend in ((check, mend) for check, mend in said if mend != best and check.name in after[best]):
            is_better = mend is None or _made_right(after[mend]) <= _made_right(after[best])
            if after[best][check.name] is None and is_better and (told := self._in_its_place(check, best)):
                found |= told
                self._said[check.name] = check, best
            elif mend is not None and mend.line == best.line:  # what is told of one place is told once
                found[check.name] = None
                self._said[check.name] = check, None
        is_wrong = lambda error: isinstance(error, Failure) and not is_too_long(error)
        wrong = [check for check, mend in said if mend is None and is_wrong(after[best].get(check.name))]
        found |= _of_large(wrong, lambda check: self._of_two(self._tries(check), [best]))
        left = [check for check in wrong if check.name not in found]
        if left and best in mends:
            said_of_it = None if LOOK in best.hint else self._with_this_left(best, after[best][left[0].name], tries)
            found |= {check.name: said_of_it for check, mend in said if mend == best}
        return {**found, **(self._anew(best) if _all_right(after[best]) else {})}

    def _joined(
        self, best: Mend, after: Mapping[Mend, Mapping[str, BaseException | None]], tries: MendTries
    ) -> Mend | None:
        """Two mends that checks have shown, as one with which more checks are right than with either."""
        mending, most = self._mending, max(map(_made_right, after.values()))
        others = [one for one in {**after, **dict.fromkeys(mending.in_part)} if LOOK not in best.hint + one.hint]
        for other in [one for one in others if one.line != best.line and _are_apart(best, one)][: Limit.SURVIVORS]:
            both = replace(of_both(best, other), edits=(*best.edits, *other.edits))
            text, found = both.applied(mending.text), self._after(both, self._said.values())
            if _made_right(found) > most and not tries.hides_mistake(text):
                proof = RIGHT if _all_right(found) else RIGHT_IN_PART
                mending.remember(both, diagnosis_of(both, mending.text, text, tries.clues, proof))
                return both
        return None

    def _of_open(self) -> dict[str, Diagnosis]:
        """What is said of checks that no single mend makes right; of large calls, where no other check has one."""
        found = dict[str, Diagnosis]()
        for name, (tries, helping, likely) in self._open.items():
            told, mend = self._of_several(tries, helping, likely)
            self._said[name] = tries.check, mend
            found |= {name: told} if told is not None else {}
        if not any(mend for _, mend in self._said.values()):
            found |= _of_large([check for check, _ in self._said.values()], self._searched)
        return found

    def _tries(self, check: FailedCheck) -> MendTries:
        return MendTries(check, self._texts, self._mending.text)

    def _in_its_place(self, check: FailedCheck, best: Mend) -> dict[str, Diagnosis]:
        """What is said of a check with the mend of others, if all that is tried of the check is right with it."""
        tries, known = self._tries(check), self._mending.remembered(best)
        if not tries.is_right(best.applied(self._mending.text), has_made_right=True):
            return {}
        return {check.name: known or self._with_numbers(tries, best) or self._told(best, tries)}

    def _anew(self, half: Mend) -> Mapping[str, Diagnosis | None]:
        """What is said of all checks with a mend that all need, where a check that is run anew with it fails; None of
        two that are told as one, and that nothing else makes right."""
        mending, text = self._mending, half.applied(self._mending.text)
        checks = [check for check, mend in self._said.values() if mend == half]
        with survived("The run of a check with a mend"):
            before, are_two = self._tries(checks[0]), mending.remembered(half) is not None
            failed = before.wrong_in(text, self._said) or self._texts.anew(self._texts.subject_of(text), are_two)
            if failed is None:
                return {}
            alone = self._of_one_alone(failed, before)
            if are_two or alone is not None:  # two are right together by chance
                return {check.name: alone for check in checks}
            if failed.call.observation is None or (second := mending.on_top(half)) is None:
                return {}
            tries = MendTries(failed, self._texts, text)
            other = second.found(tries.clues, tries)
            if other is None or LOOK in half.hint + other.hint or other.applied(text) == mending.text:
                said = self._with_this_left(half, failed.error, before)
            else:
                both = as_one if is_one(half, other, mending.text) else of_both
                said = diagnosis_of(both(half, other), mending.text, other.applied(text), before.clues, RIGHT)
            return {check.name: said for check in checks}
        return {}

    def _of_one_alone(self, failed: FailedCheck, tries: MendTries) -> Diagnosis | None:
        """What is told of a mend that is right where a check failed with another, which was right by chance: one that
        seemed right beside that, or is found for the failure."""
        for mend in itertools.chain(self._mending.beside[: Limit.SURVIVORS], self._found_for(failed)):
            subject = self._texts.subject_of(mend.applied(self._mending.text))
            if failed.again(subject) is None and tries.does_as_well(mend):
                return self._told(mend, tries)
        return None

    def _found_for(self, failed: FailedCheck) -> Iterator[Mend]:
        """The mends of the submission as it is for a check that failed with a mend of it."""
        subject = self._texts.subject_of(self._mending.text)
        error = failed.again(subject)
        if isinstance(error, Failure) and subject.calls and subject.calls[-1].observation is not None:
            tries = self._tries(replace(failed, error=error, call=subject.calls[-1]))
            yield from self._mending.helping(tries.clues, tries)

    def _after(self, mend: Mend, said: Iterable[tuple[FailedCheck, Any]]) -> dict[str, BaseException | None]:
        """What the failing example of each check raises with a mend."""
        subject = self._texts.subject_of(mend.applied(self._mending.text))
        found = dict[str, BaseException | None]()
        for check in (one for one, _ in said if one.example is not None or one.judge is not None):
            found[check.name] = check.again(subject)
        return found

    def _mended(self, check: FailedCheck) -> tuple[Diagnosis | None, Mend | None]:
        """The mend is None of what Triton or autograd refuses, and of a run that does not come to its end."""
        error, text = check.error, self._mending.text
        is_refused = error.cause in (Cause.COMPILATION_ERROR, Cause.BUDGET_EXCEEDED)
        if error.cause is Cause.EXCEPTION and check.call.observation is None:
            error, is_refused = Failure(error.cause, error.message, line=line_of_refused(text, error.message)), True
        if error.line is None if is_refused else not _is_mendable(error, check.call):
            return None, None
        tries = MendTries(replace(check, error=error), self._texts, text)
        if not is_refused and (launch := launch_missing(text, tries.clues)) is not None:
            return launch, None
        found, mend = self._found(tries, is_refused)
        return (replace(found, cause=error.cause), None) if is_refused and found is not None else (found, mend)

    def _found(self, tries: MendTries, is_refused: bool) -> tuple[Diagnosis | None, Mend | None]:
        """What is told of the mend that makes everything right; of more, in the end, but where nothing has run."""
        mending, helping = self._mending, self._mending.helping(tries.clues, tries)
        if helping and helping[0] not in mending.in_part:
            return mending.told(helping[0], tries.clues, tries), helping[0]
        if is_refused:
            return self._of_several(tries, helping, mending.halves(tries.in_part))
        self._open[tries.check.name] = tries, helping, mending.halves(tries.in_part)
        return None, None

    def _of_several(
        self, tries: MendTries, helping: Sequence[Mend], likely: Sequence[Mend]
    ) -> tuple[Diagnosis | None, Mend | None]:
        """What is told of two mends, the first of which has made other checks right, is `helping` in part, or is a
        `likely` half."""
        first = self._mending.told_first
        if first and (known := self._mending.remembered(first)) and tries.is_right(first.applied(tries.text), True):
            return known, first
        if both := self._of_two(tries, list(dict.fromkeys([*([first] if first else []), *helping]))):
            return both, self._mending.told_first
        named = [mend for mend in helping if LOOK not in mend.hint]  # what nobody can name explains no half
        first_half = named[0] if named[:1] == helping[:1] != [] else None
        if first_half is not None and tries.hides_mistake(first_half.applied(tries.text), alone=True):
            first_half = None
        if first_half is not None and (told := self._with_numbers(tries, first_half, is_half=True)) is not None:
            return told, first_half
        found = self._of_two(tries, halves := self._halves(tries, likely))
        if found is not None:
            return found, self._mending.told_first
        if tries.check.kind is Kind.MEMORY:  # which is looked at last, and may be all that an edit makes right
            seen = (mend for one, *_ in self._open.values() for mend in one.in_part)
            halves = list(dict.fromkeys([*halves, *seen]))[: 2 * Limit.HALVES]
        for half in (half for half in halves if LOOK not in half.hint and tries.is_right(half.applied(tries.text))):
            if tries.holds(half) is not OtherChecks.NOT and not tries.is_no_repair(half):
                self._mending.in_part.add(half)
                if (told := self._with_numbers(tries, half, is_half=True)) is not None:
                    return told, half
        return None, None

    def _with_numbers(self, tries: MendTries, mend: Mend, is_half: bool = False) -> Diagnosis | None:
        """What is told of a mend with which something else is still wrong that no mend is found for; None where the
        same access goes astray in another example, or one that did not before: it was right for the sizes of one."""
        told = self._mending.told(mend, tries.clues, tries) if is_half else None
        with survived("The look at what is left"):
            after = tries.after(mend.applied(self._mending.text))
            if after is None or tries.clues.astray & after.clues.astray or is_half and after.goes_astray_anew:
                return told if after is None else None
            seen, subject = after.error, after.subject_of(after.text)
            rule = self._texts.explained(seen, after.check.call, subject)
            return self._with_this_left(mend, seen, tries, rule)
        return told

    def _with_this_left(
        self, mend: Mend, left: BaseException | None, tries: MendTries, rule: Diagnosis | None = None
    ) -> Diagnosis | None:
        """What is told of a mend with which this is left, be it another mistake or more to this one, of which a `rule`
        may say more; None where no check is wholly right with it: few calls are so by chance. What the edit itself
        costs, a copy, is not told as if it were left."""
        text = mend.applied(self._mending.text)
        copies = any(".contiguous()" in edit.new for edit in mend.edits)
        if copies and getattr(left, "cause", None) in (Cause.TOO_MUCH_MEMORY, Cause.TOO_MANY_BYTES):
            return Diagnosis(mend.cause or tries.clues.likeliest, mend.sentence, mend.line or None, mend.hint)
        if not tries.makes_a_check_right(text, {*self._said, *self._open}):
            return None
        still = _lower(f"{left} {rule.sentence}" if rule else str(left))
        then = (rule.hint or rule.cause.hint) if rule else ""
        hint = f"first: {mend.hint}; then: {then}" if then and mend.hint else mend.hint
        said = replace(mend, sentence=f"{mend.sentence} With that put right, this is left: {still}", hint=hint)
        return diagnosis_of(said, self._mending.text, text, tries.clues, RIGHT_IN_PART)

    def _halves(self, tries: MendTries, likely: Sequence[Mend]) -> list[Mend]:
        """The likely mends that may be one of two: what made another check right, then what puts memory right, then
        those that make most of a few examples right, and what leaves the fewest elements of the failing call wrong."""
        first = self._mending.told_first
        mended = lambda mend: tries.mended(mend.applied(self._mending.text), Limit.SHOWN)
        helps = lambda mend: (mend == first, is_of_memory(mend, tries.clues), mended(mend))
        with survived("The look at what helps in part"):
            best = sorted([*filter(None, [first]), *likely], key=helps, reverse=True)
            return list(dict.fromkeys([*best[: Limit.HALVES - 1], *tries.in_part[:1], *best]))[: Limit.HALVES]
        return []

    def _of_two(self, tries: MendTries, halves: Sequence[Mend]) -> Diagnosis | None:
        """What is told where two mends make everything right, one of them of the `halves`, and neither alone; or one,
        with which nothing is left."""
        mending = self._mending
        for half in halves:
            with survived("The search for a second mistake"):
                text = half.applied(mending.text)
                if tries.is_no_repair(half):
                    continue
                is_new = (after := tries.after(text)) is None and half not in mending.in_part
                if is_new and tries.is_right(text) and tries.holds(half) is OtherChecks.ALL:
                    return self._told(half, tries)
                if after is None or (second := mending.on_top(half)) is None:
                    continue
                other = second.found(after.clues, after)
                if other is None or after.holds(other) is not OtherChecks.ALL or LOOK in half.hint + other.hint:
                    continue  # a change that nobody can name explains nothing beside another
                both, apart = other.applied(second.text), without(half, other, mending.text)
                if both == mending.text or tries.hides_mistake(both):
                    continue
                alone = apart.applied(mending.text) if apart is not None else None
                if is_one(half, other, mending.text) or alone is not None and self._follows(half, other, after, alone):
                    return self._told(as_one(half, other), tries, both)
                if alone is None or not tries.is_right(alone):
                    if tries.is_right(both):  # the second was looked for at another example
                        return self._told(of_both(half, other), tries, both)
                elif tries.holds(other) is not OtherChecks.NOT:  # the first of the two is of other checks, or by chance
                    return self._told(other, tries, alone)
        return None

    def _follows(self, half: Mend, other: Mend, after: MendTries, alone: str) -> bool:
        """Whether the second mend does nothing in the submission as it is, at the call that asks for it, and is of a
        tensor whose stride or size the first has put in: with another ingredient the first alone would do."""
        example, draft = after.check.example, draft_of(self._mending.text)
        if example is None or draft is None or other.kernel:
            return False
        launches = (one.given for one in draft.launches if one.kernel.name == half.kernel)
        passed = (draft.source.of(given[param]) for given in launches for param in given.keys() & _names(half.edits))
        if not {name for text in passed for name in re.findall(r"\w+", text)} & _names(other.edits):
            return False
        before, now = (example.run(after.subject_of(text)) for text in (self._mending.text, alone))
        return before is not None and now is not None and fail_alike(before, now)

    def _told(self, mend: Mend, tries: MendTries, tried: str = "") -> Diagnosis:
        """What is said of a mend, or of a text that was `tried`, with which everything is right: other checks that it
        makes right have the same diagnosis."""
        text, tried = self._mending.text, tried or mend.applied(self._mending.text)
        said = mend.or_else(tries.does_as_well) if tried == mend.applied(text) else mend
        found = diagnosis_of(said, text, tried, tries.clues, RIGHT)
        self._mending.remember(mend_of_both(text, tried, mend), found)
        return found

    def close(self) -> None:
        """Ends the process in which other texts are tried."""
        self._texts.close()


def _is_large(check: FailedCheck) -> bool:
    """Whether results were compared in a call of more elements than changes are looked at with."""
    return check.error.comparison is not None and _elements(check) > Limit.WALKED_ELEMENTS


def _of_large(checks: Iterable[FailedCheck], told: Callable[[FailedCheck], Diagnosis | None]) -> dict[str, Diagnosis]:
    """What is said of checks that waited, from the smallest call up to the first for which nothing is found."""
    looked = ((check.name, told(check)) for check in sorted(filter(_is_large, checks), key=_elements))
    return {name: said for name, said in itertools.takewhile(lambda one: one[1] is not None, looked) if said}


def _made_right(after: Mapping[str, BaseException | None]) -> int:
    """How many checks' failing examples a mend has made right."""
    return list(after.values()).count(None)


def _all_right(after: Mapping[str, BaseException | None]) -> bool:
    return _made_right(after) == len(after)


def _elements(check: FailedCheck) -> int:
    """Of the inputs of the call that failed."""
    return sum(arg.numel for arg in check.call.args if isinstance(arg, Input))


def _is_mendable(error: Failure, call: Call) -> bool:
    """Whether another program could help: not where a message says all, nor where nothing
    was run but for want of programs."""
    if call.observation is None or error.cause is Cause.NO_KERNEL:
        return error.cause is Cause.NO_KERNEL
    return error.repeat is not None or not error.cause.traits & SAYS_ALL


# --- two mistakes at once: a mend that helps in part, and another on top of it ----------------------------------------


def without(half: Mend, other: Mend, text: str) -> Mend | None:
    """The mend `other`, of a `text` that `half` is applied to, for the text as it is; None where it touches what `half`
    has changed."""
    placed, moved = list(_placed(half, text)), []
    for edit in other.edits:
        if any(start < edit.end and edit.start < end for start, end, _ in placed):
            return None
        shift = sum(by for _, end, by in placed if end <= edit.start)
        moved.append(replace(edit, start=edit.start - shift, end=edit.end - shift))
    return replace(other, edits=tuple(moved))


def _are_apart(one: Mend, other: Mend) -> bool:
    """Whether two mends of a text change other places of it."""
    return all(edit.end <= new.start or new.end <= edit.start for edit in one.edits for new in other.edits)


def _placed(half: Mend, text: str) -> Iterator[tuple[int, int, int]]:
    """Where what a mend has put in begins and ends in the text after it, and by how much what follows has moved."""
    data, shift = text.encode("utf-8"), 0
    for edit in sorted(half.edits, key=lambda edit: edit.start):
        old, new = data[edit.start : edit.end], edit.new.encode("utf-8")
        before, behind = _alike(old, new)
        by = len(new) - len(old)
        yield edit.start + shift + before, edit.end + shift + by - behind, by
        shift += by


def _alike(old: Any, new: Any) -> tuple[int, int]:
    """How many bytes or lines two texts have in common before and behind what differs."""
    start = len(os.path.commonprefix([old, new]))
    return start, len(os.path.commonprefix([old[start:][::-1], new[start:][::-1]]))


def is_one(half: Mend, other: Mend, text: str) -> bool:
    """Whether two mends are of one mistake: the second corrects what the first has put in, and nothing that stood there
    before; or both say the same of neighbouring names in one line."""
    placed = [(start, end) for start, end, _ in _placed(half, text)]
    is_within = lambda edit: any(start <= edit.start < end and start < edit.end <= end for start, end in placed)
    return all(map(is_within, other.edits)) or _say_the_same(half, other)


def _say_the_same(half: Mend, other: Mend) -> bool:
    """Whether two mends of a line differ in names and numbers alone."""
    one, two = (re.sub(r"`[^`]*`", "_", mend.sentence).split() for mend in (half, other))
    alike = sum(map(str.__eq__, one, two))
    return half.line == other.line > 0 and len(one) == len(two) and 3 * alike >= 2 * len(one)


def as_one(half: Mend, other: Mend) -> Mend:
    """Both in the words of the first, where these do not name what the second corrects."""
    if _say_the_same(half, other):
        both = f"{half.sentence} The same is true there: {_lower(other.sentence)}"
        return replace(half, sentence=both, hint=f"{half.hint}; {other.hint}")
    wrong = _names(half.edits) & set(re.findall(r"\w+", f"{half.sentence} {half.hint}"))
    return replace(half, hint=other.hint if wrong else half.hint)


def _names(edits: Iterable[Edit]) -> set[str]:
    return {name for edit in edits for name in re.findall(r"[A-Za-z_]\w*", edit.new)}


def of_both(one: Mend, other: Mend) -> Mend:
    """The first, in words of both."""
    says, hint = _with_another(one, other.sentence), f"first: {one.hint}; then: {other.hint}"
    return replace(one, cause=one.cause or other.cause, line=one.line or other.line, sentence=says, hint=hint)


def _with_another(mend: Mend, other: str) -> str:
    """What is said of a mend and of another mistake."""
    return f"There are two mistakes. {mend.sentence} With that put right, there is another: {_lower(other)}"


def mend_of_both(text: str, with_both: str, half: Mend) -> Mend:
    """Both mends as one edit of whole lines."""
    old, new = text.splitlines(keepends=True), with_both.splitlines(keepends=True)
    start, behind = _alike(old, new)
    begin, end = (len("".join(old[:at]).encode("utf-8")) for at in (start, len(old) - behind))
    return replace(half, edits=(Edit(begin, end, "".join(new[start : len(new) - behind]), half.hint),))


def _lower(sentence: str) -> str:
    """A sentence behind a colon: without a capital, unless it begins with a name."""
    first, _, rest = sentence.partition(" ")
    return f"{first.lower()} {rest}" if first.istitle() else sentence


# --- a kernel that nothing launches, where something is missing of a result -------------------------------------------


_LACKING = (Cause.UNWRITTEN_OUTPUT, Cause.UNINITIALIZED_READ, Cause.NO_KERNEL, Cause.ALL_ZEROS)


def launch_missing(text: str, clues: Clues) -> Diagnosis | None:
    """What is said of a kernel that no line mentions but its own; None where there is none, or where nothing shows that
    a result lacks what a kernel was to store: what programs compete for is stored, and in the wrong places."""
    draft = draft_of(text)
    seen = [cause for cause in _LACKING if cause in clues.causes and Cause.WRITE_CONFLICT not in clues.causes]
    if draft is None or not seen or len(draft.never_launched) != 1:
        return None
    (kernel,) = draft.never_launched
    sentence = f"Nothing launches `{kernel.name}`, which is defined in line {kernel.node.lineno}."
    hint = f"launch it as `{kernel.name}[grid](...)` before its result is used"
    return Diagnosis(seen[0], sentence, kernel.node.lineno, hint)
