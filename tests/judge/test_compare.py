"""Claims about what counts as right, and about what is said of a wrong result."""

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit.findings import Cause, Finding
from gradekit.inputs.spec import Input, normal
from gradekit.judge.compare import any_order, assert_close, ties
from gradekit.judge.contents import Results, content
from gradekit.judge.failure import Failure
from gradekit.judge.reference import Reference, conditioned, own_tolerance, reference
from gradekit.judge.tolerance import rounded_once
from gradekit.judge.trivial import TRIVIAL_RESULTS, round_lower

X = Input("float32", (3, 33), (33, 1))


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def failure(actual: Any, expected: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        assert_close(actual, expected)
    json.dumps(caught.value.facts, allow_nan=False)
    return caught.value


def exactly(*values: float, dtype: torch.dtype = torch.float32) -> Reference:
    """A reference of these values."""
    return reference(lambda x: x, torch.tensor(values, dtype=dtype))


# --- the reference ---------------------------------------------------------------------------------------------------


def test_a_reference_is_exact_in_float64_and_has_the_form_of_the_inputs() -> None:
    x = Input("float16", (3, 5), (10, 2))
    expected = reference(softmax, x)
    assert torch.equal(expected.exact, torch.softmax(x.tensor().double(), -1))
    assert (expected.native.dtype, expected.allowance.dtype) == (torch.float16, torch.float64)
    assert expected.allowance.shape == expected.native.shape == (3, 5)


def test_the_function_cannot_change_the_inputs() -> None:
    before = X.tensor().clone()
    reference(lambda x: x.mul_(2), X)
    assert torch.equal(X.tensor(), before)


def test_numbers_and_integer_tensors_are_passed_on_as_they_are() -> None:
    rows = Input("int64", (3,), (1,), profile="ones")
    expected = reference(lambda x, rows, scale: x[rows] * scale, X, rows, 2.0)
    assert torch.equal(expected.exact, X.tensor().double()[[1, 1, 1]] * 2)


def test_a_function_with_several_results_gives_several_references() -> None:
    expected = reference(lambda x: (x.amax(-1), x.argmax(-1)), X)
    assert_close([X.tensor().amax(-1), X.tensor().argmax(-1)], expected)
    second = failure([X.tensor().amax(-1), X.tensor().argmin(-1)], expected)
    assert "result 1" in second.message and second.facts["result"] == 1


# --- right results ---------------------------------------------------------------------------------------------------


def test_the_native_result_is_right_as_a_tensor_and_as_an_observation() -> None:
    expected = reference(softmax, X)
    assert_close(expected.native, expected)
    assert_close(SimpleNamespace(results=[expected.native], findings=[]), expected)


def test_an_empty_result_is_right() -> None:
    assert_close(torch.empty(0, 4), reference(lambda x: x, torch.empty(0, 4)))


def test_a_scalar_result_is_compared_like_any_other() -> None:
    expected = reference(lambda x: x.sum(), X)
    assert_close(expected.native, expected)
    assert failure(expected.native + 1, expected).facts["total"] == 1


def test_integers_must_be_equal_and_wrap_around_like_torch() -> None:
    x = torch.tensor([2**31 - 1, 5], dtype=torch.int32)
    expected = reference(lambda x: x + x, x)
    assert_close(torch.tensor([-2, 10], dtype=torch.int32), expected)
    wrong = failure(torch.tensor([-2, 11], dtype=torch.int32), expected)
    assert wrong.cause is Cause.WRONG_VALUES and wrong.facts["first"]["expected"] == "10"


def test_one_number_is_told_without_a_count_and_what_rounding_leaves_of_zero_as_about_zero() -> None:
    expected = reference(lambda x: (x - x.mean()).sum(), X)
    assert failure(torch.tensor(8.0), expected).message.startswith("At float32: the result is wrong, got 8, expected")
    near = failure(torch.tensor([8.0]), reference(lambda x: (x - x.mean()).sum()[None] + 1e-13, X)).message
    assert near == "At shape [1], float32: the result is wrong, got 8, expected about 0."


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_copy_may_not_round_nor_lose_the_sign_of_zero(dtype: torch.dtype) -> None:
    values = torch.tensor([-0.0, 0.0, 1.0, math.nan, -math.inf], dtype=dtype)
    copied = reference(lambda x: x.clone(), values, steps="copied")
    assert_close(values.clone(), copied)
    assert "1 of 5 elements is wrong, first at [0]: got 0, expected -0" in failure(values + 0, copied).message
    off = values.clone()
    off[2] = 1 + torch.finfo(dtype).eps
    assert "first at [2]" in failure(off, copied).message
    other = values.clone()
    other[3:4].view(torch.int16)[:1] ^= 5  # the lowest bits of the NaN
    assert "first at [3]: got nan (7f" in failure(other, copied).message
    assert_close(values + 0, reference(lambda x: x.clone(), values))  # what is computed may lose it


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_operation_of_the_dtype_has_one_right_result_subnormal_ones_too(dtype: torch.dtype) -> None:
    least = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    x, y = torch.tensor([3 * least, 1.0, 0.0], dtype=dtype), torch.tensor([4 * least, 0.001, math.inf], dtype=dtype)
    once = reference(lambda x, y: x + y, x, y, steps="once")
    assert_close(x + y, once)
    for place, off in ((0, least), (1, torch.finfo(dtype).eps)):
        wrong = x + y
        wrong[place] += off
        assert f"first at [{place}]" in failure(wrong, once).message


def test_the_nan_of_another_element_is_a_wrong_copy_and_none_that_was_made() -> None:
    copied = reference(lambda x: x.clone(), torch.tensor([1.0, 2.0, math.nan]), steps="copied")
    assert failure(torch.tensor([2.0, math.nan, 1.0]), copied).cause == Cause.WRONG_VALUES
    assert failure(torch.tensor([1.0, math.nan, math.nan]), copied).cause == Cause.NAN


def test_an_overflow_that_torch_has_too_is_right_either_way() -> None:
    x = torch.tensor([60000.0, 1.0], dtype=torch.float16)
    expected = reference(lambda x: x * x / x, x)  # native: inf; exact: 60000
    assert_close(torch.tensor([math.inf, 1.0], dtype=torch.float16), expected)
    assert_close(x, expected)
    assert failure(torch.tensor([-math.inf, 1.0], dtype=torch.float16), expected).facts["inf"] == 1


def test_a_result_beyond_the_dtype_may_be_infinite_or_within_rounding_of_the_maximum() -> None:
    x = torch.tensor([65504.0], dtype=torch.float16)
    just_over = reference(lambda x: x + 10, x)
    for right in (math.inf, 65504.0):
        assert_close(torch.tensor([right], dtype=torch.float16), just_over)
    far_over = reference(lambda x: x * 2, x)
    assert_close(torch.tensor([math.inf], dtype=torch.float16), far_over)
    assert failure(x, far_over).facts["wrong"] == 1


def test_nan_and_infinity_are_right_where_the_reference_has_them() -> None:
    expected = exactly(math.nan, math.inf, -math.inf, 1.0)
    assert_close(torch.tensor([math.nan, math.inf, -math.inf, 1.0]), expected)
    assert failure(torch.tensor([0.0, math.inf, -math.inf, 1.0]), expected).facts["first"]["index"] == [0]
    assert failure(torch.tensor([math.nan, -math.inf, -math.inf, 1.0]), expected).facts["first"]["index"] == [1]
    assert failure(torch.tensor([math.nan, math.inf, -3.4e38, 1.0]), expected).facts["first"]["index"] == [2]


def test_a_flushed_subnormal_is_right() -> None:
    assert_close(torch.tensor([0.0]), exactly(1e-39))


# --- wrong results ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("actual", "cause", "said"), [
    (None, Cause.WRONG_TYPE, "The result must be a tensor, and is None. Is there a return at the end?"),
    (3.5, Cause.WRONG_TYPE, "The result must be a tensor, and is of Python's type float."),
    ([], Cause.WRONG_TYPE, "0 results came back, and there must be 1."),
    (torch.zeros(3, 32), Cause.WRONG_SHAPE, "The result has shape [3, 32], and must have [3, 33]."),
    (torch.zeros(3, 33).half(), Cause.WRONG_DTYPE, "The result is float16, and must be float32."),
])
def test_a_result_of_the_wrong_form_is_told_apart(actual: Any, cause: Cause, said: str) -> None:
    wrong = failure(actual, reference(softmax, X))
    assert (wrong.cause, wrong.message, wrong.comparison) == (cause, said, None)


