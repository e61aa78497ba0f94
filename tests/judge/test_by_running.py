"""A NaN or an infinity of a result is followed back to the operation that made it, with its line and its numbers."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit.causes import Cause
from gradekit.engine import executor
from gradekit.judge.by_running import shared_draws, special_origin
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis
from gradekit.judge.failure import Failure, sentence
from gradekit.judge.reference import reference
from gradekit.plugin.check_results import CheckEvidence, diagnosis
from gradekit.program import Program, View
from gradekit.sandbox import Tracer
from gradekit.submission import Submission
from tests.beside import beside

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
SCRATCH = beside(__file__)["scratch"]
X = torch.tensor([1.0, 2.0, 4.0, 8.0, 100.0, -3.0])


def ran(text: str, x: torch.Tensor, right: Callable[[torch.Tensor], torch.Tensor]) -> tuple[Program, Comparison]:
    """The program of a submission, and its result beside that of a function."""
    with Tracer(Submission("submission.py", text, "")) as tracer:
        program = tracer.trace("entry", [View(0, str(x.dtype).removeprefix("torch."), tuple(x.shape), x.stride())])
    result = executor.run(program, [x]).results[0]
    assert isinstance(result, torch.Tensor)
    return program, Comparison(result, reference(right, x))


def origin(text: str, x: torch.Tensor = X) -> Diagnosis | None:
    """What is said of a submission all of whose results are to be 0."""
    program, comparison = ran(text, x, torch.zeros_like)
    return special_origin(program, [x], comparison, ())


@pytest.mark.parametrize(("body", "sentence", "cause"), [
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
])
def test_the_operation_that_makes_it_is_named_with_its_numbers(body: str, sentence: str, cause: Cause) -> None:
    found = origin(HEAD + body + TAIL)
    assert found is not None and (found.sentence, found.cause) == (sentence, cause)


def test_it_is_followed_through_memory_to_the_launch_that_made_it() -> None:
    found = origin(SCRATCH)
    assert found is not None and (found.sentence, found.line) == ("The first NaN is made by `sqrt(-3)` in line 8.", 8)


def test_the_hint_is_that_of_the_operation_whatever_its_numbers_look_like() -> None:
    found = origin(HEAD + "    y = (x * 1e38 * 1e38 + 1e38 * x) * (x * 0.0)" + TAIL, torch.tensor([-1e-5, -10.0]))
    assert found is not None and found.sentence.startswith("The first NaN is made by `-inf * -0`"), found
    assert not found.hint


@pytest.mark.parametrize(("body", "x", "hint"), [
    ("    y = x * 0.0", [torch.inf, 1.0], ""),
    ("    y = x * 1e38", [100.0], ""),
    ("    y = x - x", [torch.inf], ""),  # nothing that was said of -inf
    ("    y = x - x", [-torch.inf], "where all so far is -inf"),
    ("    y = 1.0 / (x - x)", [1.0], ""),
    ("    y = tl.log(x)", [0.0], "a logarithm needs a number above 0"),
    ("    e = tl.exp(x - tl.min(x, axis=0))\n    y = e / tl.sum(e, axis=0)", [1.0, 2.0], ""),  # other lanes hold numbers
])
def test_a_hint_speaks_of_what_is_told(body: str, x: list[float], hint: str) -> None:
    found = origin(HEAD + body + TAIL, torch.tensor(x))
    assert found is not None and found.hint.startswith(hint) and bool(found.hint) is bool(hint), found


def test_of_several_results_alike_the_one_that_holds_it_is_followed() -> None:
    both = TAIL.replace("y, mask=n < N)", "x, mask=n < N)\n    tl.store(more_ptr + n, y, mask=n < N)")
    both = both.replace("(x, out,", "(x, out, more,").replace("    kernel[", "    more = torch.empty_like(x)\n    kernel[")
    text = HEAD.replace("out_ptr, N", "out_ptr, more_ptr, N") + "    y = tl.sqrt(x)" + both.replace("return out", "return out, more")
    with Tracer(Submission("submission.py", text, "")) as tracer:
        program = tracer.trace("entry", [View(0, "float32", tuple(X.shape), X.stride())])
    second = executor.run(program, [X]).results[1]
    assert isinstance(second, torch.Tensor)
    found = special_origin(program, [X], Comparison(second, reference(torch.zeros_like, X)), ())
    assert found is not None and found.sentence == "The first NaN is made by `sqrt(-3)` in line 8."


def test_an_access_in_a_function_of_the_kernel_is_told_with_the_line_that_calls_it() -> None:
    """... and one in the kernel itself with its own line alone"""
    helper = "@triton.jit\ndef taken(p, n):\n    return tl.load(p + n)\n\n\n@triton.jit\ndef kernel("
    inside = HEAD.replace("@triton.jit\ndef kernel(", helper).replace('tl.load(x_ptr + n, mask=n < N, other=-float("inf"))', "taken(x_ptr, n)")
    bare = HEAD.replace(', mask=n < N, other=-float("inf")', "")
    told = list[str]()
    for text in (inside, bare):
        with Tracer(Submission("submission.py", f"{text}    y = x{TAIL}", "")) as tracer:
            program = tracer.trace("entry", [View(0, "float32", tuple(X.shape), X.stride())])
        (finding,) = executor.run(program, [X]).findings
        told.append(sentence(finding))
    assert told[0].startswith("Line 6: loads") and told[0].endswith(" Line 6 is called from line 12.")
    assert told[1].startswith("Line 7: loads") and "called" not in told[1]


def test_bits_that_are_stored_as_integers_have_no_origin() -> None:
    as_bits = TAIL.replace(
        "out_ptr + n, y,", "(out_ptr + n).to(tl.pointer_type(tl.int32), bitcast=True), y.to(tl.int32, bitcast=True),"
    )
    assert as_bits != TAIL and origin(HEAD + "    y = tl.sqrt(x)" + as_bits) is None


def test_what_an_input_holds_and_what_is_finite_has_no_origin() -> None:
    assert origin(HEAD + "    y = x + 1.0" + TAIL) is None
    assert origin(HEAD + "    y = x + 1.0" + TAIL, torch.tensor([1.0, torch.nan])) is None


@pytest.mark.parametrize(("body", "edited", "told"), [
    ("    m = tl.maximum(x, -float('inf'))\n    y = tl.exp(x - m)", 8, "{fact}"),  # the infinity only passes line 8
    ("    m = tl.maximum(x, -float('inf'))\n    y = tl.exp(x - m)", 9, "{fact} Line 9 is wrong."),
    ("    m = tl.where(x < 50.0, x, -float('inf'))\n    y = m - tl.maximum(m, m)", 8, "{fact} Line 8 is wrong."),
    ("    m = tl.exp(x * 2.0)\n    y = m - tl.maximum(m, m)", 8, "{fact} Line 8 is wrong."),
    ("    m = tl.exp(1.0 - tl.minimum(x, -float('inf')))\n    y = m * 0.0", 8, "{fact} Line 8 is wrong."),
    ("    m = x - x\n    y = m / m", 8, "{fact} Line 8 is wrong."),
])
def test_an_edit_stands_behind_the_fact_and_not_for_what_only_hides_it(body: str, edited: int, told: str) -> None:
    x = torch.tensor([-torch.inf, 100.0]) if "inf" in body else X
    program, comparison = ran(HEAD + body + TAIL, x, torch.zeros_like)
    fact = special_origin(program, [x], comparison, ())
    call = SimpleNamespace(observation=SimpleNamespace(program=program, inputs=[x]))
    run: Any = SimpleNamespace(submission="", request=SimpleNamespace(assignment=SimpleNamespace(allow=())))
    edit, error = Diagnosis(Cause.WRONG_VALUES, f"Line {edited} is wrong.", edited), Failure(Cause.NAN, "", comparison=comparison)
    seen = diagnosis(error, CheckEvidence(call=call), run, edit)  # type: ignore[arg-type]
    assert fact is not None and seen is not None and seen.sentence == told.format(fact=fact.sentence)


DRAWS = """\
import torch, triton
import triton.language as tl

