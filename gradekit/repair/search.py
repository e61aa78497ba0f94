"""Looks for the one mend that makes a failing example right, and the others of its check with it.

What is tried is bounded by a count, for all checks of a submission together: a mend that has made one check right is
the first that the next one tries, and what has failed at one is the last, where something else was seen.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence

from gradekit.causes import IN_MEMORY, OUT_OF_BOUNDS, Cause
from gradekit.judge.evidence import Diagnosis
from gradekit.repair.first_look import screened
from gradekit.repair.idioms.candidates import in_order, mends
from gradekit.repair.idioms.idiom import Idiom
from gradekit.repair.mend import Clues, Family, Mend
from gradekit.repair.mend_tries import MendTries
from gradekit.repair.other_checks import OtherChecks
from gradekit.repair.unexpected import survived
from gradekit.repair.work import Limit, Rank, Work
from gradekit.source.draft import draft_of, settled_lines
from gradekit.submission.parsed_source import ParsedSource, called, meaning, shown

RIGHT, RIGHT_IN_PART = (
    "this example and others are right",
    "this example is right, and others still fail: there is another mistake, or more to this one",
)  # fmt: skip
"""What shows that a mend is right, or that it is one of two."""

_RIGHT_ALONE = Diagnosis(
    Cause.DEPENDS_ON_EARLIER_CALLS,
    "In a new process, without the calls before it, this call is right: its result depends on what was called before.",
    None,
    Cause.DEPENDS_ON_EARLIER_CALLS.hint,
)


def price(text: str, clues: Clues) -> int:
    """The work that a try costs at least: a process loads the text and compiles a kernel, which takes longer where they
    are long; each kernel is launched."""
    launched = len(clues.kernels) + len(clues.others)
    return Limit.LOADED + Limit.LAUNCHED * launched + Limit.A_CHARACTER * len(text)


def without_experiments(text: str) -> str:
    """A source without the statements outside of functions and classes that call a function of its own, as Triton's
    tutorials end with: each try imports the submission, and would run them. No line moves."""
    source = ParsedSource.parsed(text)
    if source is None:
        return text
    own = {node.name for node in source.tree.body if isinstance(node, ast.FunctionDef)}
    run = (ast.Expr, ast.Assign, ast.AnnAssign, ast.For, ast.While, ast.With)
    data = text.encode("utf-8")
    for statement in reversed(source.tree.body):
        if isinstance(statement, run) and any(called(node) in own for node in ast.walk(statement)):
            start, end = source.span(statement)
            data = data[:start] + b"pass" + b"\n" * data.count(b"\n", start, end) + data[end:]
    return data.decode("utf-8")


class Mending:
    """The mends of one submission, and what came of those that were tried."""

    def __init__(self, text: str, work: Work | None = None, idioms: Sequence[Idiom] = ()) -> None:
        self.text, self.idioms = text, idioms
        self.work = work if work is not None else Work()
        self._work = self.work.tried
        self._has_no_experiments = without_experiments(text) == text
        self.tried = 0
        self._mends: dict[frozenset[str], list[Mend]] = {}  # of some kernels
        self._right: list[Mend] = []
        self.in_part: set[Mend] = set()  # of those that are right, with which something else is still wrong
        self._wrong: dict[Mend, set[frozenset[Cause]]] = {}  # and what was seen where they were
        self._needed: set[Mend] = set()  # without which the text as it is was wrong in a new process, too
        self._partly: dict[Mend, int] = {}
        self._second: dict[Mend, Mending] = {}
        self.beside: list[Mend] = []  # what else seemed right when a mend was found
        self._diagnoses: dict[Mend, Diagnosis] = {}

    def told(self, mend: Mend, clues: Clues, tries: MendTries) -> Diagnosis | None:
        """What a tutor says of a mend; none is believed where the text as it is would do in a new process, too."""
        if mend not in self._needed and not tries.fails_alone():
            if self._is_right(self.text, tries, price(self.text, clues)):
                is_elsewhere = clues.several or any(cause.traits & IN_MEMORY for cause in clues.causes)
                return None if is_elsewhere else _RIGHT_ALONE
            self._needed.add(mend)
        if mend in self._diagnoses:
            return self._diagnoses[mend]
        tried, proof = mend.applied(self.text), RIGHT_IN_PART if mend in self.in_part else RIGHT
        said = mend.or_else(tries.does_as_well) if mend.others and proof == RIGHT else mend
        return diagnosis_of(said, self.text, tried, clues, proof)

    def found(self, clues: Clues, tries: MendTries) -> Mend | None:
        """The first mend that makes everything right, or else one that is right beside another mistake."""
        return next(iter(self.helping(clues, tries)), None)

    def helping(self, clues: Clues, tries: MendTries) -> list[Mend]:
        """The first mend that makes a failing check right with nothing else left wrong; or else those `in_part`."""
        each = price(self.text, clues)
        least = self._work.left - max(int(Limit.FOR_ONE_CHECK * self._work.left), 2 * each)
        looked: list[Mend] = []
        halves = dict[OtherChecks, Mend]()
        for mend in self._in_turn(clues, lambda: looked.extend(screened(tries, self.work)) or looked):  # type: ignore[func-returns-value]
            if OtherChecks.AS_BEFORE in halves and mend not in looked:
                continue
            if self._work.left - each < max(least, 0) and mend not in looked and mend not in self._right:
                continue  # the few that a look has found, or that made other checks right, are tried in any case
            if mend not in looked and not is_of_memory(mend, clues) and tries.refutes(mend.applied(self.text)):
                self._work.spend(Limit.REFUTED)
                self._wrong.setdefault(mend, set()).add(clues.causes)
                continue
            held = self._held(mend, tries, each)
            if held is OtherChecks.ALL:
                if mend in self._right or not tries.hides_mistake(mend.applied(self.text)):
                    self.beside += [one for one in (*looked, *tries.beside) if one not in (mend, *self.beside)]
                    return [self._as_told(mend, looked)]
                held = OtherChecks.NOT
            if held is OtherChecks.NOT:
                self._wrong.setdefault(mend, set()).add(clues.causes)
                if passed := tries.passed:
                    self._partly[mend] = passed
            elif held not in halves:
                halves[held] = mend
                least = max(least, self._work.left - Limit.WORK_AFTER_ONE_IN_PART)
                self.in_part.add(mend)
        return [self._as_told(mend, looked) for mend in halves.values()]

    def _held(self, mend: Mend, tries: MendTries, each: int) -> OtherChecks:
        """What a try says of a mend, and what other checks say of one that has made none of them right."""
        right = self._is_right(mend.applied(self.text), tries, each)
        if not right:
            return OtherChecks.NOT
        if mend in self._right:
            return OtherChecks.ALL
        before, held = tries.spent(), tries.holds(mend)
        self._work.spend(tries.spent() - before)
        return OtherChecks.NOT if tries.is_by_chance(mend) else held

    def _as_told(self, mend: Mend, looked: Sequence[Mend]) -> Mend:
        """A mend that is right, in the words of a rule where one does the same: other checks try it first."""
        if mend in looked and mend.rank <= Rank.SCREENED and (rule := self._by_a_rule(mend)) != mend:
            self.in_part |= {rule} if mend in self.in_part else set()
            mend = rule
        self._right = [mend, *(other for other in self._right if other != mend)]
        return mend

    @property
    def told_first(self) -> Mend | None:
        """What has made the last check right that any mend has."""
        return self._right[0] if self._right else None

    def remembered(self, mend: Mend) -> Diagnosis | None:
        """What is said of two mends that were put together in one."""
        return self._diagnoses.get(mend)

    def has_made_right(self, text: str) -> bool:
        """Whether a text is that of a mend which has made a check right."""
        return any(mend.applied(self.text) == text for mend in self._right)

    def halves(self, in_part: Sequence[Mend] = ()) -> list[Mend]:
        """The mends that may be one of two: what made another check right, then what made more examples of this one
        right than others, then what helps the failing call `in_part`."""
        partly = sorted(self._partly, key=lambda mend: (-self._partly[mend], mend.rank))
        return list(dict.fromkeys([*self._right, *partly, *in_part]))[: Limit.LIKELY_HALVES]

    def remember(self, both: Mend, diagnosis: Diagnosis) -> None:
        """Two mends together that have made a check right: other checks try them first, and have the same diagnosis."""
        self._right.insert(0, both)
        self._diagnoses[both] = diagnosis

    def _by_a_rule(self, mend: Mend) -> Mend:
        """The mend of a rule that does the same as one of screening, and says what it does; else that mend."""
        wanted = meaning(mend.applied(self.text))
        lines = _edited(mend, self.text)
        every = itertools.chain.from_iterable(self._mends.values())
        near = (other for other in every if _edited(other, self.text) == lines)
        return next((other for other in near if meaning(other.applied(self.text)) == wanted), mend)

    def on_top(self, half: Mend) -> Mending | None:
        """The mends of the text with one of two mistakes mended; None where that was asked for others often enough."""
        if half not in self._second and len(self._second) < Limit.HALVES:
            work = self.work.of_a_second()
            self._second[half] = Mending(half.applied(self.text), work, self.idioms)
        return self._second.get(half)

    def _is_right(self, text: str, tries: MendTries, least: int) -> bool:
        self.tried += 1
        has_made_right = self.has_made_right(text)
        right = tries.is_right(text if self._has_no_experiments else without_experiments(text), has_made_right)
        if not (right and has_made_right):  # which is asked once for each check that fails
            self._work.spend(least + tries.spent())
        return right

    def _by_rules(self, clues: Clues) -> list[Mend]:
        mine = frozenset((*clues.kernels, *clues.others))
        if mine not in self._mends:
            self._mends[mine] = []
            with survived("The search for mends"):
                self._mends[mine] = mends(self.text, self.idioms, mine)
        return self._mends[mine]

    def _in_turn(self, clues: Clues, screened: Callable[[], Sequence[Mend]]) -> Iterator[Mend]:
        found = self.candidates(clues)
        fresh = [mend for mend in found if mend not in self._wrong and mend not in self._right]
        failed = [one for one in found if clues.causes not in self._wrong.get(one, {clues.causes})]
        likely = [mend for mend in fresh if mend.rank <= Rank.LIKELIEST][: Limit.BEFORE_SCREENING]
        yield from [*self._right, *likely]
        looked = screened() if self._work.left > 0 else ()
        vague = [mend for mend in looked if mend.rank > Rank.SCREENED]
        later = [mend for mend in fresh if mend not in likely]
        clear = [mend for mend in later if vague and mend.rank <= Rank.BEFORE_VAGUE][: Limit.BEFORE_VAGUE]
        yield from (mend for mend in looked if mend not in vague)
        yield from [*clear, *vague, *(mend for mend in later if mend not in clear), *failed]

    def candidates(self, clues: Clues) -> list[Mend]:
        """The mends of rules in the order in which they are worth a try, without those that no wrong result depends on;
        of one that adds a statement that is not known."""
        draft = draft_of(self.text) if clues.wrong else None
        settled = settled_lines(draft, clues.wrong, ()) if draft is not None else {}
        return [
            mend for mend in in_order(self._by_rules(clues), clues)
            if any(edit.new[:1] == ";" for edit in mend.edits)
            or not {*_edited(mend, self.text)} <= {*settled.get(mend.kernel, ())}
        ]  # fmt: skip


def diagnosis_of(mend: Mend, text: str, tried: str, clues: Clues, proof: str) -> Diagnosis:
    """What a tutor says of a mend of a text, with what was `tried`, and what shows that this is right."""
    hint = f"{mend.hint} ({_changed(text, tried)}, {proof})"
    return Diagnosis(mend.cause or clues.likeliest, mend.sentence, mend.line or None, hint)


def _changed(text: str, tried: str) -> str:
    """Which lines were changed in what was `tried`, with their new text where they are few."""
    pairs = enumerate(zip(text.splitlines(), tried.splitlines(), strict=False), 1)
    apart = {line: (old.strip(), new.strip()) for line, (old, new) in pairs if old != new}
    if len(apart) <= Limit.LINES:
        return f"with {' and '.join(f'line {line} as {_as_tried(*pair)}' for line, pair in apart.items())}"
    *most, last = map(str, apart)
    return f"with lines {', '.join(most)} and {last} changed"


_GRID = re.compile(r"\[([^][]*,[^][]*)\]\(")  # of a launch: Python needs no brackets around its sizes, and people do


def _as_tried(before: str, after: str) -> str:
    """A line as it was tried, without the brackets that an edit puts around itself; what is new is never cut off."""
    with contextlib.suppress(SyntaxError):  # of one of several lines, or of a head
        plain = "; ".join(map(ast.unparse, ast.parse(after).body))
        after = after if after.endswith(",") else _GRID.sub(r"[(\1)](", plain)
    return shown(after, Limit.SENTENCE_TEXT, at=len(os.path.commonprefix([before, after])))


def is_of_memory(mend: Mend, clues: Clues) -> bool:
    """Whether a mend is of what was seen to go wrong in memory, which no value refutes."""
    is_mask = mend.family is Family.MASK and bool(clues.causes & OUT_OF_BOUNDS)
    return is_mask or mend.cause in clues.causes and bool(mend.cause.traits & IN_MEMORY)


def _edited(mend: Mend, text: str) -> list[int]:
    """The numbers of the lines that a mend edits."""
    data = text.encode("utf-8")
    return [data.count(b"\n", 0, edit.start) + 1 for edit in mend.edits]
