"""Calls that send kernels the ways that a check's examples have not gone: by sizes, and by values of tensors."""

import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradekit.domain import COMMON_KINDS
from gradekit.engine.branch_coverage import MASKED, PART, SEVERAL, WHOLE
from gradekit.engine.def_use import LOADS
from gradekit.engine.ttir_locations import line_of
from gradekit.inputs.draws import Draws, spelled
from gradekit.inputs.value_kinds import BEGUN, CHOSEN, HOLDING, POSITIVE, PROFILES, SPECIAL, make
from gradekit.inputs.value_kinds import WHOLE as OF_NUMBERS
from gradekit.program import Kernel
from gradekit.unseen import Limit
from gradekit.unseen.further import Decision, FurtherCall, Purpose, fits, made, plain_values, rank_of, values_of
from gradekit.unseen.host_branches import Explore, Path, TracedForm
from gradekit.unseen.kernel_branches import KernelBranch, KernelText, dtype_groups, kernel_text, numbers_in, off_line
from gradekit.unseen.long_dimensions import accesses, stretched
from gradekit.unseen.scope import ROUGH, CallScope, sizes_alone
from gradekit.unseen.search import Calls, ConstantWay, Missing, Search

PATH = "submission.py"
"""What programs call the submission."""


@dataclass
class KernelInputs:
    """Makes calls for kernels: those that a check has run, with the ways that they went, are given to `see`.
    `constants` are the ways of comparisons of compile-time constants. See `HostInputs` for `goes_far`."""

    constants: Sequence[ConstantWay] = ()
    goes_far: bool = True
    _met: dict[ConstantWay, bool] = field(default_factory=dict)
    _ways: dict[KernelBranch, bool] = field(default_factory=dict)
    _first: dict[KernelBranch, Missing] = field(default_factory=dict)
    _asked: set[KernelBranch] = field(default_factory=set)
    _vain: set[KernelBranch] = field(default_factory=set)
    _seen_of: dict[str, dict[int, int]] = field(default_factory=dict)
    _texts: dict[str, KernelText] = field(default_factory=dict)
    _tried_padding: set[Hashable] = field(default_factory=set)
    _groups: Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)
    search: Search = field(default_factory=Search)

    def see(self, kernels: Mapping[str, Kernel], ways: Mapping[str, Mapping[int, int]]) -> None:
        """Notes the branch coverage of kernels, by their names (see gradekit.engine.branch_coverage)."""
        before = len(self._texts)
        for key, kernel in kernels.items():
            known = ways.get(key, {})
            if self._seen_of.get(key) == known:
                continue
            self._seen_of[key] = dict(known)
            vars(self).pop("_together", None)  # worked out of the ways so far
            vars(self).pop("_numbers", None)
            text = self._texts.get(key) or kernel_text(kernel.name, kernel.unaligned, PATH)
            self._texts[key] = text
            for branch, number, seen in text.branches(known):
                self._ways[branch] = self._ways.get(branch, False) or seen
                found = self._first.get(branch)
                if found is None or len(text.arguments) > len(found.text.arguments):  # fewer sizes are constants in it
                    self._first[branch] = Missing(branch, text, number)
        if len(self._texts) > before:
            self._groups = dtype_groups(self._texts.values())

    def missing(self) -> list[Missing]:
        """The ways that no run of the check has gone, in the order of lines; of a kernel that does not treat all dtypes
        alike, those that none has gone with dtypes that it treats alike."""
        return sorted(filter(None, self._together.values()), key=lambda one: one.branch.order)

    @functools.cached_property
    def _together(self) -> dict[KernelBranch, Missing | None]:
        """The ways, dtypes that are treated alike as one: None of one that a run has gone."""
        found: dict[KernelBranch, Missing | None] = {}
        for branch, seen in self._ways.items():
            together = replace(branch, dtypes=self._groups[branch.kernel, branch.dtypes])
            first = found[together] if together in found else replace(self._first[branch], branch=together)
            found[together] = None if seen else first
        return found

    def decisions(self) -> Iterator[Decision]:
        """The ways that the check's kernels can go, and whether a call has; a part of a tile stands for all of it."""
        for branch, seen in self._ways.items():
            is_whole = branch.name in MASKED and branch.way == WHOLE
            if not branch.is_chance and (seen or not is_whole or not self._ways.get(replace(branch, way=PART))):
                yield branch.line, f"{branch.says()} (column {self._first[branch].column})", seen
        yield from ((want.line, want.says(), met) for want, met in self._met.items())

    @property
    def few_bits(self) -> dict[int, int]:
        """With how few bits whole numbers have to do, by lines: those that need more are wrong there."""
        return {line: bits for text in self._texts.values() for line, bits in text.few_bits.items()}

    @property
    def divides_in_floats(self) -> bool:
        """Whether a kernel does so with sizes, which is right for some of them alone."""
        return any(bool(text.rounded) for text in self._texts.values())

    @functools.cached_property
    def _numbers(self) -> tuple[int, ...]:
        """The whole numbers that ways depend on, in the order of lines."""
        every = (self._first[branch] for branch in sorted(self._ways, key=lambda branch: branch.order))
        return tuple(dict.fromkeys(n for one in every for n in numbers_in(one.behind, floating=False)))

    # --- by sizes -----------------------------------------------------------------------------------------------------

    def decided(self, draws: Draws, forms: Sequence[TracedForm], paths: Sequence[Path]) -> Iterator[FurtherCall]:
        """Calls for what the compiler decides by sizes, and none of the check's `forms` has met."""
        so_far = [Calls.of(path, forms) for path in paths if self.constants]
        for want in self.constants:
            known = [met for one in so_far if one.count and (met := want.met(one)) is not None]
            if known:
                self._met[want] = any(bool(met.any()) for met in known)
            if known and not self._met[want]:
                form, sizes = self._solved(want, draws, paths)
                yield from (FurtherCall(made(draws, form, n, 0, {}), want.says(), want.line) for n in sizes)
                if want.is_repeated and want.way:
                    yield from _in_each_kind(draws, form, sizes, want)

    def _solved(
        self, want: Missing | ConstantWay, draws: Draws, paths: Sequence[Path], far: Sequence[bool] = (True,)
    ) -> tuple[TracedForm, Sequence[dict[str, int]]]:
        """Sizes that take the first path for which there are some that meet a want, and a call that took it; with
        `far`, all that the entry promises, of large tensors."""
        own = want.numbers if isinstance(want, ConstantWay) else ()
        for wide, path in itertools.product(far, paths):
            scope = CallScope(sizes_alone(draws), rank_of(draws, path.form), wide, Limit.FAR if wide else 1)
            if found := self.search.solutions(want, path, scope, (*own, *self._numbers), ROUGH):
                return path.form, found
        return TracedForm("", "", ()), ()

    def further(self, draws: Draws, forms: Sequence[TracedForm], paths: Sequence[Path]) -> list[FurtherCall]:
        """Calls for what is missing, but for what earlier calls did not achieve."""
        missing = self.missing()
        self._vain |= self._asked & {one.branch for one in missing}
        wanted = [one for one in missing if one.branch not in self._vain]
        wanted = sorted(wanted, key=lambda one: one.branch.name in MASKED)[: Limit.SOLVED_IN_KERNELS]
        mine = [form for form in forms if fits(draws, form) and form.elements]
        if not wanted or not mine:
            return []
        self._asked |= {one.branch for one in wanted}
        return [*self._by_size(draws, wanted, paths), *by_value(draws, wanted, mine)]

    def _by_size(self, draws: Draws, wanted: Sequence[Missing], paths: Sequence[Path]) -> Iterator[FurtherCall]:
        left = {one: one.launching(paths) for one in wanted if one.is_of_sizes}
        found = dict[Missing, tuple[TracedForm, Sequence[dict[str, int]]]]()
        for wide, path in itertools.product((False, True)[: 1 + self.goes_far], paths):  # whose candidates serve all
            mine = (one for one, its in left.items() if path in its and one not in found)
            found |= {one: it for one in mine if (it := self._solved(one, draws, [path], [wide]))[1]}
        for one in (one for one in left if one in found):
            form, solved = found[one]
            few = CallScope(draws, rank_of(draws, form)).count(solved[0]) <= Limit.MANY_ELEMENTS
            is_wanted = functools.partial(lambda its: self._together.get(its.branch, its) is not None, one)
            purpose = Purpose.BESIDE if one.branch.name in MASKED else Purpose.BRANCH
            for sizes in solved[:1] if few else solved:
                call = made(draws, form, sizes, None, {})
                yield FurtherCall(call, one.says(), one.line, purpose, is_wanted=is_wanted, of_sizes=True)

    def repeats(self, draws: Draws, paths: Sequence[Path]) -> Iterator[FurtherCall]:
        """Calls for loops that none of the check's examples made run several times: the smallest in which they do in
        every program, with each kind of values.

        A program that takes a second row, or a second tile, may still hold something of the first. That shows only
        where the values of both are far enough apart; which kinds of values do that depends on what is computed.
        """
        loops = [one for one in self.missing() if (one.branch.name, one.branch.way) == ("scf.for", SEVERAL)]
        loops = [one for one in loops if one.is_of_sizes]
        first = list({replace(one.branch, dtypes=()): None for one in loops})[: Limit.LOOPS]
        wanted = [replace(one, everywhere=True) for one in loops if replace(one.branch, dtypes=()) in first]
        each = (_in_each_kind(draws, *self._solved(one, draws, one.launching(paths)), one) for one in wanted)
        yield from (call for turn in itertools.zip_longest(*each) for call in turn if call is not None)

    def padding_as_data(self, draws: Draws, paths: Sequence[Path]) -> Iterator[FurtherCall]:
        """Calls with rows that hold what stands in for elements which are not there, where a tile is cut off: whatever
        is done with the number must be right where it is data."""
        why = "rows hold the number that stands in for elements which are not there"
        for text in [*self._texts.values()]:
            values = padding_values(text)
            cuts = _cut_off(text) if values else ()
            for one, path in ((cut, path) for cut in cuts for path in cut.launching(paths)):
                keys = {(text.name, text.dtypes, value, path.way): value for value in values}
                left = [value for key, value in keys.items() if key not in self._tried_padding]
                sizes = self._solved(one, draws, [path], (self.goes_far,))[1] if left else ()
                self._tried_padding |= keys.keys() if sizes else set()
                for value in left if sizes else ():
                    kinds = _holding(draws, value, _dtypes(draws, path.form))
                    calls = (made(draws, path.form, sizes[0], 0, kind) for kind in kinds)
                    yield from (FurtherCall(call, why, values[value], Purpose.BESIDE) for call in calls)

    def begun(self, draws: Draws, forms: Sequence[TracedForm]) -> Iterator[FurtherCall]:
        """Calls for what whole programs decide by values that they load: rows begin as each kind, with as many values
        as are loaded for it, and go on as another, which nothing has looked at."""
        mine = [form for form in forms if fits(draws, form) and form.elements]
        asked = {one.loaded: one for branch, seen in self._ways.items() if seen and (one := self._first[branch]).loaded}
        for count, one in itertools.islice(sorted(asked.items()) if mine else (), Limit.LOOPS):
            sizes = CallScope(draws, rank_of(draws, mine[0])).near(max(Limit.ROOMY, 2 * count + 1))
            for turn in range(max((len(options) for _, options in draws.values), default=0)):
                kinds = dict[str, str]()
                for names, options in draws.values:
                    both = (options[turn % len(options)], plain_values(options))
                    each = zip(names.split(), *(both if names.split()[1:] else ([kind] for kind in both)), strict=True)
                    ways = {name: (first, rest) for name, first, rest in each if first != rest}
                    of_two = {name: ":".join(way) for name, way in ways.items() if SPECIAL not in way}
                    kinds |= {name: f"{BEGUN}:{count}:{two}" for name, two in of_two.items()}
                if kinds := {name: kind for name, kind in kinds.items() if name in plain_tensors(draws)}:
                    call = made(draws, mine[0], sizes, turn, values_of(draws, kinds))
                    told = "values go on in another way than those that decided"
                    yield FurtherCall(call, told, one.line, Purpose.BESIDE)
        rows = [row for row in _with_zeros(draws) if any(SPECIAL in kinds for kinds in row.values())] if mine else []
        for one in [one for branch in self._ways if rows and (one := self._first[branch]).is_of_many][:1]:
            sizes = CallScope(draws, rank_of(draws, mine[0])).near(Limit.ROOMY)
            calls = (made(draws, mine[0], sizes, 0, row) for row in rows)
            yield from (FurtherCall(call, "zeros meet special values", one.line, Purpose.BESIDE) for call in calls)


