"""Lines of torch make the tensors of specs again."""

from typing import Any

import pytest
import torch

from gradekit.inputs import as_text
from gradekit.inputs.spec import Input, normal, overlapping
from gradekit.plugin.check_results import _makers

EXACT = {
    "contiguous": normal((2, 3)), "half": Input("float16", (5,), (1,), seed=3),
    "bfloat16": Input("bfloat16", (5,), (1,), seed=3), "integers": Input("int32", (4,), (1,), profile="integers"),
    "booleans": Input("bool", (4,), (1,), profile="integers"), "transposed": Input("float32", (3, 2), (1, 3), seed=1),
    "sliced, with an offset": Input("float32", (2, 3), (8, 2), 5), "expanded": Input("float32", (4, 3), (0, 1)),
    "one number": Input("float32", (), ()), "infinities": Input("float32", (2, 3), (3, 1), profile="neg_inf_first"),
    "none": Input("float32", (0, 3), (3, 1)), "many": Input("float32", (30, 30), (30, 1), profile="spike"),
    "many, strided": Input("float16", (30, 20), (50, 2), 3),
}


def test_tensors_of_one_storage_are_made_as_views_of_one() -> None:
    x, y = overlapping(Input("float32", (3, 5), (10, 2), profile="spike"), 1)
    lines = "\n".join(_makers(["x", "y", "z", "n"], [x, y, y, 3])).replace('"cuda"', '"cpu"')
    names: dict[str, Any] = {"torch": torch, "Input": Input}
    exec(lines, names)  # noqa: S102
    assert torch.equal(names["x"], x.tensor()) and torch.equal(names["y"], y.tensor())
    assert names["y"].untyped_storage().data_ptr() == names["x"].untyped_storage().data_ptr()
    assert names["y"].storage_offset() - names["x"].storage_offset() == 1 and names["n"] == 3


def test_one_tensor_given_twice_is_made_once() -> None:
    x = normal((3,))
    assert [*_makers(["x", "y"], [x, x])][1:] == ["y = x"]
    assert [*_makers(["x", "y"], [x, normal((3,))])][1:] != ["y = x"]


def made(spec: Input) -> torch.Tensor:
    found = eval(as_text.expression(spec, '"cpu"'), {"torch": torch, "Input": Input})
    assert isinstance(found, torch.Tensor)
    return found


@pytest.mark.parametrize("spec", EXACT.values(), ids=EXACT)
def test_few_numbers_are_written_out(spec: Input) -> None:
    """... to the last bit, with the strides and the offset of the spec"""
    tensor = made(spec)
    assert torch.equal(tensor, spec.tensor()) and tensor.dtype == spec.tensor().dtype
    assert (tensor.stride(), tensor.storage_offset()) == (spec.stride, spec.offset) or spec.is_contiguous


@pytest.mark.parametrize(("dtype", "between"), [("float16", "nan"), ("int32", "2147483647"), ("bool", "True")])
def test_what_lies_between_elements_is_seen_where_it_is_read(dtype: str, between: str) -> None:
    tensor = made(Input(dtype, (3,), (2,), profile="ones"))
    assert str(tensor.as_strided((1,), (1,), 1).item()) == between


def test_numbers_have_no_more_digits_than_they_need() -> None:
    assert as_text.written(torch.tensor([0.1, 1.0, float("-inf"), 1 / 3])) == '[0.1, 1.0, float("-inf"), 0.33333334]'
    assert as_text.written(torch.tensor(0.1, dtype=torch.bfloat16)) == "0.1"


def test_many_are_not_listed() -> None:
    assert as_text.few(torch.arange(3), 3) == ["0", "1", "2"]
    assert as_text.few(torch.arange(4), 3) is None
