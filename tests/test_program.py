"""Which steps a run of a program takes, where launches are autotuned."""

import pytest

from gradekit.engine import traffic
from gradekit.program import Allocate, Choice, Fill, Program, Step, View, every_step, run_steps

Y = View(1, "float32", (4,), (1,))


def fill(value: int) -> Fill:
    return Fill(Y, value)


INNER = Choice(((fill(20),), (fill(21),)), ("a", "b"))
FIRST = Choice(((fill(0),), (fill(1),)), ("BLOCK=64", "BLOCK=128"))
SECOND = Choice(((fill(10), INNER), (fill(11), INNER), (fill(12),)), ("BLOCK=64", "BLOCK=128", "tuning"), tuning=2)
STEPS: tuple[Step, ...] = (Allocate(1, 16), FIRST, SECOND)


def values(chosen: int | tuple[int, ...]) -> list[object]:
    return [step.value for step in run_steps(STEPS, chosen) if isinstance(step, Fill)]


@pytest.mark.parametrize(
    ("chosen", "taken"),
    [(0, [0, 10, 20]), (1, [1, 11, 21]), (2, [0, 12]), ((0, 1), [0, 11, 20]), ((1,), [1, 10, 20]), ((3, 5), [1, 12])],
)
def test_a_run_takes_one_option_of_each_choice(chosen: int | tuple[int, ...], taken: list[int]) -> None:
    assert values(chosen) == taken


def test_every_step_is_visited_with_the_choice_before_its_options() -> None:
    visited = list(every_step(STEPS))
    assert [step.value for step in visited if isinstance(step, Fill)] == [0, 1, 10, 20, 21, 11, 20, 21, 12]
    assert visited.index(FIRST) + 1 == visited.index(fill(0))


def test_the_autotuners_own_first_call_is_no_configuration() -> None:
    assert SECOND.configurations == (0, 1) and FIRST.configurations == (0, 1)


def test_traffic_is_that_of_the_options_which_were_chosen_for_each_launch() -> None:
    """Two autotuned launches whose configurations have equal labels"""
    small, large = (Fill(View(1, "float32", (n,), (1,)), 0) for n in (4, 64))
    pick = Choice(((small,), (large,)), ("BLOCK=64", "BLOCK=128"))
    program = Program((), {}, (Allocate(1, 256), pick, pick), (), "none", {})
    assert [traffic.count(program, chosen=c).bytes_stored for c in ((0, 0), (0, 1), (1, 0), (1, 1))] == [
        32, 272, 272, 512,
    ]