def _in_each_kind(
    draws: Draws, form: TracedForm, sizes: Sequence[Mapping[str, int]], one: Missing | ConstantWay
) -> Iterator[FurtherCall]:
    """With the first of these sizes."""
    for turn in range(max((len(options) for _, options in draws.values), default=1) if sizes else 0):
        call = made(draws, form, sizes[0], turn, draws.in_turn(turn, "values "))
        yield FurtherCall(call, one.says(), one.line, Purpose.BESIDE)


def off_by_rounding(
    draws: Draws, forms: Sequence[TracedForm], explore: Explore, texts_of: Callable[[TracedForm], Sequence[KernelText]]
) -> Iterator[FurtherCall]:
    """Calls at whose sizes a program makes another whole number of floats than without rounding: for each dimension the
    first, in each layout in turn."""
    mine = [form for form in forms if fits(draws, form) and form.elements]
    texts = {text.name: text for form in mine for text in texts_of(form) if text.rounded}
    scope = CallScope(sizes_alone(draws), rank_of(draws, mine[0]) if mine else 0, True, Limit.FAR)
    for name in scope.sizes if texts else ():
        each = (scope.near(few) | {name: n} for few, lengths in Limit.ROUNDED for n in lengths)
        forms_of = ((one, dict.fromkeys(draws.derive, 2) | one) for one in filter(scope.has, each))
        found = ((one, _rounded_at(stretched(draws, mine[0], its, False), explore, texts)) for one, its in forms_of)
        sizes, line = next((one for one in found if one[1]), ({}, None))
        for turn in range(max((len(ways) for _, ways in draws.layouts), default=1) if line else 0):
            call = made(draws, mine[0], sizes, turn, draws.in_turn(turn, "layout "))
            why = f"{name} is {sizes[name]:,}, where rounding makes another whole number of a float"
            yield FurtherCall(call, why, line, Purpose.BESIDE)


