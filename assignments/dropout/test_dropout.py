"""Checks of dropout, which has no reference: the mask may be any, but it must have the properties of a random one."""

import math
import re
from dataclasses import replace
from functools import lru_cache

import pytest
import torch
from hypothesis import given, settings

from gradekit import (
    FLOATS,
    Cause,
    Failure,
    Input,
    assert_allocates,
    assert_close,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_speed,
    at_least,
    calls,
    domain_of,
    points,
    reference,
)

DROPOUT = domain_of(__file__)["dropout"]
PLAIN = ("contiguous",)
CHANCE = 40  # a right kernel is as far off as is allowed with probability 2 * exp(-40), about 1e-17, in each count
FEWEST = 128  # elements of a count: of fewer, chance may keep or drop all


def mask_of(result, x):
    """True where `result`, an observation or a tensor, kept an element of x."""
    found = getattr(result, "tensor", result)
    return found != 0 if found.shape == x.shape else torch.ones(x.shape, dtype=torch.bool)


def slope(x, p, seed, upstream=None):
    """How fast the result moves with p, which a kernel may get in float32: 1 - p cancels where p is near 1."""
    return (x if upstream is None else upstream) / (1 - p) ** 2


def expected(kept, x, p, seed):
    return reference(lambda x, p, seed: torch.where(kept, x / (1 - p), 0.0), x, p, seed, scale=slope, terms=1)


def expected_gradient(kept, x, p, seed, upstream):
    def right(x, p, seed, dy):
        return torch.where(kept, dy / (1 - p), 0.0)

    return reference(right, x, p, seed, upstream, scale=slope, terms=1)


def checked_mask(submission, x, p, seed):
    """The mask, of a result that is right wherever it is not 0."""
    result = submission.dropout(x, p, seed)
    kept = mask_of(result, x)
    assert_close(result, expected(kept, x, p, seed))
    return kept


def surprise(count, trials, probability):
    """The exponent c of Chernoff's bound: so far off on its side, `count` comes with probability exp(-c) or less."""
    shares = ((count, probability), (trials - count, 1 - probability))
    if any(k and not q for k, q in shares):
        return math.inf
    return sum(k * math.log(k / (trials * q)) for k, q in shares if k)


def assert_count(count, trials, probability, what):
    """Raise unless `count` of `trials` independent events of that probability may have happened.

    A grade makes up to some million counts, so that all of them together blame a right kernel with less than 1e-9.
    """
    if trials and surprise(count, trials, probability) > CHANCE:
        raise unlikely(count, trials, probability, what)


def unlikely(count, trials, probability, what):
    mean = trials * probability
    side = "more" if count > mean else "fewer"
    said = f"{what} {count} of {trials} times, where about {mean:.4g} are expected: {side} than chance explains."
    return Failure(Cause.WRONG_VALUES, said)


