"""What a kernel decides by a constant that is a size is tried each way, though its TTIR has one way alone."""

import ast
from pathlib import Path

import pytest

from gradekit.findings import Check, Outcome
from gradekit.unseen.search import constant_ways
from tests.graded import graded
from tests.unseen.submissions import vector_add


def checked(folder: Path, kernel: str) -> Check:
    """A check of vector_add whose kernel is given its length as a constant."""
    text = vector_add(kernel=kernel).replace("n, BLOCK: tl.constexpr", "n, N: tl.constexpr, BLOCK: tl.constexpr")
    (check,) = graded("vector_add", text.replace("out, n, BLOCK=256", "out, n, N=n, BLOCK=256"), folder, keyword="contiguous_float32", shrink=False, diagnose=False).checks
    return check


@pytest.mark.parametrize("test", ["N % 251 == 250", "N > 6007"])
def test_a_size_that_the_compiler_decides_by_is_found(test: str, tmp_path: Path) -> None:
    check = checked(tmp_path, f"if {test}:\n    o = o + 1.0")
    assert check.outcome is Outcome.FAILED and check.counterexample is not None
    assert f"`{test}` is True" in check.counterexample["origin"]


def test_a_way_that_no_size_goes_is_named(tmp_path: Path) -> None:
    check = checked(tmp_path, "if N > 1073741824:\n    o = o + 1.0")
    named = [one["what"] for one in check.details["coverage"]["branches"]["unseen"]]
    assert check.outcome is Outcome.PASSED and "`N > 1073741824` is never True" in named


def test_what_is_no_comparison_of_constants_alone_is_none() -> None:
    text = "@triton.jit\ndef k(x, n, N: tl.constexpr):\n    if N > n or N in (3, 4) or N ** 99999999 == 7 or N == 7:\n        pass\n"
    assert {one.text for one in constant_ways(ast.parse(text))} == {"N == 7"}


WRAPPED = "x = tl.load(x_ptr + (tl.program_id(0) {}) * BLOCK + tl.arange(0, BLOCK), mask=m, other=0)\no = x + y"


@pytest.mark.sample(1)
@pytest.mark.parametrize("wrapped", ["% 1500", "& 2047"])
def test_an_index_that_is_taken_modulo_a_number_reaches_it(wrapped: str, tmp_path: Path) -> None:
    (check,) = graded("vector_add", vector_add(kernel=WRAPPED.format(wrapped)), tmp_path, keyword="contiguous_float32", shrink=False, diagnose=False).checks
    assert check.outcome is Outcome.FAILED and check.counterexample is not None
    assert check.counterexample["origin"].startswith("N is ")