def _rounded_at(form: TracedForm, explore: Explore, texts: Mapping[str, KernelText]) -> int | None:
    """The line of the first operation of these kernels that rounds so in a call."""
    if (explored := explore(form)) is None:
        return None
    known = Calls(Path(form, explored, ()), form.leaves, 1).launches
    for one, (_, grid, names) in zip(explored.launches, known, strict=True):
        text = texts.get(one.kernel) if None not in grid else None
        if text is not None and (line := off_line(text, grid, {**names, **dict(one.floats)})):
            return line
    return None


# --- numbers that a submission makes special: around its constants, of one sign, far from zero ------------------------
#
# Only such values are taken as the kinds of values of the check may have: not much larger than all of them, nor
# smaller, and zero only where one of them has zeros.

ORDINARY = frozenset({0.0, 1.0, -1.0, 0.5, 2.0})
"""Constants that say nothing about a kernel."""

MOST = {1: 48, 2: 24, 3: 12}
"""Values for each tensor, by how many tensors there are."""

CHANGES = ((1, 1), (1, -1), (1.125, 0), (0.875, 0), (-1, 0), (2, 0), (0.5, 0), (-1.25, 0), (1, 0.125))
"""Of each constant: a factor, and what is added."""

PLAIN = (1.25, -0.75, 2.5, -3.0, 0.5)


