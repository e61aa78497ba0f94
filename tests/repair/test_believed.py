"""Which mends are tried where a kernel has no result, in which order others are, and which are believed."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit.causes import Cause
from gradekit.judge.failure import Failure
from gradekit.repair.idioms.candidates import MOST_OF_ENDLESS, MOST_OF_REFUSED, SPECIFIC, in_order, mends
from gradekit.repair.idioms.idiom import idioms_of
from gradekit.repair.mend import Clues, Family, Mend
from gradekit.repair.other_checks import is_emptied
from gradekit.repair.search import BEFORE_SCREENING, LIKELIEST, Mending, Tries
from gradekit.source.draft import making
from tests import right
from tests.repair.corpora import ROOT, Verdict
from tests.repair.graded_mistake import tutored

CLUES = Clues(frozenset({Cause.WRONG_VALUES}), ())
SHARED = right.text("tests/course/right/dropout/grid_stride.py")


def line_of(piece: str) -> int:
    return next(number for number, line in enumerate(SHARED.splitlines(), 1) if piece in line)


def test_a_line_that_triton_refuses_is_made_by_its_names_its_loop_and_the_launch() -> None:
    made = making(SHARED, line_of("x = tl.load"))
    wanted = ["x = tl.load", "for start", "step = ", "offsets = ", "mask = ", "dropout_kernel[("]
    assert {line_of(piece) for piece in wanted} <= made
    assert made.isdisjoint({line_of(piece) for piece in ("tl.store(", "out = torch", "class Dropout", "n = x.numel")})
    assert making(SHARED, line_of("out = torch")) == {line_of("out = torch")} and making("def f(:", 1) == {1}


@pytest.mark.parametrize(
    ("cause", "most"), [(Cause.COMPILATION_ERROR, MOST_OF_REFUSED), (Cause.BUDGET_EXCEEDED, MOST_OF_ENDLESS)]
)
def test_of_a_kernel_without_a_result_few_mends_are_tried_and_those_of_its_line_first(cause: Cause, most: int) -> None:
    lines = making(SHARED, line_of("x = tl.load"))
    kept = in_order(mends(SHARED), Clues(frozenset({cause}), (), lines=lines))
    there = [mend.line in lines for mend in kept]
    assert 0 < len(kept) <= most and there == sorted(there, reverse=True) and any(there)
    assert all(mend.line in lines or not mend.kernel and mend.rank <= SPECIFIC for mend in kept)


def test_guesses_by_names_and_mends_of_grids_are_tried_after_the_first_look() -> None:
    wrong = SHARED.replace("triton.cdiv(n, 512)", "n // 512")
    looked = Mend(Family.FORMULA, 6, 1, (), "It was found at a look.", "")
    every = [mend for mend in in_order(mends(wrong), CLUES)]
    texts: list[str] = []

    def is_right(text: str) -> bool:
        texts.append(text)
        return False

    before: list[str] = []
    screened = lambda: before.extend(texts) or [looked]  # type: ignore[func-returns-value]
    assert Mending(wrong).found(CLUES, Tries(is_right, screened=screened)) is None
    early = [next(mend for mend in every if mend.applied(wrong) == text) for text in before]
    assert 0 < len(early) <= BEFORE_SCREENING and texts[len(early)] == looked.applied(wrong)
    assert all(mend.rank <= LIKELIEST for mend in early)
    assert any(mend.rank > LIKELIEST for mend in every)


def test_a_text_is_known_to_have_made_a_check_right() -> None:
    wrong = SHARED.replace("< p, 0.0, x / (1 - p)", "< p, 0.0, x")
    mending = Mending(wrong, idioms=idioms_of(ROOT / "assignments/dropout/idioms.toml"))
    found = mending.found(CLUES, Tries(lambda text: ast.dump(ast.parse(text)) == ast.dump(ast.parse(SHARED))))
    assert found is not None and mending.has_made_right(found.applied(wrong)) and not mending.has_made_right(wrong)


# --- what empties results, or cuts runs off ---------------------------------------------------------------------------


def wrong_with(result: list[float], key: str | None) -> Failure:
    """A failure of a `result` that a reference with this key is compared with; none follows from the result."""
    comparison: Any = SimpleNamespace(actual=torch.tensor(result), reference=SimpleNamespace(key=key))
    return Failure(Cause.WRONG_VALUES, "", comparison=comparison)


def seen_with(*results: list[float]) -> Any:
    observation = SimpleNamespace(results=[torch.tensor(result) for result in results])
    return SimpleNamespace(calls=[SimpleNamespace(observation=observation)])


def test_a_result_is_emptied_where_what_is_right_follows_from_it_and_all_is_0() -> None:
    assert is_emptied(wrong_with([1.0, 0.0], None), seen_with([0.0, 0.0]))
    assert not is_emptied(wrong_with([1.0, 0.0], None), seen_with([0.0, 2.0]))
    assert not is_emptied(wrong_with([0.0, 0.0], None), seen_with([0.0, 0.0]))
    assert not is_emptied(wrong_with([1.0, 0.0], "softmax"), seen_with([0.0, 0.0]))
    assert not is_emptied(wrong_with([1.0, 0.0], None), SimpleNamespace(calls=[]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("id", "name"),
    [
        pytest.param("dropout", "p_is_not_kept", marks=pytest.mark.slow),  # what is right of one element may be 0
        ("dropout", "seed_passed_for_p"),  # a kernel that Triton refuses
    ],
)
def test_a_report_of_one_of_these_names_its_cause_and_line(id: str, name: str, tmp_path: Path) -> None:
    found = tutored(id, name, tmp_path)
    assert (found.verdict, found.line) == (Verdict.NAMED, True)
