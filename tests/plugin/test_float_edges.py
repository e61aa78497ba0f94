"""A number of a call is moved to where something turns."""

from typing import Any

from gradekit.plugin.float_edges import Knob
from gradekit.unseen.host_branches import TracedForm


def knob(**ends: Any) -> Knob:
    """One of a call without tensors."""
    return Knob("scale", TracedForm("", "", ()), {}, **ends)


def test_a_knob_stops_at_two_floats_that_are_next_to_each_other() -> None:
    low, high = knob(least=0.01, most=32.0).turn(lambda number: int(number * 3 > 16.0))
    assert low * 3 <= 16.0 < high * 3 and high - low < 1e-6


def test_a_knob_that_turns_nothing_is_moved_to_its_ends_alone() -> None:
    asked = list[float]()
    assert knob(least=0.0, most=1.0).turn(lambda number: asked.append(number) or 5) == ()
    assert asked == [0.0, 1.0]
