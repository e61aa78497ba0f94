"""Where a program rounds is known, with its line and with what becomes of the rounded value."""

import pytest
import torch

from gradekit.engine import executor
from gradekit.engine.executor import Setup
from gradekit.exact.places import narrowing, rounded_down, rounding_places
from gradekit.exact.widening import NotExact, wide_tensors, widened
from gradekit.inputs.spec import Input, normal
from gradekit.program import Program
from gradekit.sandbox import Tracer
from gradekit.subject.call_spec import to_arguments
from gradekit.submission import Submission
from tests.beside import beside

TEXTS = beside(__file__)

KERNEL = TEXTS["kernel"]


def traced(text: str, x: Input) -> Program:
    with Tracer(Submission("submission.py", text, "")) as tracer:
        return tracer.trace("entry", to_arguments([x]))


X = normal((50,), dtype="bfloat16")


@pytest.fixture(scope="module")
def program() -> Program:
    return traced(KERNEL, X)


def test_each_place_has_its_line_and_its_use(program: Program) -> None:
    lines = KERNEL.split("\n")
    found = {(lines[place.line - 1].strip()[:20], place.use) for place in rounding_places(program) if place.line}
    assert found == {
        ("y = (tl.exp(x.to(tl.", "arithmetic"),
        ("tl.store(out_ptr + n", "results"),
        ("tl.store(scratch_ptr", "scratch"),
        ("tl.store(other_ptr +", "results"),
    }
    assert {place.dtype for place in rounding_places(program)} == {"bfloat16"}


def test_a_result_that_a_later_launch_adds_to_is_rounded_before_it_is_one() -> None:
    adding = KERNEL.replace("second[(1,)](scratch, other,", "second[(1,)](out, out,")
    found = {(place.line, place.use) for place in rounding_places(traced(adding, X)) if place.line != 9}
    assert found == {(10, "scratch"), (11, "results"), (17, "results")}


def test_without_rounding_results_are_those_of_float64(program: Program) -> None:
    exact, x = widened(program), X.tensor()
    run = lambda one: executor.run_setup(Setup(one.program, wide_tensors([x]), reader=one.reader)).results
    out, other = run(exact)
    assert out.dtype == torch.float64
    assert torch.allclose(out, x.double(), rtol=1e-14, atol=1e-14) and torch.equal(other, x.double() * 6)
    (place,) = [place for place in rounding_places(program) if place.use == "arithmetic"]
    rounded, same = run(exact.rounding_at(place))
    assert torch.equal(rounded, x.double().exp().bfloat16().double().log()) and torch.equal(same, other)


def test_memory_that_is_seen_as_two_types_is_not_widened() -> None:
    text = KERNEL.replace("torch.empty_like(x)\n", "torch.empty_like(x).view(torch.int16).view(torch.bfloat16)\n")
    bits = text.replace("second[(1,)](scratch,", "second[(1,)](scratch.view(torch.int16),").replace("s + s", "s")
    with pytest.raises(NotExact, match="several types"):
        widened(traced(bits, X))


BRANCHES = TEXTS["branches"]


def test_branches_beside_each_other_are_not_taken_for_one_another() -> None:
    places = rounding_places(traced(BRANCHES, X))
    assert {(place.line, place.use) for place in places} == {(10, "results"), (12, "results")}


def test_a_cast_of_host_code_to_fewer_bits_than_the_inputs_have_is_a_narrowing() -> None:
    cast = KERNEL.replace("def entry(x):", "def entry(x):\n    x = x.to(torch.bfloat16)")
    assert narrowing(traced(cast, normal((50,))), torch.float32) == {"bfloat16"}
    assert narrowing(traced(KERNEL, normal((50,))), torch.float32) == set()


def test_a_sum_that_host_code_makes_in_half_precision_is_a_place() -> None:
    text = KERNEL.replace("    return out, other", "    out.copy_(out.sum().expand(50))\n    return out, other")
    program = traced(text, x := normal((50,), dtype="float16"))
    (place,) = [place for place in rounding_places(program) if not place.ttir]
    assert place.line is not None and "out.sum()" in text.split("\n")[place.line - 1]
    assert (place.dtype, place.use) == ("float16", "scratch")
    sums = [
        executor.run_setup(Setup(one.program, wide_tensors([x.tensor()]), allow=["aten::sum"], reader=one.reader)).results[0][0]
        for one in (widened(program), widened(program).rounding_at(place))
    ]
    assert sums[0] != sums[1] == sums[0].half()


def test_rounding_makes_all_values_smaller_that_lean_and_tf32_holds_them() -> None:
    values = Input("float32", (64,), (1,), profile=rounded_down("bfloat16")).tensor()
    assert bool((values.bfloat16().float() < values).all())
    assert not bool((values.view(torch.int32) & 0x1FFF).any())
