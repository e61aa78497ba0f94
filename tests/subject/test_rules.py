"""The rules that a program must keep, whatever its result."""

from dataclasses import replace
from typing import Any

import pytest

from gradekit.engine.budget import OverBudget, Unsupported
from gradekit.findings import Cause
from gradekit.judge.failure import Failure
from gradekit.program import (
    Allocate,
    Aten,
    Choice,
    Copy,
    Fill,
    Kernel,
    Launch,
    Literal,
    Program,
    Scalar,
    Source,
    Step,
    View,
)
from gradekit.subject import Limit, rules
from gradekit.submission import Submission

SUBMISSION = Submission("submission.py", "import torch\n\ndef double(x):\n    pass\n", "")
X = View(0, "float32", (4,), (1,))
OUT = View(1, "float32", (4,), (1,))
LAUNCH = Launch("k", (1, 1, 1), (X, OUT), Source(9))
ALLOCATE = Allocate(1, 16)
HERE, THERE = 'loc("/tmp/submission.py":3:1)', 'loc("/lib/torch/sparse/_triton_ops.py":3:1)'
KERNELS_OF = {
    "k": Kernel("k", f'tt.store {HERE} loc("/lib/triton/language/standard.py":7:1)'),
    "empty": Kernel("empty", f"module {{\n  tt.func public @empty() {{\n    tt.return {HERE}\n  }} {HERE}\n}}"),
    "foreign": Kernel("f", f"tt.store {THERE}"), "mixed": Kernel("m", f"tt.store {HERE} {THERE}"),
}


def program(*steps: Step, results: tuple[Any, ...] = (OUT,), returned: str = "tensor") -> Program:
    return Program((X,), {0: 16}, steps, results, returned, KERNELS_OF, path="/tmp/submission.py")


def broken_rule(made: Program, allow: tuple[str, ...] = ()) -> Failure:
    with pytest.raises(Failure) as caught:
        rules.check_program(made, "double", allow, SUBMISSION)
    return caught.value


def test_allocating_and_launching_is_all_right() -> None:
    rules.check_program(program(ALLOCATE, LAUNCH), "double", (), SUBMISSION)


ADDED = Aten("aten::add", (X, X), {}, (OUT,), Source(12))
NOWHERE = View(77, "float32", (4,), (1,))
BROKEN = {
    "torch computes, also beside a kernel": (program(ALLOCATE, LAUNCH, ADDED), Cause.FORBIDDEN_OP, 12, "computes with torch (aten::add)"),
    "torch in one configuration": (program(ALLOCATE, Choice(((LAUNCH,), (ADDED,)), ("a", "b"))), Cause.FORBIDDEN_OP, 12, ""),
    "no program": (replace(program(ALLOCATE), empty_grids=(Source(9),)), Cause.NO_KERNEL, 9, "line 9 has a 0"),
    "no launch": (program(ALLOCATE), Cause.NO_KERNEL, None, "launches no Triton kernel"),
    "a kernel from elsewhere": (
        program(ALLOCATE, Launch("foreign", (1, 1, 1), (X, OUT))), Cause.NO_KERNEL, None, "has code of /lib/torch/sparse/_triton_ops.py",
    ),
    "stores that are never reached": (
        program(ALLOCATE, Launch("empty", (1, 1, 1), (X, OUT))), Cause.NO_KERNEL, None, "stored to: nothing gave it any values.",
    ),
    "nothing is returned": (program(ALLOCATE, LAUNCH, results=(Scalar(None),), returned="none"), Cause.WRONG_TYPE, 3, "returns nothing"),
    "a number": (program(ALLOCATE, LAUNCH, results=(Scalar(1.0),), returned="float"), Cause.WRONG_TYPE, None, "float"),
    "what a launch gives": (
        program(ALLOCATE, LAUNCH, results=(Scalar(None),), returned="TracedKernel"), Cause.WRONG_TYPE, None, "on a line of its own",
    ),
    "an input": (program(LAUNCH, results=(X,)), Cause.UNCHANGED_INPUT, None, ""),
    "what no step made": (program(LAUNCH, results=(NOWHERE,)), Cause.NO_KERNEL, None, ""),
}  # fmt: skip


@pytest.mark.parametrize(("made", "cause", "line", "said"), BROKEN.values(), ids=BROKEN)
def test_a_program_that_breaks_a_rule_is_told_which_one(made: Program, cause: Cause, line: int | None, said: str) -> None:
    failure = broken_rule(made)
    assert failure.cause is cause and said in failure.message
    assert line is None or failure.line == line


