"""What torch makes of an entry in a model: found in the submission's process, without a GPU."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from gradekit.framework import Inspection
from gradekit.program import Program
from gradekit.sandbox import Tracer
from gradekit.tracer import compiled_model
from gradekit.tracer.loading import load
from tests.beside import beside

from .helpers import X, submission

Inspect = Callable[[str], Inspection]

OPERATORS = beside(__file__)["operators"]


@pytest.fixture(scope="module")
def traced() -> Iterator[tuple[Tracer, Program]]:
    """The one process of a submission, and its program before anything was inspected."""
    with Tracer(submission(OPERATORS)) as tracer:
        yield tracer, tracer.trace("visible", [X])


@pytest.fixture(scope="module")
def inspected(traced: tuple[Tracer, Program]) -> Inspect:
    """Of entries one after the other."""
    return lambda entry: traced[0].inspect(entry, [X])


@pytest.mark.parametrize("entry", ["visible", "by_name"])
def test_a_triton_op_is_an_operator_with_a_kernel_inside(entry: str, inspected: Inspect) -> None:
    seen = inspected(entry)
    assert seen.error == ""
    assert seen.schema == "tests::visible(Tensor x) -> Tensor"
    assert seen.kernels == 1
    assert set(seen.checks.values()) == {""} and len(seen.checks) == 4


def test_a_model_is_one_graph_in_both_passes(inspected: Inspect) -> None:
    seen = inspected("visible")
    assert seen.graphs == (("linear", "tests::visible", "mul"),)
    assert any("triton_kernel_wrapper" in name for name in seen.backward)


def test_a_custom_op_is_an_operator_without_a_kernel_to_be_seen(inspected: Inspect) -> None:
    seen = inspected("opaque")
    assert (seen.error, seen.schema, seen.kernels) == ("", "tests::opaque(Tensor x) -> Tensor", 0)


def test_an_operator_that_does_not_describe_its_result_cannot_be_compiled(inspected: Inspect) -> None:
    assert "faceless" in inspected("faceless").error


@pytest.mark.parametrize("entry", ["plain", "applied"])
def test_a_kernel_in_an_autograd_function_is_seen_and_no_operator(entry: str, inspected: Inspect) -> None:
    seen = inspected(entry)
    assert (seen.error, seen.schema, seen.kernels) == ("", "", 1)


def test_only_arguments_that_want_a_gradient_have_one_in_the_model(traced: tuple[Tracer, Program]) -> None:
    assert traced[0].inspect("frozen", [X, X]).error == ""
    assert "item" in traced[0].inspect("frozen", [X, X], (0, 1)).error


def test_code_that_reads_values_is_not_one_graph(inspected: Inspect) -> None:
    assert "item" in inspected("reads").error


def test_an_error_says_the_same_wherever_gradekit_and_torch_are_installed() -> None:
    text = f'File "{compiled_model.__file__}", line 1; File "{torch.__file__}", line 2'
    said = 'File "gradekit/tracer/compiled_model.py", line 1; File "torch/__init__.py", line 2'
    assert compiled_model.without_installation(text) == said


def test_an_inspection_leaves_tracing_as_it_was(traced: tuple[Tracer, Program]) -> None:
    tracer, before = traced
    first = tracer.inspect("visible", [X])
    assert tracer.trace("visible", [X]) == before
    assert tracer.inspect("visible", [X]) == first


def test_a_machine_that_cannot_compile_is_no_fault_of_a_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ImportError("no compiler is here")

    for name in ("TORCHDYNAMO_DISABLE", "TORCHINDUCTOR_CACHE_DIR", "LOGNAME"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(compiled_model.torch_compile, "prepare", broken)
    seen = compiled_model.inspect(load("def same(x):\n    return x\n", tmp_path), "same", [X], (0,))
    assert (seen["error"], seen["unavailable"]) == ("", "ImportError: no compiler is here")
