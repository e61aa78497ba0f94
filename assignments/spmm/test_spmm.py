"""Checks of spmm: a CSR matrix [M, K] times a dense [K, N], with empty rows and very long ones."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import (
    FLOATS,
    LAYOUTS,
    assert_bytes_moved,
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_speed,
    at_least,
    beside,
    matrices,
    normal,
    points,
    reference,
)
from gradekit.inputs.strategies import shaped, sizes
from gradekit.inputs.values import COMMON

sparse = beside(__file__, "sparse")

PLAIN = ("contiguous",)
AROUND_TILES = st.sampled_from([1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 200, 255, 257])


def spmm(crow, col, values, dense):
    """Every element's share, added to its row; sums in float32 at least."""
    wide = torch.promote_types(dense.dtype, torch.float32)
    rows = torch.arange(len(crow) - 1, device=crow.device).repeat_interleave(crow.diff(), output_size=len(col))
    shares = values.to(wide)[:, None] * dense.to(wide)[col.long()]
    out = torch.zeros((len(crow) - 1, dense.shape[1]), dtype=wide, device=dense.device)
    return out.index_add_(0, rows, shares).to(dense.dtype)


def expected(crow, col, values, dense):
    """A sum has as many terms as there are columns, at most."""
    return reference(spmm, crow, col, values, dense, scale=spmm, terms=dense.shape[0])


def size(extent):
    return sizes(*(extent if isinstance(extent, tuple) else (extent, extent)))


@st.composite
def calls(
    draw, dtypes=FLOATS, rows=(1, 60), cols=(1, 300), columns=(1, 70), patterns=tuple(sparse.PATTERNS), layouts=PLAIN,
    profiles=COMMON,
):  # fmt: skip
    """crow, col, values and dense."""
    height, width = draw(size(rows)), draw(size(cols))
    pattern, seed = draw(st.sampled_from(patterns)), draw(st.integers(0, 99))
    matrix = sparse.csr(height, width, pattern, seed=seed)
    one_by_one = [layout for layout in layouts if layout in ("contiguous", "offset", "every_second")]
    crow, col = (
        replace(
            draw(shaped(x.shape, dtypes=["int32"], layouts=one_by_one, profiles=["ones"])), profile=x.profile, seed=0
        )
        for x in matrix[:2]
    )
    values = draw(shaped(matrix[2].shape, dtypes=dtypes, layouts=layouts, profiles=profiles))
    same = {"dtypes": [values.dtype], "layouts": layouts, "profiles": [values.profile]}
    dense = draw(matrices(rows=width, cols=columns, **same))
    return crow, col, values, replace(dense, seed=dense.seed + values.seed + 1)


@points(12)
@given(call=calls(dtypes=["float32"], patterns=["even", "full"], cols=(1, 150)))
def test_contiguous_float32(submission, call):
    """Multiplies matrices whose rows are all alike, in float32"""
    assert_close(submission.spmm(*call), expected(*call))


@points(10)
@given(call=calls(patterns=["ragged", "none", "few"]))
def test_empty_rows(submission, call):
    """Gives an empty row the result 0, among rows of any length"""
    assert_close(submission.spmm(*call), expected(*call))


@points(8)
@settings(max_examples=20)
@given(call=calls(rows=(1, 30), cols=(300, 2500), columns=(1, 40), patterns=["one_long"]))
def test_one_long_row(submission, call):
    """Is right where one row has thousands of elements"""
    assert_close(submission.spmm(*call), expected(*call))


@points(8)
@given(call=AROUND_TILES.flatmap(lambda n: calls(dtypes=["float32", "float16"], columns=(n, n), rows=(1, 20), cols=n)))
def test_boundary_sizes(submission, call):
    """Is right around the size of a tile, in columns and in elements"""
    assert_close(submission.spmm(*call), expected(*call))


@points(9)
@pytest.mark.parametrize("dtype", FLOATS)
@settings(max_examples=20)
@given(call=calls(dtypes=["float32"], cols=(1, 150)))
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    crow, col, values, dense = call
    call = crow, col, replace(values, dtype=dtype), replace(dense, dtype=dtype)
    assert_close(submission.spmm(*call), expected(*call))


@points(9)
@given(call=calls(rows=(1, 30), cols=(1, 70), layouts=LAYOUTS))
def test_any_stride_and_offset(submission, call):
    """Reads all four tensors in any layout"""
    assert_close(submission.spmm(*call), expected(*call))


LONG_SUMS = calls(rows=(1, 4), cols=(1500, 2500), columns=(1, 20), patterns=["full"], profiles=["positive", "normal"])


@points(4)
@settings(max_examples=20)
@given(call=LONG_SUMS)
def test_accumulates_in_float32(submission, call):
    """Keeps the sum in float32, however long the row is"""
    assert_close(submission.spmm(*call), expected(*call))


@points(8, kind="memory")
@settings(max_examples=30)
@given(call=calls(rows=(1, 30), cols=(1, 70)))
def test_memory(submission, call):
    """Stays inside its tensors, writes each element exactly once"""
    assert_memory_clean(submission.spmm(*call))


@points(6, kind="structure")
@settings(max_examples=15)
@given(call=calls(rows=(20, 60), cols=(500, 1000), columns=(16, 70), patterns=["few"]))
def test_work_follows_the_elements(submission, call):
    """Reads what the elements need, and not the whole of dense"""
    crow, col, _, dense = call
    result = submission.spmm(*call)
    assert_close(result, expected(*call))
    gathered = col.numel * dense.nbytes // dense.shape[0]
    assert_bytes_moved(result, at_most=4 * (gathered + 16 * col.nbytes + 16 * crow.nbytes + result.tensor.nbytes))


@points(6, kind="structure")
@settings(max_examples=15)
@given(call=calls(rows=(1, 30), cols=(1, 70)))
def test_inputs_unmodified(submission, call):
    """Leaves its inputs as they were, and answers with a new tensor"""
    result = submission.spmm(*call)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))


def by_torch(crow, col, values, dense):
    """torch's own sparse product."""
    return torch.sparse_csr_tensor(crow, col, values, (len(crow) - 1, dense.shape[0])) @ dense


@points(20, kind="speed")
@pytest.mark.parametrize("columns", [64, 256])
def test_speed(submission, columns):
    """Is as fast as torch for 32768 rows of up to 32 elements, on a GPU"""
    matrix = sparse.csr(32768, 32768, "few")
    dense = normal((32768, columns), seed=1)
    timed = submission.spmm.timed(*matrix, dense, against=by_torch, expected=expected)
    assert_speed(timed, at_least(1.0, "eager", some_from=0.4))
