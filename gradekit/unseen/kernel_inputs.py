"""Calls that send kernels the ways that a check's examples have not gone: by sizes, and by values of tensors."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradekit.engine.branch_coverage import SEVERAL
from gradekit.engine.mask_coverage import MASKED
from gradekit.inputs.draws import Draws
from gradekit.program import Kernel
from gradekit.unseen.further import FurtherCall, Purpose, fits, made, rank_of
from gradekit.unseen.host_branches import Path, TracedForm
from gradekit.unseen.kernel_branches import KernelBranch, KernelText, dtype_groups, kernel_text, numbers_in
from gradekit.unseen.scope import FAR, ROUGH, CallScope, sizes_alone
from gradekit.unseen.search import COMPARING, MANY, Calls, ConstantWay, Missing, Search, SizeWant, wrapped_indices
from gradekit.unseen.special_values import by_value

MOST_BRANCHES = 24
"""Branches of kernels that one check solves for."""

MOST_LOOPS = 2
"""Loops that one check tries with each kind of values, and with each group of dtypes that the kernel treats alike."""

PATH = "submission.py"
"""What programs call the submission."""


@dataclass
class KernelInputs:
    """Makes calls for kernels: those that a check has run, with the ways that they went, are given to `see`.
    `constants` are the ways of comparisons of compile-time constants."""

    constants: Sequence[ConstantWay] = ()
    _met: dict[SizeWant, bool] = field(default_factory=dict)
    _ways: dict[KernelBranch, bool] = field(default_factory=dict)
    _first: dict[KernelBranch, Missing] = field(default_factory=dict)
    _asked: set[KernelBranch] = field(default_factory=set)
    _vain: set[KernelBranch] = field(default_factory=set)
    _seen_of: dict[str, dict[int, int]] = field(default_factory=dict)
    _texts: dict[str, KernelText] = field(default_factory=dict)
    _far: set[KernelBranch] = field(default_factory=set)
    _groups: Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)
    _grouped: dict[KernelBranch, KernelBranch] = field(default_factory=dict)
    search: Search = field(default_factory=Search)
    _known_numbers: tuple[int, ...] | None = None

    def begin_check(self) -> None:
        """Another check begins, which has seen nothing yet."""
        self._met.clear()
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
            text = self._texts.get(key) or kernel_text(kernel.name, kernel.unaligned, PATH)
            self._texts[key] = text
            for branch, number, seen in text.branches(known):
                self._ways[branch] = self._ways.get(branch, False) or seen
                found = self._first.get(branch)
                if found is None or len(text.arguments) > len(found.text.arguments):  # fewer sizes are constants in it
                    self._first[branch] = Missing(branch, text, number)
        if len(self._texts) > before:
            self._groups, self._known_numbers = dtype_groups(self._texts.values()), None
            self._grouped.clear()

    def missing(self) -> list[Missing]:
        """The ways that no run of the check has gone, in the order of lines; of a kernel that does not treat all dtypes
        alike, those that none has gone with dtypes that it treats alike."""
        ways = self._together()
        found: dict[KernelBranch, Missing] = {}
        for branch in self._ways:
            together = self._group(branch)
            if not ways[together]:
                found.setdefault(together, replace(self._first[branch], branch=together))
        return sorted(found.values(), key=lambda one: one.order)

    def _is_missing(self, branch: KernelBranch) -> bool:
        return not self._together().get(branch, False)

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
        told |= dict.fromkeys((want.line, want.says("never ")) for want, met in self._met.items() if not met)
        return [{"line": line, "what": what} for line, what in told]

    def compared_fractions(self) -> list[float]:
        """The numbers below 1 that kernels themselves compare with what is not loaded, in the order of lines."""
        asked = sorted(self._first.items(), key=lambda one: (one[0].line or 0, one[0].place))
        compared = [missing for branch, missing in asked if branch.name in COMPARING]
        numbers = [n for one in compared if not one.is_loaded for n in numbers_in(one.behind, True)]
        return list(dict.fromkeys(abs(n) for n in numbers if 0 < abs(n) < 1))

    def limits(self, forms: Sequence[TracedForm]) -> list[int]:
        """The numbers that sizes may lie beyond (see `KernelText.limits`), of each kernel those that several of its
        specializations have: others, and what the calls are given, are sizes themselves."""
        given = {number for form in forms for number in form.leaves.values()}
        of_kernels = Counter((text.name, number) for text in self._texts.values() for number in text.limits)
        return sorted({number for (_, number), count in of_kernels.items() if count > 1 and number not in given})

    def _numbers(self) -> tuple[int, ...]:
        if self._known_numbers is None:
            every = sorted((self._first[branch] for branch in self._ways), key=lambda one: one.order)
            numbers = dict.fromkeys(n for one in every for n in numbers_in(one.behind, floating=False))
            self._known_numbers = tuple(numbers)
        return self._known_numbers

    @property
    def counts(self) -> tuple[int, int]:
        """How many ways there are, and how many have been seen."""
        ways = self._together()
        return len(ways), sum(ways.values())

    # --- by sizes -----------------------------------------------------------------------------------------------------

    def decided(self, draws: Draws, forms: Sequence[TracedForm], paths: Sequence[Path]) -> Iterator[FurtherCall]:
        """Calls for what sizes decide, no coverage shows, and none of the check's `forms` has met."""
        wants: list[SizeWant] = [*self.constants, *wrapped_indices(self._texts.values())]
        scopes = [CallScope(sizes_alone(draws), rank_of(draws, path.form), True, FAR) for path in paths if wants]
        so_far = [Calls.of(path, forms, scope) for path, scope in zip(paths, scopes, strict=False)]
        for want in wants:
            known = [met for one in so_far if one.count and (met := want.met(one)) is not None]
            if known:
                self._met[want] = any(bool(met.any()) for met in known)
            if known and not self._met[want]:
                each = ((path, self._solved(want, draws, path, far=True)) for path in paths)
                path, sizes = next((one for one in each if one[1]), (None, ()))
                if path is not None:
                    yield from (FurtherCall(made(draws, path.form, n, 0, {}), want.says(), want.line) for n in sizes)

    def _solved(
        self, want: Missing | SizeWant, draws: Draws, path: Path, far: bool
    ) -> Sequence[dict[str, int]]:
        """Sizes that take a path and meet a want; with `far`, all that the entry promises, of large tensors."""
        scope = CallScope(sizes_alone(draws), rank_of(draws, path.form), far, FAR if far else 1)
        return self.search.solutions(want, path, scope, (*want.numbers, *self._numbers()), ROUGH).sizes

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
        return [*self._by_size(draws, wanted, paths), *by_value(draws, wanted, mine)]

    def _by_size(self, draws: Draws, wanted: Sequence[Missing], paths: Sequence[Path]) -> Iterator[FurtherCall]:
        left = {one: one.launching(paths) for one in wanted if one.is_of_sizes}
        for far in (False, True):
            for path in paths:
                for one in [one for one, its in left.items() if path in its]:
                    solved = self._solved(one, draws, path, far)
                    if solved:
                        del left[one]
                        yield from self._made(draws, one, path, solved, len(left))
            left = {one: its for one, its in left.items() if one.branch not in self._far}
        self._far |= {one.branch for one in left}

    def _made(
        self, draws: Draws, one: Missing, path: Path, solved: Sequence[dict[str, int]], turn: int
    ) -> Iterator[FurtherCall]:
        few = CallScope(draws, rank_of(draws, path.form)).count(solved[0]) <= MANY
        tried = functools.partial(self._far.add, one.branch)
        is_wanted = functools.cache(functools.partial(self._is_missing, one.branch))
        purpose = Purpose.BESIDE if one.branch.name in MASKED else Purpose.BRANCH
        for sizes in solved[:1] if few else solved:
            yield FurtherCall(made(draws, path.form, sizes, turn, {}), one.says(), one.line, purpose, tried, is_wanted)

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
        """The smallest sizes for which the loop runs several times in every program, with each kind of values."""
        each = ((path, self._solved(replace(one, everywhere=True), draws, path, True)) for path in one.launching(paths))
        path, found = next((one for one in each if one[1]), (None, ()))
        for turn in range(max((len(options) for _, options in draws.values), default=1) if path is not None else 0):
            kinds = {f"values {names}": options[turn % len(options)] for names, options in draws.values}
            call = made(draws, path.form, found[0], turn, kinds)  # type: ignore[union-attr]
            yield FurtherCall(call, one.says(), one.line, Purpose.BESIDE)
