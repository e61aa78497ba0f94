"""Every common mistake is explained at the student's line, with Triton's own words and a hint."""

import pytest
import triton

from gradekit.findings import Cause
from gradekit.program import View
from gradekit.sandbox import TraceError, Tracer
from gradekit.tracer import hints

from .broken import MISTAKES, Broken

X = View(0, "float32", (300,), (1,))


def refused(submission: Broken) -> TraceError:
    with Tracer(submission) as tracer:
        tracer.load()
        with pytest.raises(TraceError) as caught:
            tracer.trace("entry", [X])
    return caught.value


def test_what_makes_no_sense_in_a_kernel_compiles_where_it_changes_nothing() -> None:
    """A kernel may end early, and call functions that return values"""
    before = "@triton.jit\ndef double(v):\n    return v * 2"
    body = "if n > 1000:\n    return\ntl.store(out_ptr + offsets, double(x), mask=offsets < n)"
    with Tracer(Broken("right", "", "", body=body, before=before)) as tracer:
        tracer.load()
        assert len(tracer.trace("entry", [X]).kernels) == 1


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_common_mistake_is_explained_at_its_line(mistake: Broken) -> None:
    """The line is the student's, and the message ends in a hint"""
    if triton.__version__.startswith(mistake.taken_by):
        pytest.skip("this Triton compiles it")
    error = refused(mistake)
    assert error.cause in (Cause.COMPILATION_ERROR, Cause.EXCEPTION)
    assert error.line == mistake.line
    said, _, hint = error.message.partition("\n")
    assert mistake.hint in hint, error.message
    assert said and said not in hint
    assert error.message == f"{error.said}\n{error.hint}"


def test_who_has_block_pointers_that_triton_has_removed_is_told_what_takes_their_place() -> None:
    for said in (
        "Block pointers have been removed in favor of the tensor descriptor API",
        "module 'triton.language' has no attribute 'make_block_ptr'",
    ):
        assert "tl.make_tensor_descriptor(base, shape, strides, block_shape)" in hints.hint(said)
        assert "mask=offsets < n" in hints.hint(said)


def test_a_compilation_error_shows_what_triton_tells() -> None:
    """Triton's own text, with its excerpt of the source, stands in the detail"""
    mistake = next(mistake for mistake in MISTAKES if mistake.name == "arange size")
    error = refused(mistake)
    assert error.cause is Cause.COMPILATION_ERROR
    assert "arange's range must be a power of 2" in error.message
    assert "y = tl.arange(0, 100)\n        ^" in error.detail


def test_of_shapes_that_do_not_fit_the_lines_that_made_them_are_named() -> None:
    """... and the reduction that lost a dimension is named with its cure"""
    body = "tile = tl.zeros([128, 16], tl.float32)\ntotal = tl.sum(tile, axis=1)\ntl.store(out_ptr + offsets, tile / total)"
    mistake = Broken("lost dimension", "", "tile / total", body=body)
    message = refused(mistake).message
    assert f"`tile` is made on line {mistake.line - 2} and `total` is made on line {mistake.line - 1}." in message
    assert "`total` removes a dimension: give it keep_dims=True, or write total[:, None]." in message


def test_a_reduction_inside_the_refused_expression_is_named_too() -> None:
    mistake = Broken("lost", "", "tile - tl.max", body="tile = tl.zeros([16, 64], tl.float32)\ny = tile - tl.max(tile, axis=1)")
    assert "The reduction that makes `tl.max(tile, axis=1)` removes a dimension" in refused(mistake).message


@pytest.mark.parametrize(
    "use", ["tl.store(out_ptr + tl.arange(0, 16), tl.sum(tile, axis=1))", "y = tl.zeros([16], tl.float32) + total"]
)
def test_a_reduction_along_another_axis_is_not_told_to_keep_its_dimension(use: str) -> None:
    body = f"tile = tl.zeros([32, 16], tl.float32)\ntotal = tl.sum(tile, axis=1)\n{use}"
    message = refused(Broken("other axis", "", use, body=body)).message
    assert "go along the right axis?" in message and "keep_dims" not in message


def test_a_variable_that_changes_in_a_loop_is_named_where_it_begins() -> None:
    body = "acc = 0\nfor i in range(0, n):\n    acc += 0.5\ntl.store(out_ptr, acc)"
    mistake = Broken("changes", "", "for i in", body=body)
    assert f"`acc` begins on line {mistake.line - 1}: `acc = 0`." in refused(mistake).message