@pytest.mark.parametrize(("places", "said"), [
    ([(0, 0, 4), (1, 0, 4)], "All wrong elements are in index 0 of dimension 1 and index 4 of dimension 2."),
    ([(0, 1, 2), (0, 2, 3)], "index 0 of dimension 0 and the last 2 indices of dimension 1 and indices 2 to 3 of dimension 2."),
])
def test_wrong_elements_of_more_dimensions_are_placed_in_plain_words(places: list[tuple[int, ...]], said: str) -> None:
    expected = reference(lambda x: 2 * x, Input("float32", (2, 3, 6), (18, 6, 1)))
    actual = expected.native.clone()
    for place in places:
        actual[place] += 7
    assert failure(actual, expected).message.endswith(said)


def test_wrong_values_are_counted_and_placed() -> None:
    expected = reference(softmax, X)
    actual = expected.native.clone()
    actual[1:, 32] += 0.5
    wrong = failure(actual, expected)
    assert wrong.cause is Cause.WRONG_VALUES
    assert wrong.message.startswith("At shape [3, 33], float32: 2 of 99 elements are wrong, first at [1, 32]: got 0.5")
    assert wrong.message.endswith("All wrong elements are in the last 2 rows and the last column.")
    assert wrong.facts["along"] == [
        {"indices": 2, "of": 3, "first": 1, "last": 2},
        {"indices": 1, "of": 33, "first": 32, "last": 32},
    ]
    assert wrong.comparison is not None and wrong.comparison.wrong_count == 2


