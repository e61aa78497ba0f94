"""Runs that an earlier submission has had: told of the next where everything is the same, and of no other."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from gradekit.engine.run import Counters, Run
from gradekit.inputs.strategies import normal
from gradekit.program import Kernel, Launch, Program, Scalar, Source, View
from gradekit.subject import shared
from gradekit.subject.shared import Question, Shelf, digest, question

X = View(0, "float32", (4,), (1,), 0)
KERNEL = Kernel("kernel", 'tt.func @kernel() loc("submission.py":3:1)', {"num_warps": 4})
PROGRAM = Program((X,), {0: 16}, (Launch("k", (1, 1, 1), (X, Scalar(4)), Source(9)),), (X,), "tensor", {"k": KERNEL})


def asked(*args: Any, program: bytes = b"", option: int = 0, names: tuple[str, ...] = ("x",)) -> Question | None:
    return question(program, option, args, names, ("aten::sum",))


def running(size: int = 4) -> tuple[Callable[[], Run], list[int]]:
    """Gives a new run with each call, and counts them."""
    ran: list[int] = []

    def run() -> Run:
        ran.append(1)
        return Run([torch.zeros(size)], [], Counters(launches=1), ["said"])

    return run, ran


def test_the_same_question_is_answered_without_running_again() -> None:
    shelf, (run, ran) = Shelf(), running()
    first, second = (shelf.answer(asked(normal((4,))), run) for _ in range(2))
    assert ran == [1]
    assert torch.equal(first.results[0], second.results[0]) and first.prints == second.prints  # type: ignore[arg-type]


def test_whoever_changes_a_result_changes_it_for_nobody_else() -> None:
    shelf, (run, _) = Shelf(), running()
    for _ in range(3):
        result = shelf.answer(asked(normal((4,))), run).results[0]
        assert isinstance(result, torch.Tensor) and not result.any()
        result.fill_(1)


@pytest.mark.parametrize(
    "other",
    [
        asked(normal((5,))),
        asked(normal((4,), seed=1)),
        asked(normal((4,)), program=b"other"),
        asked(normal((4,)), option=1),
        asked(normal((4,)), names=("y",)),
    ],
)
def test_any_difference_is_another_question(other: Question) -> None:
    shelf, (run, ran) = Shelf(), running()
    shelf.answer(asked(normal((4,))), run)
    shelf.answer(other, run)
    assert ran == [1, 1]


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0.0, -0.0)])
def test_numbers_that_python_calls_equal_are_told_apart(one: Any, other: Any) -> None:
    assert asked(one) != asked(other)


def test_one_tensor_passed_twice_is_told_from_two_equal_ones() -> None:
    x = normal((4,))
    assert asked(x, x) != asked(x, normal((4,)))


def test_a_tensor_of_unknown_values_makes_no_question() -> None:
    shelf, (run, ran) = Shelf(), running()
    for _ in range(2):
        shelf.answer(asked(torch.zeros(4)), run)
    assert ran == [1, 1]


def test_large_results_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "LARGEST", 64)
    shelf, (run, ran) = Shelf(), running(size=17)
    for _ in range(2):
        shelf.answer(asked(normal((4,))), run)
    assert ran == [1, 1]


def test_what_was_asked_longest_ago_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MOST_BYTES", 32)
    shelf, (run, ran) = Shelf(), running()
    for seed in (0, 1, 0, 2, 0, 1):  # the fourth pushes 1 out
        shelf.answer(asked(normal((4,), seed=seed)), run)
    assert len(ran) == 4


@pytest.mark.parametrize(
    "other",
    [
        replace(PROGRAM, steps=(replace(PROGRAM.steps[0], grid=(2, 1, 1)),)),  # type: ignore[type-var, call-arg]
        replace(PROGRAM, steps=(replace(PROGRAM.steps[0], source=Source(10)),)),  # type: ignore[type-var]
        replace(PROGRAM, kernels={"k": replace(KERNEL, ttir=KERNEL.ttir.replace(":3:", ":4:"))}),
        replace(PROGRAM, kernels={"k": replace(KERNEL, options={"num_warps": 8})}),
    ],
)
def test_a_program_that_differs_in_a_line_number_has_another_digest(other: Program) -> None:
    assert digest(other) != digest(PROGRAM) == digest(replace(PROGRAM))
