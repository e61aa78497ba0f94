"""What the programs of a call too long to run leave out is told by counting their lanes."""

import pytest

from gradekit.program import Kernel, Launch, Program, Scalar, View
from gradekit.unseen.long_dimensions import LeftOut, Tally, left_out
from tests.beside import beside

COUNT = 1000

COPY = beside(__file__)["copy"]
WALKED = "scf.for %t = %pid to %tiles step %count  : i32"


def copying(programs: int, loop: str, index: str = "%lanes", count: int = COUNT) -> Program:
    """A call whose one launch copies `count` elements, as far as its programs come."""
    x, y = (View(number, "float32", (count,), (1,)) for number in (0, 1))
    kernel = Kernel("copy", COPY.replace("LOOP", loop).replace("INDEX", index))
    launch = Launch("copy", (programs, 1, 1), (x, y, Scalar(count, "i32")))
    return Program((x,), {0: 4 * count}, (launch,), (y,), "tensor", {"copy": kernel})


@pytest.mark.parametrize(("programs", "short"), [(7, True), (8, False)])
def test_a_tile_for_each_program_reaches_as_many_elements_as_it_has_lanes(programs: int, short: bool) -> None:
    once = "scf.for %t = %zero to %one step %one  : i32"
    found = [(one.stored, one.tally.lanes) for one in left_out(copying(programs, once))]
    assert found == ([(True, 128 * programs), (False, 128 * programs)] if short else [])


def test_turns_of_a_loop_are_counted_for_each_program() -> None:
    program, result = copying(3, WALKED), LeftOut(0, True, COUNT, Tally())
    assert not left_out(program)
    assert result.is_reached(program, tiles=8) and not result.is_reached(program, tiles=9)


def test_a_loop_whose_step_is_not_known_has_no_bound() -> None:
    assert not left_out(copying(1, "scf.for %t = %pid to %tiles step %pid  : i32"))


def test_addresses_that_were_loaded_have_no_bound() -> None:
    text = "%i"
    program = copying(1, "scf.for %t = %zero to %one step %one  : i32", text)
    kernel = program.kernels["copy"].ttir.replace(
        "%b = ", "%w = tt.load %a : tensor<128x!tt.ptr<f32>>\n      %i = arith.fptosi %w : tensor<128xf32> to tensor<128xi32>\n      %b = "
    )
    program.kernels["copy"] = Kernel("copy", kernel)
    assert [one.stored for one in left_out(program)] == [False]
