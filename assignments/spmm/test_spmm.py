"""Checks of spmm: a CSR matrix [M, K] times a dense [K, N], with empty rows and very long ones."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings

from gradekit import (
    FLOATS,
    assert_bytes_moved,
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_speed,
    at_least,
    beside,
    calls,
    domain_of,
    normal,
    points,
    reference,
)

sparse = beside(__file__, "sparse")
SPMM = domain_of(__file__)["spmm"]
PLAIN = ("contiguous",)
VIEWS = ("contiguous", "offset", "transposed", "sliced_columns", "every_second", "expanded")
AROUND_TILES = [1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 200, 255, 257]
BESIDE_SPECIAL = {
    "special": [("integers", "special"), ("zeros", "special"), ("special", "normal")],
    "zero_runs": [("zero_runs", "special")],
}
ALL_PATTERNS = tuple(name for name in sparse.PATTERNS if name != "stairs")


def spmm(crow, col, values, dense):
    """Every element's share, added to its row; sums in float32 at least."""
    wide = torch.promote_types(dense.dtype, torch.float32)
    # Not by repeat_interleave: a diagnosis asks what would come of other numbers in crow, and that writes past its end then.
    rows = torch.searchsorted(crow[1:].contiguous(), torch.arange(len(col), device=col.device), right=True)
    shares = values.to(wide)[:, None] * dense.to(wide)[col.long()]
    out = torch.zeros((len(crow) - 1, dense.shape[1]), dtype=wide, device=dense.device)
    return out.index_add_(0, rows, shares).to(dense.dtype)


def expected(crow, col, values, dense):
    """A sum has as many terms as there are columns, at most."""
    return reference(spmm, crow, col, values, dense, scale=spmm, terms=dense.shape[0])


def elements(names):
    """How many elements the matrix has."""
    return int(sparse.row_starts(names["M"], names["K"], names["pattern"], names["seed"])[-1])


def drawn(patterns=ALL_PATTERNS, sizes=None, kinds=("normal",), layouts=PLAIN, **said):
    """crow, col, values and dense."""
    sized = {"M": [1, 2, 30], "K": [1, 16, 70], "N": [1, 16, 33, 70], **(sizes or {})}
    alike = {"values dense": [pair for kind in kinds for pair in BESIDE_SPECIAL.get(kind, [(kind, kind)])]}
    how = {"derive": {"nnz": elements}, "at_most": 1 << 19}
    return calls(SPMM, sizes=sized, layouts=layouts, values=alike, others={"pattern": patterns}, how=how, **said)


ANY_VIEW = drawn(layouts=VIEWS)


@points(12, handout="It returns a new [M, N] tensor: the product")
@given(
    call=drawn(
        ["even", "full"],
        {"M": (1, 60), "K": (1, 150)},
        ("ones", "integers", "grid", "normal", "positive"),
        dtypes=["float32"],
    )
)
def test_contiguous_float32(submission, call):
    """Multiplies matrices whose rows are all alike, in float32"""
    assert_close(submission.spmm(*call), expected(*call))


@points(10, handout="A row may have no element: its result is 0")
@given(
    call=drawn(
        ["ragged", "none", "few"],
        {"M": [1, 2, 17, 60], "K": [1, 2, 16, 33, 300], "N": [1, 16, 33, 70, 600]},
        ("normal", "special"),
        {**dict.fromkeys(("crow", "col", "dense"), PLAIN), "values": ("contiguous", "expanded")},
    )
)
def test_empty_rows(submission, call):
    """Gives an empty row the result 0, among rows of any length"""
    assert_close(submission.spmm(*call), expected(*call))


@points(8, handout="Rows may be as long as K: loop")
@settings(max_examples=4)
@given(call=drawn(["one_long", "stairs", "alone"], {"M": [1, 2, 30, 1300], "K": [300, 1024, 2500], "N": [1, 16, 40]}))
def test_one_long_row(submission, call):
    """Is right for one row of thousands, and for rows of any length"""
    assert_close(submission.spmm(*call), expected(*call))


@points(8, handout="The lanes past the row's end then gather row 0 of dense")
@given(
    call=drawn(
        ["full"],
        {"M": [1, 6], "K": AROUND_TILES, "N": [1, 64, 129, 600]},
        ("normal", "zero_runs"),
        dtypes=["float32", "float16"],
    )
)
def test_boundary_sizes(submission, call):
    """Is right around the size of a tile, in columns and in elements"""
    assert_close(submission.spmm(*call), expected(*call))


@points(9, handout="the result is rounded to the inputs' dtype, once")
@pytest.mark.parametrize("dtype", FLOATS)
@given(call=drawn(sizes={"K": [1, 64, 150]}, kinds=("normal", "positive", "mixed"), dtypes=["float32"]))
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    crow, col, values, dense = call
    call = crow, col, replace(values, dtype=dtype), replace(dense, dtype=dtype)
    assert_close(submission.spmm(*call), expected(*call))


@points(9, handout="All four may be any view")
@given(call=ANY_VIEW)
def test_any_stride_and_offset(submission, call):
    """Reads all four tensors in any layout"""
    assert_close(submission.spmm(*call), expected(*call))


@points(4, handout="2048 + 1 is 2048 there")
@settings(max_examples=4)
@given(call=drawn(["full"], {"M": [1, 4], "K": [1500, 2048, 2500], "N": [1, 20]}, ("positive", "normal")))
def test_accumulates_in_float32(submission, call):
    """Keeps the sum in float32, however long the row is"""
    assert_close(submission.spmm(*call), expected(*call))


@points(8, kind="memory", handout="the store must happen for every row")
@given(call=ANY_VIEW)
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, no races"""
    assert_memory_clean(submission.spmm(*call))


@points(6, kind="structure", handout="Begin with one program for each row")
@settings(max_examples=4)
@given(call=drawn(["few"], {"M": [20, 60], "K": [500, 1000], "N": [16, 70]}))
def test_work_follows_the_elements(submission, call):
    """Reads what the elements need, and not the whole of dense"""
    crow, col, _, dense = call
    result = submission.spmm(*call)
    assert_close(result, expected(*call))
    gathered = col.numel * dense.nbytes // dense.shape[0]
    read = 4 * (gathered + 16 * col.nbytes + 16 * crow.nbytes + result.tensor.nbytes)
    copied = dense.nbytes + 4 * dense.numel  # once, in float32
    assert_bytes_moved(result, at_most=read + copied)


@points(6, kind="structure", handout="Inputs are never modified")
@given(call=ANY_VIEW)
def test_inputs_unmodified(submission, call):
    """Leaves its inputs as they were, and answers with a new tensor"""
    result = submission.spmm(*call)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))


def by_torch(crow, col, values, dense):
    """torch's own sparse product."""
    return torch.sparse_csr_tensor(crow, col, values, (len(crow) - 1, dense.shape[0])) @ dense


@points(20, kind="speed", handout="Let many be under way")
@pytest.mark.parametrize("columns", [64, 256])
def test_speed(submission, columns):
    """Is as fast as torch for 32768 rows of up to 32 elements, on a GPU"""
    matrix = sparse.csr(32768, 32768, "few")
    dense = normal((32768, columns), seed=1)
    timed = submission.spmm.timed(*matrix, dense, against=by_torch, expected=expected)
    assert_speed(timed, at_least(1.0, "eager", some_from=0.4))
