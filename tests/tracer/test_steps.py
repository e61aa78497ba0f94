"""torch operations on the host become steps: allocations, fills, copies, numbers, and the rest by name."""

import re

import pytest
import torch

from gradekit.findings import Cause
from gradekit.program import Allocate, Aten, Copy, Fill, Launch, Literal, Program, Scalar, View
from gradekit.sandbox import TraceError, Tracer
from tests.beside import beside
from tests.tracer.styles import Text

from .helpers import X, kinds, only, submission, tensor, traced


def test_an_allocation_is_recorded_with_its_size_and_line() -> None:
    program = traced("def entry(x):\n    return torch.empty_like(x)", X)
    (step,) = program.steps
    assert isinstance(step, Allocate)
    assert step.nbytes == 400 and step.source is not None and (step.source.line, step.source.function) == (11, "entry")
    assert program.results == (View(step.storage, "float32", (100,), (1,)),)


@pytest.mark.parametrize(("made", "value"), [
    ("torch.zeros(3, device=x.device)", 0),
    ("torch.ones((3,), device='cuda')", 1),
    ("torch.full((3,), float('-inf'), device='cuda')", float("-inf")),
    ("torch.zeros_like(x)", 0),
    ("x.new_full((3,), 7.5)", 7.5),
    ("torch.empty_like(x).fill_(2)", 2),
    ("torch.empty_like(x).zero_()", 0),
    ("torch.full_like(x, 3)", 3),
])
def test_a_filled_tensor_is_an_allocation_and_a_fill(made: str, value: float) -> None:
    program = traced(f"def entry(x):\n    return {made}", X)
    assert kinds(program.steps) == ["Allocate", "Fill"]
    fill = only(program.steps, Fill)
    assert fill.value == value and fill.target == program.results[0]


@pytest.mark.parametrize("made", ["x.t()", "x[1:, ::2]", "x.view(-1)", "x.unsqueeze(0).expand(5, 4, 6)", "x.detach()"])
def test_a_view_needs_no_step(made: str) -> None:
    program = traced(f"def entry(x):\n    return {made}", tensor(3, 4, 6))
    assert program.steps == ()
    (result,) = program.results
    assert isinstance(result, View) and result.storage == 3


def test_a_view_keeps_its_geometry() -> None:
    program = traced("def entry(x):\n    return x.t()[1:, ::2]", tensor(0, 4, 6, offset=5))
    assert program.results == (View(0, "float32", (5, 2), (1, 12), 6),)


@pytest.mark.parametrize("way", ["", "@torch.inference_mode()\n"], ids=["with autograd", "without"])
@pytest.mark.parametrize(
    "made", ["x.t().contiguous()", "x.clone()", "x.half()", "x.to(torch.float64)", "x.T.reshape(-1)", "x.T.flatten()"]
)
def test_a_copy_is_recorded_from_view_to_view(made: str, way: str) -> None:
    """Without autograd torch hands on reshape and to as they are, and is asked what they are made of"""
    program = traced(f"{way}def entry(x):\n    return {made}", tensor(0, 4, 6))
    assert kinds(program.steps) == ["Allocate", "Copy"]
    copy = only(program.steps, Copy)
    assert copy.origin.storage == 0 and copy.target.storage == program.steps[0].storage


def test_contiguous_of_a_contiguous_tensor_is_nothing() -> None:
    assert traced("def entry(x):\n    return x.contiguous().float().to('cuda')", X).steps == ()


def test_writing_into_a_slice_is_a_copy_or_a_fill() -> None:
    program = traced(
        "def entry(x):\n    y = torch.empty_like(x)\n    y[:50] = x[50:]\n    y[50:] = 1.5\n    return y", X
    )
    assert kinds(program.steps) == ["Allocate", "Copy", "Fill"]
    assert only(program.steps, Copy).origin == View(0, "float32", (50,), (1,), 50)
    assert only(program.steps, Fill).target.offset == 50


