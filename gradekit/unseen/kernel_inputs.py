"""Calls that send kernels the ways that a check's examples have not gone: by sizes, and by values of tensors."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradekit.engine import Op
from gradekit.engine.mask_coverage import MASKED
from gradekit.inputs.draws import Draws
from gradekit.program import Kernel
from gradekit.unseen.dtype_groups import dtype_groups, dtypes_of, nearest
from gradekit.unseen.evaluation import evaluated
from gradekit.unseen.further import FurtherCall, Purpose, fits, made, rank_of, values_of
from gradekit.unseen.host_branches import Path, TracedForm
from gradekit.unseen.kernel_branches import KernelBranch, KernelText, corners, goes, kernel_text, numbers_in
from gradekit.unseen.kernel_limits import limits_in
from gradekit.unseen.near_fractions import SMALLEST
from gradekit.unseen.scope import FAR, CallScope, fraction_choices
from gradekit.unseen.solving import constants, possible_sizes, tried
from gradekit.unseen.special_values import chosen_kinds, kinds_alike

MOST_BRANCHES = 24
"""Branches of kernels that one check solves for."""

ORDINARY = frozenset({0.0, 1.0, -1.0, 0.5, 2.0})
"""Constants that say nothing about a kernel."""

MANY, AROUND, MOST_AROUND = 1 << 10, 8, 1 << 15
"""Elements of the largest tensor from which on larger sizes are tried, too: up to twice as large, or twice AROUND, with
so many elements at most."""

PATH = "submission.py"
"""What programs call the submission."""

COMPARING = frozenset({"arith.cmpf", "arith.minnumf", "arith.maxnumf", "arith.minimumf", "arith.maximumf"})
"""Operations that compare two floats."""

_OF_MANY = ("tt.reduce", "tt.dot")
LOADS = ("tt.load", "tt.descriptor_load", "tt.gather")


@dataclass(frozen=True)
class Missing:
    """A way that no run has gone, and an operation, by number in a kernel, that could go it."""

    branch: KernelBranch
    text: KernelText
    number: int

    @property
    def behind(self) -> list[Op]:
        """What the operation depends on."""
        return self.text.behind(self.text.ops[self.number])

    @property
    def operands(self) -> list[Op]:
        """The operations that make its operands."""
        made = self.text.made
        return [made[name] for name in self.text.ops[self.number].operands if name in made]

    @property
    def is_loaded(self) -> bool:
        """Whether it depends on elements of tensors."""
        return any(op.name in LOADS for op in self.behind)

    @property
    def is_of_many(self) -> bool:
        """Whether it depends on many elements together: how many are negative, or their sum."""
        behind = self.text.computed_from(self._deciding)
        return not behind.isdisjoint(_OF_MANY) and not behind.isdisjoint(LOADS)

    @property
    def is_computed(self) -> bool:
        """Whether it depends on elements of tensors, through loops too."""
        return not self.text.computed_from(self._deciding).isdisjoint(LOADS)

    @property
    def _deciding(self) -> Sequence[str]:
        """Those of its operands that decide which way it goes: not what is chosen or stored."""
        op = self.text.ops[self.number]
        if op.name in MASKED:
            return op.operands[1 if op.name == "tt.load" else 2 :][:1]
        return op.operands[:1] if op.name in ("arith.select", "scf.if", "cf.cond_br") else op.operands[:3]

    @property
    def why(self) -> str:
        """The way, as a sentence about a call that goes it."""
        return self.branch.description.replace("is never", "is").replace("never runs", "runs")


@dataclass
class KernelInputs:
    """Makes calls for kernels: those that a check has run, with the ways that they went, are given to `see`."""

    _ways: dict[KernelBranch, bool] = field(default_factory=dict)
    _first: dict[KernelBranch, Missing] = field(default_factory=dict)
    _asked: set[KernelBranch] = field(default_factory=set)
    _vain: set[KernelBranch] = field(default_factory=set)
    _seen_of: dict[str, dict[int, int]] = field(default_factory=dict)
    _texts: dict[str, KernelText] = field(default_factory=dict)
    _far: set[KernelBranch] = field(default_factory=set)
    _groups: Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)

    def begin_check(self) -> None:
        """Another check begins, which has seen nothing yet."""
        self._ways.clear()
        self._seen_of.clear()
        self._asked.clear()
        self._texts.clear()

    def see(self, kernels: Mapping[str, Kernel], ways: Mapping[str, Mapping[int, int]]) -> None:
        """Notes the branch coverage of kernels, by their names (see gradekit.engine.branch_coverage)."""
        for key, kernel in kernels.items():
            known = ways.get(key, {})
            if self._seen_of.get(key) == known:
                continue
            self._seen_of[key] = dict(known)
            text = self._texts[key] = kernel_text(kernel.name, kernel.unaligned, PATH)
            for one, number, seen in text.branches(known):
                branch = replace(one, dtypes=dtypes_of(text))
                self._ways[branch] = self._ways.get(branch, False) or seen
                found = self._first.get(branch)
                if found is None or len(text.arguments) > len(found.text.arguments):  # fewer sizes are constants in it
                    self._first[branch] = Missing(branch, text, number)
        self._groups = dtype_groups(self._texts.values())

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

    def _together(self) -> dict[KernelBranch, bool]:
        """The ways, dtypes that are treated alike as one, and whether a run has gone each."""
        found: dict[KernelBranch, bool] = {}
        for branch, seen in self._ways.items():
            together = self._group(branch)
            found[together] = found.get(together, False) or seen
        return found

    def _group(self, branch: KernelBranch) -> KernelBranch:
        return replace(branch, dtypes=self._groups[branch.kernel, branch.dtypes])

    def unseen(self) -> list[dict[str, Any]]:
        """These, as the report record holds them."""
        told = dict.fromkeys((one.branch.line, one.branch.description) for one in self.missing())
        return [{"line": line, "what": what} for line, what in told]

    def compared_fractions(self) -> list[float]:
        """The numbers below 1 that kernels themselves compare with what is not loaded, in the order of lines."""
        asked = sorted(self._first.items(), key=lambda one: (one[0].line or 0, one[0].place))
        compared = [missing for branch, missing in asked if branch.name in COMPARING]
        numbers = [n for one in compared if not one.is_loaded for n in numbers_in(one.operands, True)]
        return list(dict.fromkeys(abs(n) for n in numbers if SMALLEST <= abs(n) < 1))

    def limits(self) -> list[int]:
        """The numbers that sizes may lie beyond (see `limits_in`), of each kernel those that all its specializations
        have: others are sizes themselves."""
        by_kernel: dict[str, list[set[int]]] = {}
        for text in self._texts.values():
            by_kernel.setdefault(text.name, []).append(limits_in(text))
        return sorted({n for each in by_kernel.values() for n in set.intersection(*each)})

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
        special = list(dict.fromkeys(n for one in wanted for n in numbers_in(one.behind, floating=False)))
        left = dict.fromkeys(wanted)
        for far in (False, True):
            for path in paths:
                mine = [one for one in left if path in launching(one, paths)]
                for one, solved in _swept(draws, path, mine, special, far):
                    del left[one]
                    tried = functools.partial(self._far.add, one.branch)
                    for sizes in solved:
                        call = made(draws, path.form, sizes, len(left), {})
                        purpose = Purpose.BESIDE if one.branch.name in MASKED else Purpose.BRANCH
                        yield FurtherCall(call, one.why, one.branch.line, purpose, tried)
            left = {one: None for one in left if one.branch not in self._far}
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


def _swept(
    draws: Draws, path: Path, wanted: Sequence[Missing], special: Sequence[int], far: bool
) -> list[tuple[Missing, list[dict[str, int]]]]:
    """Those of `wanted` that sizes decide on this path, with the sizes; `far` as `SizeSweep.of` has it."""
    sweep = SizeSweep.of(draws, path, special, far) if wanted else None
    solved = [(one, sweep.solved(one)) for one in wanted] if sweep is not None else []
    return [(one, sizes) for one, sizes in solved if sizes]


def launching(one: Missing, paths: Sequence[Path]) -> list[Path]:
    """The paths that launch the kernel: where dtypes matter to it, those with dtypes most like its own."""
    found = [path for path in paths if any(launch.kernel == one.branch.kernel for launch in path.explored.launches)]
    if not one.branch.dtypes or not found:
        return found
    return [found[number] for number in nearest([path.form.views for path in found], dtypes_of(one.text))]


def _in_order(one: Missing) -> tuple[Any, ...]:
    return one.branch.line or 0, one.branch.place, one.branch.name, one.branch.way, one.branch.dtypes


@dataclass(frozen=True)
class SizeSweep:
    """Many sizes for a path through host code, `columns` by name, where `allowed` those that take it; `launches` are
    the kernels' names with the grid and the whole numbers that they get."""

    columns: Mapping[str, torch.Tensor]
    weights: torch.Tensor
    allowed: torch.Tensor
    launches: Sequence[tuple[str, tuple[Any, ...], Mapping[str, Any]]]

    @staticmethod
    def of(draws: Draws, path: Path, special: Sequence[int], far: bool) -> SizeSweep | None:
        """None where none of the sizes takes the path. With `far`, they may be all that the entry promises, and make
        large tensors."""
        scope = CallScope(draws, rank_of(draws, path.form), far, FAR if far else 1)
        columns = possible_sizes(scope, (*special, *constants(path.origins.terms)))
        if not columns:
            return None
        count = len(next(iter(columns.values())))
        taking = torch.ones(count, dtype=torch.bool)
        for went in path.holds(scope.leaves(columns)):
            taking &= torch.as_tensor(True if went is None else went)
        columns = {name: column[taking] for name, column in columns.items()}
        if not bool(taking.any()):
            return None
        terms = evaluated(path.origins.terms, scope.leaves(columns))

        def at(number: int) -> Any:
            return terms[number] if 0 <= number < len(terms) else None

        launches = [
            (launch.kernel, tuple(map(at, launch.grid)), {name: at(number) for name, number in launch.names})
            for launch in path.explored.launches
        ]
        weights = scope.elements(columns)
        return SizeSweep(columns, weights, torch.ones(len(weights), dtype=torch.bool), launches)

    def solved(self, one: Missing) -> list[dict[str, int]]:
        """The smallest sizes for which the branch goes that way; empty where it does not follow from sizes. Where that
        takes many elements, the last of which may be right by chance, somewhat larger sizes, too."""
        fits = self._fits(one, everywhere=False)
        places = fits.nonzero().view(-1)
        if not places.numel():
            return []
        smallest = int(places[self.weights[places].argmin()])
        many = float(self.weights[smallest]) > MANY
        places = places[self.weights[places] <= (MOST_AROUND if many else 0)]
        for column in self.columns.values():
            places = places[column[places] <= 2 * max(int(column[smallest]), AROUND)]
        chosen = dict.fromkeys([smallest, *([int(places[self.weights[places].argmax()])] if places.numel() else [])])
        return [{name: int(column[place]) for name, column in self.columns.items()} for place in chosen]

    def solved_everywhere(self, one: Missing) -> dict[str, int] | None:
        """The smallest sizes for which the branch goes that way in every program, lane and turn, with two of each size
        where that is possible; None where it does not follow from them."""
        fits = self._fits(one, everywhere=True)
        several = fits & torch.stack([column > 1 for column in self.columns.values()]).all(dim=0)
        places = (several if bool(several.any()) else fits).nonzero().view(-1)
        if not places.numel():
            return None
        place = int(places[self.weights[places].argmin()])
        return {name: int(column[place]) for name, column in self.columns.items()}

    def _fits(self, one: Missing, everywhere: bool) -> torch.Tensor:
        found = torch.zeros_like(self.allowed)
        for kernel, grid, names in self.launches:
            if kernel != one.branch.kernel:
                continue
            ways = [goes(one.text, one.number, one.branch, corner) for corner in corners(grid, names)]
            each = [torch.as_tensor(way) for way in ways if way is not None]
            if each and (len(each) == len(ways) or not everywhere):
                together = torch.logical_and if everywhere else torch.logical_or
                found |= self.allowed & functools.reduce(together, each)
        return found


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
            sizes = _roomy(CallScope(draws, rank_of(draws, form)))
            if kinds and sizes:
                names = values_of(draws, kinds)
                yield FurtherCall(made(draws, form, sizes, 0, names), why, line)


