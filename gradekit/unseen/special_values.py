"""Calls with numbers that a submission makes special: fractions that it compares a scalar with, sizes that stand in its
tables, and values for what kernels decide by these: around the constants that a kernel compares with, laid out so
that those of several tensors meet; of one sign; and as far from zero as a check's values lie.

Only such values are taken as the kinds of values of the check may have: not much larger than all of them, nor smaller,
and zero only where one of them has zeros.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from gradekit.domain import ScalarDomain
from gradekit.engine.def_use import LOADS
from gradekit.inputs.draws import Draws
from gradekit.inputs.value_kinds import CHOSEN, PROFILES, make
from gradekit.unseen.further import FurtherCall, fits, made, rank_of, values_of, widest
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.kernel_branches import numbers_in
from gradekit.unseen.scope import BEYOND, LARGEST, CallScope, fractions
from gradekit.unseen.search import Missing

ORDINARY = frozenset({0.0, 1.0, -1.0, 0.5, 2.0})
"""Constants that say nothing about a kernel."""

WHOLE, ROOMY = 256, 48
"""Sizes of which tiles are filled to their ends, so that what is masked there has a value of its own; and those of
calls with some thousand elements, in several rows."""

MOST = {1: 48, 2: 24, 3: 12}
"""Values for each tensor, by how many tensors there are."""

CHANGES = ((1, 1), (1, -1), (1.125, 0), (0.875, 0), (-1, 0), (2, 0), (0.5, 0), (-1.25, 0), (1, 0.125))
"""Of each constant: a factor, and what is added."""

PLAIN = (1.25, -0.75, 2.5, -3.0, 0.5)
SAMPLE, MORE = 4096, 2
"""Elements by which a kind's range is told, and how far beyond it values may lie: the next seed may draw them."""


def values_around(constants: Sequence[float], most: int) -> list[float]:
    """The constants with their neighbours, and what simple arithmetic makes of them; then a few plain numbers."""
    found = dict.fromkeys([*constants, *(c * factor + more for factor, more in CHANGES for c in constants)])
    return [*list(found)[: most - len(PLAIN)], *PLAIN]


def chosen_kinds(draws: Draws, dtypes: dict[str, str], constants: Sequence[float], rows: bool) -> dict[str, str]:
    """For each tensor of the check whose values are gradekit's own kinds, a kind that
    has values around the constants."""
    places = [*_plain_tensors(draws)][: max(MOST)]
    found: dict[str, str] = {}
    step = 1
    for name in places:
        pool = [v for v in values_around(constants, MOST[len(places)]) if _have(draws, dtypes, name, [v])]
        if pool:
            texts = ";".join(repr(v) for v in pool)
            found[name] = f"{CHOSEN}:{'rows' if rows else 'cells'}:{step}:{texts}"
            step *= len(pool)
    return found


ALIKE = {"below_zero": (-0.125, -2.125), "positive": (0.125, 2.125)}
"""Kinds whose values all have one sign, with the ends of their ranges."""


BALANCED = f"{CHOSEN}:cells:1:1.0;-1.0"
"""Values whose sum over each whole tile is 0, and none of which is."""


def kinds_alike(draws: Draws, dtypes: dict[str, str]) -> list[dict[str, str]]:
    """For what a kernel asks of many elements together: all tensors below zero, all above, the first unlike the
    others, and of the first as many above as below, as far as the check's kinds have such values."""
    names = [*_plain_tensors(draws)]
    below, above = ALIKE
    each = [{name: one for name in names} for one in ALIKE]
    for one, other in ((below, above), (above, below)) if names[1:] else ():
        each.append(dict.fromkeys(names, other) | {names[0]: one})
    kinds = [one.items() for one in each]
    found = [dict(one) for one in kinds if names and all(_have(draws, dtypes, name, ALIKE[kind]) for name, kind in one)]
    others = dict.fromkeys((name for name in names if "normal" in _kinds(draws, name)), "normal")
    return [*found, *(others | {name: BALANCED} for name in names[:1] if _have(draws, dtypes, name, (1.0, -1.0)))]