@pytest.mark.parametrize(("made", "values"), [
    ("torch.tensor([1, 2, 3], device=x.device)", (1, 2, 3)),
    ("torch.arange(4, device='cuda')", (0, 1, 2, 3)),
    ("torch.as_tensor([0.5], device='cuda')", (0.5,)),
    ("torch.arange(2, 8, 2, device='cuda')", (2, 4, 6)),
    ("torch.arange(end=3, device='cuda')", (0, 1, 2)),
    ("torch.arange(start=1, end=2, step=0.5, device='cuda')", (1.0, 1.5)),
    ("torch.linspace(0, 1, 3, device='cuda')", (0.0, 0.5, 1.0)),
    ("torch.tensor([True, False]).to(x.device)", (True, False)),
    ("torch.arange(3).cuda()", (0, 1, 2)),
    ("torch.tensor(float('inf'), device='cuda')", (float("inf"),)),
])
def test_numbers_of_the_host_are_in_the_program(made: str, values: tuple[float, ...]) -> None:
    program = traced(f"def entry(x):\n    return {made}", X)
    assert kinds(program.steps) == ["Allocate", "Literal"]
    assert only(program.steps, Literal).values == values


def test_a_computation_is_recorded_by_name_with_its_arguments() -> None:
    program = traced("def entry(x):\n    return x.sum(dim=0)", tensor(0, 4, 6))
    step = only(program.steps, Aten)
    assert step.op == "aten::sum"
    assert step.args[0] == tensor(0, 4, 6) and step.args[1] == (Scalar(0),)
    assert step.outputs == program.results and step.outputs[0].shape == (6,)
    assert step.source is not None and step.source.line == 11


def test_an_operation_in_place_writes_to_its_argument() -> None:
    program = traced("def entry(x):\n    x.add_(1)\n    return x", X)
    step = only(program.steps, Aten)
    assert (step.op, step.outputs) == ("aten::add_", (X,))


def test_the_result_of_a_tuple_is_flattened() -> None:
    program = traced("def entry(x):\n    return x, None, x[1:], 3", X)
    assert program.returned == "tuple"
    assert program.results == (X, Scalar(None), View(0, "float32", (99,), (1,), 1), Scalar(3))


@pytest.mark.parametrize(("made", "name"), [("None", "none"), ("'text'", "str"), ("[x]", "tuple"), ("2", "int"), ("torch.zeros(3)", "cpu tensor")])
def test_a_result_of_another_type_is_named(made: str, name: str) -> None:
    assert traced(f"def entry(x):\n    return {made}", X).returned == name


def test_arguments_may_share_a_storage() -> None:
    program = traced(
        "def entry(x, y):\n    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()", tensor(7, 10),
        tensor(7, 20, offset=5),
    )
    assert program.storages == {7: 100}
    assert [view.storage for view in program.inputs] == [7, 7]


def test_a_huge_allocation_is_only_a_number() -> None:
    program = traced("def entry(x):\n    return torch.empty(10**12, device='cuda')", X)
    assert only(program.steps, Allocate).nbytes == 4 * 10**12


@pytest.mark.parametrize(
    "made", ["torch.arange(10**12, device='cuda')", "torch.linspace(0, 1, steps=10**12, device='cuda')"]
)
def test_very_many_numbers_are_a_computation(made: str) -> None:
    assert only(traced(f"def entry(x):\n    return {made}", X).steps, Aten).outputs[0].shape == (10**12,)


@pytest.mark.parametrize("made", ["torch.empty_like(x.t())", "torch.zeros_like(x[:, ::2])", "torch.empty_like(x, dtype=torch.int32)",
                                  "torch.full_like(x.t(), 2, memory_format=torch.contiguous_format)", "torch.ones_like(x.expand(3, 4, 6))"])  # fmt: skip
def test_a_tensor_made_like_another_has_torchs_geometry(made: str) -> None:
    x = torch.zeros(4, 6)
    (result,) = traced(f"def entry(x):\n    return {made}", tensor(0, 4, 6)).results
    expected = eval(made, {"x": x, "torch": torch})
    assert isinstance(result, View)
    assert (result.shape, result.stride, f"torch.{result.dtype}") == (expected.shape, expected.stride(), str(expected.dtype))


