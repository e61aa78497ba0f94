"""What cures a failing example by chance is not told: what depends on the width of a tile, or breaks at large values."""

from pathlib import Path

import pytest

from gradekit.repair.by_chance import chosen_by, with_another, with_one
from gradekit.repair.mend import Family, Mend
from gradekit.submission.parsed_source import Edit
from tests.graded import failed_checks
from tests.right import text

GUARDED = [
    ("    y = h * tl.sigmoid(2 * u) + residual", "    y = 0.5 * h * (1 + tanh(u)) + residual"),
    ("@triton.jit\ndef chain", "@triton.jit\ndef tanh(u):\n    e = tl.exp(-2 * tl.abs(u))\n    return (1 - e) / (1 + e)\n\n\n@triton.jit\ndef chain"),
]  # fmt: skip
"""tanh of the size of a number: where the sign is put back into the exponent, large numbers give NaN."""


def edited(path: str, edits: list[tuple[str, str]]) -> str:
    changed = text(path)
    for old, new in edits:
        assert old in changed
        changed = changed.replace(old, new)
    return changed


@pytest.mark.parametrize(("path", "edits", "line"), [
    pytest.param("solutions/dropout/right_tutorial.py", [("seed, offsets)", "seed + tl.program_id(0), tl.arange(0, BLOCK))")], "keep = ",
                 marks=pytest.mark.slow),
    ("solutions/fused_chain/right_row_and_block.py", GUARDED, "return (1 - e)"),
])  # fmt: skip
def test_of_two_edits_that_cure_an_example_the_one_that_does_so_by_chance_is_not_told(
    path: str, edits: list[tuple[str, str]], line: str, tmp_path: Path
) -> None:
    wrong = edited(path, edits)
    (check,) = failed_checks(path.split("/")[1], wrong, tmp_path, stop=True)
    assert line in wrong.splitlines()[check["source"]["line"] - 1], check["message"]
    assert "BLOCK" not in check["hint"] and "this example and others are right" in check["hint"]


def test_what_a_kernel_may_choose_is_varied_where_an_edit_puts_it_in() -> None:
    source = text("solutions/dropout/right_tutorial.py")
    at = source.index("offsets) >= p")
    mend = Mend(Family.FORMULA, 1, 15, (Edit(at, at + 7, "offsets + BLOCK", ""),), "", "", kernel="dropout_kernel")
    assert chosen_by(mend, source) == {512}
    assert "triton.cdiv(n, 32)" in (other := with_another(source, 512)) and "BLOCK=32" in other


def test_a_number_stands_for_a_name_that_an_edit_puts_in_and_for_no_other() -> None:
    source = text("solutions/dropout/right_tutorial.py")
    at = source.index("offsets < n")
    mend = Mend(Family.FORMULA, 1, 15, (Edit(at, at + 11, "offsets + seed < n", ""),), "", "", kernel="dropout_kernel")
    assert ["offsets + 1 < n" in one and "tl.rand(seed" in one for one in with_one(mend, source)] == [True]
    for factor in ("offsets <= n", "offsets * seed < n"):  # the rest of what is put in is right with a factor of 1, too
        edit = Edit(at, at + 11, factor, "")
        assert with_one(Mend(Family.FORMULA, 1, 15, (edit,), "", "", kernel="dropout_kernel"), source) == []
