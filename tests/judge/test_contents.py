"""Results are known by their contents, and made when somebody looks at them."""

import math

import pytest
import torch

from gradekit.judge.contents import Results, content, nbytes

ONE = torch.arange(6.0).view(2, 3)


def test_equal_tensors_have_one_content() -> None:
    assert content(ONE) == content(ONE.clone())


@pytest.mark.parametrize(
    "other",
    [
        ONE + 1,
        ONE.flatten(),
        ONE.view(3, 2),
        ONE.double(),
        ONE.view(torch.int32),
        ONE.t().contiguous().t(),
        torch.cat([ONE, ONE]),
    ],
)
def test_another_tensor_has_another_content(other: torch.Tensor) -> None:
    assert content(other).digest != content(ONE).digest


def test_zeros_are_told_apart_by_their_sign_and_one_nan_is_like_another() -> None:
    zero, minus, nan, other = (content(torch.tensor([value])) for value in (0.0, -0.0, math.nan, math.nan))
    assert zero != minus and nan == other


def test_what_lies_between_the_elements_is_no_content() -> None:
    storage = torch.zeros(6)
    before = content(storage[::2])
    storage[1] = 5
    assert content(storage[::2]) == before


def test_a_content_knows_what_its_elements_take() -> None:
    assert content(ONE).nbytes == nbytes([ONE, 7]) == 24


def results() -> tuple[Results, list[int]]:
    made: list[int] = []

    def make() -> list[torch.Tensor]:
        made.append(1)
        return [ONE.clone(), ONE + 1]

    return Results([content(ONE), content(ONE + 1)], make), made


def test_nothing_is_made_to_know_contents_number_or_size() -> None:
    found, made = results()
    assert found.contents == (content(ONE).digest, content(ONE + 1).digest)
    assert len(found) == 2 and nbytes(found) == 48
    assert made == []


def test_one_of_several_is_made_with_the_others() -> None:
    found, made = results()
    part = found.only(1)
    assert part.contents == (content(ONE + 1).digest,) and made == []
    assert part[0] is found[1] and made == [1]


def test_a_result_that_was_changed_is_not_known_any_more() -> None:
    found, _ = results()
    assert found[1] is not None and found.contents is not None
    found[1].zero_()
    assert found.contents is None


def test_what_is_no_tensor_has_no_content() -> None:
    assert Results([content(ONE), 7], lambda: [ONE, 7]).contents is None
