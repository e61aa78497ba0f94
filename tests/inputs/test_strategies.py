"""Claims about the inputs that gradekit draws: what they are, that they are the same everywhere, and how they shrink."""

import itertools
import json
import math
from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from gradekit.inputs import as_text, spec
from gradekit.inputs.classes import classes
from gradekit.inputs.covering import Rule, design
from gradekit.inputs.layouts import LAYOUTS, row_major
from gradekit.inputs.spec import FLOATS, Input, normal, overlapping
from gradekit.inputs.strategies import matrices, shaped, vectors
from gradekit.inputs.value_kinds import PROFILES
from gradekit.plugin.check_results import _makers
from gradekit.reuse import kept

DTYPES = (*FLOATS, "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
quiet = settings(database=None, deadline=None, max_examples=60, derandomize=True)
shrinking = settings(database=None, deadline=None, max_examples=400, derandomize=True)


def any_input() -> st.SearchStrategy[Input]:
    kinds = [kind for kind in PROFILES if kind != "some_nan"]
    return st.integers(0, 3).flatmap(lambda rank: shaped([(0, 20)] * rank, dtypes=DTYPES, profiles=kinds))


@quiet
@given(x=any_input())
def test_a_tensor_is_what_its_spec_says(x: Input) -> None:
    tensor = x.tensor()
    assert (str(tensor.dtype), tuple(tensor.shape)) == (f"torch.{x.dtype}", x.shape)
    assert (tensor.stride(), tensor.storage_offset()) == (x.stride, x.offset)
    assert tensor.is_contiguous() == x.is_contiguous
    assert tensor.untyped_storage().nbytes() == x.storage_size * tensor.element_size()
    assert x.nbytes == tensor.numel() * tensor.element_size()


@quiet
@given(x=any_input())
def test_a_spec_survives_json(x: Input) -> None:
    assert Input.from_json(json.loads(json.dumps(x.to_json()))) == x


@quiet
@given(x=any_input())
def test_a_spec_becomes_a_view_of_a_program(x: Input) -> None:
    view = x.view(7)
    assert (view.storage, view.dtype, view.shape, view.stride, view.offset) == (7, x.dtype, x.shape, x.stride, x.offset)


@quiet
@given(x=any_input())
def test_what_lies_beside_a_view_is_poison(x: Input) -> None:
    storage = x.tensor().as_strided((x.storage_size,), (1,), 0).clone()
    poison = math.nan if storage.is_floating_point() else True if x.dtype == "bool" else torch.iinfo(storage.dtype).max
    storage.as_strided(x.shape, x.stride, x.offset).fill_(0) if 0 not in x.stride else None
    inside = torch.zeros(x.storage_size, dtype=torch.bool)
    for index in torch.cartesian_prod(*map(torch.arange, x.shape)).reshape(-1, len(x.shape)) if x.shape else [[]]:
        inside[x.offset + sum(int(i) * s for i, s in zip(index, x.stride, strict=True))] = True
    outside = storage[~inside]
    assert bool(outside.isnan().all()) if x.dtype in (*FLOATS, "float64") else bool((outside == poison).all())
    assert not bool(x.tensor().isnan().any())


def test_values_are_the_same_on_every_machine() -> None:
    x = Input("float32", (2, 3), (3, 1), seed=5)
    assert x.tensor().flatten().tolist() == Input("float32", (2, 3), (6, 2), 4, seed=5).tensor().flatten().tolist()
    assert [round(v, 4) for v in x.tensor().flatten().tolist()] == [-1.5178, 0.7681, 0.5638, 1.1343, 0.9495, 0.2016]


@pytest.mark.parametrize("dtype", FLOATS)
def test_profiles_hold_what_they_promise(dtype: str) -> None:
    made = {p: Input(dtype, (50, 40), (40, 1), profile=p, seed=1).tensor().double() for p in PROFILES}
    info = torch.finfo(getattr(torch, dtype))
    assert bool((made["ones"] == 1).all())
    assert made["integers"].unique().tolist() == [float(i) for i in range(-8, 9)]
    assert made["normal"].mean().abs() < 0.1 and 0.9 < made["normal"].std() < 1.1
    assert made["positive"].min() > 0 and made["below_zero"].max() < 0
    assert 0 < made["faint"].abs().max() < 2**-16
    thirds = made["trend"].split(17)
    assert thirds[0].mean() > 0.5 and thirds[1].mean().abs() < 0.2 and thirds[2].mean() < -0.5
    assert made["large"].abs().max() == info.max and made["large"].abs().min() >= info.max * 0.49
    assert 0 < made["tiny"].abs().min() and made["tiny"].abs().max() <= 4 * info.tiny
    assert made["mixed"].abs().max() / made["mixed"].abs().median() > 100
    gone = made["neg_inf"] == -math.inf
    assert 0.15 < gone.double().mean() < 0.35 and not bool(gone.all(1).any())
    assert bool((made["neg_inf"][1::2][~gone[1::2]] == info.min).all())
    late = made["neg_inf_first"] == -math.inf
    assert (
        bool((late[:, :-1] >= late[:, 1:]).all()) and 0.3 < late.double().mean() < 0.7 and not bool(late[:, -1].any())
    )
    assert bool(late[0, :-1].all())
    assert (made["neg_inf_runs"].isfinite().sum(1) == 8).all()
    assert len(made["exponents"].frexp().exponent.unique()) > 12 and made["exponents"].abs().max() < info.max / 4
    assert made["negative"].max() <= -info.max * 0.49
    assert ((made["spike"] == 1024).sum(1) == 1).all() and made["spike"][0, 0] == 1024
    peaks = Input(dtype, (50, 40), (40, 1), profile="peaks:0;7").tensor()
    assert (peaks[:, [0, 7]] > 4000).all() and peaks[:, 8:].abs().max() < 8
    assert (made["alternating"][:, ::2] > 0).all() and (made["alternating"][:, 1::2] < 0).all()
    assert made["ties"].unique().tolist() == [-1, 1]
    assert (made["zeros"] == 0).all() and 0 < made["zeros"].signbit().double().mean() < 1
    assert 0 < made["subnormal"].abs().max() < info.smallest_normal
    assert 0.05 < made["some_nan"].isnan().double().mean() < 0.25
    finite = [v for p, v in made.items() if not p.startswith("neg_inf") and p != "some_nan"]
    assert all(bool(v.isfinite().all()) for v in finite)


def test_grid_is_exact_in_tf32_and_not_in_bfloat16() -> None:
    grid = Input("float32", (1000,), (1,), profile="grid").tensor()
    assert bool(((grid.view(torch.int32) & 0x1FFF) == 0).all())
    assert bool((grid.to(torch.bfloat16).float() != grid).any())
    assert bool((grid.to(torch.float16).float() == grid).all())


@pytest.mark.parametrize("behind", [79, 81, 85, 88, 200])
def test_a_sum_of_risen_values_overflows_wherever_its_maximum_stays_behind(behind: int) -> None:
    (row,) = Input("float32", (1, 50_257), (50_257, 1), profile="risen").tensor()
    base, total = row[0], torch.zeros(())
    for tile in row.split(1024):
        top = torch.maximum(base, tile.max())
        base, total = (top, total * (base - top).exp()) if top - base > behind else (base, total)
        total = total + (tile - base).exp().sum()
        if total.isinf():
            break
    assert total.isinf() and row.logsumexp(0).isfinite()


@pytest.mark.parametrize("shape", [(), (1,), (7, 1)])
def test_neg_inf_leaves_a_row_of_one_element_finite(shape: tuple[int, ...]) -> None:
    for seed in range(20):
        assert bool(Input("float32", shape, row_major(shape), profile="neg_inf", seed=seed).tensor().isfinite().all())


def test_a_spec_reads_as_a_sentence_with_defaults_left_out() -> None:
    assert repr(Input("float32", (1, 33), (33, 1))) == "float32 [1, 33]"
    strided = Input("float32", (1, 33), (66, 2), 3, "ones", 7)
    assert repr(strided) == "float32 [1, 33], strides (66, 2), offset 3, values ones, seed 7"


def test_the_name_is_no_part_of_what_an_input_is() -> None:
    x = Input("float32", (2,), (1,))
    assert x.named("x") == x and hash(x.named("x")) == hash(x) and x.named("x").name == "x"


@pytest.mark.parametrize("data", [
    None,
    [],
    {},
    {"dtype": "float32"},
    {"dtype": "float32", "shape": "ab"},
    {"dtype": "float32", "shape": [2.5]},
    {"dtype": "float31", "shape": [2]},
    {"dtype": "float32", "shape": [2], "stride": [1, 1]},
    {"dtype": "float32", "shape": [-2]},
    {"dtype": "float32", "shape": [2], "stride": [-1]},
    {"dtype": "float32", "shape": [2], "profile": "odd"},
    {"dtype": "float32", "shape": [2], "surprise": 1},
])
def test_data_that_is_no_input_is_refused(data: object) -> None:
    with pytest.raises(ValueError):
        Input.from_json(data)


def test_a_stride_may_be_left_out_of_json() -> None:
    assert Input.from_json({"dtype": "float32", "shape": [2, 3]}) == Input("float32", (2, 3), (3, 1))


# --- what is drawn ---------------------------------------------------------------------------------------------------


def drawn(strategy: st.SearchStrategy, count: int = 400) -> list:
    seen: list = []

    @settings(database=None, deadline=None, max_examples=count, derandomize=True, phases=[Phase.generate])
    @given(strategy)
    def collect(value: object) -> None:
        seen.append(value)

    collect()
    return seen


def test_sizes_stay_inside_and_favour_the_neighbourhood_of_powers_of_two() -> None:
    seen = [x.shape[0] for x in drawn(vectors(size=(1, 1000)))]
    assert min(seen) == 1 and max(seen) <= 1000
    assert {1, 2, 3, 127, 128, 129, 255, 256, 257} <= set(seen)
    special = {size for one in classes(1, 1000) for size in one.members}
    assert 0.6 < sum(n in special for n in seen) / len(seen) < 0.95


def test_sizes_may_begin_at_zero_and_be_one_number() -> None:
    assert {x.shape for x in drawn(vectors(size=(0, 2)), 60)} == {(0,), (1,), (2,)}
    assert {x.shape for x in drawn(vectors(size=33), 5)} == {(33,)}


def test_all_layouts_dtypes_and_profiles_come_up() -> None:
    halves = tuple(PROFILES)[::2], tuple(PROFILES)[1::2]  # of all at once, Hypothesis may leave one out for long
    seen = [x for half in halves for x in drawn(matrices(profiles=half))]
    assert {x.dtype for x in seen} == set(FLOATS) and {x.profile for x in seen} == set(PROFILES)
    plain = sum(x.is_contiguous and not x.offset for x in seen)
    assert 0.2 < plain / len(seen) < 0.6
    assert any(0 in x.stride for x in seen) and any(x.offset % 4 for x in seen)
    assert any(x.stride[1] == 2 for x in seen) and any(x.stride[0] == 1 < x.stride[1] for x in seen)


def test_no_matrix_is_larger_than_allowed() -> None:
    assert all(x.numel <= 5000 for x in drawn(matrices(rows=(1, 4000), cols=(1, 4000), max_numel=5000), 100))


@quiet
@given(x=vectors(size=(0, 9), layouts=["contiguous"], profiles=["ones"]), b=shaped((3, 2), dtypes=["int32"]))
def test_arguments_narrow_what_is_drawn(x: Input, b: Input) -> None:
    assert len(x.shape) == 1 and x.is_contiguous and x.offset == 0 and x.profile == "ones"
    assert b.shape == (3, 2) and b.dtype == "int32"


def test_a_misspelt_word_is_answered_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="no layout 'transpose' .did you mean transposed"):
        drawn(matrices(layouts=["transpose"]), 1)
    with pytest.raises(ValueError, match="no kind of values 'norm' .did you mean normal"):
        drawn(matrices(profiles=["norm"]), 1)
    with pytest.raises(ValueError, match="no sizes from 5 to 2"):
        vectors(size=(5, 2))


