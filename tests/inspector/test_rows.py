"""Every stage's rows, under the submission's lines."""

from __future__ import annotations

import pytest

from gradekit.inspector.compiler import AMD_STAGES, STAGES
from gradekit.inspector.instructions import rows

from .inspected import float32, inspected, line

LOADS = {
    "ttir": "tt.load",
    "ttgir": "tt.load",
    "llir": "ld.global",
    "ptx": "ld.global",
    "sass": "LDG",
    "amdgcn": "buffer_load",
}


def compiled(stage: str) -> str:
    on = "gfx942" if stage == "amdgcn" else "sm_80"
    return inspected("copy", float32(4096, 1024), on=on).stages[stage]


@pytest.mark.parametrize("stage", dict.fromkeys(STAGES + AMD_STAGES))
def test_the_load_of_every_stage_stands_under_the_line_that_wrote_it(stage: str) -> None:
    text = compiled(stage)
    found = [number for number, row in rows(stage, text, "submission.py") if LOADS[stage] in row]
    assert set(found) == {line("load x")}


@pytest.mark.parametrize(
    ("stage", "place"),
    [("ttir", "loc("), ("ttgir", "loc("), ("llir", "!dbg"), ("ptx", ".loc"), ("sass", "//##"), ("amdgcn", ".loc")],
)
def test_what_only_carries_places_is_left_out(stage: str, place: str) -> None:
    text = compiled(stage)
    assert place in text
    assert not [row for _, row in rows(stage, text, "submission.py") if place in row]
