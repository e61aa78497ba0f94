"""What staff check of dropout beyond the public tests: large tensors, edges of p and of seeds, and values that spread."""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
import torch
from hypothesis import given, settings

from gradekit import FLOATS, assert_close, assert_memory_clean, calls, points, public_tests
from gradekit.engine.budget import Budget, Meter, OverBudget, Unsupported
from gradekit.engine.frame import Frame, LaunchContext
from gradekit.engine.kernel_facts import every_operation, facts, parsed
from gradekit.engine.lanes import Access, flat_index, flat_mask
from gradekit.engine.launch import programs_at_once
from gradekit.engine.memory import Memory
from gradekit.engine.observer import DrawnWith, is_of_generator
from gradekit.engine.traffic import CountingMemory
from gradekit.engine.ttir import Op
from gradekit.engine.values import Value
from gradekit.observations import Traffic
from gradekit.program import Program, View
from gradekit.prove import Limit
from gradekit.prove.probe import run_without_memory

public = public_tests(__file__)

EDGE_SEEDS = (0, 1, 2, 16, 2**16, 2**31 - 1)
LARGEST = (1, 2**31 - 2**21), (70_001, 3001), (3, 2**29)  # no larger tensor is promised
APART = (1, 16, 32, 64, 128, 256, 512, 1024)


def huge(p=(0.5,), seed=EDGE_SEEDS, rank=1, sizes=None, at_most=1 << 18, dtypes=("float32",)):
    """Tensors of tens of thousands of elements."""
    return calls(
        public.DROPOUT,
        dtypes=dtypes,
        sizes=sizes or {"...": [100, 200], "N": [500, 1000]},
        layouts=public.PLAIN,
        others={"p": p, "seed": seed},
        how={"ranks": [rank], "at_most": at_most},
    )


LONG_ROWS = {"shape": (2, 2**20 + 1000), "stride": (2**20 + 1000, 1)}
DRAWS_ZERO = 171_431  # with this seed tl.rand, and the first number of tl.rand4x, is exactly 0 for the counter 10,507
RARE = {"...": [1500], "N": [4100]}  # so many elements that even of 7 in a million, 43 are expected


@points(3)
@given(call=huge((0.001, 0.999, 0.5, 0.99999), EDGE_SEEDS, 1, {"...": [200, 500], "N": [1000, 2000]}, 1 << 20, FLOATS))
def test_edges(submission, call):
    """Keeps the right share for p near 0 and 1, and for any seed"""
    x, p, seed = call
    kept = public.checked_mask(submission, x, p, seed)
    public.assert_count(int(kept.sum()), kept.numel(), 1 - p, f"With p = {p}, an element was kept")


@points(3)
@pytest.mark.parametrize("p", [7e-6, 2e-6])
@settings(max_examples=1)
@given(call=huge(seed=(1234,), sizes=RARE, at_most=1 << 23))
def test_rarest(submission, p, call):
    """Drops a few in a million, the same ones of any dtype, others with the next seed, and none where p is 0"""
    x, _, seed = call
    public.checked_mask(submission, replace(x, shape=(1, x.shape[1])), p, seed)  # the values of all would take gigabytes
    few = replace(x, shape=(11, x.shape[1]))
    public.assert_same(public.mask_of(submission.dropout(few, 0.0, DRAWS_ZERO), few), torch.ones(few.shape, dtype=bool),
                       "With p = 0 nothing may be dropped.")  # fmt: skip
    places = []
    for values, own in ((x, seed), (replace(x, shape=(500, x.shape[1])), seed + 1)):
        dropped = ~public.mask_of(submission.dropout(values, p, own), values)
        public.assert_count(int(dropped.sum()), dropped.numel(), p, f"With p = {p}, an element was dropped")
        if own != seed:
            narrow = replace(values, dtype="float16")
            other = ~public.mask_of(submission.dropout(narrow, p, own), narrow)
            public.assert_same(dropped, other, "Tensors of two dtypes, with the same p and seed, lost other elements.")
        places.append(dropped.flatten().nonzero().flatten())
    for other, which in ((places[1], "the next seed"), (places[0], "the same seed")):
        apart = (places[0][:, None] - other).flatten()  # of all pairs, few are equally far apart
        apart, counts = (apart if other is places[1] else apart[apart > 0]).unique(return_counts=True)
        if len(counts):
            most = int(counts.argmax())
            what = f"With p = {p}, an element was dropped {int(apart[most])} places after one that {which} drops"
            public.assert_count(int(counts[most]), len(places[0]), len(other) / x.numel, what)


