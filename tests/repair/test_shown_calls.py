"""The failing call of a check as changes are looked at on it: which result is wrong, in which form, and what need not be done."""

import ast
from collections import Counter
from types import SimpleNamespace
from typing import Any

import torch

from gradekit.causes import Cause
from gradekit.engine.executor import run
from gradekit.interpreter.shown_call import ShownCall, is_like
from gradekit.interpreter.walk import Substitution
from gradekit.interpreter.walked_call import WalkedCall, code_of
from gradekit.judge.comparison import Comparison
from gradekit.judge.failure import Failure
from gradekit.judge.reference import Reference, Worked
from gradekit.program import Program
from gradekit.repair.operators.all_changes import EARLY, LATE, changes_of_kernel
from gradekit.repair.operators.changes import ALL_TURNS
from gradekit.repair.shown_calls import failing, not_worse, passing, place_of_wrong
from gradekit.source.draft import Draft
from gradekit.submission.parsed_source import ParsedSource
from tests.gpu.programs import traced
from tests.repair.test_screen import MEANS, inputs, shown
from tests.tracer.styles import Text


def call_with(*results: torch.Tensor) -> Any:
    program = Program((), {}, (), (), "tensor", {})
    return SimpleNamespace(observation=SimpleNamespace(program=program, results=results, findings=()), args=(), entry="f", wanted=())


def wrong(actual: torch.Tensor, expected: torch.Tensor) -> Failure:
    exact, allowed = expected.double(), torch.full_like(expected, 1e-3, dtype=torch.float64)
    worked = Worked(exact, expected, allowed, (), lambda *args: exact, lambda others: exact)
    return Failure(Cause.WRONG_VALUES, "", comparison=Comparison(actual, Reference(lambda: [worked], 0, None)))


def test_of_results_that_are_alike_any_may_be_the_wrong_one() -> None:
    zeros, ones = torch.zeros(4), torch.ones(4)
    error, call = wrong(zeros, ones), call_with(torch.full((4,), 2.0), zeros, zeros.clone())
    shown = failing(error, call)
    assert shown is not None and shown.wrong is not None and place_of_wrong(error, call) is None
    assert shown.is_right([ones, zeros, ones]) and shown.is_right([ones, ones, zeros])
    assert not shown.is_right([ones, zeros, zeros]) and not shown.is_right([ones, None, zeros])
    of_two = [torch.stack([ones, ones]), torch.stack([zeros, zeros]), torch.stack([ones, zeros])]
    assert shown.wrong(of_two).tolist() == [0, 4] and shown.compared == (1, 2)
    assert shown.may_be is not None and shown.may_be(of_two).tolist() == [True, False]


def test_a_wrong_element_that_comes_nearer_counts_as_a_part_of_one() -> None:
    zeros, ones = torch.zeros(4), torch.ones(4)
    shown = failing(wrong(zeros, ones), call_with(zeros))
    assert shown is not None and shown.wrong is not None
    further = [torch.stack([ones * 0.75, ones * 5, ones * float("nan"), torch.tensor([1.0, 1.0, 1.0, 0.5])])]
    assert shown.wrong(further).tolist() == [1.0, 4.0, 4.0, 0.5]


def test_a_call_with_another_number_of_results_is_not_as_before() -> None:
    zeros, ones = torch.zeros(4), torch.ones(4)
    shown = failing(wrong(zeros, ones), call_with(zeros))
    assert shown is not None and not not_worse(shown).is_right([zeros, zeros]) and not_worse(shown).is_right([zeros])
    assert not is_like([zeros, zeros], [zeros]) and is_like([zeros], [zeros])


def test_of_results_that_differ_the_one_that_was_compared_decides() -> None:
    zeros, ones = torch.zeros(4), torch.ones(4)
    error, call = wrong(zeros, ones), call_with(torch.full((4,), 2.0), zeros)
    shown = failing(error, call)
    assert shown is not None and place_of_wrong(error, call) == 1
    assert shown.is_right([zeros, ones]) and not shown.is_right([ones, zeros])


def test_a_result_of_another_shape_is_wrong_and_is_not_compared() -> None:
    zeros, ones = torch.zeros(4), torch.ones(4)
    shown = failing(wrong(zeros, ones), call_with(zeros))
    assert shown is not None and shown.is_right([ones]) and not shown.is_right([torch.ones(1)])


def test_a_result_that_was_right_may_change_as_far_as_its_check_allows() -> None:
    ones = torch.ones(4)
    worked = Worked(ones.double(), ones, torch.full((4,), 0.5, dtype=torch.float64), (), lambda *args: ones, lambda _: ones)
    seen = torch.full((4,), 0.6)
    alone, known = passing(call_with(seen), None), passing(call_with(seen), None, [Reference(lambda: [worked], 0, None)])
    assert alone is not None and known is not None and alone.is_right([seen]) and known.is_right([seen])
    assert not alone.is_right([ones * 1.4]) and known.is_right([ones * 1.4]) and not known.is_right([ones * 1.6])


# --- What need not be done --------------------------------------------------------------------------------------------


def walked(source: ParsedSource, call: ShownCall, allow: tuple[str, ...] = ()) -> WalkedCall:
    replay = WalkedCall(call.program, call.inputs, code_of(source), allow)
    replay.run()
    return replay


def test_early_and_late_changes_are_all_that_there_are() -> None:
    call, _ = shown(MEANS, torch.zeros(3), *inputs())
    draft = Draft(MEANS)
    watched = walked(draft.source, call).begun["means_kernel"].watched
    early, late, every = (
        Counter((change.turn, change.new, change.sentence) for change, _ in changes_of_kernel(draft.kernels[0], draft, watched, turns))
        for turns in (EARLY, LATE, ALL_TURNS)
    )
    assert early and late and early + late == every


BETWEEN = MEANS.replace(
    "    return out\n",
    """    unused = torch.zeros((2, 3), dtype=x.dtype, device=x.device)
    unused[0] = out
    both = torch.zeros((2, 3), dtype=x.dtype, device=x.device)
    both[1] = out
    return both.sum() / 2, out.clone()
""",
)
ALLOWED = ("aten::sum", "aten::div")


def test_steps_between_launches_give_in_each_copy_what_they_give_alone() -> None:
    program, tensors = traced(Text(BETWEEN), "entry", *inputs())
    results = run(program, tensors, allow=ALLOWED).results
    replay = walked(ParsedSource(BETWEEN), ShownCall(program, tensors, results, lambda results: False), ALLOWED)
    nodes = {node.id: node for node in replay.begun["means_kernel"].watched.values if isinstance(node, ast.Name)}
    swaps = [[(nodes["scale"], nodes[name])] for name in ("scale", "total")]
    together = replay.changed("means_kernel", Substitution.of(swaps), 0)
    for number, swap in enumerate(swaps):
        mine, alone = together.of(number), replay.changed("means_kernel", Substitution.of([swap]), 0).of(0)
        assert mine is not None and alone is not None and is_like(mine, alone)
        assert is_like(mine, results) is (number == 0)
