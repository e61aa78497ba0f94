"""Whole reports of odd submissions: right by luck, proved in part, and checks that differ in sizes alone."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gradekit.assignment import Assignment, get
from gradekit.findings import Cause, Outcome
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.plugin.further_run import kind_of
from tests.beside import beside
from tests.graded import grade, graded
from tests.plugin.samples import KERNEL, RIGHT, TESTS, UNMASKED

MEMORY_FIRST = beside(__file__)["memory_first"]

OVERLAPPING = (
    KERNEL.replace("* BLOCK +", "* (BLOCK - 4) +")
    .replace("triton.cdiv(x.numel(), 64)", "triton.cdiv(x.numel(), 60)")
    .replace("mask=i < n)", "mask=(i < n) & (tl.arange(0, BLOCK) < BLOCK - 4), other=0)")
    .replace("FACTOR", "2")
    .replace("MASK", "i < n")
)
"""Each program also stores zeros to the next one's first elements, which the next one overwrites."""


def test_rows_that_run_into_each_other_are_right_by_luck(
    assignment: Callable[..., Assignment], submitted: Callable[[str], Path]
) -> None:
    doubles, _ = grade(assignment(TESTS), submitted(OVERLAPPING), profile="quick", device="cpu").checks
    assert (doubles.outcome, doubles.cause) == (Outcome.FAILED, Cause.WRITE_CONFLICT)
    assert "is right here by luck" in doubles.message


def test_the_memory_check_answers_for_the_calls_of_other_checks(
    assignment: Callable[..., Assignment], submitted: Callable[[str], Path]
) -> None:
    made = assignment(MEMORY_FIRST)
    memory, doubles = grade(made, submitted(UNMASKED), profile="quick", device="cpu").checks
    assert (memory.id, doubles.outcome) == ("test_memory", Outcome.PASSED)
    assert (memory.outcome, memory.earned) == (Outcome.FAILED, 0)
    assert "The calls of another check show it" in memory.message
    assert all(check.outcome is Outcome.PASSED for check in grade(made, submitted(RIGHT), profile="quick").checks)


# --- what a check shows of proofs is what it claims -------------------------------------------------------------------


def test_only_a_check_that_claims_clean_memory_shows_what_is_proved_of_memory() -> None:
    assignment = get("cross_entropy")
    path = Path(__file__).parents[1] / "course/right/cross_entropy/narrow_and_wide.py"
    report = grade(assignment, path, device="cpu", keyword="memory or second")
    assert [(check.id, "proofs" in check.details, check.outcome) for check in report.checks] == [
        ("test_memory", True, Outcome.PASSED),
        ("test_no_second_matrix", False, Outcome.PASSED),
    ]


@pytest.mark.parametrize(("path", "programs", "for_each"), [
    ("histogram/right_atomics.py", "triton.cdiv(N, 128)", "N"),
    pytest.param("dropout/solution.py", "triton.cdiv(numel, BLOCK)", "numel", marks=pytest.mark.slow),
    ("vector_add/solution.py", "triton.cdiv(out.numel(), BLOCK)", "out.numel()"),
])
def test_what_is_refuted_for_a_size_shows_a_call_of_that_size_or_none(
    path: str, programs: str, for_each: str, tmp_path: Path
) -> None:
    """A program for each number, where each takes a tile: the places of the last ones pass 2**31."""
    text = (Path(__file__).parents[2] / "solutions" / path).read_text().replace(".to(tl.int64)", "")
    text = re.sub(r"BLOCK = \d+", "BLOCK = 128", text)  # to be run in a hurry
    assert programs in text
    options = {"keyword": "test_memory", "shrink": False, "diagnose": False, "device": "cpu"}
    check = graded(path.split("/")[0], text.replace(programs, for_each), tmp_path, **options).checks[0]
    size = re.match(r"For N = ([\d,]+)", check.message)
    assert check.outcome is Outcome.FAILED and size, check.message
    shown = check.counterexample["inputs"] if check.counterexample else []
    assert {tuple(one["shape"]) for one in shown if "shape" in one} <= {(int(size[1].replace(",", "")),)}


# --- Costs of further calls -------------------------------------------------------------------------------------------


SOFTMAX = domain_of(get("softmax").tests)["softmax"]


def test_checks_whose_calls_differ_in_sizes_alone_are_of_one_kind() -> None:
    def kind(check: str, **own: object) -> object:
        draws = draws_of(calls(SOFTMAX, **own))  # type: ignore[arg-type]
        assert draws is not None
        return kind_of(check, draws)

    assert kind("test_wide", sizes={"N": [1, 4097]}) == kind("test_narrow", sizes={"N": [1, 2]})
    others = [kind("test_of_dtype[float16]"), kind("test", values=["ones"]), kind("test", layouts=["contiguous"])]
    assert len({kind("test"), *others}) == 4


def test_a_check_that_counts_bytes_makes_calls_of_its_own_sizes_alone() -> None:
    softmax, keyword = Path("solutions/softmax/solution.py"), "each_row_once or widths"
    report = grade(get("softmax"), softmax, keyword=keyword, hidden=True, device="cpu")
    solved = {check.id: "solved" in check.details["coverage"] for check in report.checks}
    assert solved == {"test_each_row_once": False, "test_widths": True}