@points(6)
@given(call=huge(p=(0.1, 0.3, 0.7)))
def test_pairs_of_seeds(submission, call):
    """Masks of two seeds are independent, for any p"""
    x, p, seed = call
    one, other = (public.checked_mask(submission, x, p, s).flatten() for s in (seed, seed ^ 1))
    public.assert_count(int((one & other).sum()), len(one), (1 - p) ** 2, "Both of two seeds kept an element")
    public.assert_apart(one, other, f"With p = {p}, seeds {seed} and {seed ^ 1} agreed on elements {{}} apart", p)
    if seed == 0:  # whatever folds seeds to fewer bits, two with one bit each become the same
        few = replace(x, shape=(1, x.shape[1]))
        kept = [public.mask_of(submission.dropout(few, 0.5, 1 << bit), few).flatten() for bit in range(31)]
        fates = 2 * torch.stack(kept).double() - 1
        above = int((fates @ fates.T).tril(-1).argmax())
        pair = f"With p = 0.5, seeds {1 << above % 31} and {1 << above // 31}"
        count = int((kept[above // 31] == kept[above % 31]).sum())
        public.assert_count(count, few.shape[1], 0.5, f"{pair} agreed on an element")
        if x.shape[1] == 500:
            assert_draws_of_their_own(submission, few)
            for shape in LARGEST:
                assert_elements_of_their_own(submission, public.contiguous(replace(x, shape=shape)))


MANY, ONE = 2**17, 1_234_567_891
"""So many seeds that of two to the 32 keys two seeds have the same; and a seed that no other number is equal to."""


def assert_draws_of_their_own(submission, x):
    """Raise where two of many seeds give the generator the same to draw with, and so the same mask."""
    seeds = torch.randint(2**31, (MANY,), generator=torch.Generator().manual_seed(x.seed % 2**31)).unique()
    told, order = drawn_with(submission.dropout.traced(x, 0.5, ONE), ONE, seeds).sort()
    twice = (told.diff() == 0).nonzero().flatten()
    if told[0] != told[-1] and len(twice):
        pair = seeds[order[twice[0] : twice[0] + 2]].tolist()
        one, other = (public.mask_of(submission.dropout(x, 0.5, seed), x).flatten() for seed in pair)
        what = f"With p = 0.5, seeds {pair[0]} and {pair[1]} agreed on an element"
        public.assert_count(int((one == other).sum()), len(one), 0.5, what)


def assert_elements_of_their_own(submission, x):
    """Raise where elements far apart, or the first ones under another seed, have the same fates one after the other."""
    numbers = [0, *(step << bit for step in x.stride for bit in range(31)), *public.distances(submission)]
    runs, told = [], []
    for seed in (0, *(1 << bit for bit in range(31))):
        program = submission.dropout.traced(x, 0.5, seed)
        where, values = stored_by_some(program, [0] if seed else numbers, far=not seed)
        fates, starts = windows(where, values != 0)
        runs.append(fates)
        told.append(torch.stack([torch.full_like(starts, seed), starts]))
    fates, order = torch.cat(runs).sort(stable=True)
    twice = (fates.diff() == 0).nonzero().flatten()
    if len(twice) >= 16:  # one may be chance; what follows agrees with probability 1/2 each
        one, other = sorted(torch.cat(told, dim=1)[:, order[twice[0] : twice[0] + 2]].T.tolist())
        pair = f"elements from {one[1]:,} on under seed {one[0]}, and from {other[1]:,} on under seed {other[0]}"
        what = f"With p = 0.5 and x of shape {list(x.shape)}, {pair}, have the same fates."
        raise public.Failure(public.Cause.WRONG_VALUES, what)


PIECE = 1 << 14
"""So many elements that follow each other are enough: a program that walks through a tensor stores millions."""


def windows(where, kept):
    """The fates of each 64 elements that follow each other, as int64, and the first of these elements; of each piece
    without a gap, those at its beginning."""
    place = torch.arange(len(where))
    begins = torch.where(where.diff(prepend=where[:1] - 2) == 1, 0, place).cummax(0).values
    where, kept = where[place - begins < PIECE], kept[place - begins < PIECE]
    fates, width = kept.long(), 1
    while width < 64:
        fates, width = fates[:-width] | fates[width:] << width, 2 * width
    starts = where[: len(fates)]
    whole = where[63:] - starts == 63
    return fates[whole], starts[whole]


@points(6)
@given(call=huge(rank=2, sizes={"...": [6, 20, 40], "N": [30, 60]}))
def test_every_part_has_its_share(submission, call):
    """Each row, column and plane keeps about half"""
    x, _, seed = call
    kept = public.checked_mask(submission, x, 0.5, seed).double()
    for dim in range(kept.dim()):
        others = [d for d in range(kept.dim()) if d != dim]
        size = math.prod(kept.shape[d] for d in others)
        worst = int((kept.sum(others) - size / 2).abs().argmax())
        count = int(kept.select(dim, worst).sum())
        public.assert_count(count, size, 0.5, f"At index {worst} of dimension {dim}, an element was kept")


@points(6)
@given(call=public.drawn(sizes={"...": [1, 5], "N": [1, 12]}, upstream=["normal"]))
def test_gradient_of_views(submission, call):
    """The gradient is right for views of x and of the result's gradient"""
    x, p, seed, upstream = call
    kept = public.mask_of(submission.dropout(x, p, seed), x)
    found = submission.dropout.gradient(x, p, seed, upstream=upstream)
    assert_close(found, public.expected_gradient(kept, x, p, seed, upstream))
    assert_memory_clean(found)


@points(6)
@given(call=huge())
def test_no_group_tells_another(submission, call):
    """No group of elements tells the fate of another"""
    x, _, seed = call
    if seed == 0 and x.shape[1] == 500:  # a row longer than its part of a counter: its end counts as the next row does
        rows = public.mask_of(submission.dropout(long := replace(x, **LONG_ROWS), 0.5, seed), long)
        public.assert_apart(*rows, "With p = 0.5, elements of two rows, {} columns apart, had the same fate")
    one, other = (public.checked_mask(submission, x, 0.5, s).flatten() for s in (seed, seed ^ 1))
    for apart in APART:
        groups = one[: len(one) // (16 * apart) * 16 * apart].view(-1, 16, apart).transpose(1, 2).reshape(-1, 16)
        assert_no_parity(groups, f"of 16 that are {apart} apart")
    neighbours = torch.stack([one, other])[:, : len(one) // 8 * 8].view(2, -1, 8)
    assert_no_parity(torch.cat([*neighbours], 1), f"of 8 neighbours under seed {seed}, and then under {seed ^ 1}")


def assert_no_parity(rows, which):
    """Raise where some of the columns of `rows` have an even number of True together, or an odd one, more often than
    chance explains: for every set of columns at once, by the Walsh-Hadamard transform of how often each row comes."""
    width = rows.shape[1]
    even = torch.bincount((rows * 2 ** torch.arange(width)).sum(1), minlength=2**width)
    for bit in range(width):
        pairs = even.view(-1, 2, 2**bit)
        even = torch.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], 1).flatten()
    some = 1 + int(even[1:].abs().argmax())
    columns = ", ".join(str(bit + 1) for bit in range(width) if some >> bit & 1)
    what = f"With p = 0.5, of elements {columns} {which}, an even number was kept"
    public.assert_count((len(rows) + int(even[some])) // 2, len(rows), 0.5, what)


# --- what some programs of a call store or draw, evaluated by the engine on tensors that do not exist --------------------


def stored_by_some(program: Program, near: Sequence[int] = (0,), far: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    """Elements of the result of a call that may be of any size, int64 and ascending, with what some programs store
    there where all that is loaded is 1: those that come to the elements `near` where elements are dealt out in order
    and, if `far`, those whose place along an axis of the grid is a power of two or the last; as far as work allows."""
    result = next(view for view in program.results if isinstance(view, View))
    parts, meter = [(torch.empty(0, dtype=torch.int64), torch.empty(0))], Meter(Budget(work=Limit.PROBE_WORK >> 3))
    for launch in program.every_launch:
        ttir, memory = program.kernels[launch.kernel].unaligned, _OfOnes(Traffic(), set(), [])
        context = LaunchContext(parsed(ttir), facts(ttir), launch.grid, memory, meter, 0, "", program.path)
        some = _some(launch.grid, [n for n in near if n < result.numel], far, result.numel)
        with contextlib.suppress(OverBudget, Unsupported):
            run_without_memory(context, launch, Memory(), some)
        parts += memory.values.get(result.storage, [])
    where, values = (torch.cat(each) for each in zip(*parts, strict=True))
    order = where.argsort(stable=True)
    return where[order], values[order]


def drawn_with(program: Program, number: int, others: torch.Tensor) -> torch.Tensor:
    """For each of the `others` in place of an argument `number` of its launches, what tells the random numbers that the
    first programs of a call draw then: int64, equal where Triton's generator is asked for the same; all 0 where it
    is not, or no launch has that argument."""
    told, meter = torch.zeros_like(others), Meter(Budget(work=1 << 40))
    texts = {key: parsed(kernel.unaligned) for key, kernel in program.kernels.items()}
    drawing = {key for key, module in texts.items() if any(map(is_of_generator, every_operation(module)))}
    for launch in (one for one in program.every_launch if one.kernel in drawing):
        ttir, memory = program.kernels[launch.kernel].unaligned, _OfOnes(Traffic(), set(), [])
        few = replace(facts(ttir), tile=max(facts(ttir).tile >> 2, 1), peak=facts(ttir).peak >> 2)  # scalars, mostly
        for some in told.new_tensor(range(len(told))).split(programs_at_once(few)):
            generator = DrawnWith()

            def note(frame: Frame, op: Op, some: torch.Tensor = some, generator: DrawnWith = generator) -> None:
                for place in generator.operands(op):
                    value = (given := frame.tensor(op, place)).reshape(given.shape[0], -1)
                    told[some] = told[some] * _FACTOR + value[:, :1].flatten().long()
                made = next((frame.values[name] for name in op.results if name in generator.inside), None)
                if isinstance(made, torch.Tensor) and made.numel() > len(some) == made.shape[0]:
                    raise OverBudget("work", 0)  # each has met the counters: what is drawn needs no look

            context = LaunchContext(parsed(ttir), few, launch.grid, memory, meter, 0, "", program.path, observe=note)
            with contextlib.suppress(OverBudget, Unsupported):
                run_without_memory(context, launch, Memory(), [0] * len(some), {number: others[some].int()})
    return told


_FACTOR = 6364136223846793005  # of a hash: odd, and all of its bits count


def _some(grid: Sequence[int], near: Sequence[int], far: bool, elements: int) -> list[int]:
    total, step = math.prod(grid), 1
    found = {n * total // elements + more for n in near for more in (0, 1)}
    for size in grid if far else ():
        found |= {place * step for place in (size - 1, *(1 << bit for bit in range(max(size - 1, 0).bit_length())))}
        step *= size
    return sorted(one for one in found if one < total)


@dataclass
class _OfOnes(CountingMemory):
    """Where all that is loaded is 1; `values` has elements and what is stored there, by storages."""

    values: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = field(default_factory=dict)

    def load(self, access: Access, other: Value | None, dtype: torch.dtype) -> torch.Tensor:
        """Ones."""
        return torch.ones_like(super().load(access, other, dtype))

    def store(self, access: Access, value: torch.Tensor) -> None:
        """Kept."""
        index, active = flat_index(access.pointer.offset, access.shape), flat_mask(access.mask, access.shape)
        here = slice(None) if active is None else active
        if access.pointer.storage is not None:
            kept = index[here], value.expand(access.shape).flatten()[here]
            self.values.setdefault(access.pointer.storage.id, []).append(kept)
