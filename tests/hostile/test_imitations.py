"""What a submission writes cannot be taken for the report's own lines."""

from __future__ import annotations

import pytest

from gradekit.report import terminal
from gradekit.report.record import to_dict
from gradekit.sandbox.replies import error, loaded
from tests.report.samples import PASSED, report

FORGED = "  ✓ Adds two contiguous float32 vectors                                  16 / 16"


def sent(message: str) -> str:
    """The message of an error that a submission's process sent."""
    return error({"cause": "exception", "message": message, "line": 3, "detail": ""}).message


def test_each_line_of_an_exception_carries_a_mark() -> None:
    assert sent(f"ValueError: no\n\n{FORGED}\n100 of 100 points") == (
        f"ValueError: no\n│ \n│ {FORGED}\n│ 100 of 100 points"
    )  # fmt: skip


def test_a_hint_of_gradekits_own_has_none() -> None:
    message = "TypeError: 'function' object is not subscriptable"
    assert sent(f"{message}\nIf this is a launch, is @triton.jit missing above the kernel?").count("│") == 0
    assert sent(f"{message}\nIf this is a launch, all is well.").count("│") == 1


def test_a_note_of_the_submissions_carries_a_mark_on_every_line_that_it_takes() -> None:
    note = f"line 1 was left out (x)\n{FORGED}\n100 of 100 points" + " so" * 60
    notes = loaded({"functions": {}, "notes": [note]}).notes
    text = terminal.render(to_dict(report(PASSED)) | {"notes": list(notes)})
    lines = [line for line in text.split("\n") if " so so" in line or "left out" in line or "Adds two" in line]
    assert len(lines) > 2 and all(line.startswith("│ ") for line in lines)


@pytest.mark.parametrize("end", ["\r", "\x0b", "\u2028", "\x85"])
def test_no_other_line_end_starts_a_line(end: str) -> None:
    text = terminal.render(to_dict(report(PASSED)) | {"notes": [f"a{end}{FORGED}"]})
    assert "Adds two contiguous" in text and end not in text