@triton.jit
def kernel(out_ptr, N, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    numbers = tl.program_id(0) * BLOCK + lanes
    drawn = tl.rand(7, numbers)
    for start in range(tl.program_id(0) * BLOCK, N, 2 * BLOCK):
        tl.store(out_ptr + start + lanes, drawn, mask=start + lanes < N)

def entry(x):
    out = torch.empty_like(x)
    kernel[(2,)](out, x.numel(), BLOCK=16)
    return out
"""
DRAW = "    drawn = tl.rand(7, numbers)\n"
IN_THE_LOOP = DRAWS.replace(DRAW, "").replace("        tl.store", f"    {DRAW}        tl.store")


@pytest.mark.parametrize(("text", "line", "sentence", "hint"), [
    (DRAWS, 7, "Line 8 draws with 32 different counters, for 200 elements: see line 7.",
     "draw inside the loop of line 9, with other counters in each step"),
    (IN_THE_LOOP.replace("numbers)", "start // BLOCK + lanes)"), 9, "Line 9 draws with 28 different counters, for 200 elements.",
     "each element needs a counter of its own, its number, say"),
    (IN_THE_LOOP.replace("numbers)", "start + lanes)"), 0, "", ""),
    (DRAWS.replace("tl.rand(7, numbers)", "lanes * 1.0"), 0, "", ""),
])  # fmt: skip
def test_too_few_counters_for_the_elements_are_told(text: str, line: int, sentence: str, hint: str) -> None:
    program, _ = ran(text, x := torch.zeros(200), torch.zeros_like)
    found = shared_draws(program, [x], ())
    assert (found and (found.line, found.sentence, found.hint)) == ((line, sentence, hint) if line else None)