def values_around(constants: Sequence[float], most: int) -> list[float]:
    """The constants with their neighbours, and what simple arithmetic makes of them; then a few plain numbers."""
    found = dict.fromkeys([*constants, *(c * factor + more for factor, more in CHANGES for c in constants)])
    return [*list(found)[: most - len(PLAIN)], *PLAIN]


def chosen_kinds(draws: Draws, dtypes: dict[str, str], constants: Sequence[float], rows: bool) -> dict[str, str]:
    """For each tensor of the check whose values are gradekit's own kinds, a kind that
    has values around the constants."""
    places = [*plain_tensors(draws)][: max(MOST)]
    found: dict[str, str] = {}
    step = 1
    for name in places:
        pool = [v for v in values_around(constants, MOST[len(places)]) if _have(draws, dtypes, name, [v])]
        if pool:
            texts = ";".join(repr(v) for v in pool)
            found[name] = f"{CHOSEN}:{'rows' if rows else 'cells'}:{step}:{texts}"
            step *= len(pool)
    return found


ALIKE = {"below_zero": (-POSITIVE[0], -POSITIVE[1]), "positive": POSITIVE}
"""Kinds whose values all have one sign, with the ends of their ranges."""


BALANCED = f"{CHOSEN}:cells:1:1.0;-1.0"
"""Values whose sum over each whole tile is 0, and none of which is."""


