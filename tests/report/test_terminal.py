"""The terminal report, letter by letter, and safe whatever a submission puts into it."""

import itertools
from dataclasses import replace
from typing import Any

import click
import pytest

from gradekit.findings import Cause, Outcome, SourceLine, Status
from gradekit.report.terminal import Look, render

from .samples import FAILED, FAULT, PASSED, PENDING, REJECTED, record


def test_a_graded_report_is_this_text() -> None:
    assert (
        render(record(PASSED, FAILED, PENDING, FAULT, notes=("Left out cell 2: no definitions there.",)))
        == """\
softmax  submission.py
40 of 110 points, 40 pending  (4 checks: 1 passed, 1 failed, 1 pending, 1 not graded)

  ✓ Agrees with torch.softmax on small matrices                          40 / 40
  ✗ Agrees with torch.softmax on any shape, dtype and stride              0 / 30
      At shape [1, 33], float32: 1 of 33 elements is wrong, first at [0, 32].
      line 14 │ x = tl.load(x_ptr + offs)
      input   x: float32 [1, 33], strides (66, 2)
              scale = 0.5
      hint    compute mask = offsets < n, and pass it to tl.load and tl.store
      replay  gradekit check submission.py -a softmax -k test_matches_torch --seed 7

  ◌ Is at least as fast as torch.compile                              pending 30
      Speed is measured on a GPU, and this machine has none.
  ! Something odd                                                  not graded 10
      The grader failed here, not the submission: ValueError: oh

Left out cell 2: no definitions there.
Checked in 3.2 s on the CPU engine (nothing ran on a GPU); torch 2.13.0, triton
3.9.0, seed 7.
"""
    )


def test_a_rejected_submission_is_told_why_once() -> None:
    assert (
        render(record(replace(FAILED, earned=0), **REJECTED))
        == """\
softmax  submission.py
Rejected: 0 of 30 points

  Python cannot read line 2 of submission.py: expected ':'
  line 2 │ def f(x)

Checked in 3.2 s on the CPU engine (nothing ran on a GPU); torch 2.13.0, triton
3.9.0, seed 7.
"""
    )


def test_a_fault_takes_nothing_from_the_student() -> None:
    assert (
        render(record(status=Status.FAULT, message="ValueError: oh\nThe details are in oh.txt."))
        == """\
softmax  submission.py
Not graded: the grader itself failed, and nothing counts against you

  ValueError: oh
  The details are in oh.txt.

Checked in 3.2 s on the CPU engine (nothing ran on a GPU); torch 2.13.0, triton
3.9.0, seed 7.
"""
    )


def test_one_mistake_that_fails_two_checks_is_one_story_with_its_cost() -> None:
    """... below the lines of both, wherever the checks stand"""
    other = replace(FAILED, id="test_other", title="Another one", earned=10, message="At shape [3]: all wrong.")
    text = render(record(FAILED, PASSED, other))
    assert (
        """\
  ✗ Agrees with torch.softmax on any shape, dtype and stride              0 / 30
  ✗ Another one                                                          10 / 30
      These checks show the same (50 points):
      At shape [1, 33], float32: 1 of 33 elements is wrong, first at [0, 32].
      line 14 │ x = tl.load(x_ptr + offs)
      input   x: float32 [1, 33], strides (66, 2)
              scale = 0.5
      hint    compute mask = offsets < n, and pass it to tl.load and tl.store
      replay  gradekit check submission.py -a softmax -k test_matches_torch --seed 7

  ✓ Agrees with torch.softmax on small matrices                          40 / 40
"""
        in text
    )
    assert "At shape [3]" not in text


def test_checks_that_one_change_made_right_are_one_story_whatever_they_saw() -> None:
    said = {"hint": "use `n` there (with line 14 as `x = tl.load(n)`, this example and others are right)"}
    nan = replace(FAILED, cause=Cause.NAN, details=said)
    wrong = replace(nan, id="test_other", title="Another one", cause=Cause.WRONG_VALUES)
    assert "show the same" in render(record(nan, wrong)) and "show the same" not in render(record(nan, replace(wrong, details={})))