def test_the_worst_element_is_named_beside_the_first() -> None:
    wrong = failure(torch.tensor([1.0, 2.001, 5.0]), exactly(1.0, 2.0, 3.0))
    assert wrong.facts["first"]["index"] == [1] and wrong.facts["worst"]["index"] == [2]
    assert "The worst is at [2]: got 5, expected 3" in wrong.message
    times = float(wrong.facts["worst"]["in_allowances"])
    assert times > 1000 and f"off by {times:,.0f} times what rounding allows" in wrong.message


def test_nan_comes_before_wrong_values_and_infinity_is_said() -> None:
    wrong = failure(torch.tensor([9.0, math.nan, 3.0]), exactly(1.0, 2.0, 3.0))
    assert wrong.cause is Cause.NAN and "2 of 3 elements are wrong, 1 of them NaN" in wrong.message
    all_nan = failure(torch.tensor([1.0, math.nan, 3.0]), exactly(1.0, 2.0, 3.0))
    assert "1 of 3 elements is NaN and must not be" in all_nan.message
    infinite = failure(torch.tensor([1.0, math.inf, 3.0]), exactly(1.0, 2.0, 3.0))
    assert infinite.cause is Cause.WRONG_VALUES and "is infinite and must not be" in infinite.message


@pytest.mark.parametrize("cause", [Cause.BUDGET_EXCEEDED, Cause.DEVICE_ASSERT])
def test_a_run_that_was_stopped_says_why_instead_of_comparing(cause: Cause) -> None:
    stopped = SimpleNamespace(results=[None], findings=[Finding(cause, "stopped", line=9)])
    wrong = failure(stopped, reference(softmax, X))
    assert (wrong.cause, wrong.message, wrong.line) == (cause, "Line 9: stopped.", 9)


