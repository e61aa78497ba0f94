"""Checks of clamp(x, low, high)."""

import torch
from hypothesis import given

from gradekit import assert_close, assert_memory_clean, calls, domain_of, points, reference

DOMAIN = domain_of(__file__)["clamp"]


def expected(x, low, high):
    return reference(torch.clamp, x, low, high)


@points(70, handout="lies between the numbers low and high")
@given(call=calls(DOMAIN))
def test_matches_torch(submission, call):
    """Agrees with torch.clamp"""
    assert_close(submission.clamp(*call), expected(*call))


@points(30, kind="memory", handout="x is a float32 vector of any length")
@given(call=calls(DOMAIN))
def test_memory(submission, call):
    """Stays inside its tensors"""
    assert_memory_clean(submission.clamp(*call))
