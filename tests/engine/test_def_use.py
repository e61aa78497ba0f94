"""What values of TTIR are made of, through loops and where regions beside each other use a name twice."""

from gradekit.engine.def_use import DefUse
from gradekit.engine.kernel_facts import parsed

TWO_LOOPS = """
module {
  tt.func public @kernel(%p: !tt.ptr<f32>, %n: i32, %m: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %first = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (i32)  : i32 {
      %x = arith.addi %a, %n : i32
      scf.yield %x : i32
    }
    %second = scf.for %i = %c0 to %m step %c1 iter_args(%a = %c1) -> (i32)  : i32 {
      %x = arith.muli %a, %m : i32
      scf.yield %x : i32
    }
    %q = tt.addptr %p, %second : !tt.ptr<f32>, i32
    tt.return
  }
}
"""
FLOW = DefUse(parsed(TWO_LOOPS).functions.values())


def test_a_name_that_two_loops_use_stands_for_what_it_is_in_both() -> None:
    assert {"n", "m", "a"} <= FLOW.behind(["x"])
    assert [op.name for op in FLOW.makers(["x"])] == ["arith.addi", "arith.muli"]


def test_a_result_of_a_loop_is_made_of_what_it_carries_and_of_its_bounds() -> None:
    assert {"x", "a", "c1", "m", "c0"} <= FLOW.behind(["second"])


def test_nothing_is_looked_for_behind_where_one_stops() -> None:
    assert FLOW.behind(["q"], stop=["second"]) == {"q", "p", "second"}


def test_a_pointer_is_made_of_the_pointer_that_it_was_moved_from() -> None:
    assert list(FLOW.pointed("q")) == ["p"]