def test_every_configuration_of_an_autotuned_kernel_must_be_right() -> None:
    expected = reference(softmax, X)
    right = SimpleNamespace(results=[expected.native], circumstance="with the configuration BLOCK=64")
    wrong = SimpleNamespace(results=[expected.native + 1], circumstance="with the configuration BLOCK=128")
    assert_close(SimpleNamespace(results=[expected.native], findings=[], variants=[right]), expected)
    told = failure(SimpleNamespace(results=[expected.native], findings=[], variants=[right, wrong]), expected)
    assert told.message.startswith("With the configuration BLOCK=128: at shape [3, 33], float32: 99 of 99 elements")
    assert told.comparison is not None and told.facts["wrong"] == 99


def test_a_trivial_result_is_judged_in_place_of_the_results() -> None:
    expected = reference(softmax, X)
    right = SimpleNamespace(results=[], findings=[], substitute=lambda results: results)
    assert_close(right, expected)
    zero = SimpleNamespace(results=[], findings=[], substitute=lambda results: [r * 0 for r in results])
    assert failure(zero, expected).facts["wrong"] == 99


# --- what was compared before ----------------------------------------------------------------------------------------


class Known:
    """An observation of the tensor `value`, which counts how often somebody looks at it."""

    def __init__(self, value: torch.Tensor) -> None:
        self.looked = 0
        self.results = Results([content(value)], self._made)
        self._value = value

    def _made(self) -> list[torch.Tensor]:
        self.looked += 1
        return [self._value.clone()]


def doubled(seed: int) -> Reference:
    expected: Reference = reference(lambda x: 2 * x, normal((4,), seed=seed))
    return expected


def test_a_result_that_was_right_before_is_right_unseen() -> None:
    first, second = (Known(doubled(71).native) for _ in range(2))
    for observation in (first, second):
        assert_close(observation, doubled(71))
    assert (first.looked, second.looked) == (1, 0)


def test_a_result_that_was_right_elsewhere_is_compared_here() -> None:
    assert_close(Known(doubled(72).native), doubled(72))
    with pytest.raises(Failure):
        assert_close(Known(doubled(72).native), doubled(73))


@pytest.mark.parametrize("change", [
    lambda known, expected: known.results[0].add_(1), lambda known, expected: expected.exact.add_(1),
    lambda known, expected: setattr(known, "substitute", lambda wanted: [torch.zeros(4)]),
    lambda known, expected: setattr(known, "findings", [Finding(Cause.DEVICE_ASSERT, "the assertion fails")]),
], ids=["a changed result", "a changed reference", "a trivial result", "a run that was stopped"])
def test_what_is_no_longer_as_it_was_right_is_compared_again(change: Any) -> None:
    known, again, expected = Known(doubled(75).native), Known(doubled(75).native), doubled(75)
    assert_close(known, doubled(75))
    change(again, expected)
    with pytest.raises(Failure):
        assert_close(again, expected)


# --- luck --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", [Cause.RACE, Cause.WRITE_CONFLICT, Cause.UNINITIALIZED_READ, Cause.MISSING_BARRIER])
def test_a_right_result_that_was_left_to_chance_fails(cause: Cause) -> None:
    x = X.tensor()
    seen = SimpleNamespace(results=[softmax(x)], findings=(Finding(cause, "did it", line=7),))
    found = failure(seen, reference(softmax, X))
    assert (found.cause, found.line) == (cause, 7)
    assert "is right here by luck" in found.message


def test_a_store_beside_all_tensors_does_not_make_a_right_result_wrong() -> None:
    finding = Finding(Cause.OUT_OF_BOUNDS_STORE, "stores 1 element outside of any tensor", line=7)
    assert_close(SimpleNamespace(results=[softmax(X.tensor())], findings=(finding,)), reference(softmax, X))


