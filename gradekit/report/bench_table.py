"""A sweep over sizes as a table of text: pure functions of the record."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from gradekit.report.speed_sentences import duration
from gradekit.report.terminal import PLAIN, Look
from gradekit.report.text import columns, one_line
from gradekit.report.translation import say

SIDES = ("student", "eager", "compiled")
HEADS = ("size", "yours", "eager torch", "torch.compile", "to eager", "to compiled", "of roofline")


def render(record: Mapping[str, Any], look: Look = PLAIN) -> str:
    """The whole sweep, ending in a newline."""
    table = list(_table(record, look))
    return look.text([_heading(record, look), table if look.unicode else [row.replace("µ", "u") for row in table]])


def _heading(record: Mapping[str, Any], look: Look) -> list[str]:
    title = f"{look.paint(one_line(record['assignment']), bold=True)}  {one_line(record['submission']['path'])}"
    card = one_line(str(record["environment"].get("gpu", "a card")))
    return [title, say(f"{one_line(record['entry'])} on {card}, with {record['vary']} as the size that varies")]


# --- the table --------------------------------------------------------------------------------------------------------


def _table(record: Mapping[str, Any], look: Look) -> Iterator[str]:
    heads = [say(head) for head in HEADS]
    widths = [max(9, columns(head) + 2) for head in heads]
    padded = (" " * (width - columns(head)) + head for head, width in zip(heads, widths, strict=True))
    yield look.paint("".join(padded), dim=True)
    for row in record["rows"]:
        if row["error"]:
            yield from _error(row, widths[0], look)
        else:
            yield "".join(f"{cell:>{width}}" for cell, width in zip(_cells(row), widths, strict=True))


def _cells(row: Mapping[str, Any]) -> list[str]:
    times = row["microseconds"]
    ratios = [row["ratios"].get(side) for side in ("eager", "compiled")]
    cells = [str(row["size"]), *(duration(times[side]) if side in times else "" for side in SIDES)]
    cells += [f"{ratio['value']:.2f}x" if ratio else "" for ratio in ratios]
    return [*cells, f"{row['roofline_microseconds'] / times['student']:.0%}"]


def _error(row: Mapping[str, Any], width: int, look: Look) -> list[str]:
    margin = " " * (width + 2)
    wrapped = textwrap.wrap(say(one_line(row["error"])), look.width, initial_indent=margin, subsequent_indent=margin)
    return [f"{row['size']:>{width}}  {look.paint(wrapped[0].strip(), 'red')}", *wrapped[1:]]
