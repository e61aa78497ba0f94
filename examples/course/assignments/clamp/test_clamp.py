"""Checks of clamp(x, low, high)."""

import torch
from hypothesis import given

from gradekit import assert_close, assert_memory_clean, points, reference, vectors


def expected(x, low, high):
    return reference(torch.clamp, x, low, high)


@points(70)
@given(x=vectors(dtypes=["float32"], size=(0, 300)))
def test_matches_torch(submission, x):
    """Agrees with torch.clamp"""
    assert_close(submission.clamp(x, -0.5, 0.25), expected(x, -0.5, 0.25))


@points(30, kind="memory")
@given(x=vectors(dtypes=["float32"], size=(1, 300)))
def test_memory(submission, x):
    """Stays inside its tensors"""
    assert_memory_clean(submission.clamp(x, -1.0, 1.0))