# --- what rounding a result once may take -----------------------------------------------------------------------------


def test_a_rounding_below_a_power_of_two_takes_half_a_small_step_unless_more_lies_beyond() -> None:
    exact = torch.tensor([1.0 - 2.0**-20, 1.0 - 2.0**-20, 1.0], dtype=torch.float64)
    off = torch.tensor([2.0**-19, 2.0**-8, 0.0], dtype=torch.float64)
    assert rounded_once(exact, off, torch.float16).tolist() == [2.0**-12, 2.0**-11, 2.0**-11]


# --- float8 results ---------------------------------------------------------------------------------------------------


def scaled(x: torch.Tensor) -> torch.Tensor:
    """What is too large for the dtype is its largest number."""
    return (x * 0.37).to(torch.float8_e4m3fn)


def neighbours(x: torch.Tensor) -> torch.Tensor:
    """The right result, each element moved to the next float8."""
    return (scaled(x).view(torch.uint8) + 1).view(torch.float8_e4m3fn)


def test_a_float8_result_is_right_where_it_is_float32_rounded_once() -> None:
    x = torch.linspace(-900, 900, 2000)
    assert_close(scaled(x), reference(scaled, x))
    assert_close((x * 0.37 * (1 + 1e-7)).to(torch.float8_e4m3fn), reference(scaled, x))
    with pytest.raises(Failure, match="2000 of 2000 elements are wrong"):
        assert_close(neighbours(x), reference(scaled, x))


def test_what_is_too_large_for_float8_must_be_its_largest_number() -> None:
    x = torch.tensor([4000.0, -torch.inf, 3.0])
    right = torch.tensor([448.0, -448.0, 1.125]).to(torch.float8_e4m3fn)
    assert_close(right, reference(scaled, x))
    with pytest.raises(Failure, match="expected 448"):
        assert_close(torch.tensor([416.0, -448.0, 1.125]).to(torch.float8_e4m3fn), reference(scaled, x))


def test_a_cast_on_the_way_still_rounds() -> None:
    def through(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float8_e5m2).to(x.dtype) * 3

    x = torch.tensor([1.1, 5.3])
    assert reference(through, x).exact.tolist() == [3.0, 15.0]


# --- What a task leaves free ------------------------------------------------------------------------------------------


TIED = torch.tensor([[3.0, 7.0, 7.0, 1.0], [2.0, 2.0, 2.0, 9.0]])


