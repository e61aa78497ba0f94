"""What data_ptr() answers: the program says whose address it is wherever it holds one as a number."""

from __future__ import annotations

from gradekit.program import ADDRESS_GAP, Allocate, Launch, Literal, Program, View

from .helpers import X, only, refused, tensor, traced

TABLE = """
def entry(x, y):
    out = torch.empty_like(x)
    table = torch.tensor([out.data_ptr(), y[3:].data_ptr()], device="cuda")
    copy_kernel[(1,)](x, table, 1, BLOCK=16)
    return out
"""


def owners(program: Program, number: int) -> list[int]:
    return [id for id, start in program.addresses.items() if 0 <= number - start < ADDRESS_GAP]


def test_a_table_of_pointers_comes_with_whose_addresses_they_are() -> None:
    """Each number in the table lies in the storage that the program says, at the right byte"""
    program = traced(TABLE, X, tensor(7, 50))
    out, inner = only(program.steps, Literal).values
    made = next(step.storage for step in program.steps if isinstance(step, Allocate))
    assert owners(program, int(out)) == [made]
    assert owners(program, int(inner)) == [7]
    assert int(inner) - program.addresses[7] == 12


def test_an_address_passed_to_a_kernel_comes_with_its_owner() -> None:
    """A number argument is an address too"""
    program = traced("def entry(x):\n    copy_kernel[(1,)](x, x, x.data_ptr(), BLOCK=16)\n    return x", X)
    assert list(program.addresses) == [0]


def test_a_program_without_addresses_says_nothing_of_them() -> None:
    """Looking at an address, for alignment, leaves no trace"""
    body = "def entry(x):\n    assert x.data_ptr() % 16 == 0\n    copy_kernel[(1,)](x, x, 5, BLOCK=16)\n    return x"
    assert traced(body, X).addresses == {}


TYPED = """
class Pointer:
    def __init__(self, address, dtype):
        self.address, self.dtype = address, dtype
    def data_ptr(self):
        return self.address

def entry(x):
    out = torch.empty_like(x)
    copy_kernel[(1,)](Pointer({address}, torch.int32), out, 5, BLOCK=16)
    return out
"""


def test_whatever_has_an_address_and_a_dtype_is_a_pointer() -> None:
    """Libraries pass objects of their own where a tensor with such strides cannot be made"""
    launch = only(traced(TYPED.format(address="x.data_ptr() + 12"), X).steps, Launch)
    assert launch.args[0] == View(0, "int32", (), (), 3)


def test_an_address_of_nothing_is_refused_as_triton_does() -> None:
    """A pointer that leads to no tensor on the GPU"""
    error = refused(TYPED.format(address="4096"), X)
    assert "Pointer argument (at 0) cannot be accessed from Triton" in error.message
