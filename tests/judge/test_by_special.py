"""A NaN or an infinity of a result is followed back to the operation that made it, with its line and its numbers."""

from dataclasses import dataclass

import pytest
import torch

from gradekit import engine
from gradekit.causes import Cause
from gradekit.judge.by_special import special_origin
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis
from gradekit.judge.reference import reference
from gradekit.program import View
from gradekit.sandbox import Tracer

HEAD = """\
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + n, mask=n < N, other=-float("inf"))
"""
TAIL = """
    tl.store(out_ptr + n, y, mask=n < N)

def entry(x):
    out = torch.empty_like(x)
    kernel[(2,)](x, out, x.numel(), BLOCK=4)
    return out
"""
IN_A_LOOP = """
    y = x
    for step in range(3):
        y = y * 1e30
    y = y - y"""
SCRATCH = """
import torch, triton
import triton.language as tl

@triton.jit
def first(x_ptr, scratch_ptr, N, BLOCK: tl.constexpr):
    n = tl.arange(0, BLOCK)
    tl.store(scratch_ptr + n, tl.sqrt(tl.load(x_ptr + n, mask=n < N)), mask=n < N)

@triton.jit
def second(scratch_ptr, out_ptr, N, BLOCK: tl.constexpr):
    n = tl.arange(0, BLOCK)
    tl.store(out_ptr + n, tl.load(scratch_ptr + n, mask=n < N) + 1.0, mask=n < N)

def entry(x):
    scratch, out = torch.empty_like(x), torch.empty_like(x)
    first[(1,)](x, scratch, x.numel(), BLOCK=8)
    second[(1,)](scratch, out, x.numel(), BLOCK=8)
    return out
"""
X = torch.tensor([1.0, 2.0, 4.0, 8.0, 100.0, -3.0])


@dataclass
class Text:
    text: str


def origin(text: str, x: torch.Tensor = X) -> Diagnosis | None:
    """What is said of a submission all of whose results are to be 0."""
    with Tracer(Text(text)) as tracer:  # type: ignore[arg-type]
        program = tracer.trace("entry", [View(0, "float32", tuple(x.shape), x.stride())])
    result = engine.run(program, [x]).results[0]
    assert isinstance(result, torch.Tensor)
    return special_origin(program, [x], Comparison(result, reference(torch.zeros_like, x)), ())


@pytest.mark.parametrize(
    ("body", "sentence", "cause"),
    [
        ("    y = tl.sqrt(x)", "The first NaN is made by `sqrt(-3)` in line 8.", Cause.NAN),
        ("    y = tl.exp(x)", "The first infinity is made by `exp(100)` in line 8.", Cause.OVERFLOW),
        ("    h = (x * 1e4).to(tl.float16)\n    y = h - h",
         "The first NaN is made by `inf - inf` in line 9. The infinity in it is made by `8e+04 in float16` in line 8.", Cause.OVERFLOW),
        ("    y = (x - x) / (x - x)", "The first NaN is made by `0 / 0` in line 8.", Cause.NAN),
        ("    e = tl.exp(x)\n    y = e / tl.sum(e, axis=0)",
         "The first NaN is made by `inf / inf` in line 9. The infinity in it is made by `exp(100)` in line 8.", Cause.OVERFLOW),
        ("    y = tl.where(x > 50.0, tl.log(-x), tl.sqrt(x) * 0.0)", "The first NaN is made by `log(-100)` in line 8.", Cause.NAN),
        (IN_A_LOOP, "The first NaN is made by `inf - inf` in line 12. The infinity in it is made by `1e+30 * 1e+30` in line 11.",
         Cause.NAN),
        ("    m = tl.full((BLOCK,), -float('inf'), tl.float32)\n    y = tl.exp(m - tl.minimum(x, m))",
         "The first NaN is made by `-inf - -inf` in line 9.", Cause.NAN),
    ],
)  # fmt: skip
def test_the_operation_that_makes_it_is_named_with_its_numbers(body: str, sentence: str, cause: Cause) -> None:
    found = origin(HEAD + body + TAIL)
    assert found is not None and (found.sentence, found.cause) == (sentence, cause)


def test_it_is_followed_through_memory_to_the_launch_that_made_it() -> None:
    found = origin(SCRATCH)
    assert found is not None and (found.sentence, found.line) == ("The first NaN is made by `sqrt(-3)` in line 8.", 8)


def test_the_hint_is_that_of_the_operation_whatever_its_numbers_look_like() -> None:
    found = origin(HEAD + "    y = (x * 1e38 * 1e38 + 1e38 * x) * (x * 0.0)" + TAIL, torch.tensor([-1e-5, -10.0]))
    assert found is not None and found.sentence.startswith("The first NaN is made by `-inf * -0`"), found
    assert found.hint.startswith("0 times an infinity is NaN")


def test_bits_that_are_stored_as_integers_have_no_origin() -> None:
    as_bits = TAIL.replace(
        "out_ptr + n, y,", "(out_ptr + n).to(tl.pointer_type(tl.int32), bitcast=True), y.to(tl.int32, bitcast=True),"
    )
    assert as_bits != TAIL and origin(HEAD + "    y = tl.sqrt(x)" + as_bits) is None


def test_what_an_input_holds_and_what_is_finite_has_no_origin() -> None:
    assert origin(HEAD + "    y = x + 1.0" + TAIL) is None
    assert origin(HEAD + "    y = x + 1.0" + TAIL, torch.tensor([1.0, torch.nan])) is None
