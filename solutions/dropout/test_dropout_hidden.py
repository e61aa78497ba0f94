"""What staff check of dropout beyond the public tests: large tensors, edges of p and of seeds, and values that spread."""

import math
from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import FLOATS, LAYOUTS, assert_close, assert_memory_clean, like, points, public_tests

public = public_tests(__file__)

EDGES = st.sampled_from([0.001, 0.999, 0.5])
EDGE_SEEDS = st.sampled_from([0, 1, 2, 16, 2**16, 2**31 - 1])
HUGE = public.inputs(rank=2, size=[(100, 200), (500, 1000)])


@points(6)
@settings(max_examples=15)
@given(x=HUGE, p=EDGES, seed=EDGE_SEEDS)
def test_edges(submission, x, p, seed):
    """Keeps the right share for p near 0 and 1, and for any seed"""
    kept = public.checked_mask(submission, x, p, seed)
    public.assert_count(int(kept.sum()), kept.numel(), 1 - p, f"With p = {p}, an element was kept")


@points(6)
@settings(max_examples=15)
@given(x=HUGE, seed=public.SEEDS, p=st.sampled_from([0.1, 0.3, 0.7]))
def test_pairs_of_seeds(submission, x, seed, p):
    """Masks of two seeds are independent, for any p"""
    one, other = (public.checked_mask(submission, x, p, s).flatten() for s in (seed, seed ^ 1))
    public.assert_count(int((one & other).sum()), len(one), (1 - p) ** 2, "Both of two seeds kept an element")


@points(6)
@settings(max_examples=15)
@given(x=public.inputs(rank=3, size=[(2, 6), (20, 40), (30, 60)]), seed=public.SEEDS)
def test_every_part_has_its_share(submission, x, seed):
    """Each row, column and plane keeps about half"""
    kept = public.checked_mask(submission, x, 0.5, seed).double()
    for dim in range(kept.dim()):
        others = [d for d in range(kept.dim()) if d != dim]
        size = math.prod(kept.shape[d] for d in others)
        worst = int((kept.sum(others) - size / 2).abs().argmax())
        count = int(kept.select(dim, worst).sum())
        public.assert_count(count, size, 0.5, f"At index {worst} of dimension {dim}, an element was kept")


@points(6)
@given(
    data=st.data(),
    x=public.inputs(dtypes=FLOATS, size=(1, 12), layouts=LAYOUTS),
    p=public.PROBABILITIES,
    seed=EDGE_SEEDS,
)
def test_gradient_of_views(submission, data, x, p, seed):
    """The gradient is right for views of x and of the result's gradient"""
    upstream = data.draw(like(x, layouts=LAYOUTS, profiles=["normal", "positive"]))
    kept = public.mask_of(submission.dropout(x, p, seed), x)
    found = submission.dropout.gradient(x, p, seed, upstream=upstream)
    assert_close(found, public.expected_gradient(kept, x, p, seed, upstream))
    assert_memory_clean(found)


@points(6)
@settings(max_examples=15)
@given(x=HUGE, seed=public.SEEDS, lag=st.integers(1, 20_000))
def test_no_pattern_at_any_distance(submission, x, seed, lag):
    """Elements any distance apart are dropped independently"""
    flat = public.checked_mask(submission, replace(x, profile="positive"), 0.5, seed).flatten()
    same = int(torch.eq(flat[lag:], flat[:-lag]).sum())
    public.assert_count(same, len(flat) - lag, 0.5, f"Elements {lag} apart had the same fate")