@pytest.mark.parametrize("use", ["y = late + 1", "late = late + 1"])
def test_a_name_that_a_line_below_gives_a_value_is_told_to_come_before(use: str) -> None:
    """Where a line above has given it one, in a branch say, the order is not what is wrong"""
    below = Broken("below", "", use, body=f"{use}\nlate = tl.load(x_ptr)\ntl.store(out_ptr, late)")
    assert f"`late` gets its value below, on line {below.line + 1}." in refused(below).message
    branch = "if n > 8:\n    late = 1.0\ny = late + 1\nlate = 2.0\ntl.store(out_ptr, late + y)"
    assert "below" not in refused(Broken("branch", "", "y = late", body=branch)).message


def test_two_ranges_that_meet_are_told_how_they_make_a_tile() -> None:
    body = "rows = 4 + tl.arange(0, 16)\ncols = tl.arange(0, 64)\ny = tl.load(x_ptr + rows + cols)"
    assert "rows[:, None] and cols[None, :]" in refused(Broken("flat", "", "rows + cols", body=body)).message


@pytest.mark.parametrize(("said", "advice"), [
    ("RuntimeError: Only `range` and `static_range` iterators are currently supported", "range(...) alone"),
    ("nested function definition is not supported.", "@triton.jit above"),
    ("simultaneous multiple comparison is not supported", "(0 <= x) & (x < n)"),
    ("create_reduce(): incompatible function arguments", "tl.maximum"),
    ("'tuple' object has no attribute 'dtype'", "x.shape[0]"),
    ("AttributeError: module 'triton.language' has no attribute 'float'", "tl.float32"),
    ("AttributeError: 'int' object has no attribute 'to'", "In tl.rand(seed, offsets)"),
    ("Expected dtype ['fp32', 'fp64'] but got fp16", ".to(tl.float32)"),
    ("'math.sqrt' op operand #0 must be floating-point-like, but got 'i32'", "2.0 for 2"),
    ("Expected dtype ['fp32', 'fp64'] but got int32", "takes floats alone"),
])
def test_what_another_release_of_triton_says_is_understood(said: str, advice: str) -> None:
    assert advice in hints.hint(f"Triton cannot compile `kernel`: {said}")


@pytest.mark.parametrize(("said", "advice"), [
    ("ValueError: not enough values to unpack (expected 2, got 1)", '"course::NAME"'),
    ("ValueError: not enough values to unpack (expected 2, got 0)", "ctx.save_for_backward"),
    ("ValueError: not enough values to unpack (expected 2, got 1)", "x.shape[-1]"),
    ("ValueError: too many values to unpack (expected 2)", "x.shape[-1]"),
    ("RuntimeError: function DropoutBackward returned an incorrect number of gradients (expected 3, got 1)", "None"),
    ("RuntimeError: Trying to backward through a.b.default but no autograd formula was registered.", "register_autograd"),
    ("AttributeError: 'DropoutBackward' object has no attribute 'p'", "ctx.p = p"),
    ("ValueError: infer_schema(func): Parameter x must have a type annotation.", "torch.Tensor"),
    ("TypeError: save_for_backward can only save variables, but argument 5 is of type bool", "ctx.causal = causal"),
    ("TypeError: setup_context() got an unexpected keyword argument 'inputs'", "def setup_context(ctx, inputs, output)"),
    ("cannot convert tensor([0.2955]) of type <class 'torch.Tensor'> to tensor", "tl.rand for torch.rand"),
    ("ZeroDivisionError: float division by zero", "never 0"),
    ("IndexError: tuple index out of range", "x.shape[-1]"),
    ("IndexError: Dimension out of range (expected to be in range of [-1, 0], but got 1)", "x.dim()"),
    ("RecursionError: maximum recursion depth exceeded", "calls itself"),
    ("AttributeError: 'NoneType' object has no attribute 'shape'", "without `return`"),
    ("UnboundLocalError: cannot access local variable 'out' where it is not associated with a value", "before"),
    ("RuntimeError: view size is not compatible with input tensor's size and stride", "reshape()"),
    ("RuntimeError: shape '[4, 4]' is invalid for input of size 15", "x.numel()"),
    ("NameError: name 'tl' is not defined. Did you mean: 'dtl'?", "import triton.language as tl"),
    ("TypeError: unsupported operand type(s) for //: 'torch.Size' and 'int'", "x.shape[0]"),
])
def test_what_python_and_torch_say_of_host_code_operators_and_gradients_is_explained(said: str, advice: str) -> None:
    assert advice in hints.hint(said)


def test_a_misspelt_argument_is_told_what_it_is_called() -> None:
    assert hints.hint("load() got an unexpected keyword argument 'others'") == "tl.load has no `others`: write other=."
    assert hints.hint("entry() got an unexpected keyword argument 'others'") == ""