@pytest.mark.parametrize(
    ("used", "imported"),
    [("torch.zeros_like(x.t().contiguous()).add(1).sum().clamp(0)", []), ("torch.where(x > 0, x, x) + x", ["torch._meta_registrations"])],
)
def test_torchs_python_for_tensors_without_data_is_imported_for_operators_that_lack_any_other(used: str, imported: list[str]) -> None:
    heavy = {"torch._meta_registrations", "torch._dynamo"}
    with pytest.raises(TraceError, match=re.escape(f"'imported', {imported}")):
        traced(f"import sys\ndef entry(x):\n    {used}\n    raise ValueError('imported', sorted({heavy} & set(sys.modules)))", X)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["torch._prims", "torch._refs.nn", "torch._decomp.decompositions", "torch._inductor"])
def test_a_submission_may_import_what_torch_was_imported_without(name: str) -> None:
    traced(f"import {name}\ndef entry(x):\n    return {name}.__name__.strip() and torch.empty_like(x)", X)


def test_the_same_call_gives_the_same_program() -> None:
    body = "def entry(x):\n    y = torch.zeros_like(x)\n    copy_kernel[(1,)](x, y, 100, BLOCK=128)\n    return y"
    assert traced(body, X) == traced(body, X)


@pytest.mark.parametrize(("used", "line"), [("return KEPT[0]", None), ("return copied(KEPT[0])", 13)])
def test_an_argument_of_an_earlier_call_is_named_where_it_is_used(used: str, line: int | None) -> None:
    body = f"""
        KEPT = []
        def copied(x):
            out = torch.empty_like(x)
            copy_kernel[(1,)](x, out, 100, BLOCK=128)
            return out
        def entry(x):
            KEPT.append(x)
            {used}
    """
    with Tracer(submission(body)) as tracer:
        tracer.trace("entry", [tensor(0, 100)])
        with pytest.raises(TraceError) as caught:
            tracer.trace("entry", [tensor(0, 200)])
    assert caught.value.cause is Cause.DEPENDS_ON_EARLIER_CALLS
    assert caught.value.line == line


def test_a_buffer_kept_from_an_earlier_call_is_as_it_was_made() -> None:
    """What an earlier call computed from its inputs is no part of a later program"""
    body = """
        KEPT = []
        def entry(x):
            if not KEPT:
                KEPT.append(torch.zeros(100, device='cuda'))
                copy_kernel[(1,)](x, KEPT[0], 100, BLOCK=128)
            return KEPT[0]
        """
    with Tracer(submission(body)) as tracer:
        assert kinds(tracer.trace("entry", [X]).steps) == ["Allocate", "Fill", "Launch"]
        assert kinds(tracer.trace("entry", [X]).steps) == ["Allocate", "Fill"]


def test_a_tensor_made_at_import_comes_with_the_steps_that_made_it() -> None:
    body = """
        TABLE = torch.arange(4, device='cuda')
        OTHER = torch.zeros(9, device='cuda')
        def entry(x):
            return TABLE[1:]
        """
    program = traced(body, X)
    assert kinds(program.steps) == ["Allocate", "Literal"]
    assert only(program.steps, Literal).values == (0, 1, 2, 3)
    assert program.results[0].offset == 1


def test_what_is_converted_among_the_arguments_of_a_long_call_has_its_own_line() -> None:
    """Of a launch over several lines, x.float() is at its line, and the launch where it begins"""
    body = """
    def entry(x):
        out = torch.empty_like(x)
        copy_kernel[(1,)](
            x.contiguous(),
            out,
            x.float().numel(),
            BLOCK=128,
        )
        return out
    """
    steps = traced(body, tensor(0, 100, dtype="float16")).steps
    copied = only(steps, Copy)
    assert copied.source is not None and copied.source.line == 15
    launch = only(steps, Launch)
    assert launch.source is not None and launch.source.line == 12


# --- The program of a backward pass, with the gradient of the result as its last input --------------------------------


SCALED = beside(__file__)["scaled"]
W = tensor(1, 3)


def gradient(wanted: list[int], upstream: View | None = None, entry: str = "entry") -> Program:
    with Tracer(submission(SCALED)) as tracer:
        return tracer.trace(entry, [X, W], wanted, upstream)