# --- how it shrinks --------------------------------------------------------------------------------------------------


def smallest(strategy: st.SearchStrategy, wrong) -> Input:
    return find(strategy, wrong, settings=shrinking)


def test_anything_shrinks_to_one_contiguous_float32_one() -> None:
    assert repr(smallest(matrices(), lambda x: True)) == "float32 [1, 1], values ones"


def test_a_missing_mask_shrinks_to_the_smallest_row_that_is_no_power_of_two() -> None:
    x = smallest(matrices(), lambda x: x.shape[1] & (x.shape[1] - 1) != 0)
    assert repr(x) == "float32 [1, 3], values ones"


def test_a_row_too_long_shrinks_to_the_first_that_is() -> None:
    assert smallest(matrices(), lambda x: x.shape[1] > 1000).shape == (1, 1001)


@pytest.mark.parametrize(("wrong", "shown"), [
    (lambda x: x.shape[0] > 1 and x.stride[0] != x.shape[1], "float32 [2, 1], strides (2, 1), values ones"),
    (lambda x: x.stride[0] == 0 and x.shape[0] > 1, "float32 [2, 1], strides (0, 1), values ones"),
    (lambda x: x.offset % 4, "float32 [1, 1], offset 1, values ones"),
    (lambda x: x.dtype == "bfloat16", "bfloat16 [1, 1], values ones"),
    (lambda x: x.tensor().unique().numel() > 2, "float32 [1, 3], values integers"),
])
def test_other_bugs_shrink_to_the_one_thing_that_matters(wrong, shown: str) -> None:
    assert repr(smallest(matrices(), wrong)) == shown