def topk(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    values, places = torch.sort(x, dim=-1, descending=True, stable=True)
    return values[:, :2], places[:, :2]


VALUES = topk(TIED)[0]


@pytest.mark.parametrize("places", [[[1, 2], [3, 0]], [[2, 1], [3, 1]], [[2, 1], [3, 2]]])
def test_places_of_any_equal_elements_are_right(places: list[list[int]]) -> None:
    assert_close([VALUES, torch.tensor(places)], reference(topk, TIED), up_to=ties(TIED))


@pytest.mark.parametrize(
    "places", [[[2, 2], [3, 0]], [[2, 0], [3, 0]], [[2, 4], [3, 0]], [[-1, 2], [3, 0]], [[1, 2], [0, 1]]]
)
def test_a_place_twice_or_of_another_element_or_outside_is_wrong(places: list[list[int]]) -> None:
    with pytest.raises(Failure, match="of result 1 are wrong|of result 1 is wrong"):
        assert_close([VALUES, torch.tensor(places)], reference(topk, TIED), up_to=ties(TIED))


@pytest.mark.parametrize(("dim", "right", "wrong"), [(-1, [2, 3], [0, 3]), (0, [0, 0, 0, 1], [0, 1, 0, 1])])
def test_places_may_lack_the_dimension_that_they_are_in(dim: int, right: list[int], wrong: list[int]) -> None:
    expected = reference(lambda x: torch.argmax(x, dim=dim), TIED)
    assert_close(torch.tensor(right), expected, up_to=ties(TIED, dim=dim, result=0))
    with pytest.raises(Failure, match="of 2 elements is wrong|of 4 elements is wrong"):
        assert_close(torch.tensor(wrong), expected, up_to=ties(TIED, dim=dim, result=0))


def test_wrong_values_beside_right_places_are_wrong_and_a_wrong_dtype_is_told() -> None:
    with pytest.raises(Failure, match="of result 0"):
        assert_close([VALUES + 1, topk(TIED)[1]], reference(topk, TIED), up_to=ties(TIED))
    with pytest.raises(Failure, match="is int32, and must be int64"):
        assert_close([VALUES, topk(TIED)[1].int()], reference(topk, TIED), up_to=ties(TIED))


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
    assert_close(seen, reference(topk, TIED), up_to=ties(TIED))
    with pytest.raises(Failure):
        assert_close(seen, reference(topk, TIED))


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


# --- Trivial results --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRIVIAL_RESULTS)
@pytest.mark.parametrize("inputs", [[], [torch.empty(0)], [torch.arange(5)], [torch.linspace(-1, 1, 6).view(2, 3)]])
def test_a_trivial_result_has_the_form_of_the_expected_results(name: str, inputs: list[torch.Tensor]) -> None:
    expected = [torch.linspace(-2, 2, 6).view(2, 3).half(), torch.arange(4), torch.tensor(1.5), torch.empty(0, 2)]
    before = [e.clone() for e in expected]
    substituted = TRIVIAL_RESULTS[name](expected, inputs)
    assert [(m.shape, m.dtype) for m in substituted] == [(e.shape, e.dtype) for e in expected]
    assert all(map(torch.equal, expected, before))


def test_trivial_results_are_what_their_names_say() -> None:
    expected, inputs = [torch.tensor([[1.0, 2.0], [3.0, 6.0]])], [torch.tensor([7.0, 8.0, 9.0])]
    assert TRIVIAL_RESULTS["zeros"](expected, inputs)[0].tolist() == [[0, 0], [0, 0]]
    assert TRIVIAL_RESULTS["constant"](expected, inputs)[0].tolist() == [[3, 3], [3, 3]]
    assert TRIVIAL_RESULTS["first_input"](expected, inputs)[0].tolist() == [[7, 8], [9, 7]]


@pytest.mark.parametrize(
    ("dtype", "eps"),
    [(torch.float64, 2**-24), (torch.float32, 2**-8), (torch.float16, 2**-5), (torch.bfloat16, 2**-5)],
)
def test_lower_precision_keeps_fewer_digits(dtype: torch.dtype, eps: float) -> None:
    value = (1 + torch.arange(2000, dtype=torch.float64) / 2000).to(dtype)
    error = ((round_lower(value) - value).double() / value.double()).abs().max().item()
    assert eps / 2 <= error <= eps
    special = torch.tensor([0.0, -torch.inf, torch.inf, min(torch.finfo(dtype).max, 1e38) / 2], dtype=dtype)
    assert round_lower(special)[:3].tolist() == special[:3].tolist()
    assert abs(round_lower(special)[3].item() / special[3].item() - 1) <= eps
    assert torch.equal(round_lower(torch.arange(5)), torch.arange(5))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_integers_lose_what_float32_cannot_hold(dtype: torch.dtype) -> None:
    value = torch.tensor([-(2**24), 2**24, 2**24 + 1, torch.iinfo(dtype).max, torch.iinfo(dtype).min], dtype=dtype)
    largest = {torch.int32: 2**31 - 2**7, torch.int64: 2**63 - 2**39}[dtype]
    assert round_lower(value).tolist() == [-(2**24), 2**24, 2**24, largest, torch.iinfo(dtype).min]
