"""Claims about inputs that belong together: they agree, they have what breaks kernels, and they shrink."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import find, given, settings
from hypothesis import strategies as st

from gradekit.inputs import kinds
from gradekit.inputs.strategies import Input, tensors
from gradekit.inputs.structured import ONE_BY_ONE, Csr, csr, csr_matrices, cut, lengths

quiet = settings(database=None, deadline=None, max_examples=60, derandomize=True)
EVERY_PATTERN = st.sampled_from(sorted(kinds.PATTERNS))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")  # torch 2.11, checks or not
@quiet
@given(sparse=csr_matrices(layouts=ONE_BY_ONE))
def test_the_three_tensors_of_a_sparse_matrix_are_what_torch_takes(sparse: Csr) -> None:
    crow, col, values = (x.tensor().clone(memory_format=torch.contiguous_format) for x in sparse[:3])
    torch.sparse_csr_tensor(crow, col, values, (sparse.rows, sparse.cols), check_invariants=True)


@quiet
@given(sparse=csr_matrices(layouts=ONE_BY_ONE))
def test_a_sparse_matrix_survives_json(sparse: Csr) -> None:
    assert all(Input.from_json(json.loads(json.dumps(x.to_json()))) == x for x in sparse[:3])


def test_a_ragged_matrix_has_empty_rows_short_ones_and_full_ones() -> None:
    counts = kinds.row_starts(200, 64, "ragged", 0).diff().tolist()
    assert {0, 1, 2, 64} <= set(counts)


def test_one_long_row_is_full_and_no_other_has_more_than_one_element() -> None:
    counts = sorted(kinds.row_starts(50, 700, "one_long", 3).diff().tolist())
    assert (counts[-1], counts[-2], counts[0]) == (700, 1, 0)


@quiet
@given(pattern=EVERY_PATTERN, rows=st.integers(1, 20), cols=st.integers(1, 20))
def test_a_row_never_has_more_elements_than_columns(pattern: str, rows: int, cols: int) -> None:
    assert int(kinds.row_starts(rows, cols, pattern, 0).diff().max()) <= cols


def test_a_sparse_matrix_shrinks_to_one_element() -> None:
    smallest = find(csr_matrices(), lambda sparse: sparse.values.numel > 0, settings=settings(quiet, max_examples=400))
    assert (smallest.rows, smallest.cols, smallest.values.numel) == (1, 1, 1)


def test_one_matrix_is_the_same_each_time() -> None:
    assert csr(9, 30, "ragged", seed=4) == csr(9, 30, "ragged", seed=4)


@quiet
@given(length=lengths(7, 40, layouts=ONE_BY_ONE))
def test_lengths_lie_between_one_and_the_most(length: Input) -> None:
    assert 1 <= int(length.tensor().min()) <= int(length.tensor().max()) == 40


@quiet
@given(data=st.data())
def test_a_cut_cache_is_nan_past_each_length_and_finite_before(data: st.DataObject) -> None:
    cache = data.draw(tensors(4, size=(1, 9), layouts=["contiguous", "transposed", "sliced_rows"]))
    length = data.draw(lengths(cache.shape[0], cache.shape[2]))
    values, ends = cut(cache, length).tensor(), length.tensor()
    beyond = torch.arange(cache.shape[2])[None, None, :, None] >= ends[:, None, None, None]
    assert torch.equal(values.isnan(), beyond.expand_as(values))


def test_two_caches_that_are_cut_alike_differ_in_their_values() -> None:
    length = Input("int32", (1,), (1,), profile="lengths:4:0")
    k, v = (cut(Input("float32", (1, 1, 4, 8), (32, 32, 8, 1), seed=seed), length) for seed in (1, 2))
    assert not torch.equal(k.tensor(), v.tensor())


@pytest.mark.parametrize("profile", ["lengths", "lengths:x:0", "crow:3:4:stripes:0", "crow:3:4:full:0", "col:1"])
def test_parameters_that_do_not_fit_are_an_error(profile: str) -> None:
    with pytest.raises(ValueError, match="no values"):
        Input("int32", (7,), (1,), profile=profile).tensor()
