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

EACH_TIME = {
    "back and forth", "persistent, grouped", "split K",
    "grouped, no smaller last beyond 64 rows", "split K, a part left out",
}  # fmt: skip
"""One of each kind; the slow tests try all."""

LEFT_OPEN = {
    "last first": "whether the load stays inside is decided by a product of two numbers of tiles",
    "persistent, 16 bits": "it is wrong from 65,536 tiles on",
}
SEEN_BY_CHECKS = [
    "persistent, chunks rounded down", "back and forth, one off", "split K, added up by tiles",
    "grouped, no smaller last beyond 512 rows",
]  # fmt: skip
"""Wrong ones of which the solver finds no sizes: the first is checked each time, the others by the slow tests."""


def _cases(side: dict[str, str]) -> list[object]:
    each = [name for name in side if name not in (*LEFT_OPEN, *SEEN_BY_CHECKS)]
    return [pytest.param(name, marks=[] if name in EACH_TIME else [pytest.mark.slow]) for name in each]


def test_the_lists_have_what_is_tried_each_time() -> None:
    assert {*EACH_TIME, *LEFT_OPEN, *SEEN_BY_CHECKS} <= mappings.RIGHT.keys() | mappings.WRONG.keys()
    assert len(mappings.WRONG) == len(set(mappings.WRONG.values()) - set(mappings.RIGHT.values()))


@pytest.mark.parametrize("name", _cases(mappings.RIGHT))
def test_a_right_order_of_tiles_is_proved_to_write_each_element_once(name: str, tmp_path: Path) -> None:
    found = decided(tmp_path, mappings.RIGHT[name], get("matmul"), MATMUL)
    assert not found.failures
    verdicts = {v.verdict for v in found.proofs.verdicts if v.kind in ("covered", "one-writer")}
    assert verdicts == {"proved"}, found.as_data()


@pytest.mark.parametrize("name", _cases(mappings.WRONG))
def test_a_wrong_order_of_tiles_is_refuted_with_sizes_at_which_the_engine_sees_it(name: str, tmp_path: Path) -> None:
    found = decided(tmp_path, mappings.WRONG[name], get("matmul"), MATMUL)
    assert found.failures, found.as_data()
    refuted = [v for v in found.proofs.verdicts if v.verdict == "refuted"]
    assert refuted and all(v.sizes and v.finding for v in refuted)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if number else []) for number, name in enumerate(SEEN_BY_CHECKS)]
)
def test_a_wrong_order_of_tiles_that_the_solver_leaves_open_fails_the_checks(name: str, tmp_path: Path) -> None:
    (file := tmp_path / "submission.py").write_text(mappings.WRONG[name])
    report = grade(get("matmul"), file, device="cpu", diagnose=False, shrink=False)
    failed = {check.id for check in report.checks if check.outcome is Outcome.FAILED}
    assert {"test_boundary_sizes", "test_memory"} <= failed
