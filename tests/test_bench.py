"""Which sizes are swept, what a machine without a card answers, and what a card may be asked for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from gradekit.assignment import Assignment, UsageError, discover, get
from gradekit.bench import Sweep, _rows, row_of, sweep
from gradekit.calibrate import Reached, measured, proposed
from gradekit.cli import main
from gradekit.findings import Cause, Check, Kind, Outcome, Report, Status
from gradekit.inputs.spec import normal
from gradekit.judge.failure import Failure
from gradekit.judge.speed import Ceilings, Round
from gradekit.observations import Counters
from gradekit.program import Program
from gradekit.subject.device import NeedsCard
from gradekit.subject.timed_call import Timed, TimedCall, Work

from .plugin.test_pytest import CHECKS, made


def test_the_assignment_says_what_varies_and_to_which_sizes() -> None:
    plan = sweep(get("softmax"))
    assert plan.vary == 4096 and 1024 in plan.sizes
    (x,) = plan.inputs(1024)
    assert (x.shape, x.stride) == ((8192, 1024), (1024, 1))


def test_without_a_word_powers_of_two_up_to_the_largest_size_are_swept(tmp_path: Path) -> None:
    plan = sweep(made(tmp_path, CHECKS))
    assert (plan.vary, plan.sizes) == (32, (1, 2, 4, 8, 16, 32))


def test_the_arguments_of_the_command_come_first() -> None:
    plan = sweep(replace(get("softmax"), bench={"vary": 8192, "sizes": [1024]}), sizes=(8, 16))
    assert (plan.vary, plan.sizes) == (8192, (8, 16)) and plan.inputs(8)[0].shape == (8, 4096)


def test_a_size_that_no_input_has_names_those_that_they_have() -> None:
    with pytest.raises(UsageError, match=r"no input that is timed has the size 17; there are .*4096"):
        sweep(replace(get("softmax"), bench={"vary": 17}))


def test_tests_that_time_nothing_leave_nothing_to_sweep(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="time no call"):
        sweep(made(tmp_path, ""))


def test_a_size_varies_wherever_it_stands_and_one_tensor_stays_one() -> None:
    x = normal((64, 64))
    plan = Sweep(TimedCall("f", (x, x, normal((64,)), 3), abs, abs), 64, (16,))
    first, second, third, number = plan.inputs(16)
    assert first is second and first.shape == (16, 16) and third.shape == (16,) and number == 3


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_a_machine_without_a_card_says_so_kindly() -> None:
    result = CliRunner().invoke(main, ["bench", "solutions/softmax/solution.py"])
    assert result.exit_code == 4 and "this machine has none" in result.output and "gradekit inspect" in result.output


def test_sizes_that_are_no_numbers_are_refused() -> None:
    result = CliRunner().invoke(main, ["bench", "solutions/softmax/solution.py", "--sizes", "8,large"])
    assert result.exit_code == 2 and "no list of whole numbers" in result.output


# --- rows -------------------------------------------------------------------------------------------------------------


class Stub:
    """A submission that is timed, wrong or impossible to time, in turn."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def time(self, entry: str, args: Any, against: Any, expected: Any) -> Timed:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


def timed() -> Timed:
    rounds = tuple(Round({"student": (1e-5 + n * 1e-9,), "eager": (2e-5,), "compiled": (1e-5,)}) for n in range(6))
    return Timed(
        "f", (normal((8, 16)),), Program((), {}, (), (), "none", {}), "a card", rounds, Counters(launches=1, bytes_allocated=64),
        Work(1e4, 1e4, 2e4, "float32"), Ceilings(2e9, {"float32": 1e12}),
    )  # fmt: skip


def test_a_size_that_fails_stops_no_other_and_says_why() -> None:
    plan = Sweep(TimedCall("f", (normal((8, 16)),), abs, abs), 16, (32, 64, 128))
    stub = Stub(Failure(Cause.WRONG_VALUES, "All wrong."), NeedsCard("It went away."), timed())
    rows = list(_rows(stub, plan))  # type: ignore[arg-type]
    assert [(row["size"], row["error"]) for row in rows] == [(32, "All wrong."), (64, "It went away."), (128, "")]
    assert rows[2]["inputs"][0]["shape"] == [8, 128]


def test_a_row_has_every_sample_and_the_roofline() -> None:
    row = row_of(timed())
    assert len(row["samples"]) == 6 and row["samples"][0]["eager"] == [2e-5]
    assert row["roofline_microseconds"] == pytest.approx(5.0)
    assert row["microseconds"]["student"] == pytest.approx(10.0, rel=1e-2)


# --- What a card may be asked for -------------------------------------------------------------------------------------


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
