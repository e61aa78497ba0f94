"""What a report says was changed, with which its example is right, was changed and run."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradekit.judge.evidence import Diagnosis
from gradekit.repair import search, tutor
from gradekit.repair.mend import Clues, Family, Mend
from gradekit.submission.parsed_source import Edit
from tests import right
from tests.graded import failed_checks, record_of
from tests.repair.corpora import corpus

MISTAKES = [
    ("vector_add", "axes_swapped"), ("vector_add", "grid_rounded_down"), ("vector_add", "last_stride_left_out"),
    ("vector_add", "row_without_remainder"), ("softmax", "stores_one_row"), ("softmax", "steps_rounded_down"),
    ("softmax", "strides_swapped_at_launch"), ("softmax", "other_minus_one"), ("dropout", "grid_rounds_down"),
    ("matmul", "steps_rounded_down"), ("matmul", "mask_with_K"), ("dropout", "counter_of_the_program"),
    ("dropout", "blocks_overlap"), ("custom_op", "half_for_the_root"), ("custom_op", "bias_by_row"),
    ("custom_op", "density_without_the_half"), ("spmm", "values_without_stride"),
    ("giou_loss", "strides_of_pred_for_targets"), ("layer_norm", "variance_over_block"),
    ("decode_attention", "key_strides_exchanged"),
]  # fmt: skip

_KEPT = "x, y = x.contiguous(), y.contiguous()"

COPIES = right.text("solutions/vector_add/right_copies.py").replace(_KEPT, "x.contiguous()\n    y.contiguous()")

Tried = dict[tuple[str, str], str]


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Tried:
    """The text that each diagnosis is about, by its sentence and hint."""
    found, told = Tried(), search.diagnosis_of

    def diagnosis_of(mend: Any, text: str, tried: str, *more: Any) -> Diagnosis:
        said = told(mend, text, tried, *more)
        found[said.sentence, said.hint] = tried
        return said

    for module in (search, tutor):
        monkeypatch.setattr(module, "diagnosis_of", diagnosis_of)
    return found


def words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*|\d+", text))


def is_as_said(id: str, text: str, tried: Tried, folder: Path) -> None:
    (check,) = failed_checks(id, text, folder, stop=True)
    changed = next(one for (says, hint), one in tried.items() if says in check["message"] and hint == check["hint"])
    said = f"{check['message']} {check['hint']} line {check['source']['line']}"
    pairs = enumerate(zip(text.splitlines(), changed.splitlines(), strict=True), 1)
    lines = {number: (old, new) for number, (old, new) in pairs if old != new}
    assert lines and {*map(str, lines)} <= words(said)
    assert set().union(*(words(new) - words(old) for old, new in lines.values())) <= words(said)
    example = {"keyword": check["id"], "inputs": check["counterexample"]["example"], "diagnose": False}
    outcome: Callable[[str], list[str]] = lambda text: [
        one["outcome"] for one in record_of(id, text, folder, **example)["checks"]
    ]
    assert outcome(text) == ["failed"] and outcome(changed) == ["passed"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("id", "name"), MISTAKES)
def test_what_is_said_was_changed_and_run_with_the_example_that_is_shown(
    id: str, name: str, tried: Tried, tmp_path: Path
) -> None:
    is_as_said(id, next(one.text for one in corpus(id) if one.name == name), tried, tmp_path)


def test_where_two_lines_are_changed_both_are_said(tried: Tried, tmp_path: Path) -> None:
    is_as_said("vector_add", COPIES, tried, tmp_path)


def test_two_edits_of_one_line_are_shown_as_they_were_tried_together() -> None:
    text = "top = tl.max(x, axis=0)[None, :]\n"
    axis = Mend(Family.INDEX, 1, 1, (Edit(21, 22, "1", ""),), "Line 1 has the wrong axis.", "reduce along axis 1")
    spread = Mend(Family.INDEX, 1, 1, (Edit(23, 32, "[:, None]", ""),), "Line 1 spreads it.", "try `[:, None]`")
    both, tried = tutor.of_both(axis, spread), "top = tl.max(x, axis=1)[:, None]\n"
    assert spread.applied(axis.applied(text)) == tried
    hint = search.diagnosis_of(both, text, tried, Clues(frozenset(), ()), search.RIGHT).hint
    assert hint.endswith("(with line 1 as `top = tl.max(x, axis=1)[:, None]`, this example and others are right)")


def test_a_statement_that_is_added_to_a_line_is_shown_behind_it() -> None:
    added = Mend(Family.LOOP, 1, 1, (Edit(8, 8, "; k += 2", ""),), "Line 1.", "count on")
    hint = search.diagnosis_of(added, "at += BK\n", "at += BK; k += 2\n", Clues(frozenset(), ()), search.RIGHT).hint
    assert "with line 1 as `at += BK; k += 2`" in hint