def padded_length(size):
    """At least twice as long, with small prime factors: with large ones a transform takes seven times as long."""
    return min(odd << ((2 * size - 1) // odd).bit_length() for odd in range(1, 16, 2))


@lru_cache(maxsize=4)  # one mask is held against itself, or against several others
def transformed(mask, p):
    return torch.fft.rfft(mask.double() - (1 - p), padded_length(len(mask)))


def assert_apart(flat, other, what, p=0.5):
    """Raise where elements of two masks, some number of places apart, go together more, or less, than chance explains.

    Each product of what two elements are above their mean has a mean of 0, whatever the earlier ones are: Freedman's
    inequality bounds the sum of those of one distance. `what` is the message, with {} where that number stands. Masks
    of fewer than 1024 elements show nothing.
    """
    size, q = len(flat), 1 - p
    if size < 1024:
        return
    product = transformed(flat, p) * transformed(other, p).conj()
    sums = torch.fft.irfft(product, padded_length(size))[1 : size - FEWEST].abs()
    squares = (other.double() - q).square().cumsum(0).flip(0)[1 : 1 + len(sums)]
    surprises = sums.square() / (2 * (p * q * squares + max(p, q) ** 2 * sums / 3))
    lag = int(surprises.argmax()) + 1
    if surprises[lag - 1] > CHANCE:
        same = int((flat[lag:] == other[:-lag]).sum())
        raise unlikely(same, size - lag, p * p + q * q, what.format(lag))


def contiguous(x):
    """x of the same shape and values, without gaps."""
    return replace(x, stride=tuple(torch.empty(x.shape, device="meta").stride()), offset=0)


def assert_same(one, other, message):
    """Raise `message` unless two masks are the same."""
    if not torch.equal(one, other):
        raise Failure(Cause.WRONG_VALUES, message)


def distances(submission):
    """How far apart two seeds may be the same, or the same moved by some places: numbers that the submission counts by,
    and what moves a product with one of its odd numbers by 1, modulo 2**32."""
    digits = re.findall(r"\b(?:0[xX][\da-fA-F_]+|\d[\d_]*)\b", submission.text)
    numbers = {int(one, 16 if "x" in one.lower() else 10) for one in digits}
    inverse = {pow(number, -1, 2**32) for number in numbers if number % 2 and number > 2**16}
    counted = sorted(number for number in numbers if 64 < number < 2**30)[-6:]
    return counted + sorted(step for one in inverse if (step := min(one, 2**32 - one)) > 64)[-6:]


def drawn(**said):
    """x, which is never 0, so that a 0 in the result is an element that was dropped; p and seed; perhaps a gradient."""
    return calls(DROPOUT, how={"at_most": 1 << 16}, **said)


SIZES = {"...": [1, 2, 5, 40], "N": [1, 2, 16, 33, 40]}
LARGE = {"dtypes": ["float32"], "sizes": {"...": [20, 60], "N": [300, 700]}, "layouts": PLAIN}
# Numbers that begin anew after 65,536 show, be they those of elements, rows or columns.
LONGER = {**LARGE, "sizes": {"...": [3, 60, 200, 70_001], "N": [3, 300, 700, 80_000]}}
FEW = {**LARGE, "sizes": {"...": [3, 16], "N": [500]}}  # of every rank
WIDE = (2, 3, 300, 8), (2, 300, 3, 8), (300, 2, 3, 8)  # where a dimension's numbers pass 256, though rows are short
SEEDS, STRIDE = 20, 0x1F3D5B79  # so many seeds, so far apart
HALF = {"p": [0.5], "seed": [0, 1, 1234, 65_536, 2**31 - 100]}


ANY_VIEW = drawn(sizes={"...": [0, 1, 5], "N": [0, 1, 12, 32]})


def large(said=LARGE, **others):
    """Matrices of thousands of elements."""
    return calls(DROPOUT, how={"ranks": [1], "at_most": 1 << 18}, others=others, **said)


@points(18, handout="each element is 0 or x / (1 - p), computed in float32")
@given(call=drawn(dtypes=["float32"], sizes=SIZES, layouts=PLAIN))
def test_scales_what_it_keeps(submission, call):
    """What is kept is divided by 1 - p; where p is 0, that is all"""
    x, p, seed = call
    kept = checked_mask(submission, x, p, seed)
    if p == 0:
        assert_same(kept, torch.ones_like(kept), "With p = 0 nothing may be dropped.")


@points(8, handout="The same seed gives the same mask for every x of that shape")
@given(call=drawn(dtypes=["float32"], sizes=SIZES, layouts=PLAIN))
def test_same_seed(submission, call):
    """The same seed gives the same mask, whatever the values"""
    x, p, seed = call
    other = replace(x, seed=x.seed + 1)
    one, another = checked_mask(submission, x, p, seed), checked_mask(submission, other, p, seed)
    assert_same(one, another, "Two tensors of one shape, with the same p and seed, lost different elements.")


@points(10, handout="The result is a new tensor of x's shape and dtype")
@pytest.mark.parametrize("dtype", FLOATS)
@given(call=drawn(dtypes=["float32"], sizes={"...": [1, 2, 5], "N": [1, 33, 64]}, layouts=PLAIN))
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and keeps the dtype"""
    x, p, seed = call
    checked_mask(submission, replace(x, dtype=dtype), p, seed)


@points(12, handout="p taken for the probability of being kept")
@given(call=large())
def test_keep_rate(submission, call):
    """Keeps a share of 1 - p, as far as chance allows"""
    x, p, seed = call
    kept = checked_mask(submission, x, p, seed)
    assert_count(int(kept.sum()), kept.numel(), 1 - p, f"With p = {p}, an element was kept")


@points(3, handout="The counter is the element's number")
@given(call=large(LONGER, **{**HALF, "p": [0.5, 0.1, 0.25, 0.75]}))
def test_no_pattern(submission, call):
    """Drops each element independently: neighbours, rows, blocks"""
    x, p, seed = call
    flat = checked_mask(submission, x, p, seed).flatten()
    if len(flat) < 1024:
        return  # so few show no pattern
    assert_apart(flat, flat, f"With p = {p}, elements {{}} apart had the same fate", p)
    for width in sorted({64, 1024, x.shape[1]}):
        tiles = flat[: len(flat) // width * width].view(-1, width)
        for kept, trials, what in (
            (tiles.sum(1), width, f"in {width} elements that follow each other"),
            (tiles.sum(0), len(tiles), f"among those that are {width} apart"),
        ):
            worst = int(kept[(kept - trials * (1 - p)).abs().argmax()])
            assert_count(worst, trials, 1 - p, f"With p = {p}, {what}, an element was kept")


@points(3, handout="The counter is the element's number")
@settings(max_examples=1)  # beside its design, which has all that it draws from
@given(call=drawn(**FEW, others={"p": [0.5], "seed": [1234]}))
def test_own_draws(submission, call):
    """Draws for each element by itself: no two share their fate under every seed"""
    x, _, seed = call
    for shape in (x.shape, *(WIDE if len(x.shape) == 4 else ())):
        assert_own_draws(submission, contiguous(replace(x, shape=shape)), seed)


def assert_own_draws(submission, x, seed):
    """Raise where more elements share their fates under all seeds than chance explains."""
    seeds = [(seed + k * STRIDE) % 2**31 for k in range(SEEDS)]
    masks = torch.stack([checked_mask(submission, x, 0.5, s).flatten() for s in seeds])
    fates = (masks * 2 ** torch.arange(SEEDS).view(-1, 1)).sum(0)
    repeated = len(fates) - len(fates.unique())
    # each element repeats one of those before it with a probability of at most this, whatever these have drawn: few are right
    chance = len(fates) / 2**SEEDS
    what = f"With p = 0.5, an element shared its fate with an earlier one under all of {SEEDS} seeds"
    assert_count(max(repeated, math.ceil(chance * len(fates))), len(fates), chance, what)


@points(8, handout="the next seed gives the same mask, moved by one")
@settings(max_examples=1)
@given(call=large(**HALF))
def test_another_seed(submission, call):
    """Another seed gives another mask, and not the same one shifted"""
    x, _, seed = call
    one = checked_mask(submission, x, 0.5, seed).flatten()
    for more in (1, 2, 16, 64, *distances(submission)):
        low = min(seed, 2**31 - 1 - more)
        first = one if low == seed else checked_mask(submission, x, 0.5, low).flatten()
        other = checked_mask(submission, x, 0.5, low + more).flatten()
        pair = f"With p = 0.5, seeds {low} and {low + more}"
        assert_count(int((first == other).sum()), len(one), 0.5, f"{pair} agreed on an element")
        assert_apart(first, other, f"{pair} agreed on elements {{}} apart")
    for bit in range(x.seed % 8, 31, 8):  # all of a seed counts, also its upper half
        other, pair = checked_mask(submission, x, 0.5, seed ^ 1 << bit).flatten(), f"{seed} and {seed ^ 1 << bit}"
        assert_count(int((one == other).sum()), len(one), 0.5, f"With p = 0.5, seeds {pair} agreed on an element")


@points(8, handout="and however it lies in memory")
@given(call=ANY_VIEW)
def test_any_shape_and_layout(submission, call):
    """Reads any view; the mask depends on the shape, not on strides"""
    x, p, seed = call[:3]
    one, another = checked_mask(submission, x, p, seed), checked_mask(submission, contiguous(x), p, seed)
    assert_same(one, another, "A view lost other elements than a contiguous tensor of its shape, with the same seed.")


@points(12, handout="The gradient of x is that of the result")
@given(call=drawn(sizes={"...": [1, 3, 8], "N": [1, 16, 20]}, layouts={"x": PLAIN}, upstream=["normal", "positive"]))
def test_gradient(submission, call):
    """The backward pass drops what the forward pass has dropped"""
    x, p, seed, upstream = call
    kept = mask_of(submission.dropout(x, p, seed), x)
    for values in (x, replace(x, profile="zeros")):  # a 0 that is kept looks like one that was dropped
        found = submission.dropout.gradient(values, p, seed, upstream=upstream)
        assert_close(found, expected_gradient(kept, values, p, seed, upstream))


@points(4, kind="memory", handout="x has up to four dimensions")
@given(call=ANY_VIEW)
def test_memory(submission, call):
    """Stays inside its tensors, writes its whole result, no races"""
    assert_memory_clean(submission.dropout(*call))


@points(4, kind="structure", handout="Neither pass allocates more than its result")
@given(
    call=drawn(
        dtypes=["float32"],
        sizes={"...": [1, 5, 30], "N": [1, 16, 30]},
        layouts=PLAIN,
        others={"p": [0.5, 0.0, 0.9], "seed": [0, 1234]},  # what is kept or drawn takes no memory
        upstream=["normal"],
    )
)
def test_no_mask_in_memory(submission, call):
    """Allocates the results of both passes, and no mask"""
    x, p, seed, upstream = call
    result = submission.dropout(x, p, seed)
    assert_allocates(result, only_the_result=True, copies_of_views=True)
    assert_inputs_unmodified(result)
    both = submission.dropout.gradient(x, p, seed, upstream=upstream)
    assert_allocates(both, only_the_result=False, at_most_bytes=2 * x.nbytes, copies_of_views=True)
    checked_mask(submission, x, p, seed)


@points(10, kind="speed", handout="tl.rand draws four numbers and throws three away")
def test_speed(submission):
    """Is as fast as torch's dropout, on a GPU"""
    x = Input("float32", (1024, 4096), (4096, 1), 0, "positive")

    def right(values, p, seed):
        """The mask of an earlier call, which the engine made; `values` are on the card."""
        return expected(mask_of(submission.dropout(x, p, seed), values).to(values.tensor().device), values, p, seed)

    timed = submission.dropout.timed(x, 0.3, 1234, against=eager, expected=right)
    assert_speed(timed, at_least(0.9, "eager", some_from=0.5))


def eager(x, p, seed):
    return torch.nn.functional.dropout(x, p)
