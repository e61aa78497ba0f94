"""Claims about what a task leaves free: which of equal elements was chosen, and the order of a row."""

from types import SimpleNamespace

import pytest
import torch

from gradekit.judge.compare import any_order, assert_close, ties
from gradekit.judge.failure import Failure
from gradekit.judge.reference import conditioned, own_tolerance, reference

X = torch.tensor([[3.0, 7.0, 7.0, 1.0], [2.0, 2.0, 2.0, 9.0]])


def topk(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    values, places = torch.sort(x, dim=-1, descending=True, stable=True)
    return values[:, :2], places[:, :2]


VALUES = topk(X)[0]


@pytest.mark.parametrize("places", [[[1, 2], [3, 0]], [[2, 1], [3, 1]], [[2, 1], [3, 2]]])
def test_places_of_any_equal_elements_are_right(places: list[list[int]]) -> None:
    assert_close([VALUES, torch.tensor(places)], reference(topk, X), up_to=ties(X))


@pytest.mark.parametrize(
    "places", [[[2, 2], [3, 0]], [[2, 0], [3, 0]], [[2, 4], [3, 0]], [[-1, 2], [3, 0]], [[1, 2], [0, 1]]]
)
def test_a_place_twice_or_of_another_element_or_outside_is_wrong(places: list[list[int]]) -> None:
    with pytest.raises(Failure, match="of result 1 are wrong|of result 1 is wrong"):
        assert_close([VALUES, torch.tensor(places)], reference(topk, X), up_to=ties(X))


def test_wrong_values_beside_right_places_are_wrong_and_a_wrong_dtype_is_told() -> None:
    with pytest.raises(Failure, match="of result 0"):
        assert_close([VALUES + 1, topk(X)[1]], reference(topk, X), up_to=ties(X))
    with pytest.raises(Failure, match="is int32, and must be int64"):
        assert_close([VALUES, topk(X)[1].int()], reference(topk, X), up_to=ties(X))


def test_elements_in_any_order_are_right_and_pairs_stay_together() -> None:
    keys, numbers = torch.tensor([5, 2, 5]), torch.tensor([10, 30, 20])
    wanted = reference(lambda k, n: (k, n), keys, numbers)
    assert_close([torch.tensor([2, 5, 5]), torch.tensor([30, 20, 10])], wanted, up_to=any_order())
    with pytest.raises(Failure):
        assert_close([torch.tensor([2, 5, 5]), torch.tensor([20, 30, 10])], wanted, up_to=any_order())
    with pytest.raises(Failure):
        assert_close([torch.tensor([2, 2, 5]), torch.tensor([30, 20, 10])], wanted, up_to=any_order())


def test_the_same_observation_may_be_wrong_where_nothing_is_free() -> None:
    """A result that was right up to ties is not remembered as right."""
    seen = SimpleNamespace(results=[VALUES, torch.tensor([[2, 1], [3, 1]])])
    assert_close(seen, reference(topk, X), up_to=ties(X))
    with pytest.raises(Failure):
        assert_close(seen, reference(topk, X))


# --- allowances that an author need not work out ---------------------------------------------------------------------


def cancelling(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x * y).sum(-1)


def test_conditioned_leaves_room_where_terms_cancel_and_nowhere_else() -> None:
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(64, 4096, generator=generator) for _ in range(2))
    y[:, 1::2] = -y[:, ::2] * x[:, ::2] / x[:, 1::2] * 1.001
    in_turn = torch.stack(list((x * y).unbind(-1))).cumsum(0)[-1]
    expected = reference(cancelling, x, y, scale=conditioned(cancelling))
    assert_close(in_turn, expected)
    with pytest.raises(Failure):
        assert_close((x.half() * y.half()).float().sum(-1), expected)
    plain = reference(torch.exp, x, scale=conditioned(torch.exp))
    assert bool((plain.allowance <= 600 * torch.finfo(torch.float32).eps * (1 + x.abs()) * x.double().exp()).all())


def test_a_tolerance_of_ones_own_has_a_reason_that_is_read() -> None:
    x = torch.tensor([1.0, 100.0])
    expected = reference(torch.sin, x, bound=own_tolerance(torch.sin, "A table of 256 is wanted.", absolute=0.01))
    assert_close(torch.sin(x) + 0.009, expected)
    with pytest.raises(Failure, match=r"This check allows 0\.01: A table of 256 is wanted\."):
        assert_close(torch.sin(x) + 0.011, expected)
    for why, relative in (("", 0.1), ("none", 0.0), ("less than none", -0.1)):
        with pytest.raises(ValueError, match="needs a positive number and a reason"):
            own_tolerance(torch.sin, why, relative=relative)