def _alike(draws: Draws, forms: Sequence[TracedForm], one: Missing) -> Iterator[FurtherCall]:
    """Calls in which all elements of a tensor have one sign."""
    form = min(forms, key=lambda form: form.elements)
    dtypes = {t.name: v.dtype for t, v in zip(draws.tensors, form.views, strict=False)}
    scope = CallScope(draws, rank_of(draws, form))
    for sizes in filter(None, (_whole(scope), _roomy(scope))):
        for kinds in kinds_alike(draws, dtypes):
            yield FurtherCall(made(draws, form, sizes, 0, values_of(draws, kinds)), one.why, one.branch.line)


def _whole(scope: CallScope) -> dict[str, int] | None:
    """Sizes of which most tiles are filled to their ends: what is masked there has a value of its own."""
    names = tried(scope, (128, 256, 1024))
    if not names:
        return None
    fits = scope.allows(names) & (scope.elements(names) <= MOST_AROUND << 1)
    for name in scope.sizes:
        fits &= (names[name] % 128 == 0) | (names[name] == max(scope.range(name)[0], 1))
    if not bool(fits.any()):
        return None
    long = torch.stack([names[name].clamp(max=256).double().log2() for name in scope.sizes]).sum(dim=0)
    place = int(torch.where(fits, long + scope.elements(names).log2() / 64, -1.0).argmax())
    return {name: int(column[place]) for name, column in names.items()}


def _roomy(scope: CallScope) -> dict[str, int] | None:
    """Sizes of a call with some thousand elements, in several rows where it has rows."""
    names = tried(scope, (577, 24, 25, 48))
    if not names:
        return None
    count = scope.elements(names)
    fits = scope.allows(names) & (count > 0)
    if not bool(fits.any()):
        return None
    least = torch.stack([column.clamp(max=24) for column in names.values()]).double().prod(dim=0)
    badness = (count - 2400).abs() / 2400 - least.log2() / 4
    place = int(torch.where(fits, badness, torch.inf).argmin())
    return {name: int(column[place]) for name, column in names.items()}
