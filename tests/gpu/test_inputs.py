"""Claims about inputs that are made where they are needed. The CPU's generator stands in for the card's."""

import dataclasses

import pytest
import torch

from gradekit.assignment import beside, get
from gradekit.domain.entries import COMMON_KINDS
from gradekit.gpu.inputs import PROFILES, make, make_set
from gradekit.gpu.server import kinds_of
from gradekit.inputs import value_kinds
from gradekit.inputs.spec import FLOATS, Input
from gradekit.inputs.value_kinds import PROFILES as ALL

X = Input("float32", (64, 33), (33, 1))


def drawn(spec: Input, seed: int = 1) -> torch.Tensor:
    return make(spec, seed, "cpu")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dtype", (*FLOATS, "int32", "int8", "bool"))
def test_an_input_has_the_form_of_its_spec(profile: str, dtype: str) -> None:
    spec = dataclasses.replace(X, dtype=dtype, profile=profile)
    tensor = drawn(spec)
    assert (tensor.dtype, tensor.shape, tensor.stride()) == (getattr(torch, dtype), spec.shape, spec.stride)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    assert torch.equal(drawn(X, 5), drawn(X, 5))
    assert not torch.equal(drawn(X, 5), drawn(X, 6))


def test_strides_and_offset_are_kept_and_what_lies_between_is_poison() -> None:
    spec = Input("float32", (4, 6), (10, 1), offset=3)
    tensor = drawn(spec)
    whole = tensor.as_strided((spec.storage_size,), (1,), 0)
    assert (tensor.stride(), tensor.storage_offset()) == ((10, 1), 3)
    assert tensor.isfinite().all()
    assert whole.isnan().sum() == whole.numel() - 24


def test_a_dimension_of_stride_zero_has_one_value_and_one_of_no_elements_none() -> None:
    tensor = drawn(Input("float32", (5, 7), (0, 1)))
    assert torch.equal(tensor[0], tensor[4])
    assert drawn(Input("float32", (0, 5), (5, 1))).shape == (0, 5)


def test_values_are_of_the_kind_that_the_spec_names() -> None:
    assert drawn(dataclasses.replace(X, profile="ones")).eq(1).all()
    assert 0.9 < drawn(X).std() < 1.1
    assert drawn(dataclasses.replace(X, profile="positive")).min() >= 0.125
    assert set(drawn(dataclasses.replace(X, profile="integers")).unique().tolist()) <= set(range(-8, 9))


def test_every_common_kind_of_values_is_made_on_the_card() -> None:
    assert set(COMMON_KINDS) <= set(PROFILES)


@pytest.mark.parametrize("profile", sorted(set(ALL) - set(PROFILES)))
def test_other_kinds_of_values_come_from_the_spec_itself(profile: str) -> None:
    spec = dataclasses.replace(X, profile=profile)
    expected = dataclasses.replace(spec, seed=7).tensor()
    assert torch.equal(drawn(spec, 7).nan_to_num(1e9), expected.nan_to_num(1e9))
    assert drawn(spec, 7).data_ptr() != expected.data_ptr()  # a kernel that writes to it must not spoil the test's own


def test_sets_and_arguments_of_equal_specs_differ_and_one_spec_that_is_passed_twice_is_one_tensor() -> None:
    first, second = (make_set([X, dataclasses.replace(X)], number, "cpu") for number in range(2))
    assert not torch.equal(first[0], second[0]) and not torch.equal(first[0], first[1])
    x, y, *numbers = make_set([X, X, 3, 2.5, None, True], 4, "cpu")
    assert x is y and numbers == [3, 2.5, None, True]


def test_a_kind_of_an_assignment_is_made_where_the_assignment_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    beside(get("spmm").tests, "sparse")
    spec = Input("int32", (5,), (1,), profile="crow:4:9:ragged:3")
    here, texts = spec.tensor().clone(), kinds_of([spec, X, 3])
    monkeypatch.setattr(value_kinds, "_added", {})
    with pytest.raises(ValueError, match="there is no kind of values"):
        Input.from_json(spec.to_json())
    value_kinds.add_from(texts)
    assert torch.equal(make(Input.from_json(spec.to_json()), 7, "cpu"), here)
    assert kinds_of([spec]) == texts
