"""Layouts of a call's tensors, looked for like sizes: what slicing, stepping, permuting and expanding make of a
contiguous tensor, at small sizes, for host code that decides by strides and offsets."""

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from gradekit.inputs.draws import Draws, shape_parts
from gradekit.inputs.layouts import EXPANDED, is_row_major, row_major
from gradekit.prove.host_terms import Leaf
from gradekit.unseen import Limit
from gradekit.unseen.further import FurtherCall, Purpose, fits, made
from gradekit.unseen.host_branches import Path, TracedForm
from gradekit.unseen.scope import CallScope, sizes_alone

FEW = (2, 2, 3, 3, 4, 5, 6, 7)
"""Sizes of a dimension, as often as they are chosen."""


def sampled(
    scope: CallScope, path: Path, special: Sequence[int], own: Mapping[str, int]
) -> tuple[dict[str, Tensor], dict[Leaf, Tensor]]:
    """Sizes of many calls beside that of a path, at least its `own` or, without these, small, and strides and offsets
    for those of its tensors that are not contiguous, as the check's layouts may have them. In every second call these
    have the same layout, where their shapes allow it; those that are one tensor in the path's call do in all."""
    generator = torch.Generator().manual_seed(1)
    few, least = (*FEW, *(n + 1 for n in special if n < Limit.SHORTEST)), own
    own = own or scope.sizes_of(path.form)
    sizes = {name: [scope.nearest(name, n) for n in (*few, *[own.get(name, 1)] * len(FEW))] for name in scope.names}
    columns = {name: _picked([*map(torch.tensor, each)], (Limit.LAYOUTS,), generator) for name, each in sizes.items()}
    known, found, fits = scope.leaves(columns), dict[Leaf, Tensor](), scope.allows(columns)
    fits &= torch.stack([columns[name] >= least.get(name, 0) for name in columns]).all(dim=0)
    begins = [torch.tensor(n) for n in (0, 0, 1, 16, *(n for n in special if 0 < n < Limit.NEAR_ELEMENTS))]
    views = path.form.views
    for number, view in enumerate(views):
        first, layouts = views.index(view), dict(scope.draws.layouts)[scope.draws.tensors[number].name]
        if first != number:
            found |= {(leaf[0], number, *leaf[2:]): one for leaf, one in found.items() if leaf[1] == first}
            continue
        if "offset" in layouts:
            found["offset", number] = _picked(begins, (Limit.LAYOUTS,), generator)
        if number in path.strided:
            sized = (known["size", number, axis] for axis, _ in enumerate(view.shape))
            shape = torch.stack([torch.as_tensor(size).expand(Limit.LAYOUTS) for size in sized])
            halves = zip(shape.chunk(2, dim=1), (torch.Generator().manual_seed(2), generator), strict=True)
            strides = torch.cat([_strides(half, layouts, special, by) for half, by in halves], dim=1)
            found |= {("stride", number, axis): stride for axis, stride in enumerate(strides)}
            fits &= ((shape - 1) * strides).sum(dim=0) < 2 * Limit.NEAR_ELEMENTS
            plain = torch.stack([torch.as_tensor(step).expand(Limit.LAYOUTS) for step in row_major([*shape])])
            is_plain = ((shape == 1) | (strides == plain)).all(dim=0)
            fits &= is_plain == is_row_major(view.shape, view.stride)  # the path's call is so by its sizes of 1
    return {name: one[fits] for name, one in columns.items()}, {leaf: one[fits] for leaf, one in found.items()}


def _strides(shape: Tensor, layouts: Sequence[str], special: Sequence[int], generator: torch.Generator) -> Tensor:
    """The strides of parts of contiguous tensors: from the innermost dimension to the outermost, some steps lead from
    one element of the part to the next, and some elements are beside it."""
    rank, count = shape.shape
    words = {layout.partition(":")[0] for layout in layouts}
    order = torch.arange(rank).flip(0)[:, None].expand(rank, count)
    if words & {"transposed", "permuted"}:
        other = torch.rand(rank, count, generator=generator).argsort(dim=0)
        order = torch.where(torch.rand(count, generator=generator) < 0.5, other, order)
    steps = [torch.tensor(1)] * 5
    if words & {"every_second", "stepped"}:
        steps += [*map(torch.tensor, (2, 3, *(n for n in special if 1 < n < Limit.SHORTEST))), *shape]
    step = _picked(steps, (rank, count), generator)
    may_repeat = [["expanded" in layouts or f"expanded:{axis}" in layouts] for axis in range(rank)]
    repeated = (torch.rand(rank, count, generator=generator) < 0.25) & torch.tensor(may_repeat)
    widest = 16 if words & {"sliced_rows", "sliced_columns"} else 1
    beside = torch.randint(-widest, widest, (rank, count), generator=generator).clamp(min=0)
    length = torch.where(repeated, 1, (shape - 1).clamp(min=0) * step + 1) + beside
    found, apart = torch.zeros_like(shape), torch.ones_like(shape[:1])
    for axis in order.split(1):
        found = found.scatter(0, axis, torch.where(repeated, 0, step).gather(0, axis) * apart)
        apart = apart * length.gather(0, axis)
    return found


def _picked(options: Sequence[Tensor], shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """For each place one of the options, which are numbers, or one for each column."""
    which = torch.randint(len(options), (1, *shape), generator=generator)
    return torch.stack([option.expand(shape) for option in options]).gather(0, which)[0]


def repeated(draws: Draws, forms: Sequence[TracedForm]) -> Iterator[FurtherCall]:
    """Calls for each dimension along which a tensor may repeat its elements, in a check of how it lies, and none of
    these forms does with such flags: in one call several tensors do, each along another dimension."""
    mine, names = [form for form in forms if fits(draws, form) and form.elements], [one.name for one in draws.tensors]
    rank = max(draws.ranks, default=0)
    sizes = CallScope(sizes_alone(draws), rank, True).near(Limit.FEW, Limit.MANY_ELEMENTS // 2)
    parts = [shape_parts(tensor, rank) for tensor in draws.tensors]
    lies = [one for one in enumerate(draws.tensors) if len(dict(draws.layouts)[one[1].name]) > 1]
    places = [(number, axis) for number, one in lies for axis in range(len(parts[number])) if one.may_repeat(axis)]
    for turn, flags in enumerate({form.flags: None for form in mine}):
        met = {one for form in mine if form.flags == flags for one in form.repeated}
        left = [place for place in places if place not in met]
        while left:
            along = dict[int, int]()
            for number, axis in left:
                if parts[number][axis] not in [parts[n][along[n]] for n in along]:
                    along.setdefault(number, axis)
            left = [(number, axis) for number, axis in left if along.get(number) != axis]
            picks = {f"layout {names[n]}": f"{EXPANDED}:{axis}" for n, axis in along.items()}
            given = {draws.entry.arguments[place].name: flag for place, flag in flags}
            told = ", ".join(f"{names[n]} along {parts[n][axis]}" for n, axis in along.items())
            call = made(draws, mine[0], sizes, turn, {"rank": rank, **given, **picks})
            yield FurtherCall(call, f"elements repeat, those of {told}", purpose=Purpose.BESIDE)