MOST_FAR = 4096.0
"""How far from zero values lie in calls that make sums and products large: what is added up must not overflow."""


def far_kinds(draws: Draws, dtypes: dict[str, str]) -> list[dict[str, str]]:
    """For what a kernel makes of many elements, and no example has made so large: all elements 1; all near the largest
    that the check's kinds have, the first tensor unlike the others, the two in turn, and all near the least."""
    names = [*_plain_tensors(draws)]
    ends = {name: _ends(_range(_kinds(draws, name), dtypes.get(name, "float32"))) for name in names}
    up = {name: _near(most) for name, (_, most) in ends.items() if most > 0}
    down = {name: _near(least) for name, (least, _) in ends.items() if least < 0}
    turns = {name: f"{CHOSEN}:cells:1:{most!r};{least!r}" for name, (least, most) in ends.items() if least < 0 < most}
    ones = {name: "ones" for name, (_, most) in ends.items() if most >= 1}
    first = [names[0]] if names[1:] else []
    unlike = [up | {name: down[name] for name in first if name in down}, down | {n: up[n] for n in first if n in up}]
    return [one for one in (ones, up, *(unlike if first else ()), turns, down) if one and len(one) == len(names)]


def _ends(found: tuple[float, float, float]) -> tuple[float, float]:
    least, most, _ = found
    return max(round(least), -MOST_FAR), min(round(most), MOST_FAR)


def _near(value: float) -> str:
    return f"{CHOSEN}:cells:1:{value!r};{value * 3 / 4!r}"


def _have(draws: Draws, dtypes: dict[str, str], name: str, values: Sequence[float]) -> bool:
    return all(_may_be(value, _kinds(draws, name), dtypes.get(name, "float32")) for value in values)


def _plain_tensors(draws: Draws) -> Iterator[str]:
    for tensor in draws.tensors:
        kinds = _kinds(draws, tensor.name)
        if kinds and tensor.range is None and all(kind in PROFILES for kind in kinds):
            yield tensor.name


def _kinds(draws: Draws, name: str) -> tuple[str, ...]:
    for names, options in draws.values:
        together = names.split()
        if name in together:
            at = together.index(name)
            return tuple(dict.fromkeys(o if len(together) == 1 else o[at] for o in options))
    return ()


def _may_be(value: float, kinds: tuple[str, ...], dtype: str) -> bool:
    least, most, smallest = _range(kinds, dtype)
    if "int" in dtype and value != int(value):
        return False
    return min(least, MORE * least) <= value <= max(most, MORE * most) and abs(value) >= smallest


@functools.lru_cache(maxsize=256)
def _range(kinds: tuple[str, ...], dtype: str) -> tuple[float, float, float]:
    """The least, the largest, and the smallest absolute value that tensors of these kinds have."""
    own = getattr(torch, dtype)
    parts = [make(kind, (SAMPLE,), own, torch.Generator().manual_seed(1)).double() for kind in kinds]
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
        sizes = CallScope(draws, rank_of(draws, form)).near(ROOMY)
        for rows in (False, True):
            kinds = chosen_kinds(draws, _dtypes(draws, form), list(telling), rows)
            if kinds and first is not None:
                call = made(draws, form, sizes, 0, values_of(draws, kinds))
                yield FurtherCall(call, first.says(), first.line)
    together = next((one for one in wanted if one.is_of_many), None)
    if together is not None:
        form = min(forms, key=lambda form: form.elements)
        scope = CallScope(draws, rank_of(draws, form))
        for sizes in (scope.near(WHOLE), scope.near(ROOMY)):
            for kinds in kinds_alike(draws, _dtypes(draws, form)):
                call = made(draws, form, sizes, 0, values_of(draws, kinds))
                yield FurtherCall(call, together.says(), together.line)


