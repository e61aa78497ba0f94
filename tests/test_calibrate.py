"""What a card may be asked for is proposed from what the solution reaches on it."""

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from gradekit.assignment import Assignment, discover, get
from gradekit.calibrate import Reached, measured, proposed
from gradekit.cli import main
from gradekit.findings import Check, Kind, Outcome, Report, Status


def all_tests(assignment: Assignment) -> str:
    return "".join(path.read_text() for path in assignment.test_files)


def graded(request: Any) -> Report:
    """Half as fast as torch.compile with the solution, faster with all others."""
    low = 0.5 if request.path.name == "solution.py" else 1.2
    speed = {
        "card": "Test Card",
        "ratios": {side: {"value": low, "low": low, "high": low + 0.1} for side in ("eager", "compiled")},
        "verdicts": [{"side": "eager", "at_least": 0.4}, {"side": "compiled", "at_least": 0.8}],
    }
    check = Check("test_speed", "T", Kind.SPEED, Outcome.PASSED, 20, 20, details={"speed": speed})
    return Report("softmax", Status.GRADED, {}, (check,), {}, 1.0)


def test_the_solution_decides_with_a_margin_and_nothing_above_the_test_is_asked() -> None:
    found = [one for one in measured(get("softmax"), graded) if isinstance(one, Reached)]
    assert {one.submission for one in found} == {"solution.py", "right_one_row.py", "right_online.py"}
    assert proposed(found) == pytest.approx({"eager": 1.0, "compiled": 0.55})  # 0.9 * 0.5 / 0.8, in steps
    slow = [replace(found[0], submission=name, low=0.01) for name in ("a_mistake", "right_and_slow.py")]
    assert proposed([*found, *slow]) == proposed(found)


def test_every_speed_check_is_measured_whatever_it_is_called() -> None:
    asked: list[Any] = []
    list(measured(get("flash_attention"), lambda request: asked.append(request) or graded(request)))
    assert asked[0].options.kind == "speed"


@pytest.mark.parametrize("id", sorted(id for id, one in discover().items() if 'kind="speed"' in all_tests(one)))
def test_both_cards_that_were_measured_are_asked_for_what_is_fair_there(id: str) -> None:
    cards = get(id).cards
    assert set(cards) == {"H200", "H100"}
    assert all(0.85 <= share <= 1 for row in cards.values() for share in row.values())


def test_a_share_that_a_row_asks_for_already_is_taken_into_account() -> None:
    halved = replace(get("softmax"), cards={"test card": {"compiled": 0.5}})
    factors = {one.side: one.factor for one in measured(halved, graded) if isinstance(one, Reached)}
    assert factors == {"eager": 0.4, "compiled": 1.6}


def test_without_a_gpu_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradekit.batch.grader.visible_cards", list)
    done = CliRunner().invoke(main, ["calibrate", "softmax"])
    assert done.exit_code == 4 and "Nothing was measured: this machine has no GPU." in done.output
