"""What tells the calls of a check that are wrong from those that are right: a special value, or a size at a tile's end."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from gradekit.assignment import get
from gradekit.inputs.spec import Input
from gradekit.judge.by_calls import special_values
from gradekit.judge.memory_checks import sizes_of

Judged = tuple[Sequence[Input], Tensor, Tensor]


def judged(profile: str, wrong: Callable[[Tensor], Tensor], exact: Callable[[Tensor], Tensor] = torch.ones_like) -> Judged:
    """A call of an input with values of a kind, and where its elements are wrong."""
    x = Input("float32", (3, 8), (8, 1), profile=profile, seed=1)
    return [x], exact(x.tensor()), wrong(x.tensor())


def at_zero(x: Tensor) -> Tensor:
    return x == 0


def in_half(x: Tensor) -> Tensor:
    return at_zero(x) & (torch.arange(8) > 3)


def nowhere(x: Tensor) -> Tensor:
    return torch.zeros(x.shape, dtype=torch.bool)


@pytest.mark.parametrize(("calls", "what"), [
    ([judged("first_row_zero", at_zero)], "0"),
    ([judged("zeros", at_zero), judged("normal", nowhere)], "0"),
    ([judged("normal", lambda x: x < 0)], "below 0"),
    ([judged("normal", lambda x: x == x.amax(-1, keepdim=True))], "the largest of its row"),
    ([judged("first_row_zero", in_half, lambda x: (in_half(x) | ~at_zero(x)).double())], "0"),  # 0 is right in the other half
    ([judged("zeros", at_zero)], None),  # of nothing that is right
    ([judged("first_row_zero", at_zero), judged("zeros", nowhere)], None),  # right there in another call
    ([judged("first_row_zero", in_half)], None),
    ([judged("normal", lambda x: x > 0.3)], None),
])
def test_elements_are_wrong_just_where_an_input_has_a_special_value(calls: Sequence[Judged], what: str | None) -> None:
    found = special_values(calls, ["x"])
    assert (found.sentence if found is not None else None) == (what and f"Just those elements are wrong where `x` is {what}.")


def test_a_call_with_fewer_arguments_as_the_other_pass_has_is_left_out() -> None:
    x, exact, wrong = judged("first_row_zero", at_zero)
    found = special_values([([*x, *x], exact, wrong), (x, exact, ~wrong)], ["x", "the gradient of the result"])
    assert found is not None
    assert found.sentence == "Just those elements are wrong where `x` is 0."


def test_what_backward_is_given_is_taken_for_no_number_that_a_call_leaves_out() -> None:
    domain = get("layer_norm").domain["layer_norm"]
    x, line = Input("float32", (3, 8), (8, 1)), Input("float32", (8,), (1,))
    assert sizes_of(domain, [x, line, line, x]) == sizes_of(domain, [x, line, line, 1e-5]) == {"M": 3, "N": 8}