def test_the_program_holds_both_passes() -> None:
    program = gradient([0, 1])
    assert kinds(program.steps) == ["Allocate", "Launch", "Allocate", "Launch", "Allocate", "Fill"]
    assert program.inputs == (X, W, View(2, "float32", (100,), (1,)))
    backward = program.steps[3]
    assert isinstance(backward, Launch) and backward.grid == (2, 1, 1)
    assert backward.args[:2] == (program.inputs[2], program.results[0])
    assert [view.shape for view in program.results if isinstance(view, View)] == [(100,), (3,)]


def test_the_gradient_of_the_result_may_have_any_layout() -> None:
    upstream = View(5, "float32", (100,), (0,))
    program = gradient([0], upstream)
    assert program.inputs[2] == upstream and program.storages[5] == 4
    assert next(step for step in program.steps[::-1] if isinstance(step, Launch)).args[0] == upstream


def test_a_result_without_a_gradient_is_explained() -> None:
    with pytest.raises(TraceError) as caught:
        gradient([0], entry="plain")
    assert caught.value.cause is Cause.EXCEPTION
    assert "torch.autograd.Function" in caught.value.message


def test_an_error_in_the_backward_pass_has_its_line() -> None:
    body = SCALED.replace("w, = ctx.saved_tensors", "w, = ctx.saved_tensors; grad.sum().item()")
    with Tracer(submission(body)) as tracer, pytest.raises(TraceError) as caught:
        tracer.trace("entry", [X, W], [0])
    assert caught.value.cause is Cause.READS_VALUES and caught.value.line == 19


def test_a_gradient_that_is_not_given_is_none() -> None:
    with Tracer(submission(SCALED.replace("torch.zeros_like(w)", "None"))) as tracer:
        assert tracer.trace("entry", [X, W], [1]).results == (Scalar(None),)


# --- Negation and conjugation that torch puts off until a tensor is read are never lost -------------------------------


REAL = View(0, "float32", (4,), (1,))
COMPLEX = View(0, "complex64", (4,), (1,))
NEGATED = {
    "returned": "return torch._neg_view(x.clone())",
    "in a tuple": "return x.clone(), torch._neg_view(x.clone())",
    "a view of it": "return torch._neg_view(x.clone())[1:]",
    "cloned": "return torch._neg_view(x).clone()",
    "copied": "return torch.empty_like(x).copy_(torch._neg_view(x))",
    "made contiguous": "return torch._neg_view(x)[::2].contiguous()",
    "converted": "return torch._neg_view(x).to(torch.float64)",
    "written to": "y = torch.empty_like(x)\n    torch._neg_view(y).copy_(x)\n    return y",
    "filled": "y = torch.empty_like(x)\n    torch._neg_view(y).fill_(1.0)\n    return y",
    "marked by hand": "y = x.clone()\n    torch._C._set_neg(y, True)\n    return y",
}
CONJUGATED = {
    "returned": "return x.clone().conj()", "its imaginary part": "return x.clone().conj().imag",
    "cloned": "return x.conj().clone()",
    "marked by hand": "y = x.clone()\n    torch._C._set_conj(y, True)\n    return y",
}


def error(body: str, view: View) -> TraceError:
    with Tracer(Text(f"import torch\ndef entry(x):\n    {body}\n")) as tracer, pytest.raises(TraceError) as caught:
        pytest.fail(str(tracer.trace("entry", [view])))
    return caught.value


@pytest.mark.parametrize("body", [*NEGATED.values(), *CONJUGATED.values()], ids=[*NEGATED, *(f"conjugated {name}" for name in CONJUGATED)])
def test_a_negation_or_conjugation_that_is_put_off_is_computing_with_torch(body: str) -> None:
    found = error(body, COMPLEX if "conj" in body else REAL)
    assert found.cause is Cause.FORBIDDEN_OP and ("conjugated" in found.message or "negated" in found.message), found.message


def test_conjugating_real_numbers_is_nothing() -> None:
    with Tracer(Text("import torch\ndef entry(x):\n    return x.conj().clone().resolve_neg().mT.adjoint()\n")) as tracer:
        program = tracer.trace("entry", [View(0, "float32", (4, 3), (3, 1))])
    assert program.returned == "tensor"
