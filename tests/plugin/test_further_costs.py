"""Of checks that differ in sizes alone, the first goes beyond their lists; a check that counts bytes makes no further calls."""

from pathlib import Path

from gradekit.assignment import get
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.plugin.further_run import kind_of
from tests.graded import grade

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
