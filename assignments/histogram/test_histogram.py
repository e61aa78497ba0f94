"""Checks of histogram: how often each number from 0 to bins - 1 stands in x, for any spread of the numbers."""

import torch
from hypothesis import given

from gradekit import (
    assert_allocates,
    assert_close,
    assert_growth,
    assert_inputs_unmodified,
    assert_memory_clean,
    calls,
    domain_of,
    points,
    reference,
)

HISTOGRAM = domain_of(__file__)["histogram"]
PLAIN = ("contiguous",)
AROUND_TILES = [1, 2, 31, 33, 127, 128, 129, 255, 257, 1023, 1024, 1025, 2049]
AROUND_BINS = [1, 2, 3, 31, 32, 33, 127, 128, 129, 255, 256, 257, 300]
ANY_VIEW = calls(HISTOGRAM, sizes={"N": [1, 2, 33, 129, 1000], "B": [1, 2, 33, 256]})


def histogram(x, bins):
    return torch.bincount(x.long(), minlength=bins).int()


def expected(*call):
    return reference(histogram, *call)


@points(20, handout="Load, add, store")
@given(call=calls(HISTOGRAM, layouts=PLAIN))
def test_counts(submission, call):
    """Counts every number of a contiguous vector"""
    assert_close(submission.histogram(*call), expected(*call))


@points(15, handout="the last, shorter tile is left out")
@given(call=calls(HISTOGRAM, sizes={"N": AROUND_TILES, "B": [1, 2, 17, 300]}, layouts=PLAIN))
def test_boundary_sizes(submission, call):
    """Is right for lengths around a power of two"""
    assert_close(submission.histogram(*call), expected(*call))


@points(15, handout="no power of two as a rule")
@given(call=calls(HISTOGRAM, sizes={"N": [1, 100, 1000], "B": AROUND_BINS}, layouts=PLAIN))
def test_numbers_of_bins(submission, call):
    """Is right for any number of bins, powers of two or not"""
    assert_close(submission.histogram(*call), expected(*call))


CROWDED = calls(
    HISTOGRAM, sizes={"N": [257, 5000, 20_000], "B": [1, 2, 100]}, layouts=PLAIN, values={"x": ["few", "least", "most"]}
)


@points(15, handout="Numbers may be spread, or all equal")
@given(call=CROWDED)
def test_crowded_bins(submission, call):
    """Is right where all programs meet in one bin"""
    assert_close(submission.histogram(*call), expected(*call))


@points(5, handout="lanes past the last bin need a mask")
@given(call=calls(HISTOGRAM, sizes={"N": [1, 50, 3000], "B": [4095, 4097, 10_000, 65_536]}, layouts=PLAIN))
def test_many_bins(submission, call):
    """Is right for more bins than numbers: most of them are empty"""
    assert_close(submission.histogram(*call), expected(*call))


@points(10, handout="It may be any view; use its stride")
@given(call=ANY_VIEW)
def test_any_stride_and_offset(submission, call):
    """Reads sliced and expanded vectors as they are"""
    assert_close(submission.histogram(*call), expected(*call))


@points(10, kind="memory", handout="Counters begin with 0")
@given(call=ANY_VIEW)
def test_memory(submission, call):
    """Stays inside its tensors, begins with zeros, no races"""
    assert_memory_clean(submission.histogram(*call))


@points(5, kind="memory", handout="Work memory is allowed")
@given(call=calls(HISTOGRAM, sizes={"N": [3000, 20_000], "B": [2, 300]}, layouts=PLAIN))
def test_memory_for_large_inputs(submission, call):
    """Allocates no more than 64 times the result and 4 bytes for each number"""
    x, bins = call
    assert_allocates(submission.histogram(*call), at_most_bytes=(1 + 64) * 4 * bins + 4 * x.numel)
    assert_growth(HISTOGRAM, submission.histogram, *call)


@points(5, kind="structure", handout="The input is never modified")
@given(call=ANY_VIEW)
def test_inputs_unmodified(submission, call):
    """Leaves its input as it was, and answers with a new tensor"""
    result = submission.histogram(*call)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))
