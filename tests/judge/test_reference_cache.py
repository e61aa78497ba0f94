"""What is known by its contents: right results, worked out once for the same function of the same specs, and a submission's own."""

import functools
import importlib
import math
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gradekit import reuse
from gradekit.inputs.spec import normal
from gradekit.judge import contents
from gradekit.judge.contents import Results, content, nbytes
from gradekit.judge.reference import Reference, reference

module = importlib.import_module("gradekit.judge.reference")
pytestmark = pytest.mark.usefixtures("keeping")


def doubled(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def powers(exponent: int) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x**exponent


@pytest.mark.parametrize("function", [lambda: doubled, lambda: powers(2)], ids=["itself", "made anew from the same lines"])
def test_the_same_function_of_the_same_specs_is_worked_out_once(function: Callable[[], Any]) -> None:
    one, other = (reference(function(), normal((4,))) for _ in range(2))
    assert one.exact is other.exact and one.key == other.key


def test_what_was_asked_before_is_not_worked_out_until_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[int] = []

    def counted(x: torch.Tensor) -> torch.Tensor:
        worked.append(1)
        return 2 * x

    counts = contents.reference_key
    monkeypatch.setattr(contents, "reference_key", lambda function, *more: counts(doubled, *more))
    reference(counted, normal((4,)))
    monkeypatch.setattr(module, "_worked", reuse.Shared(module._worked._make))  # it did not stay
    once = len(worked)
    again = reference(counted, normal((4,)))
    assert len(worked) == once
    assert torch.equal(again.exact, 2 * normal((4,)).tensor().double()) and len(worked) == 2 * once


@pytest.mark.parametrize(("function", "args", "options"), [
    (powers(3), (normal((4,)),), {}),
    (lambda x: 2 * x, (normal((4,)),), {}),
    (powers(2), (normal((4,), seed=1),), {}),
    (powers(2), (normal((4,), "float16"),), {}),
    (powers(2), (normal((4,)),), {"scale": doubled}),
    (powers(2), (normal((4,)),), {"scale": doubled, "terms": 7}),
])
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


def test_a_result_that_a_test_has_changed_is_worked_out_anew_and_like_no_other() -> None:
    one, other = (reference(doubled, normal((4,))) for _ in range(2))
    one.exact.zero_()
    assert one.key is None != other.key
    assert bool(reference(doubled, normal((4,))).exact.any())


def test_a_file_that_was_edited_is_another_function(tmp_path: Path) -> None:
    file = tmp_path / "test_course.py"

    def made(text: str) -> Any:
        file.write_text("def f(x):\n    return factor * x\n" + text)
        return contents.reference_key(runpy.run_path(str(file))["f"], ())

    assert made("factor = 2\n") != made("factor = 30\n")


# --- results are known by their contents, and made when somebody looks at them ----------------------------------------


ONE = torch.arange(6.0).view(2, 3)


def test_equal_tensors_have_one_content() -> None:
    assert content(ONE) == content(ONE.clone())


@pytest.mark.parametrize("other", [
    ONE + 1, ONE.flatten(), ONE.view(3, 2), ONE.double(), ONE.view(torch.int32), ONE.t().contiguous().t(),
    torch.cat([ONE, ONE]),
])
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


def test_what_a_tensor_that_stays_is_allowed_is_worked_out_when_somebody_asks() -> None:
    bounds: list[torch.Tensor] = []

    def bound(rounding: Any, x: torch.Tensor) -> torch.Tensor:
        bounds.append(x)
        return x

    asked = reference(doubled, torch.ones(3), bound=bound).asked
    assert asked is not None and len(bounds) == 1  # the tensor may be changed
    (later,) = replace(asked, stay=True).references()
    assert later.exact.tolist() == [2.0] * 3 and len(bounds) == 1
    assert bool((later.allowance >= 1.0).all()) and len(bounds) == 2