def kinds_alike(draws: Draws, dtypes: dict[str, str]) -> list[dict[str, str]]:
    """For what a kernel asks of many elements together: all tensors below zero, all above, the first unlike the
    others, and of the first as many above as below, as far as the check's kinds have such values."""
    names = [*plain_tensors(draws)]
    each = [dict.fromkeys(names, rest) | dict.fromkeys(names[:1], one) for rest in ALIKE for one in ALIKE]
    found = [
        one for place, one in enumerate(each) if names and one not in each[:place]
        and all(_have(draws, dtypes, name, ALIKE[kind]) for name, kind in one.items())
    ]  # fmt: skip
    others = dict.fromkeys((name for name in names if "normal" in plain_tensors(draws)[name]), "normal")
    return [*found, *(others | {name: BALANCED} for name in names[:1] if _have(draws, dtypes, name, (1.0, -1.0)))]


def _with_zeros(draws: Draws) -> Iterator[dict[str, Any]]:
    """Each of the check's kinds of values of several tensors, but for one of them, of which all are 0, if any may be:
    a tile of zeros is not nothing beside infinities."""
    zeros = {one.name for one in draws.tensors if one.range is None and "integers" in (one.values or COMMON_KINDS)}
    for names, options in draws.values:
        each = (one for one in names.split() if one in zeros and " " in names)
        for place, option in itertools.product((names.split().index(one) for one in each), options):
            yield {f"values {names}": (*option[:place], "zeros", *option[place + 1 :])}


_PADDING = {"tt.load": 2, "arith.select": 1, "scf.for": 3, "arith.maxnumf": 0, "arith.minnumf": 0}
"""The first operand that may stand in for a value, of operations where one may."""


def padding_values(text: KernelText) -> dict[float, int | None]:
    """The floats that a kernel has in place of values that are not loaded, or begins a maximum or minimum with, by the
    lines."""
    each = ((op, name) for op in text.ops for name in op.operands[_PADDING.get(op.name, len(op.operands)) :])
    found = {text.number(name): line_of(op.location, text.path) for op, name in each}
    floats = {value: line for value, line in found.items() if isinstance(value, float) and value not in ORDINARY}
    return {float(torch.tensor(value)): line for value, line in floats.items()}  # as float32 has them


def _cut_off(text: KernelText) -> Iterator[Missing]:
    """That a part of a tile is masked: in the last turn of the most loops that there are around a load, or in any."""
    masked = [one for one in accesses(text) if one.op.name == "tt.load" and len(one.op.operands) > 1]
    for one in sorted(masked, key=lambda one: -len(one.loops or ()))[:1]:
        for branch in (branch for branch in text.ways_of[one.op.number] if branch.way == PART):
            each = dict.fromkeys([one.loops or (), ()])
            yield from (Missing(branch, text, one.op.number, around=loops) for loops in each)


def _holding(draws: Draws, value: float, dtypes_of: Mapping[str, str]) -> list[dict[str, Any]]:
    """The values of tensors that hold this one, as far as the check's kinds have such: it alone; one among others, and
    one above all others of its row."""
    found = list[dict[str, Any]]()
    for name, kinds in plain_tensors(draws, True).items():
        own = dtypes_of.get(name, "float32")
        dtype = getattr(torch, own)
        is_held = dtype.is_floating_point and float(torch.tensor(value, dtype=dtype)) == value
        if is_held and _may_be(value, kinds, own):
            lower = -math.inf if any("inf" in kind for kind in kinds) else value - max(abs(value), 1)
            is_lower = lower == -math.inf or abs(lower) <= torch.finfo(dtype).max and _may_be(lower, kinds, own)
            rest = [str(value), plain_values(kinds), *([str(lower)] if is_lower else [])]
            found += [values_of(draws, {name: f"{HOLDING}:{value!r}:{one}"}) for one in rest]
    return found


def _have(draws: Draws, dtypes: dict[str, str], name: str, values: Sequence[float]) -> bool:
    return all(_may_be(value, plain_tensors(draws)[name], dtypes.get(name, "float32")) for value in values)


@functools.lru_cache(maxsize=64)
def plain_tensors(draws: Draws, whole: bool = False) -> dict[str, tuple[str, ...]]:
    """The tensors whose values are gradekit's own kinds, those of `whole` numbers too, with these."""
    every = {}
    for names, options in draws.values:
        for place, name in enumerate(names.split()):
            every[name] = tuple(dict.fromkeys(one[place] if " " in names else one for one in options))
    free = (
        (tensor.name, tuple(spelled(tensor, kind) for kind in every.get(tensor.name, ())))
        for tensor in draws.tensors if tensor.range is None
    )  # fmt: skip
    own = {*PROFILES, SPECIAL, *(OF_NUMBERS if whole else ())}
    return {name: kinds for name, kinds in free if kinds and all(kind.partition(":")[0] in own for kind in kinds)}