def test_checks_of_which_one_observation_tells_what_is_wrong_have_one_story() -> None:
    seen = replace(FAILED, source=None, details={"observation": "Within a row all elements are off by one factor."})
    other = replace(seen, id="test_other", title="Another one", message="At shape [9]: wrong. Within a row ...")
    assert "show the same" in render(record(seen, other))
    assert "show the same" not in render(record(seen, replace(other, details={"observation": "Every element is 0."})))


def test_two_mistakes_are_two_stories() -> None:
    other = replace(FAILED, id="test_other", title="Another one", source=SourceLine(20, "y"))
    text = render(record(FAILED, other, PASSED))
    assert "show the same" not in text and text.count("At shape [1, 33]") == 2


def test_what_a_check_only_sees_at_a_line_has_the_story_of_the_check_that_knows_why() -> None:
    """... also where it stands first, but not at another line"""
    known = replace(FAILED, cause=Cause.MISSING_MASK, message="Line 14 loads without a mask.")
    vague = replace(known, id="test_other", cause=Cause.OUT_OF_BOUNDS_LOAD, message="Line 14 goes past the end.")
    text = render(record(vague, known))
    assert "show the same" in text and "without a mask" in text and "past the end" not in text
    elsewhere = replace(vague, source=SourceLine(20, "y"))
    text = render(record(elsewhere, known))
    assert "show the same" not in text and "without a mask" in text and "past the end" in text


def test_an_untouched_starter_is_told_one_sentence() -> None:
    said, line = (
        "NotImplementedError: softmax is not written yet: fill in the TODOs",
        SourceLine(20, "raise NotImplementedError()"),
    )
    checks = [replace(FAILED, id=f"test_{n}", message=said, cause=Cause.EXCEPTION, source=line) for n in range(12)]
    assert (
        render(record(*checks))
        == """\
softmax  submission.py
0 of 360 points  (12 checks failed)

  Nothing is written yet: fill in the TODOs, and delete line 20 when you have.
  line 20 │ raise NotImplementedError()

Checked in 3.2 s on the CPU engine (nothing ran on a GPU); torch 2.13.0, triton
3.9.0, seed 7.
"""
    )
    assert "Nothing is written" not in render(record(*checks, PASSED))
    by_torch = replace(FAILED, id="test_model", message="torch.compile says: an exception", cause=Cause.EXCEPTION, source=None)
    assert "Nothing is written yet: fill in the TODOs, and delete line 20" in render(record(by_torch, *checks))
    assert "Nothing is written" not in render(record(by_torch))


@pytest.mark.parametrize("lines", [1, 4, 200])
@pytest.mark.parametrize("count", [3, 6, 13])
def test_a_hopeless_report_fits_a_screen(count: int, lines: int) -> None:
    """... names every check, and tells the first in full"""
    said = "More of it. " * 9 * lines
    several = lambda n: {"id": f"test_{n}", "title": f"Check number {n}", "message": f"Wrong {n}.\n{said}", "source": SourceLine(n + 1, "x")}
    checks = [replace(FAILED, **several(n)) for n in range(count)]
    text = render(record(*checks))
    assert text.count("\n") <= 40
    assert all(f"Check number {n}" in text for n in range(count))
    assert "Wrong 0." in text and "replay" in text and "hint" in text


def test_a_hopeless_report_has_the_hint_for_another_line_too() -> None:
    said = "More of it. " * 200
    of = lambda n: {"message": f"Wrong {n}. {said}", "source": SourceLine(n, f"text {n}"), "details": {"hint": f"mend {n}"}}
    checks = [replace(FAILED, id=f"test_{n}", **of(n)) for n in (1, 1, 2, 3)]
    text = render(record(*checks))
    assert "mend 1" in text and "text 2" in text and "mend 2" in text
    assert "Wrong 2. More" in text  # what happened, too
    assert "mend 3" not in text and "Wrong 3" not in text
    assert "then check again: it may be the cause of others, too." in text
    told = render(record(*checks[:3], PENDING))
    assert "Begin with the first" not in told  # one that only waits for a card is not silent about a mistake


