"""What staff check of dropout beyond the public tests: large tensors, edges of p and of seeds, and values that spread."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings

from gradekit import assert_close, assert_memory_clean, calls, points, public_tests

public = public_tests(__file__)

EDGE_SEEDS = (0, 1, 2, 16, 2**16, 2**31 - 1)
LAGS = (1, 3, 7, 32, 100, 999, 4096, 20_000)


def huge(p=(0.5,), seed=EDGE_SEEDS, rank=1, sizes=None, at_most=1 << 18):
    """Tensors of tens of thousands of elements."""
    return calls(
        public.DROPOUT,
        dtypes=["float32"],
        sizes=sizes or {"...": [100, 200], "N": [500, 1000]},
        layouts=public.PLAIN,
        others={"p": p, "seed": seed},
        how={"ranks": [rank], "at_most": at_most},
    )


RARE = {"...": [1500], "N": [4100]}  # so many elements that even of 7 in a million, 43 are expected


@points(3)
@given(call=huge(p=(0.001, 0.999, 0.5)))
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
    """Drops the right share for p of a few in a million"""
    x, _, seed = call
    dropped = ~public.mask_of(submission.dropout(x, p, seed), x)
    public.assert_count(int(dropped.sum()), dropped.numel(), p, f"With p = {p}, an element was dropped")


@points(6)
@given(call=huge(p=(0.1, 0.3, 0.7)))
def test_pairs_of_seeds(submission, call):
    """Masks of two seeds are independent, for any p"""
    x, p, seed = call
    one, other = (public.checked_mask(submission, x, p, s).flatten() for s in (seed, seed ^ 1))
    public.assert_count(int((one & other).sum()), len(one), (1 - p) ** 2, "Both of two seeds kept an element")


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
def test_no_pattern_at_any_distance(submission, call):
    """Elements any distance apart are dropped independently"""
    x, _, seed = call
    flat = public.checked_mask(submission, replace(x, profile="positive"), 0.5, seed).flatten()
    for lag in LAGS:
        same = int(torch.eq(flat[lag:], flat[:-lag]).sum())
        public.assert_count(same, len(flat) - lag, 0.5, f"Elements {lag} apart had the same fate")