def _may_be(value: float, kinds: tuple[str, ...], dtype: str) -> bool:
    least, most, smallest = range_of(kinds, dtype)
    if "int" in dtype and value != int(value):
        return False
    return min(least, Limit.WIDER * least) <= value <= max(most, Limit.WIDER * most) and abs(value) >= smallest


@functools.lru_cache(maxsize=256)
def range_of(kinds: tuple[str, ...], dtype: str) -> tuple[float, float, float]:
    """The least, the largest, and the smallest absolute value that tensors of these kinds have."""
    own = getattr(torch, dtype)
    parts = [make(kind, (Limit.SAMPLE,), own, torch.Generator().manual_seed(1)).double() for kind in kinds]
    values = torch.cat(parts)
    values = values[values.isfinite()]
    if not values.numel():
        return 1.0, 0.0, 0.0
    small = float(values.abs().min())
    return float(values.min()), float(values.max()), 0.0 if small < 1e-3 and bool((values == 0).any()) else small


# --- calls -----------------------------------------------------------------------------------------------------------


def by_value(draws: Draws, wanted: Sequence[Missing], forms: Sequence[TracedForm]) -> Iterator[FurtherCall]:
    """Calls with values for what is wanted of elements, and of many together."""
    telling: dict[float, None] = {}
    first: Missing | None = None
    for one in wanted:
        behind = one.behind
        if any(op.name in LOADS for op in behind):
            own = [c for c in numbers_in(behind, floating=True) if c not in ORDINARY]
            whole = [float(n) for n in numbers_in(behind, floating=False)] if one.branch.name == "arith.cmpi" else []
            telling |= dict.fromkeys([*own, *whole])
            first = first or (one if own or whole else None)
    by_dtype = {tuple(v.dtype for v in form.views): form for form in sorted(forms, key=lambda form: form.elements)}
    for form in by_dtype.values() if first is not None else ():
        sizes = CallScope(draws, rank_of(draws, form)).near(Limit.ROOMY)
        for rows in (False, True):
            kinds = chosen_kinds(draws, _dtypes(draws, form), list(telling), rows)
            if kinds and first is not None:
                call = made(draws, form, sizes, 0, values_of(draws, kinds))
                yield FurtherCall(call, first.says(), first.line)
    together = next((one for one in wanted if one.is_of_many), None)
    if together is not None:
        form = min(forms, key=lambda form: form.elements)
        scope = CallScope(draws, rank_of(draws, form))
        for sizes in (scope.near(Limit.FEW), scope.near(Limit.WHOLE), scope.near(Limit.ROOMY)):
            alike = [values_of(draws, kinds) for kinds in kinds_alike(draws, _dtypes(draws, form))]
            for values in alike or _with_zeros(draws):
                yield FurtherCall(made(draws, form, sizes, 0, values), together.says(), together.line)


def _dtypes(draws: Draws, form: TracedForm) -> dict[str, str]:
    return {tensor.name: view.dtype for tensor, view in zip(draws.tensors, form.views, strict=False)}


# --- sizes of tables --------------------------------------------------------------------------------------------------


def looked_up(draws: Draws, forms: Sequence[TracedForm], keys: Sequence[tuple[int, ...]]) -> Iterator[FurtherCall]:
    """Calls whose sizes stand in a table of the text: a number for each dimension in turn, several for dimensions that
    follow each other."""
    form = next((one for one in forms if fits(draws, one) and one.elements), None)
    if form is None or not keys:
        return
    scope = CallScope(draws, rank_of(draws, form), True, Limit.BEYOND)
    base = {name: scope.nearest(name, 7 + place) for place, name in enumerate(scope.names)}
    places = ((key, first) for key in keys for first in range(len(scope.sizes) - len(key) + 1))
    every = (base | dict(zip(scope.sizes[first:], key, strict=False)) for key, first in places)
    rows = {tuple(row.items()): row for row in every if scope.has(row)}
    for turn, row in enumerate(rows.values()):
        told = ", ".join(f"{name} is {row[name]:,}" for name in scope.sizes) + ", sizes of a table of the submission"
        yield FurtherCall(made(draws, form, row, turn, {}), told)
