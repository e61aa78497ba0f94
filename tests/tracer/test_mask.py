"""Tensors without data answer as CUDA tensors; reading a value is refused with the line and the reason."""

import pytest

from gradekit.findings import Cause
from gradekit.program import ADDRESS_GAP, Allocate, Launch, Literal, Program, Scalar, View
from gradekit.sandbox import MANY, Form, Tracer, multiprocessors_for
from gradekit.sandbox.tracer import FEW, MOST_ELEMENTS
from gradekit.subject.call_spec import call_spec
from tests.beside import beside
from tests.gpu.programs import normal
from tests.tracer.styles import Text

from .helpers import SCALAR, X, only, refused, tensor, traced

CASES = beside(__file__)


@pytest.mark.parametrize("claim", CASES["seen"])
def test_a_submission_sees_a_gpu(claim: str) -> None:
    program = traced(f"def entry(x):\n    return bool({claim})", X)
    assert program.results == (Scalar(True),)


@pytest.mark.parametrize("code", CASES["default_devices"])
def test_a_default_device_is_honoured(code: str) -> None:
    program = traced(f"def entry(x):\n    {code}\n    assert y.is_cuda\n    return y", X)
    assert only(program.steps, Allocate).nbytes == 20


@pytest.mark.parametrize(("code", "named"), CASES["reading"])
def test_reading_a_value_is_refused(code: str, named: str) -> None:
    error = refused(f"def entry(x):\n    y = 1\n    return {code}", X)
    assert error.cause is Cause.READS_VALUES, error.message
    assert error.line == 12
    assert named in error.message and "values of a tensor" in error.message


def test_reading_values_on_the_cpu_is_allowed() -> None:
    program = traced("def entry(x, s):\n    return int(torch.arange(5).sum()) + torch.tensor([s]).item()", X, SCALAR)
    assert program.results == (Scalar(12.5),)


def test_two_devices_do_not_mix() -> None:
    """Adding a CPU tensor to a GPU tensor fails as on a GPU"""
    error = refused("def entry(x):\n    return x + torch.ones(100)", X)
    assert error.cause is Cause.EXCEPTION and "same device" in error.message and error.line == 11


def test_a_number_on_the_cpu_mixes_with_anything() -> None:
    program = traced("def entry(x):\n    return x * torch.tensor(2.0)", tensor(0, 3))
    assert Scalar(2.0) in program.steps[-1].args


# --- what data_ptr() answers ------------------------------------------------------------------------------------------


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
    program = traced(TABLE, X, tensor(7, 50))
    out, inner = only(program.steps, Literal).values
    made = next(step.storage for step in program.steps if isinstance(step, Allocate))
    assert owners(program, int(out)) == [made]
    assert owners(program, int(inner)) == [7]
    assert int(inner) - program.addresses[7] == 12


@pytest.mark.parametrize(("looks", "given", "owners"), [("x", "x.data_ptr()", [0]), ("x.data_ptr() % 16 == 0", "5", [])])
def test_an_address_passed_to_a_kernel_comes_with_its_owner_and_one_looked_at_leaves_no_trace(
    looks: str, given: str, owners: list[int]
) -> None:
    body = f"def entry(x):\n    {looks}\n    copy_kernel[(1,)](x, x, {given}, BLOCK=16)\n    return x"
    assert list(traced(body, X).addresses) == owners


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
    launch = only(traced(TYPED.format(address="x.data_ptr() + 12"), X).steps, Launch)
    assert launch.args[0] == View(0, "int32", (), (), 3)


def test_an_address_of_nothing_is_refused_as_triton_does() -> None:
    error = refused(TYPED.format(address="4096"), X)
    assert "Pointer argument (at 0) cannot be accessed from Triton" in error.message


# --- The GPU that a call is traced for has many multiprocessors or few ------------------------------------------------


VECTOR = View(0, "float32", (100,), (1,))
ASKING = {
    "in the call": "def count():\n    return torch.cuda.get_device_properties(0).multi_processor_count\n",
    "while it is loaded": "NUM = torch.cuda.get_device_properties('cuda').multi_processor_count\ndef count():\n    return NUM\n",
    "once, in the first call": "@functools.cache\ndef count():\n    return torch.cuda.get_device_properties(0).multi_processor_count\n",
    "into a global": "NUM = None\ndef count():\n    global NUM\n    NUM = NUM or torch.cuda.get_device_properties(0).multi_processor_count\n    return NUM\n",
    "of Triton's driver": "@functools.cache\ndef count():\n    return triton.runtime.driver.active.utils.get_device_properties(0)['multiprocessor_count']\n",
    "by name": "@functools.cache\ndef count():\n    return getattr(torch.cuda.get_device_properties(0), 'multi_processor' + '_count')\n",
}
HEAD = "import functools, torch, triton\n"


def asked(tracer: Tracer, count: int) -> Program:
    return tracer.trace_form(Form("entry", (VECTOR,), multiprocessors=count))


@pytest.mark.parametrize("asking", ASKING.values(), ids=ASKING)
def test_every_call_is_told_the_number_it_is_traced_for(asking: str) -> None:
    """In any order, whatever an earlier call has kept"""
    with Tracer(Text(HEAD + asking + "def entry(x):\n    return count()\n")) as tracer:
        for count in (3, MANY, 1, 3, 1, MANY):
            program = asked(tracer, count)
            assert (program.results, program.multiprocessors) == ((Scalar(count),), count)


def test_a_submission_that_does_not_ask_is_loaded_once() -> None:
    text = "LOADED = []\ndef entry(x):\n    LOADED.append(1)\n    return len(LOADED)\n"
    with Tracer(Text(text)) as tracer:
        found = [asked(tracer, count) for count in (3, MANY, 1)]
    assert [program.results for program in found] == [(Scalar(1),), (Scalar(2),), (Scalar(3),)]
    assert {program.multiprocessors for program in found} == {0}


def test_a_text_that_does_not_ask_has_not_asked_after_one_that_did() -> None:
    """A replaced text gives the program that it gives in a process of its own"""
    asks, plain = (Text(HEAD + f"def entry(x):\n    return {value}\n{ASKING['in the call']}") for value in ("count()", "1"))
    with Tracer(asks) as tracer:
        assert asked(tracer, 3).multiprocessors == 3
        tracer.replace(plain)
        assert asked(tracer, 3).multiprocessors == 0


def test_a_failure_with_few_is_no_failure_with_many() -> None:
    text = HEAD + ASKING["in the call"] + "def entry(x):\n    assert count() > 8\n    return count()\n"
    with Tracer(Text(text)) as tracer:
        with pytest.raises(Exception, match="AssertionError"):
            asked(tracer, 3)
        assert asked(tracer, MANY).results == (Scalar(MANY),)


def test_small_calls_are_traced_for_few_and_large_or_timed_ones_for_many() -> None:
    """The same for every student: it depends on the call alone"""
    small = [call_spec("add", (normal(n),)).form.multiprocessors for n in range(1, 200)]
    assert {count: small.count(count) > 30 for count in set(small)} == dict.fromkeys((MANY, *FEW), True)
    assert {call_spec("add", (normal(n),), timed=True).form.multiprocessors for n in range(1, 50)} == {MANY}
    assert {call_spec("add", (normal(n),), on_one_gpu=True).form.multiprocessors for n in range(1, 50)} == {MANY}
    large = View(0, "float32", (MOST_ELEMENTS + 1,), (1,))
    assert {multiprocessors_for([large], str(key)) for key in range(50)} == {MANY}