def test_an_ignored_last_stride_shrinks_to_a_small_tensor_that_has_one() -> None:
    """To which one depends on Hypothesis's release"""
    x = smallest(matrices(), lambda x: x.stride[1] != 1 and x.shape[1] > 1)
    assert repr(x) in (
        "float32 [1, 2], strides (4, 2), values ones", "float32 [2, 2], strides (1, 2), values ones",
        "float32 [1, 2], strides (1, 2), values ones",
    )  # fmt: skip


def test_layouts_are_distinct_ways_to_lie_in_memory() -> None:
    placed = Counter(
        (x.stride, x.offset) for x in drawn(shaped((3, 4), layouts=LAYOUTS, profiles=["ones"], dtypes=["float32"]))
    )
    assert len(placed) >= 12


def test_a_small_tensor_is_made_once_for_everybody_who_asks() -> None:
    assert normal((100,)).tensor() is normal((100,)).tensor()


def test_a_large_tensor_is_not_kept_among_small_ones() -> None:
    large = normal((spec.SMALL // 4 + 1,))
    assert large.tensor().numel() == large.numel and spec._tensors.get(large) is None


def test_of_large_tensors_so_many_bytes_are_kept_for_the_call_that_is_made() -> None:
    with kept():
        inputs = [normal((spec.REMEMBERED // 16 + n,)) for n in range(6)]  # each takes a little more than a quarter
        made = [one.tensor() for one in inputs]
        assert all(spec._large.get(one) is held for one, held in zip(inputs, [None] * 3 + made[3:], strict=True))
        assert inputs[-1].tensor() is made[-1]


# --- As lines of torch ------------------------------------------------------------------------------------------------


EXACT = {
    "contiguous": normal((2, 3)), "half": Input("float16", (5,), (1,), seed=3),
    "bfloat16": Input("bfloat16", (5,), (1,), seed=3), "integers": Input("int32", (4,), (1,), profile="integers"),
    "booleans": Input("bool", (4,), (1,), profile="integers"), "transposed": Input("float32", (3, 2), (1, 3), seed=1),
    "sliced, with an offset": Input("float32", (2, 3), (8, 2), 5), "expanded": Input("float32", (4, 3), (0, 1)),
    "one number": Input("float32", (), ()), "infinities": Input("float32", (2, 3), (3, 1), profile="neg_inf_first"),
    "none": Input("float32", (0, 3), (3, 1)), "many": Input("float32", (30, 30), (30, 1), profile="spike"),
    "many, strided": Input("float16", (30, 20), (50, 2), 3),
}


def test_tensors_of_one_storage_are_made_as_views_of_one() -> None:
    x, y = overlapping(Input("float32", (3, 5), (10, 2), profile="spike"), 1)
    lines = "\n".join(_makers(["x", "y", "z", "n"], [x, y, y, 3])).replace('"cuda"', '"cpu"')
    names: dict[str, Any] = {"torch": torch, "Input": Input}
    exec(lines, names)  # noqa: S102
    assert torch.equal(names["x"], x.tensor()) and torch.equal(names["y"], y.tensor())
    assert names["y"].untyped_storage().data_ptr() == names["x"].untyped_storage().data_ptr()
    assert names["y"].storage_offset() - names["x"].storage_offset() == 1 and names["n"] == 3


def test_one_tensor_given_twice_is_made_once() -> None:
    x = normal((3,))
    assert [*_makers(["x", "y"], [x, x])][1:] == ["y = x"]
    assert [*_makers(["x", "y"], [x, normal((3,))])][1:] != ["y = x"]


def made(spec: Input) -> torch.Tensor:
    found = eval(as_text.expression(spec, '"cpu"'), {"torch": torch, "Input": Input})
    assert isinstance(found, torch.Tensor)
    return found


@pytest.mark.parametrize("spec", EXACT.values(), ids=EXACT)
def test_few_numbers_are_written_out(spec: Input) -> None:
    """... to the last bit, with the strides and the offset of the spec"""
    tensor = made(spec)
    assert torch.equal(tensor, spec.tensor()) and tensor.dtype == spec.tensor().dtype
    assert (tensor.stride(), tensor.storage_offset()) == (spec.stride, spec.offset) or spec.is_contiguous


@pytest.mark.parametrize(("dtype", "between"), [("float16", "nan"), ("int32", "2147483647"), ("bool", "True")])
def test_what_lies_between_elements_is_seen_where_it_is_read(dtype: str, between: str) -> None:
    tensor = made(Input(dtype, (3,), (2,), profile="ones"))
    assert str(tensor.as_strided((1,), (1,), 1).item()) == between


def test_numbers_have_no_more_digits_than_they_need() -> None:
    assert as_text.written(torch.tensor([0.1, 1.0, float("-inf"), 1 / 3])) == '[0.1, 1.0, float("-inf"), 0.33333334]'
    assert as_text.written(torch.tensor(0.1, dtype=torch.bfloat16)) == "0.1"


def test_many_are_not_listed() -> None:
    assert as_text.few(torch.arange(3), 3) == ["0", "1", "2"]
    assert as_text.few(torch.arange(4), 3) is None


# --- Covering designs -------------------------------------------------------------------------------------------------


FACTORS = {"dtype": ["f32", "f16", "bf16"], "size ...": [1, 2, 3, 4], "layout": list("abcde"), "only": ["x"]}
RULE = Rule(("layout", "size ..."), lambda row: row["layout"] != "b" or row["size ..."] != 2)


@pytest.mark.parametrize("strength", [1, 2, 3])
def test_every_combination_that_is_allowed_is_there_and_no_other(strength: int) -> None:
    rows = design(FACTORS, strength, [RULE])
    for names in itertools.combinations(FACTORS, strength):
        every = itertools.product(*(FACTORS[name] for name in names))
        allowed = {c for c in every if not {("layout", "b"), ("size ...", 2)} <= set(zip(names, c, strict=True))}
        assert {tuple(row[name] for name in names) for row in rows} == allowed


def test_a_design_of_pairs_has_few_more_rows_than_its_two_largest_factors_need() -> None:
    factors = {name: list(range(levels)) for name, levels in {"a": 7, "b": 7, "c": 4, "d": 6, "e": 3}.items()}
    assert 49 <= len(design(factors)) <= 60


def test_a_design_of_which_much_is_forbidden_has_no_row_too_many() -> None:
    sizes = {"B": [1, 2], "H": [1], "G": [1], "S": [1000, 2048, 4000], "D": [16, 64]}
    factors = {"dtype": list("abc"), **sizes, "scale": [0, 1], "layout": [0], "values": list("abc")}
    fits = Rule(tuple(sizes), lambda row: math.prod(int(str(row[name])) for name in sizes) <= 1 << 18)
    assert len(design(factors, 2, [fits])) <= 12


def test_levels_come_evenly() -> None:
    seen = Counter(row["dtype"] for row in design(FACTORS))
    assert max(seen.values()) - min(seen.values()) <= 2


def test_a_design_is_the_same_each_time() -> None:
    assert design(FACTORS) == design(dict(FACTORS))


@pytest.mark.parametrize(("holds", "rows"), [(True, [{"a": 1, "b": 2}]), (False, [])])
def test_factors_with_one_level_are_one_row_or_none(holds: bool, rows: list[dict[str, int]]) -> None:
    assert design({"a": [1], "b": [2]}, 2, [Rule(("a", "b"), lambda row: holds)]) == rows
