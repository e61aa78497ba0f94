"""A call as data: told from every other, and described as the tracer takes it."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit.inputs.spec import Input, normal, overlapping
from gradekit.inputs.strategies import shaped
from gradekit.program import Scalar, View
from gradekit.reuse import LruCache, Shared
from gradekit.subject import call_spec as module
from gradekit.subject.call_spec import call_spec, to_arguments


def test_equal_calls_are_one() -> None:
    assert call_spec("f", (normal((4,)), 2)) is call_spec("f", (normal((4,)), 2))


@pytest.mark.parametrize("other", [
    ("g", (normal((4,)),), ()),
    ("f", (normal((5,)),), ()),
    ("f", (normal((4,), seed=1),), ()),
    ("f", (Input("float32", (4,), (2,)),), ()),
    ("f", (normal((4,)), normal((4,))), ()),
    ("f", (normal((4,)), normal((4,))), (0,)),
])
def test_any_difference_is_another_call(other: tuple[str, tuple[Any, ...], tuple[int, ...]]) -> None:
    assert call_spec(*other) is not call_spec("f", (normal((4,)),))


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0.0, -0.0)])
def test_numbers_that_python_calls_equal_are_told_apart(one: Any, other: Any) -> None:
    assert call_spec("f", (one,)) is not call_spec("f", (other,))


def test_views_of_one_base_share_a_storage_however_they_were_made() -> None:
    x, y = overlapping(normal((4, 3), seed=5), 3)
    arguments = to_arguments((x, Input.from_json(y.to_json()), normal((4, 3), seed=5)))
    assert [(one.storage, one.offset) for one in arguments if isinstance(one, View)] == [(0, 0), (0, 3), (1, 0)]
    assert torch.equal(x.tensor()[1:], y.tensor()[:-1])
    assert call_spec("f", (x, y)) is not call_spec("f", (x, x))


def test_calls_with_a_tensor_are_apart_for_it_may_change() -> None:
    x = torch.zeros(3)
    assert call_spec("f", (x,)) is not call_spec("f", (x,))


def test_a_key_of_equal_tensors_is_the_same() -> None:
    assert call_spec("f", (torch.zeros(3), 1)).key == call_spec("f", (torch.zeros(3), 1)).key


def strided(gap: float) -> torch.Tensor:
    return torch.tensor([0.0, gap, 0.0, gap])[::2]


ONE = torch.zeros(4)


@pytest.mark.parametrize(("first", "second"), [
    ((torch.zeros(3),), (torch.ones(3),)),
    ((torch.zeros(3),), (torch.zeros(3).half(),)),
    ((torch.zeros(2, 2),), (torch.zeros(4),)),
    ((strided(1.0),), (strided(2.0),)),
    ((strided(1.0),), (torch.zeros(2),)),
    ((ONE, ONE), (ONE, ONE.clone())),
    ((ONE[:2], ONE[2:]), (ONE[:2], ONE[1:3])),
    ((ONE, normal((4,))), (ONE, normal((4,), seed=1))),
], ids=["values", "dtype", "shape", "between its elements", "strides", "one tensor", "views of one", "a spec beside"])
def test_a_key_tells_all_that_a_kernel_may_read(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    assert call_spec("f", first).key != call_spec("f", second).key


def test_a_call_that_was_forgotten_is_described_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_specs", Shared(lambda: LruCache(0)).current)
    first, again = (call_spec("f", (normal((4,)),)) for _ in range(2))
    assert first is not again and first.signature == again.signature


@settings(max_examples=200, deadline=None, derandomize=True)
@given(spec=st.integers(1, 3).flatmap(lambda rank: shaped([(0, 5)] * rank)))
def test_a_spec_is_the_view_that_its_tensor_is(spec: Input) -> None:
    assert to_arguments((spec,)) == to_arguments((spec.tensor(),))


def test_one_tensor_passed_twice_shares_its_storage_and_equal_ones_do_not() -> None:
    x = normal((4,))
    storages = [[view.storage for view in to_arguments((x, y)) if isinstance(view, View)] for y in (x, normal((4,)))]
    assert storages == [[0, 0], [0, 1]]
    assert call_spec("f", (x, x)) is not call_spec("f", (x, normal((4,))))


def test_views_of_one_tensor_share_its_storage() -> None:
    base = torch.arange(10.0)
    a, b, n = to_arguments((base[:5], base[5:], 3))
    assert a == View(0, "float32", (5,), (1,), 0) and b == View(0, "float32", (5,), (1,), 5)
    assert n == Scalar(3)