def far_values(draws: Draws, forms: Sequence[TracedForm], missing: Sequence[Missing]) -> list[Mapping[str, Any]]:
    """What picks values that make sums, maxima, counts and products as large as they may be, one choice for each kind;
    none where no comparison that is `missing` asks for them."""
    form = widest(draws, forms)
    if form is None or not any(one.is_far for one in missing):
        return []
    return [values_of(draws, kinds) for kinds in far_kinds(draws, _dtypes(draws, form))]


def _dtypes(draws: Draws, form: TracedForm) -> dict[str, str]:
    return {tensor.name: view.dtype for tensor, view in zip(draws.tensors, form.views, strict=False)}


# --- fractions that are compared with a scalar, and sizes of tables ---------------------------------------------------

BESIDE, SMALLEST = 2.0**-10, 1e-6
"""How far beside a fraction, as a share of it, and the smallest that is tried."""

DIGITS = 7
"""Numbers that differ behind so many digits are one that was rounded to float32."""

MOST_NUMBERS = 6
SIZES = (512, 1024, 2048, 4096)


def near_fractions(draws: Draws, forms: Sequence[TracedForm], numbers: Sequence[float]) -> Iterator[FurtherCall]:
    """Calls with a fraction in the middle of two numbers that follow each other, then a little beside each number, each
    sum and each difference of two, and the numbers themselves, in the scalar's range.

    They have many elements, since what is done too often shows in many alone.
    """
    form = next((one for one in forms if fits(draws, one) and one.elements), None)
    close = _close_to([n for n in numbers if 0 < n < 1])
    values = [(scalar.name, value) for scalar in fractions(draws) for value in close if _is_in_range(scalar, value)]
    sizes = _many(CallScope(draws, rank_of(draws, form), True, BEYOND)) if form is not None and values else {}
    for turn, (name, value) in enumerate(dict.fromkeys(values) if form is not None else ()):
        told = f"{name} is {value:.6g}, close to a number that it is compared with"
        yield FurtherCall(made(draws, form, sizes, turn, {name: value}), told)  # type: ignore[arg-type]


def _is_in_range(scalar: ScalarDomain, value: float) -> bool:
    return max(scalar.least or 0.0, SMALLEST) <= value <= (scalar.most or 0.0)


def _close_to(numbers: Sequence[float]) -> list[float]:
    few = list(dict.fromkeys(round(n, DIGITS) for n in numbers))[:MOST_NUMBERS]
    sums = [a + sign * b for a in few for b in few if a > b for sign in (1, -1)]
    beside = dict.fromkeys(round(n, DIGITS) for n in (*few, *sums))
    between = [(a + b) / 2 for a, b in itertools.pairwise(sorted(few))]
    return [*between, *(number * (1 + side * BESIDE) for number in beside for side in (1, -1)), *few]


def _many(scope: CallScope) -> dict[str, int]:
    """Sizes of a call with as many elements as may be."""
    return max((scope.near(size, LARGEST) for size in SIZES), key=scope.count)


def looked_up(draws: Draws, forms: Sequence[TracedForm], keys: Sequence[tuple[int, ...]]) -> Iterator[FurtherCall]:
    """Calls whose sizes stand in a table of the text: a number for each dimension in turn, several for dimensions that
    follow each other."""
    form = next((one for one in forms if fits(draws, one) and one.elements), None)
    if form is None or not keys:
        return
    scope = CallScope(draws, rank_of(draws, form), True, BEYOND)
    base = {name: scope.nearest(name, 7 + place) for place, name in enumerate(scope.names)}
    rows = {}
    for key in keys:
        for first in range(len(scope.sizes) - len(key) + 1):
            row = base | dict(zip(scope.sizes[first:], key, strict=False))
            rows[tuple(row.items())] = row
    columns = {name: torch.tensor([row[name] for row in rows.values()]) for name in base}
    allowed = scope.allows(columns).tolist() if rows and columns else []
    for turn, row in enumerate(itertools.compress(rows.values(), allowed)):
        told = ", ".join(f"{name} is {row[name]:,}" for name in scope.sizes) + ", sizes of a table of the submission"
        yield FurtherCall(made(draws, form, row, turn, {}), told)
