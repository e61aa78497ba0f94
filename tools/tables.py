"""Writes the tables that repeat what stands elsewhere: run it after a change of gradekit/causes.py or of a domain.toml.

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
from gradekit.domain import ANY_DIMENSIONS, EntryDomain, ScalarDomain, SizeDomain, Tensor, load

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


# --- handouts --------------------------------------------------------------------------------------------------------


def handout(text: str, entry: EntryDomain) -> str:
    """An assignment's handout with the domain of its entry between its marks."""
    rows = "".join(
        f"| `{argument.name}` | {_shape(argument)} | {_dtype(argument, entry)} |\n" for argument in entry.arguments
    )
    sizes = "; ".join(filter(None, map(_range, entry.sizes.values())))
    limits = "".join(f" {limit.replace('*', '·')}." for limit in entry.limits)
    no_larger = "No tensor has more than 2³¹ − 2²¹ elements."
    may = "may be one tensor, or overlap in memory."
    one = "".join(f" `{first}` and `{second}` {may}" for first, second in map(str.split, entry.aliases))
    table = f"| argument | shape | dtype |\n|---|---|---|\n{rows}\n{sizes}.{limits} {no_larger}{one}\n"
    new = f"<!-- domain: begin -->\n{table}<!-- domain: end -->"
    return re.sub(r"<!-- domain: begin -->.*<!-- domain: end -->", lambda match: new, text, flags=re.DOTALL)


def _shape(argument: Tensor | ScalarDomain) -> str:
    if isinstance(argument, ScalarDomain):
        return "a number" if argument.type != "bool" else "True or False"
    return f"[{', '.join(part.replace('*', '·') for part in argument.shape)}]"


def _dtype(argument: Tensor | ScalarDomain, entry: EntryDomain) -> str:
    return argument.type if isinstance(argument, ScalarDomain) else ", ".join(entry.dtype_choices(argument.dtype))


def _range(size: SizeDomain) -> str:
    if size.name == ANY_DIMENSIONS:
        return f"`...`: {size.dims[0]} to {size.dims[1]} dimensions, each {size.least} or more"
    if size.only:
        return f"{size.name}: {', '.join(map(str, size.only))}"
    open_ended = size.most >= 2**31 - 2
    return f"{size.name}: {size.least} or more" if open_ended else f"{size.name}: {size.least} to {size.most}"


if __name__ == "__main__":
    for file in sorted(ROOT.glob("assignments/*/domain.toml")):
        paper = file.with_name("README.md")
        (entry,) = load(file).values()
        paper.write_text(handout(paper.read_text(encoding="utf-8"), entry), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(schema(SCHEMA.read_text(encoding="utf-8")), encoding="utf-8")