def test_an_operation_that_the_assignment_allows_is_allowed() -> None:
    made = program(
        ALLOCATE, LAUNCH, Allocate(2, 4), TOTAL, Aten("aten::div", (ONE, Scalar(3)), {}, (ONE,)), results=(ONE,)
    )
    rules.check_program(made, "double", ("aten::sum", "aten::div"), SUBMISSION)


ONE = View(2, "float32", (), ())
TOTAL = Aten("aten::sum", (OUT,), {}, (ONE,))


def test_an_allowed_sum_adds_up_only_what_a_kernel_has_stored() -> None:
    for steps in ([Allocate(2, 4), Aten("aten::sum", (X,), {}, (ONE,)), LAUNCH], [Allocate(2, 4), TOTAL, LAUNCH]):
        failure = broken_rule(program(ALLOCATE, *steps), ("aten::sum",))
        assert failure.cause is Cause.FORBIDDEN_OP and "may only add up what a kernel has stored" in failure.message


@pytest.mark.parametrize("step", [
    Aten("aten::clamp", (OUT,), {"min": X}, (OUT,), Source(12)),
    Aten("aten::clamp", (ONE,), {"min": OUT}, (ONE,), Source(12)),
    Aten("aten::div", (OUT, Scalar(2)), {}, (OUT,), Source(12)),
    Aten("aten::cat", ((ONE, ONE),), {}, (OUT,), Source(12)),
])
def test_other_allowed_operations_take_single_numbers(step: Aten) -> None:
    """Tensors in any argument count"""
    failure = broken_rule(program(ALLOCATE, Allocate(2, 4), LAUNCH, step), (step.op,))
    assert (failure.cause, failure.line) == (Cause.FORBIDDEN_OP, 12)
    assert "with 4 numbers; it may only be used with single numbers" in failure.message


@pytest.mark.parametrize("kernel", ["foreign", "mixed"])
def test_a_kernel_from_elsewhere_is_refused_beside_one_of_the_submission_too(kernel: str) -> None:
    """Also where the submission's kernel calls it, and in one configuration of many"""
    launch = Launch(kernel, (1, 1, 1), (X, OUT), Source(9))
    for steps in ([LAUNCH, launch], [Choice(((LAUNCH,), (launch,)), ("a", "b"))]):
        failure = broken_rule(program(ALLOCATE, *steps))
        assert (failure.cause, failure.line) == (Cause.NO_KERNEL, 9)
        assert "copy their text" in failure.facts["hint"], "that there is no kernel would be wrong"


@pytest.mark.parametrize("steps", [
    [Launch("empty", (1, 1, 1), (X, OUT)), Copy(OUT, X)],
    [Allocate(2, 16), Launch("k", (1, 1, 1), (X, View(2, "float32", (4,), (1,)))), Copy(OUT, X)],
    [Launch("k", (1, 1, 1), (X,)), Copy(OUT, X)],
], ids=["a kernel that stores nothing", "a kernel beside the result", "a kernel on the input"])
def test_a_result_that_no_kernel_has_stored_to_is_refused(steps: list[Step]) -> None:
    failure = broken_rule(program(ALLOCATE, *steps))
    assert failure.cause is Cause.NO_KERNEL and "no kernel has stored to" in failure.message


def test_a_result_may_be_copied_from_what_a_kernel_stored() -> None:
    first = View(2, "float32", (4,), (1,))
    made = program(ALLOCATE, Allocate(2, 16), Launch("k", (1, 1, 1), (X, first)), Copy(OUT, first))
    rules.check_program(made, "double", (), SUBMISSION)


def test_an_empty_result_needs_no_kernel() -> None:
    rules.check_program(program(results=(View(0, "float32", (0,), (1,)),)), "double", (), SUBMISSION)


def test_a_run_over_its_budget_is_a_failure_at_the_line() -> None:
    with pytest.raises(Failure, match="Does a loop in one never end") as caught, rules.within_budget("double"):
        raise OverBudget("work", Limit.HURRY, 8)
    assert (caught.value.cause, caught.value.line) == (Cause.BUDGET_EXCEEDED, 8)


def test_an_allocation_over_the_budget_says_how_much_is_allowed() -> None:
    with (
        pytest.raises(Failure, match=r"because it asks for more than 4,096 MiB at a time\."),
        rules.within_budget("double"),
    ):
        raise OverBudget("bytes", 4 << 30, 8)


def test_without_autotuning_there_is_one_option() -> None:
    assert rules.options(program(ALLOCATE, LAUNCH)) == [(0, "")]


