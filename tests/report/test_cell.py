"""The report in a notebook's cell is the terminal's, as safe HTML."""

from __future__ import annotations

import html
import re
from dataclasses import replace

from gradekit.report import terminal
from gradekit.report.cell import render

from .samples import FAILED, PASSED, PENDING, record


def test_it_is_letter_for_letter_the_terminals_report() -> None:
    data = record(PASSED, FAILED, PENDING)
    text = html.unescape(re.sub(r"<[^>]*>", "", render(data)))
    assert text == terminal.render(data, terminal.Look(100))


def test_colours_become_spans_that_all_close() -> None:
    page = render(record(PASSED, FAILED))
    assert '<span style="color:#2e7d32;font-weight:bold">✓</span>' in page
    assert page.count("<span") == page.count("</span>") > 0


def test_what_a_submission_says_stays_text() -> None:
    page = render(record(replace(FAILED, message="<script>alert(1)</script>\x1b[31mred")))
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31mred" in page
