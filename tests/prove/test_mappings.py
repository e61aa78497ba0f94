"""Which program computes which tile: orders of tiles that are right are proved to be for all sizes, wrong ones refuted."""

from pathlib import Path

import pytest

from gradekit import domain
from gradekit.assignment import get
from gradekit.findings import Outcome
from tests.graded import grade
from tests.prove import mappings
from tests.prove.deciding import decided

MATMUL = domain.load(get("matmul").folder / "domain.toml")["matmul"]

LEFT_OPEN = {
    "last first": "whether the load stays inside is decided by a product of two numbers of tiles",
    "persistent, 16 bits": "it is wrong from 65,536 tiles on",
}
SEEN_BY_CHECKS = ["persistent, chunks rounded down", "split K, added up by tiles", "grouped, no smaller last beyond 512 rows"]
"""Wrong ones of which the solver finds no sizes."""


def _cases(side: dict[str, str]) -> list[str]:
    return [name for name in side if name not in (*LEFT_OPEN, *SEEN_BY_CHECKS)]


def test_what_the_lists_leave_out_is_there() -> None:
    assert {*LEFT_OPEN, *SEEN_BY_CHECKS} <= mappings.RIGHT.keys() | mappings.WRONG.keys()
    assert len(mappings.WRONG) == len(set(mappings.WRONG.values()) - set(mappings.RIGHT.values()))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", _cases(mappings.RIGHT))
def test_a_right_order_of_tiles_is_proved_to_write_each_element_once(name: str, tmp_path: Path) -> None:
    found = decided(tmp_path, mappings.RIGHT[name], get("matmul"), MATMUL)
    assert not found.failures
    verdicts = {v.verdict for v in found.verdicts if v.kind in ("covered", "one-writer")}
    assert verdicts == {"proved"}, found.as_data()


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", _cases(mappings.WRONG))
def test_a_wrong_order_of_tiles_is_refuted_with_sizes_at_which_the_engine_sees_it(name: str, tmp_path: Path) -> None:
    found = decided(tmp_path, mappings.WRONG[name], get("matmul"), MATMUL)
    assert found.failures, found.as_data()
    refuted = [v for v in found.verdicts if v.verdict == "refuted"]
    assert refuted and all(v.sizes and v.finding for v in refuted)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SEEN_BY_CHECKS)
def test_a_wrong_order_of_tiles_that_the_solver_leaves_open_fails_the_checks(name: str, tmp_path: Path) -> None:
    (file := tmp_path / "submission.py").write_text(mappings.WRONG[name])
    report = grade(get("matmul"), file, device="cpu", diagnose=False, shrink=False)
    failed = {check.id for check in report.checks if check.outcome is Outcome.FAILED}
    assert {"test_boundary_sizes", "test_memory"} <= failed
