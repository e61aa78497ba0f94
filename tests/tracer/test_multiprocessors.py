"""The GPU that a call is traced for has many multiprocessors or few, wherever a submission asks for their number."""

import pytest

from gradekit.program import Program, Scalar, View
from gradekit.sandbox import MANY, Form, Tracer, multiprocessors_for
from gradekit.sandbox.tracer import FEW, MOST_ELEMENTS
from gradekit.subject.call_spec import call_spec
from tests.gpu.programs import normal
from tests.tracer.styles import Text

X = View(0, "float32", (100,), (1,))
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
    return tracer.trace_form(Form("entry", (X,), multiprocessors=count))



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
