"""A wrong result as a map: which program wrote what, which elements are wrong, and what two programs wrote."""

from pathlib import Path

import pytest
import torch

from gradekit.engine.executor import run
from gradekit.engine.observer import Owners
from gradekit.judge.result_map import MOST_COLUMNS, evenly, result_map
from gradekit.program import Allocate, Kernel, Launch, Program, Source, View
from tests.beside import beside

TEXT = beside(__file__)["text"]


def program(extent: int, grid: int, size: int) -> Program:
    """Program p of the grid writes `extent` elements from 4 * p on."""
    out = View(0, "float32", (size,), (1,))
    steps = (Allocate(0, 4 * size), Launch("k", (grid, 1, 1), (out,), Source(1)))
    return Program((), {}, steps, (out,), "tensor", {"k": Kernel("k", TEXT.replace("EXTENT", str(extent)))}, "k.py")


def owned(made: Program) -> Owners:
    owners = Owners()
    run(made, [], observer=owners)
    return owners


def test_each_element_has_the_program_that_wrote_it_and_the_rest_nobody() -> None:
    made = program(4, 3, 14)
    found = result_map(made, owned(made), None, ())
    assert found["owners"] == [[0, 4], [1, 4], [2, 4], [-1, 2]]
    assert (found["grid"], found["shape"], found["shared"]) == ([3, 1, 1], [14], [])


def test_an_element_that_two_programs_wrote_has_both() -> None:
    made = program(8, 2, 12)  # they overlap in 4 to 7
    found = result_map(made, owned(made), None, ())
    assert [each["index"] for each in found["shared"]] == [[4], [5], [6], [7]]
    assert all(sorted(each["programs"]) == [[0, 0, 0], [1, 0, 0]] for each in found["shared"])


def test_a_wide_result_is_cut_down_evenly_with_its_ends() -> None:
    chosen = evenly(1000, MOST_COLUMNS).tolist()
    assert len(chosen) == MOST_COLUMNS == len(set(chosen)) and (chosen[0], chosen[-1]) == (0, 999)
    assert torch.equal(evenly(5, 48), torch.arange(5))


@pytest.mark.usefixtures("without_mends")
def test_a_failed_check_keeps_the_map_of_its_counterexample() -> None:
    from gradekit.assignment import discover
    from tests.graded import grade

    root = Path(__file__).parents[2]
    assignment = discover(root / "assignments")["vector_add"]
    path = root / "solutions" / "vector_add" / "wrong_missing_mask.py"
    report = grade(assignment, path, profile="quick", device="cpu", keyword="test_memory")
    (check,) = report.checks
    assert check.details["findings"][0]["size"] >= 1
    assert (
        sum(count for _, count in check.details["tiles"]["owners"])
        == check.details["tiles"]["columns"] * check.details["tiles"]["rows"]
    )
