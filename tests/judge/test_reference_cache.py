"""Right results are worked out once for the same function of the same specs, and anew for any other."""

import functools
import importlib
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gradekit import reuse
from gradekit.inputs.spec import normal
from gradekit.judge import contents
from gradekit.judge.contents import TensorCache
from gradekit.judge.reference import Reference, reference

module = importlib.import_module("gradekit.judge.reference")


@pytest.fixture(autouse=True)
def cold() -> Iterator[None]:
    with reuse.kept():
        yield


def doubled(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def powers(exponent: int) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x**exponent


def test_the_same_function_of_the_same_specs_is_worked_out_once() -> None:
    one, other = (reference(doubled, normal((4,))) for _ in range(2))
    assert one.exact is other.exact and one.key == other.key


def test_a_function_made_anew_from_the_same_lines_is_the_same() -> None:
    one, other = (reference(powers(2), normal((4,))) for _ in range(2))
    assert one.exact is other.exact and one.key == other.key


def test_what_was_asked_before_is_not_worked_out_until_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[int] = []

    def counted(x: torch.Tensor) -> torch.Tensor:
        worked.append(1)
        return 2 * x

    counts = contents.reference_key
    monkeypatch.setattr(contents, "reference_key", lambda function, *more: counts(doubled, *more))
    reference(counted, normal((4,)))
    monkeypatch.setattr(module, "_worked", reuse.Shared(lambda: TensorCache(module._tensors)))  # it did not stay
    once = len(worked)
    again = reference(counted, normal((4,)))
    assert len(worked) == once
    assert torch.equal(again.exact, 2 * normal((4,)).tensor().double()) and len(worked) == 2 * once


@pytest.mark.parametrize(
    ("function", "args", "options"),
    [
        (powers(3), (normal((4,)),), {}),
        (lambda x: 2 * x, (normal((4,)),), {}),
        (powers(2), (normal((4,), seed=1),), {}),
        (powers(2), (normal((4,), "float16"),), {}),
        (powers(2), (normal((4,)),), {"scale": doubled}),
        (powers(2), (normal((4,)),), {"scale": doubled, "terms": 7}),
    ],
)
def test_any_difference_is_worked_out_anew(function: Any, args: Any, options: Any) -> None:
    first, other = reference(powers(2), normal((4,))), reference(function, *args, **options)
    assert other.key != first.key
    again: Reference = remembered_free(function, args, options)
    assert torch.equal(other.exact, again.exact) and torch.equal(other.allowance, again.allowance)


def remembered_free(function: Any, args: Any, options: Any) -> Any:
    """The reference with nothing remembered: of a partial function, about which nothing is known."""
    return reference(functools.partial(function), *args, **options)


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0.0, -0.0)])
def test_numbers_that_python_calls_equal_are_told_apart(one: Any, other: Any) -> None:
    assert contents.reference_key(doubled, (one,)) != contents.reference_key(doubled, (other,))


def test_one_tensor_passed_twice_is_told_from_two_equal_ones() -> None:
    x = normal((4,))
    assert contents.reference_key(doubled, (x, x)) != contents.reference_key(doubled, (x, normal((4,))))


@pytest.mark.parametrize("args", [(torch.zeros(3),), ([1, 2],)])
def test_what_may_change_makes_no_question(args: Any) -> None:
    assert contents.reference_key(doubled, args) is None


def test_a_result_that_a_test_has_changed_is_worked_out_anew() -> None:
    first = reference(doubled, normal((4,)))
    first.exact.zero_()
    assert bool(reference(doubled, normal((4,))).exact.any())


def test_a_reference_that_a_test_has_changed_is_like_no_other() -> None:
    one, other = (reference(doubled, normal((4,))) for _ in range(2))
    one.exact.zero_()
    assert one.key is None != other.key


def test_a_file_that_was_edited_is_another_function(tmp_path: Path) -> None:
    file = tmp_path / "test_course.py"

    def made(text: str) -> Any:
        file.write_text("def f(x):\n    return factor * x\n" + text)
        return contents.reference_key(runpy.run_path(str(file))["f"], ())

    assert made("factor = 2\n") != made("factor = 30\n")
