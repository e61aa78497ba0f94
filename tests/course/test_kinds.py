"""What one assignment alone has: its kinds of values, its counts of random events, its reference."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch

from gradekit.assignment import beside, discover, get
from gradekit.inputs import value_kinds
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import FLOATS, Input

beside(get("giou_loss").tests, "boxes")
sparse = beside(get("spmm").tests, "sparse")
ragged = beside(get("decode_attention").tests, "lengths")

GRID = 2.0**-20


@pytest.mark.parametrize("name", sorted(discover()))
def test_some_kind_of_each_float_tensor_fills_the_mantissa_and_lies_on_no_coarse_grid(name: str) -> None:
    """What a kernel rounds to fewer bits, or to steps of a fixed size, shows in some check"""
    assignment = get(name)
    for entry in assignment.domain.values():
        for tensor in (one for one in entry.tensors if "float32" in entry.dtypes.get(one.dtype, (one.dtype,))):
            kinds = [kind for kind in (*tensor.values, *(row.get(tensor.name, "ones") for row in entry.exact))
                     if ":" not in kind and kind != "special"]  # fmt: skip
            values = torch.cat(
                [Input("float32", (8, 64, 4), (256, 4, 1), 0, kind, 1).tensor().view(-1) for kind in kinds]
            )
            values = values[values.isfinite()].double()
            assert bool((values.frexp().mantissa * 2.0**24 % 2 == 1).any()), f"{tensor.name} has fewer bits"
            assert bool((values / GRID % 1 != 0).any()), f"{tensor.name} lies on a grid"


# --- boxes -----------------------------------------------------------------------------------------------------------

BOXES = [f"{name}:1:0" if name == "boxes_met" else name for name in value_kinds.known() if name.startswith("boxes")]


def boxes_of(profile: str, dtype: str = "float32", seed: int = 0) -> torch.Tensor:
    return Input(dtype, (3, 9, 4), (36, 4, 1), 0, profile, seed).tensor()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("profile", ["boxes", "boxes_even", "boxes_odd"])
def test_boxes_have_an_area(profile: str, dtype: str) -> None:
    left, top, right, bottom = boxes_of(profile, dtype).double().unbind(-1)
    assert bool((right > left).all() and (bottom > top).all() and (bottom > 0).all())


@pytest.mark.parametrize("dtype", FLOATS)
def test_no_side_of_an_even_box_coincides_with_one_of_an_odd_box(dtype: str) -> None:
    assert bool((boxes_of("boxes_even", dtype) % 2 == 0).all())
    assert bool((boxes_of("boxes_odd", dtype) % 2 == 1).all())


def test_tiny_boxes_have_less_area_than_counts_and_no_side_in_common() -> None:
    tiny, odd = boxes_of("boxes_tiny").double(), boxes_of("boxes_tiny_odd", seed=1).double()
    for boxes, rest in ((tiny, 0), (odd, 1)):
        left, top, right, bottom = boxes.unbind(-1)
        assert bool((0 < (right - left) * (bottom - top)).all() and ((right - left) * (bottom - top) < 5e-6).all())
        assert bool((boxes * 4096 % 2 == rest).all())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("boxes", "boxes_between"),
        ("boxes_left", "boxes_left_between"),
        ("boxes", "boxes_padded"),
        ("boxes_junk", "boxes_gaps"),
    ],
)
def test_no_sides_coincide_where_gradients_are_asked_for(one: str, other: str) -> None:
    """In steps of 2**-16 of a box's scale, the sides of one kind are even, and those of the other odd, or as little above
    0 as the dtype can be; what is padding aside"""
    scale = 1 if "left" in one else 2.0 ** (torch.arange(27) // 4 % 8 * 12 // 7).view(3, 9, 1)
    steps, others = boxes_of(one).double() / scale * 2**16, boxes_of(other, seed=1).double() / scale * 2**16
    real, least = (
        others[..., 3] > 0,
        torch.finfo(torch.float32).smallest_normal * torch.finfo(torch.float32).eps * 2**16,
    )
    apart = (others % 2 == 1) | (others == least)
    assert bool(real.any()) and bool((steps[real] % 2 == 0).all()) and bool(apart[real].all())


def test_some_predictions_for_real_boxes_lie_above_the_image() -> None:
    above = boxes_of("boxes_left")[..., 3] <= 0
    assert 0 < int(above.sum()) < above.numel()
    assert bool((boxes_of("boxes_left_between")[..., 3] > 0).all())


def test_some_of_the_padded_boxes_are_zeros() -> None:
    padding = (boxes_of("boxes_padded") == 0).all(-1)
    assert 0 < int(padding.sum()) < padding.numel()


@pytest.mark.parametrize("dtype", FLOATS)
def test_junk_lies_where_the_gaps_are(dtype: str) -> None:
    gaps, junk = boxes_of("boxes_gaps", dtype), boxes_of("boxes_junk", dtype, seed=1)
    assert (gaps[..., 3] <= 0)[0].tolist() == [n % 4 == 3 for n in range(9)]
    assert (junk.abs() > 1000).any(-1)[0].tolist() == [n % 4 == 3 for n in range(9)]
    assert bool((boxes_of("boxes_none", dtype)[..., 3] <= 0).all())


@pytest.mark.parametrize("profile", BOXES)
def test_kinds_for_boxes_make_tensors_of_any_shape(profile: str) -> None:
    for shape in [(), (4,), (3,), (0, 4), (2, 5, 1)]:
        assert Input("float32", shape, row_major(shape), 0, profile).tensor().shape == shape


# --- sparse matrices -------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")  # torch 2.11, checks or not
@pytest.mark.parametrize("pattern", sparse.PATTERNS)
@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (7, 40), (40, 7), (60, 300)])
def test_the_three_tensors_of_a_sparse_matrix_are_what_torch_takes(pattern: str, rows: int, cols: int) -> None:
    crow, col, elements = (x.tensor().clone() for x in sparse.csr(rows, cols, pattern, seed=rows))
    torch.sparse_csr_tensor(crow, col, elements, (rows, cols), check_invariants=True)


def test_a_ragged_matrix_has_empty_rows_short_ones_and_full_ones() -> None:
    counts = sparse.row_starts(200, 64, "ragged", 0).diff().tolist()
    assert {0, 1, 2, 64} <= set(counts)


def test_one_long_row_is_full_and_no_other_has_more_than_one_element() -> None:
    counts = sorted(sparse.row_starts(50, 700, "one_long", 3).diff().tolist())
    assert (counts[-1], counts[-2], counts[0]) == (700, 1, 0)


def test_stairs_have_rows_of_every_length() -> None:
    assert sparse.row_starts(130, 100, "stairs", 0).diff().tolist() == [min(n, 100) for n in range(130)]


def test_special_values_stand_alone_in_the_first_row_and_the_last_and_once_in_every_other() -> None:
    values = Input("float16", (40, 30), (30, 1), 0, "special:infinity;NaN;largest").tensor()
    counts = (~(values.abs() < 65_504)).sum(1)
    assert counts.tolist() == [30, *[1] * 38, 30]
    assert {65_504.0, -65_504.0, math.inf} <= set(values.flatten().tolist())
    assert values.isnan().any() and not (values == -math.inf).any()


def test_runs_of_zeros_are_as_long_as_several_tiles_and_as_short_as_one_element() -> None:
    zeros = Input("float32", (20_000,), (1,), 0, "zero_runs").tensor() == 0
    lengths = {len([*same]) for is_zero, same in itertools.groupby(zeros.tolist()) if is_zero}
    assert min(lengths) == 1
    assert 200 < max(lengths) <= 300


# --- lengths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_lengths_lie_between_one_and_the_most(seed: int) -> None:
    found = Input("int32", (7,), (1,), profile=f"lengths:40:{seed}").tensor()
    assert 1 <= int(found.min()) <= int(found.max()) == 40


@pytest.mark.parametrize("seed", range(12))
def test_a_cut_cache_is_finite_up_to_each_length_and_nan_or_infinite_past_it(seed: int) -> None:
    ends = Input("int32", (3,), (1,), profile=f"lengths:9:{seed}").tensor()
    cut = Input("float32", (3, 2, 9, 4), row_major((3, 2, 9, 4)), profile=f"cut:9:{seed}:1").tensor()
    beyond = torch.arange(9)[None, None, :, None] >= ends[:, None, None, None]
    assert torch.equal(~cut.isfinite(), beyond.expand_as(cut))
    assert torch.equal(cut[0].isnan(), ~cut[0].isfinite() & ((torch.arange(9)[:, None] + torch.arange(4)) % 2 == 0))


def test_two_caches_that_are_cut_alike_differ_in_their_values() -> None:
    k, v = (Input("float32", (1, 1, 4, 8), (32, 32, 8, 1), profile=f"cut:4:0:{own}").tensor() for own in (1, 2))
    assert torch.equal(k.isfinite(), v.isfinite()) and not torch.equal(k.nan_to_num(), v.nan_to_num())


@pytest.mark.parametrize("profile", ["lengths", "lengths:x:0", "crow:3:4:stripes:0", "crow:3:4:full:0", "col:1"])
def test_parameters_that_do_not_fit_are_an_error(profile: str) -> None:
    with pytest.raises(ValueError, match="no values"):
        Input("int32", (7,), (1,), profile=profile).tensor()


# --- counts of random events are allowed to be off as far as chance brings, and no further ----------------------------


CHECKS = beside(get("dropout").tests, "test_dropout")


@pytest.mark.parametrize(
    ("trials", "chance"), [(200, Fraction(1, 2)), (200, Fraction(1, 10)), (60, Fraction(999, 1000))]
)
def test_a_count_is_never_likelier_than_its_bound_says(trials, chance):
    weights = [math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]
    for count in range(trials + 1):
        tail = weights[count:] if count > trials * chance else weights[: count + 1]
        assert float(sum(tail)) <= math.exp(-CHECKS.surprise(count, trials, float(chance))) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("count", "trials", "chance"), [(5334, 6000, 0.5), (0, 6000, 0.1), (5999, 6000, 1.0), (90, 6000, 0.001)]
)
def test_a_count_that_chance_does_not_explain_is_told(count, trials, chance):
    with pytest.raises(CHECKS.Failure, match=f"{count} of {trials} times"):
        CHECKS.assert_count(count, trials, chance, "It was so")


@pytest.mark.parametrize(
    ("count", "trials", "chance"),
    [(3200, 6000, 0.5), (1, 6000, 1e-7), (6000, 6000, 1.0), (0, 0, 0.5), (20, 6000, 0.001)],
)
def test_a_count_that_chance_may_bring_is_allowed(count, trials, chance):
    CHECKS.assert_count(count, trials, chance, "It was so")


# --- the reference of spmm, also for numbers in crow that no submission gets ------------------------------------------


@pytest.fixture(scope="module")
def spmm() -> Callable[..., torch.Tensor]:
    return beside(get("spmm").tests, "test_spmm").spmm  # type: ignore[no-any-return]


COL, VALUES, DENSE = torch.tensor([0, 2, 1]), torch.tensor([1.0, 2.0, 3.0]), torch.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("crow", [[0, 2, 3], [0, 0, 3], [0, 3, 3], [0, 1, 1, 3, 3]])
def test_it_is_the_product(spmm: Callable[..., torch.Tensor], crow: list[int]) -> None:
    starts = torch.tensor(crow, dtype=torch.int32)
    matrix = torch.zeros(len(crow) - 1, 3)
    for row in range(len(crow) - 1):
        for element in range(crow[row], crow[row + 1]):
            matrix[row, COL[element]] += VALUES[element]
    assert spmm(starts, COL, VALUES, DENSE).equal(matrix @ DENSE)


@pytest.mark.parametrize(("crow", "rows"), [([0, 5, 10**6], 2), ([0, 4, 10**9, 10**9], 3)])
def test_more_elements_than_there_are_write_nowhere(
    spmm: Callable[..., torch.Tensor], crow: list[int], rows: int
) -> None:
    result = spmm(torch.tensor(crow, dtype=torch.int32), COL, VALUES, DENSE)
    assert result.shape == (rows, 2) and result[0].equal((VALUES[:, None] * DENSE[COL]).sum(0)) and not result[1:].any()


@pytest.mark.parametrize("crow", [[0, 1, 2], [0, -5, 1]])
def test_elements_of_no_row_are_an_error(spmm: Callable[..., torch.Tensor], crow: list[int]) -> None:
    with pytest.raises((IndexError, RuntimeError)):
        spmm(torch.tensor(crow, dtype=torch.int32), COL, VALUES, DENSE)
