"""Calls that send kernels the ways that a check's examples have not gone: by sizes, and by values of tensors."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradekit.engine.branch_coverage import SEVERAL
from gradekit.engine.def_use import LOADS
from gradekit.engine.mask_coverage import MASKED
from gradekit.inputs.draws import Draws
from gradekit.program import Kernel
from gradekit.unseen.candidates import ROUGH
from gradekit.unseen.dtype_groups import dtype_groups
from gradekit.unseen.further import FurtherCall, Purpose, fits, made, rank_of, values_of
from gradekit.unseen.host_branches import Path, TracedForm
from gradekit.unseen.kernel_branches import KernelBranch, KernelText, kernel_text, numbers_in
from gradekit.unseen.kernel_limits import limits_in
from gradekit.unseen.missing_ways import COMPARING, Missing, launching
from gradekit.unseen.scope import FAR, CallScope, fraction_choices, sizes_alone
from gradekit.unseen.search import Candidates, Search
from gradekit.unseen.special_values import chosen_kinds, kinds_alike
from gradekit.unseen.wants import KernelWay

MOST_BRANCHES = 24
"""Branches of kernels that one check solves for."""

ORDINARY = frozenset({0.0, 1.0, -1.0, 0.5, 2.0})
"""Constants that say nothing about a kernel."""

MOST_LOOPS = 2
"""Loops that one check tries with each kind of values, and with each group of dtypes that the kernel treats alike."""

MANY = 1 << 10
"""Elements from which on a larger call is made as well: the last of many may be right by chance."""

WHOLE, ROOMY = 256, 48
"""Sizes of which tiles are filled to their ends, so that what is masked there has a value of its own; and those of
calls with some thousand elements, in several rows."""

PATH = "submission.py"
"""What programs call the submission."""


@dataclass
class KernelInputs:
    """Makes calls for kernels: those that a check has run, with the ways that they went, are given to `see`."""

    _ways: dict[KernelBranch, bool] = field(default_factory=dict)
    _first: dict[KernelBranch, Missing] = field(default_factory=dict)
    _asked: set[KernelBranch] = field(default_factory=set)
    _vain: set[KernelBranch] = field(default_factory=set)
    _seen_of: dict[str, dict[int, int]] = field(default_factory=dict)
    _texts: dict[str, KernelText] = field(default_factory=dict)
    _texts_of: dict[tuple[str, str], KernelText] = field(default_factory=dict)
    _far: set[KernelBranch] = field(default_factory=set)
    _groups: Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)
    _grouped: dict[KernelBranch, KernelBranch] = field(default_factory=dict)
    search: Search = field(default_factory=Search)
    _known_numbers: tuple[int, ...] | None = None

    def begin_check(self) -> None:
        """Another check begins, which has seen nothing yet."""
        self._ways.clear()
        self._seen_of.clear()
        self._asked.clear()
        self._texts.clear()

    def see(self, kernels: Mapping[str, Kernel], ways: Mapping[str, Mapping[int, int]]) -> None:
        """Notes the branch coverage of kernels, by their names (see gradekit.engine.branch_coverage)."""
        before = len(self._texts)
        for key, kernel in kernels.items():
            known = ways.get(key, {})
            if self._seen_of.get(key) == known:
                continue
            self._seen_of[key] = dict(known)
            text = self._text(key, kernel)
            for branch, number, seen in text.branches(known):
                self._ways[branch] = self._ways.get(branch, False) or seen
                found = self._first.get(branch)
                if found is None or len(text.arguments) > len(found.text.arguments):  # fewer sizes are constants in it
                    self._first[branch] = Missing(branch, text, number)
        if len(self._texts) > before:
            self._groups, self._known_numbers = dtype_groups(self._texts.values()), None
            self._grouped.clear()

    @property
    def texts(self) -> list[KernelText]:
        """Of the kernels that the check has run, each once."""
        return [*dict.fromkeys(self._texts.values())]

    def _text(self, key: str, kernel: Kernel) -> KernelText:
        if key not in self._texts:
            own = kernel.name, kernel.unaligned
            if own not in self._texts_of:
                self._texts_of[own] = kernel_text(*own, PATH)
            self._texts[key] = self._texts_of[own]
        return self._texts[key]

    def missing(self) -> list[Missing]:
        """The ways that no run of the check has gone, in the order of lines; of a kernel that does not treat all dtypes
        alike, those that none has gone with dtypes that it treats alike."""
        ways = self._together()
        found: dict[KernelBranch, Missing] = {}
        for branch in self._ways:
            together = self._group(branch)
            if not ways[together]:
                found.setdefault(together, replace(self._first[branch], branch=together))
        return sorted(found.values(), key=_in_order)

    def _is_missing(self, branch: KernelBranch) -> bool:
        return not any(seen for own, seen in self._ways.items() if self._group(own) == branch)

    def _together(self) -> dict[KernelBranch, bool]:
        """The ways, dtypes that are treated alike as one, and whether a run has gone each."""
        found: dict[KernelBranch, bool] = {}
        for branch, seen in self._ways.items():
            together = self._group(branch)
            found[together] = found.get(together, False) or seen
        return found

    def _group(self, branch: KernelBranch) -> KernelBranch:
        if branch not in self._grouped:
            self._grouped[branch] = replace(branch, dtypes=self._groups[branch.kernel, branch.dtypes])
        return self._grouped[branch]

    def unseen(self) -> list[dict[str, Any]]:
        """These, as the report record holds them."""
        told = dict.fromkeys((one.branch.line, one.branch.never) for one in self.missing())
        return [{"line": line, "what": what} for line, what in told]

    def compared_fractions(self) -> list[float]:
        """The numbers below 1 that kernels themselves compare with what is not loaded, in the order of lines."""
        asked = sorted(self._first.items(), key=lambda one: (one[0].line or 0, one[0].place))
        compared = [missing for branch, missing in asked if branch.name in COMPARING]
        numbers = [n for one in compared if not one.is_loaded for n in numbers_in(one.operands, True)]
        return list(dict.fromkeys(abs(n) for n in numbers if 0 < abs(n) < 1))

    def limits(self, forms: Sequence[TracedForm]) -> list[int]:
        """The numbers that sizes may lie beyond (see `limits_in`), of each kernel those that several of its
        specializations have: others, and what the calls are given, are sizes themselves."""
        given = {number for form in forms for number in form.leaves.values()}
        of_kernels = Counter((text.name, number) for text in self._texts.values() for number in limits_in(text))
        return sorted({number for (_, number), count in of_kernels.items() if count > 1 and number not in given})

    def _among(self, draws: Draws, path: Path, far: bool) -> Candidates | None:
        """Sizes that take a path, near the numbers that the check's kernels decide by; with `far`, all that the entry
        promises, of large tensors."""
        scope = CallScope(sizes_alone(draws), rank_of(draws, path.form), far, FAR if far else 1)
        return self.search.among(path, scope, self._numbers(), ROUGH)

    def _numbers(self) -> tuple[int, ...]:
        if self._known_numbers is None:
            every = sorted((self._first[branch] for branch in self._ways), key=_in_order)
            numbers = dict.fromkeys(n for one in every for n in numbers_in(one.behind, floating=False))
            self._known_numbers = tuple(numbers)
        return self._known_numbers

    @property
    def counts(self) -> tuple[int, int]:
        """How many ways there are, and how many have been seen."""
        ways = self._together()
        return len(ways), sum(ways.values())

    def further(self, draws: Draws, forms: Sequence[TracedForm], paths: Sequence[Path]) -> list[FurtherCall]:
        """Calls for what is missing, but for what earlier calls did not achieve."""
        missing = self.missing()
        self._vain |= self._asked & {one.branch for one in missing}
        wanted = [one for one in missing if one.branch not in self._vain]
        wanted = sorted(wanted, key=lambda one: one.branch.name in MASKED)[:MOST_BRANCHES]
        mine = [form for form in forms if fits(draws, form) and form.elements]
        if not wanted or not mine:
            return []
        self._asked |= {one.branch for one in wanted}
        found = [*self._by_size(draws, wanted, paths), *self._by_value(draws, wanted, mine)]
        return [*found, *_by_scalar(draws, wanted, mine[0])]

    def _by_size(self, draws: Draws, wanted: Sequence[Missing], paths: Sequence[Path]) -> Iterator[FurtherCall]:
        left = {one: launching(one, paths) for one in wanted if one.is_of_sizes}
        for far in (False, True):
            for path in paths:
                mine = [one for one, its in left.items() if path in its]
                among = self._among(draws, path, far) if mine else None
                found = [(one, among.solutions(KernelWay(one)).sizes) for one in mine] if among is not None else []
                for one, solved in found:
                    if not solved or among is None:
                        continue
                    if among.scope.count(solved[0]) <= MANY:
                        solved = solved[:1]
                    del left[one]
                    tried = functools.partial(self._far.add, one.branch)
                    is_wanted = functools.cache(functools.partial(self._is_missing, one.branch))
                    for sizes in solved:
                        call = made(draws, path.form, sizes, len(left), {})
                        purpose = Purpose.BESIDE if one.branch.name in MASKED else Purpose.BRANCH
                        yield FurtherCall(call, one.why, one.branch.line, purpose, tried, is_wanted)
            left = {one: its for one, its in left.items() if one.branch not in self._far}
        self._far |= {one.branch for one in left}

    def _by_value(self, draws: Draws, wanted: Sequence[Missing], forms: Sequence[TracedForm]) -> Iterator[FurtherCall]:
        telling: dict[float, None] = {}
        first: Missing | None = None
        for one in wanted:
            behind = one.behind
            if any(op.name in LOADS for op in behind):
                own = [c for c in numbers_in(behind, floating=True) if c not in ORDINARY]
                whole = (
                    [float(n) for n in numbers_in(behind, floating=False)] if one.branch.name == "arith.cmpi" else []
                )
                telling |= dict.fromkeys([*own, *whole])
                first = first or (one if own or whole else None)
        if first is not None:
            yield from _valued(draws, forms, list(telling), first.why, first.branch.line)
        together = next((one for one in wanted if one.is_of_many), None)
        if together is not None:
            yield from _alike(draws, forms, together)

    def repeats(self, draws: Draws, paths: Sequence[Path]) -> Iterator[FurtherCall]:
        """Calls for loops that none of the check's examples made run several times, with each kind of values.

        A program that takes a second row, or a second tile, may still hold something of the first. That shows only
        where the values of both are far enough apart; which kinds of values do that depends on what is computed.
        """
        loops = [one for one in self.missing() if (one.branch.name, one.branch.way) == ("scf.for", SEVERAL)]
        loops = [one for one in loops if one.is_of_sizes]
        first = list({replace(one.branch, dtypes=()): None for one in loops})[:MOST_LOOPS]
        wanted = [one for one in loops if replace(one.branch, dtypes=()) in first]
        for turn in itertools.zip_longest(*(list(self._repeated(draws, one, paths)) for one in wanted)):
            yield from (call for call in turn if call is not None)

    def _repeated(self, draws: Draws, one: Missing, paths: Sequence[Path]) -> Iterator[FurtherCall]:
        """The smallest of at least two in each dimension for which the loop runs several times in every program; kinds
        for all tensors, until each has had all of its own."""
        for path in launching(one, paths):
            among = self._among(draws, path, far=True)
            found = among.solutions(KernelWay(one, everywhere=True)).sizes if among is not None else ()
            for turn in range(max((len(options) for _, options in draws.values), default=1) if found else 0):
                kinds = {f"values {names}": options[turn % len(options)] for names, options in draws.values}
                call = made(draws, path.form, found[0], turn, kinds)
                yield FurtherCall(call, one.why, one.branch.line, Purpose.BESIDE)
            if found:
                return


def _in_order(one: Missing) -> tuple[Any, ...]:
    return one.branch.line or 0, one.branch.place, one.branch.name, one.branch.way, one.branch.dtypes


def _by_scalar(draws: Draws, wanted: Sequence[Missing], form: TracedForm) -> Iterator[FurtherCall]:
    for one in wanted:
        behind = one.behind
        if not any(op.name in LOADS for op in behind):
            for more in fraction_choices(draws, numbers_in(behind, floating=True)):
                yield FurtherCall(made(draws, form, {}, 0, more), one.why, one.branch.line)


def _valued(
    draws: Draws, forms: Sequence[TracedForm], telling: Sequence[float], why: str, line: int | None
) -> Iterator[FurtherCall]:
    kinds_of_forms = {form.kind: form for form in sorted(forms, key=lambda one: one.elements)}
    by_dtype = {tuple(view.dtype for view in form.views): form for form in kinds_of_forms.values()}
    for form in by_dtype.values():
        dtypes = {t.name: v.dtype for t, v in zip(draws.tensors, form.views, strict=False)}
        for rows in (False, True):
            kinds = chosen_kinds(draws, dtypes, telling, rows)
            if kinds:
                sizes = CallScope(draws, rank_of(draws, form)).near(ROOMY)
                yield FurtherCall(made(draws, form, sizes, 0, values_of(draws, kinds)), why, line)


def _alike(draws: Draws, forms: Sequence[TracedForm], one: Missing) -> Iterator[FurtherCall]:
    """Calls in which all elements of a tensor have one sign."""
    form = min(forms, key=lambda form: form.elements)
    dtypes = {t.name: v.dtype for t, v in zip(draws.tensors, form.views, strict=False)}
    scope = CallScope(draws, rank_of(draws, form))
    for sizes in (scope.near(WHOLE), scope.near(ROOMY)):
        for kinds in kinds_alike(draws, dtypes):
            yield FurtherCall(made(draws, form, sizes, 0, values_of(draws, kinds)), one.why, one.branch.line)
