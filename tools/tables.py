"""Writes the tables that repeat what stands elsewhere: run it after a change of the causes or of a domain.toml.

    python tools/tables.py

docs/report.md lists the causes with their meanings, gradekit/report/schema.json their words; an assignment's handout
has a table of what its entry takes. tests/report and tests/course fail where they differ.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

from gradekit.causes import Cause
from gradekit.course.handout import handout
from gradekit.domain import load

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "report.md"
SCHEMA = ROOT / "gradekit" / "report" / "schema.json"


def page(text: str) -> str:
    """docs/report.md with today's causes between its marks."""
    rows = "".join(f"| `{cause.value}` | {cause.meaning} |\n" for cause in Cause)
    table = f"<!-- causes: begin -->\n| cause | meaning |\n|---|---|\n{rows}<!-- causes: end -->"
    return re.sub(r"<!-- causes: begin -->.*<!-- causes: end -->", lambda match: table, text, flags=re.DOTALL)


def schema(text: str) -> str:
    """schema.json with today's causes as the words of its definition "cause"."""
    words = ", ".join(["null", *(json.dumps(cause.value) for cause in Cause)])
    lines = textwrap.fill(words, 116, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False)
    return re.sub(r'(?<="cause": \{\n      "enum": \[\n).*?(?=\n      \])', lambda match: lines, text, flags=re.DOTALL)


if __name__ == "__main__":
    for file in sorted(ROOT.glob("assignments/*/domain.toml")):
        paper = file.with_name("README.md")
        (entry,) = load(file).values()
        paper.write_text(handout(paper.read_text(encoding="utf-8"), entry), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(schema(SCHEMA.read_text(encoding="utf-8")), encoding="utf-8")
