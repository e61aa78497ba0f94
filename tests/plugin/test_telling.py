"""Of failures that are equally small, the one whose numbers show the mistake is reported."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradekit.findings import Cause
from gradekit.inputs.spec import Input, normal
from gradekit.judge import assert_close, reference
from gradekit.judge.failure import Failure
from gradekit.plugin.check_run import most_telling
from gradekit.plugin.examples import Example, Examples
from gradekit.plugin.profiles import PROFILES


def failing(actual: list[float], expected: list[float]) -> Failure:
    with pytest.raises(Failure) as caught:
        assert_close(torch.tensor(actual).float(), reference(lambda x: x, torch.tensor(expected).float()))
    return caught.value


DULL, SMALL, CLEAR = failing([0.999, 1], [1, 1]), failing([1.02, 1], [1, 1]), failing([4.0, 2], [1, 2])


def told(errors: dict[int, BaseException], **forms: Input) -> int:
    """The seed of the example that is reported where that of seed 0 is the smallest, and these fail."""

    def test(x: Input) -> None:
        raise errors[x.seed]

    examples = Examples(test, PROFILES["quick"])
    drawn: list[dict[str, Any]] = [{"x": forms.get(f"seed_{seed}", normal((2,), seed=seed))} for seed in errors]
    for given in drawn:
        with pytest.raises(Failure):
            examples._run(Example(given, frozenset()))
    found: int = most_telling(examples.failures[0].example, examples).given["x"].seed
    return found


def test_a_large_error_tells_more_than_a_small_one() -> None:
    assert told({0: DULL, 1: SMALL, 2: CLEAR}) == 2


def test_of_equals_the_smallest_stays() -> None:
    assert told({0: CLEAR, 1: failing([4.0, 2], [1, 2])}) == 0


def test_different_numbers_tell_more_than_one() -> None:
    assert told({0: failing([4.0, 1], [1, 1]), 1: CLEAR}) == 1


def test_a_larger_example_is_no_rival() -> None:
    assert told({0: DULL, 1: CLEAR}, seed_1=normal((3,), seed=1)) == 0


def test_another_cause_is_no_rival() -> None:
    assert told({0: Failure(Cause.WRONG_SHAPE, "wrong shape"), 1: CLEAR}) == 0
