"""A failed check that names no line points at the one that must be meant, and at none where nothing says which."""

from types import SimpleNamespace

import pytest

from gradekit.causes import Cause
from gradekit.findings import Outcome
from gradekit.judge.evidence import Diagnosis
from gradekit.plugin.check_results import CheckEvidence, CheckVerdict, blamed_line
from gradekit.program import Allocate, Kernel, Launch, Program, Source, View
from tests.beside import beside

TEXTS = beside(__file__)

TEXT = TEXTS["text"]
X, Y, OUT = (View(storage, "float32", (4,), (1,)) for storage in range(3))
PROGRAM = Program(
    inputs=(X, Y), storages={0: 16, 1: 16},
    steps=(Allocate(2, 16, Source(14)), Launch("k", (1, 1, 1), (X, Y, OUT), Source(15))), results=(OUT,),
    returned="tensor", kernels={"k": Kernel("kernel", "")},
)


def line(
    cause: Cause, message: str, text: str = TEXT, program: Program | None = PROGRAM, about: int | None = None,
    result: int = 0,
) -> int | None:  # fmt: skip
    verdict = CheckVerdict(Outcome.FAILED, message, cause, details={"result": result} if result else {})
    observation = SimpleNamespace(program=program) if program is not None else None
    call = SimpleNamespace(entry="add", args=(), observation=observation, wanted=())
    evidence = CheckEvidence(call=call, diagnosis=Diagnosis(cause, message, input=about))  # type: ignore[arg-type]
    return blamed_line(verdict, evidence, text)


@pytest.mark.parametrize(("cause", "message", "expected"), [
    (Cause.WRONG_DTYPE, "The result is float32, and must be float16.", 14),
    (Cause.WRONG_SHAPE, "Result 0 has shape [4], and must have [2].", 14),
    (Cause.IGNORES_STRIDES, "Does it use every stride of every input?", None),
    (Cause.UNCHANGED_INPUT, "add returns an input, or a view of one; the result must be a new tensor.", 15),
    (Cause.EXCEPTION, "RuntimeError: function AddBackward returned an incorrect number of gradients", 11),
    (Cause.WRONG_TYPE, "The backward pass of add gives no gradient for y: its `backward` returns None there.", 11),
    (Cause.EXCEPTION, "`add` is not differentiable: its result has no grad_fn.", 14),
    (Cause.EXCEPTION, "ValueError: x", None),
    (Cause.WRONG_VALUES, "4 of 4 elements are wrong.", None),
])
def test_the_line_is_the_one_that_the_failure_is_about(cause: Cause, message: str, expected: int | None) -> None:
    assert line(cause, message) == expected


def test_of_several_results_the_allocation_of_the_wrong_one_is_shown() -> None:
    steps = (Allocate(3, 16, Source(13)), *PROGRAM.steps)
    second = View(3, "float32", (4,), (1,))
    program = Program(PROGRAM.inputs, PROGRAM.storages, steps, (OUT, second), "tuple", PROGRAM.kernels)
    assert [line(Cause.WRONG_DTYPE, "It is float32.", program=program, result=number) for number in (0, 1, 2)] == [14, 13, 14]


@pytest.mark.parametrize(("position", "expected"), [(0, 5), (1, 6), (2, None)])
def test_ignored_strides_point_at_the_first_load_of_their_tensor(position: int, expected: int | None) -> None:
    assert line(Cause.IGNORES_STRIDES, "The kernel ignores its strides.", about=position) == expected


CHOICES = TEXTS["choices"]


def test_what_chance_is_to_decide_points_at_the_one_comparison_of_drawn_numbers() -> None:
    said = "With p = 0.5, an element was kept 90 of 100 times, where about 50 are expected: more than chance explains."
    assert line(Cause.WRONG_VALUES, said, CHOICES) == 6
    assert line(Cause.WRONG_VALUES, said, CHOICES.replace("where(keep", "where((x > 1) & keep")) is None
    apart = CHOICES.replace("keep = tl.rand(seed, i)", "drawn = tl.rand(seed, i)\n    keep = drawn")
    shared = said.replace("an element was kept", "elements 64 apart had the same fate")
    assert (line(Cause.WRONG_VALUES, said, apart), line(Cause.WRONG_VALUES, shared, apart)) == (7, 6)
    agreed = said.replace("an element was kept", "seeds 0 and 1 agreed on elements 1 apart")
    assert line(Cause.WRONG_VALUES, agreed, apart) == 6


def test_a_returned_input_points_at_the_function_that_takes_it_for_the_result() -> None:
    said = "add returns an input, or a view of one; the result must be a new tensor."
    assert line(Cause.UNCHANGED_INPUT, said, CHOICES) == 11


def test_nothing_is_pointed_at_where_it_is_not_clear() -> None:
    assert line(Cause.WRONG_DTYPE, "The result is float32, and must be float16.", "def f(:") is None
    two_returns = "def backward(ctx, d):\n    if d:\n        return d\n    return None\n"
    refused = "RuntimeError: function AddBackward returned an incorrect number of gradients"
    assert line(Cause.EXCEPTION, refused, two_returns) is None