def test_a_report_with_points_tells_every_story() -> None:
    checks = [replace(FAILED, id=f"test_{n}", message=f"Wrong {n}.", source=SourceLine(n + 1, "x")) for n in range(9)]
    assert render(record(PASSED, *checks)).count("replay") == 9


def test_parametrizations_that_passed_share_a_line() -> None:
    cases = [replace(PASSED, id=f"test_rows[{n}]", title=f"Wide rows [{n}]", earned=5, possible=5) for n in (1, 2, 3)]
    text = render(record(*cases))
    assert "  ✓ Wide rows [1, 2, 3]                                                  15 / 15\n" in text
    assert "3 checks passed" in text


def test_parametrizations_that_failed_for_one_reason_share_a_line_too() -> None:
    cases = [replace(FAILED, id=f"test_rows[{n}]", title=f"Wide rows [{n}]", possible=5) for n in (1, 2)]
    other = replace(cases[0], id="test_rows[3]", title="Wide rows [3]", source=SourceLine(20, "y"))
    text = render(record(*cases, other))
    assert "  ✗ Wide rows [1, 2]                                                      0 / 10\n" in text
    assert "  ✗ Wide rows [3]                                                          0 / 5\n" in text
    assert text.count("replay") == 2


def test_a_reason_without_a_line_is_told_once_too() -> None:
    first = replace(FAILED, source=None)
    text = render(record(first, replace(first, id="test_other", title="Another one")))
    assert text.count("1 of 33 elements is wrong") == 1
    assert "These checks show the same (60 points):" in text


def test_partial_credit_shows_what_was_earned_and_what_is_pending_beside_it_is_not_lost() -> None:
    assert "7.5 / 30\n" in render(record(replace(FAILED, earned=7.5)))
    assert "pending 10 + 20\n" in render(record(replace(PENDING, earned=10)))


def test_what_a_person_says_of_a_passed_check_is_shown() -> None:
    said = replace(PASSED, message="Ran it on my own card. (marked by R. Meier)", details={"marked_by": "R. Meier"})
    lines = render(record(said)).splitlines()
    assert lines[4] == "      Ran it on my own card. (marked by R. Meier)"


def test_the_hint_of_a_check_goes_before_that_of_its_cause() -> None:
    text = render(record(replace(FAILED, details={"hint": "look at line 14"})))
    assert "      hint    look at line 14\n" in text
    assert "compute mask" not in text


def test_the_calls_that_led_to_an_exception_are_named() -> None:
    detail = "line 13, in g: return h(x)\nline 15, in h: raise ValueError()\nValueError: oh"
    text = render(record(replace(FAILED, details={"detail": detail})))
    assert "      from    line 13, in g: return h(x)\n" in text
    assert "line 15, in h" not in text


def test_a_line_of_a_notebook_is_named_by_its_cell() -> None:
    data = record(FAILED, submission={"path": "lab.ipynb", "sha256": "", "cells": [[1, 2], [2, 11]]})
    assert "      cell 2, line 4 │ x = tl.load(x_ptr + offs)\n" in render(data)


def test_a_long_source_line_is_wrapped_beside_its_bar() -> None:
    source = SourceLine(
        7, "x = tl.load(x_ptr + row * stride_row + columns * stride_column, mask=columns < n, other=0.0)"
    )
    text = render(record(replace(FAILED, source=source)))
    assert (
        "      line 7 │ x = tl.load(x_ptr + row * stride_row + columns * stride_column,\n"
        "             │ mask=columns < n, other=0.0)\n"
    ) in text


def test_few_numbers_are_shown() -> None:
    """... of an input and of the result"""
    example = {**(FAILED.counterexample or {}), "got": ["0.5", "0.25"], "expected": ["0.5", "0.75"]}
    example["inputs"] = [{"name": "x", "shape": [2], "stride": [1], "dtype": "float32", "values": ["1.0", "2.0"]}]
    assert (
        """\
      input   x: float32 [2]
                [1.0, 2.0]
      got     [0.5, 0.25]
      right   [0.5, 0.75]
"""
        in render(record(replace(FAILED, counterexample=example)))
    )