def test_configurations_that_compute_the_same_run_once() -> None:
    kernels = {key: Kernel("k", text, {"num_warps": warps}) for key, text, warps in KERNELS}
    options = tuple((Launch(key, (1, 1, 1), (X, OUT)),) for key in kernels)
    made = Program((X,), {0: 16}, (ALLOCATE, Choice(options, ("A4", "A8", "B4"))), (OUT,), "tensor", kernels)
    assert rules.options(made) == [(0, "A4"), (2, "B4")]


KERNELS = [("a4", "text of A", 4), ("a8", "text of A", 8), ("b4", "text of B", 4)]


def test_arguments_are_called_what_the_student_calls_them() -> None:
    text = "def softmax(matrix, dim=-1):\n    return matrix\n"
    named = rules.argument_names((object(), 3, 4), "softmax", Submission("s.py", text, ""), {})
    assert named == ("matrix", "dim", "argument 3")


def table(*values: float) -> Literal:
    return Literal(View(2, "float32", (len(values),), (1,)), values, Source(5))


def test_results_that_the_host_writes_out_are_refused() -> None:
    failure = broken_rule(program(ALLOCATE, table(*(0.1 * i * i for i in range(65))), LAUNCH))
    assert (failure.cause, failure.line) == (Cause.FORBIDDEN_OP, 5) and "writes out 65 numbers" in failure.message


def test_a_table_in_pieces_is_one_table() -> None:
    pieces = [table(*(0.1 * i * i + n for i in range(40))) for n in range(2)]
    assert "writes out 80 numbers" in broken_rule(program(ALLOCATE, *pieces, LAUNCH)).message


def test_a_table_of_integers_waits_for_a_person() -> None:
    with pytest.raises(Unsupported, match="a table of 65 integers that the host writes out"):
        rules.check_program(program(ALLOCATE, table(*(i * i for i in range(65))), LAUNCH), "double", (), SUBMISSION)


def test_a_few_constants_and_a_range_are_no_table() -> None:
    steps = (table(*(0.5 + 0.25 * i for i in range(5000))), table(0.3, 0.59, 0.11), table(*range(300)))
    rules.check_program(program(ALLOCATE, *steps, LAUNCH), "double", (), SUBMISSION)


def waits_for_a_person(*steps: Step) -> str:
    with pytest.raises(Unsupported) as caught:
        rules.check_program(program(ALLOCATE, *steps, LAUNCH), "double", (), SUBMISSION)
    return str(caught.value)


@pytest.mark.parametrize("size", [2, 3])
def test_a_table_in_pieces_that_could_each_be_a_range_is_a_table(size: int) -> None:
    pieces = [table(*(0.1 * n * n + 0.7 * i for i in range(size))) for n in range(40)]
    assert "writes out 80 numbers" in broken_rule(program(ALLOCATE, *pieces, LAUNCH)).message


def test_many_different_numbers_that_are_filled_in_one_at_a_time_wait_for_a_person() -> None:
    fills = [Fill(View(1, "float32", (), (), n % 4), 0.1 * n * n, Source(7)) for n in range(65)]
    assert "65 different numbers that the host passes on one at a time" in waits_for_a_person(*fills)


def test_many_different_numbers_that_are_given_to_launches_wait_for_a_person() -> None:
    one = Launch("k", (1, 1, 1), (X, OUT, *(Scalar(0.1 * n * n, "fp32") for n in range(70))), Source(9))
    assert "70 different numbers" in waits_for_a_person(one)
    bits = [Launch("k", (1, 1, 1), (X, OUT, Scalar(n * n, "i32")), Source(9)) for n in range(1100)]
    assert "integers that the host passes on one at a time" in waits_for_a_person(*bits)


def test_elements_that_are_picked_one_at_a_time_wait_for_a_person() -> None:
    """Copies can make any table of a range"""
    wide = View(2, "float32", (1 << 21,), (1,))
    picks = [Copy(View(1, "float32", (), (), n % 4), View(2, "float32", (), (), n * n), Source(5)) for n in range(1100)]
    assert "integers" in waits_for_a_person(Allocate(2, 1 << 23), Fill(wide, 0), *picks)


def test_loops_over_tiles_and_rows_hand_on_few_different_steps() -> None:
    """Each row has a launch, with its number and its place, in two loops"""
    launches = [
        Launch("k", (1, 1, 1), (View(0, "float32", (), (), (i + j) % 4), OUT, Scalar(i * 5000 + j * 70, "i32"), Scalar(0.5)))
        for i in range(40) for j in range(40)
    ]  # fmt: skip
    fills = [Fill(View(1, "float32", (), (), n % 4), 0.0) for n in range(300)]
    rules.check_program(program(ALLOCATE, *fills, *launches), "double", (), SUBMISSION)