# --- looks ------------------------------------------------------------------------------------------------------------


def test_colour_changes_nothing_but_colour() -> None:
    data = record(PASSED, FAILED, PENDING, FAULT)
    coloured = render(data, Look(colour=True))
    assert "\x1b[31m" in coloured and "\x1b[32m" in coloured
    assert click.unstyle(coloured) == render(data)


def test_a_terminal_without_unicode_gets_ascii_alone() -> None:
    data = record(PASSED, replace(FAILED, message="erwartet: ≤ 3"), PENDING)
    text = render(data, Look(unicode=False))
    assert text.isascii()
    assert "  + Agrees" in text and "  x Agrees" in text and "  . Is at least" in text
    assert "      line 14 | x = tl.load(x_ptr + offs)\n" in text
    assert "erwartet: \\u2264 3" in text


@pytest.mark.parametrize("width", [60, 72, 80, 100])
def test_no_line_but_the_command_is_wider_than_the_terminal(width: int) -> None:
    lines = render(record(PASSED, FAILED, PENDING, FAULT), Look(width)).split("\n")
    wide = [line for line in lines[2:] if len(line) > width]
    assert all("replay" in line for line in wide)
    given = {"name": "residual", "dtype": "float32", "shape": [2, 1], "profile": "tiny", "stride": [1, 1], "seed": 6331, "base": 31}
    lines = render(record(replace(FAILED, counterexample={"inputs": [given]})), Look(width)).split("\n")
    at = next(n for n, line in enumerate(lines) if line.startswith("      input   residual: float32 [2, 1]"))
    assert len(lines[at]) <= width and "in a shared storage of 31" in " ".join(" ".join(lines[at : at + 3]).split())
    assert lines[at + 1].startswith(" " * 16) and len(lines[at + 1]) <= width


# --- safety -----------------------------------------------------------------------------------------------------------

HOSTILE = "\x1b[2J\x1b]0;owned\x07\rpassed\u202e\x9b31m"


def hostile() -> dict[str, Any]:
    named = {"name": HOSTILE, "dtype": HOSTILE, "shape": [1], "stride": [1], "profile": HOSTILE}
    check = replace(
        FAILED, id=HOSTILE, title=HOSTILE, message=HOSTILE, source=SourceLine(1, HOSTILE),
        counterexample={"inputs": [{"name": HOSTILE, "value": HOSTILE}, named], "replay": HOSTILE},
        details={"hint": HOSTILE, "detail": f"line 1, in {HOSTILE}\nline 2, in g: x"},
    )  # fmt: skip
    return record(
        check, replace(check, outcome=Outcome.PENDING), assignment=HOSTILE, message=HOSTILE, notes=(HOSTILE,), source=SourceLine(1, HOSTILE),
        submission={"path": HOSTILE, "sha256": "", "cells": []}, environment=dict.fromkeys(("gradekit", "torch", "triton", "gpu"), HOSTILE),
    )  # fmt: skip


def test_nothing_that_a_submission_writes_commands_the_terminal() -> None:
    text = render(hostile())
    assert not [c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u2066")]
    assert "\\x1b[2J" in text


def test_a_huge_message_is_cut() -> None:
    text = render(record(replace(FAILED, message="\n".join(["spam"] * 10_000) + "x" * 10_000_000)))
    assert "... and 9991 more lines" in text
    assert len(text) < 10_000


def test_a_message_that_must_be_short_ends_with_a_sentence() -> None:
    checks = [
        replace(FAILED, id=f"test_{n}", message="It is all of this that goes on and on. " * 40, source=SourceLine(n + 1, "x"))
        for n in range(5)
    ]
    shown = [line.strip() for line in render(record(*checks)).splitlines()]
    ends = [line for line, after in itertools.pairwise(shown) if after.startswith("line ") and line[-1:] != "0"]
    assert "..." not in shown and len(ends) == 2 and all(line.endswith(".") for line in ends)
