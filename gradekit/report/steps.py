"""The step view as one page that loads nothing: a pure function of the record of steps (see gradekit.stepview.played).

The page's one script plays the steps and builds what it shows from text alone. Without a script, the page has the
source and a table of what the first program did.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from gradekit.report import templates
from gradekit.report.text import clean, described, one_line

MOST_ROWS = 300
"""Rows of the table for those who have no script."""


def render(record: Mapping[str, Any]) -> str:
    """The page of a record of steps."""
    return templates.page("steps.html", view(record), script="steps.js")


def framed(page: str) -> str:
    """A rendered page inside of a frame, for a notebook's cell: the frame may run the
    page's script and nothing else."""
    inner = html.escape(page, quote=True)
    return (
        '<iframe title="gradekit step view" sandbox="allow-scripts" width="100%" height="720" '
        f'srcdoc="{inner}"></iframe>'
    )


def view(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the template shows, every text of it clean."""
    played = _cleaned(record["programs"][0])
    values = [(step, value) for step in played["steps"] for value in step["values"]]
    return {
        "title": f"{one_line(record['assignment'])}: step by step", "path": one_line(record["path"]),
        "check": one_line(record["check"]), "message": clean(record["message"]),
        "circumstances": one_line(record["circumstances"]),
        "inputs": [described(given) for given in record["inputs"]],
        "source": [{"number": number, "text": clean(text)} for number, text in enumerate(record["source"], 1)],
        "notes": [one_line(note) for note in record["notes"]],
        "values": values[:MOST_ROWS], "more": len(values) - MOST_ROWS,
        "program": f"({', '.join(map(str, played['id']))})", "blamed": record.get("blamed"),
        "data": templates.data_block(_data(record)),
    }  # fmt: skip


def _data(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the script needs of the record, every text clean."""
    return {
        "tensors": [tensor | {"name": one_line(tensor["name"])} for tensor in record["tensors"]],
        "launches": [launch | {"kernel": one_line(launch["kernel"])} for launch in record["launches"]],
        "programs": [_cleaned(program) for program in record["programs"]], "wrong": record["wrong"],
        "blamed": record.get("blamed"),
    }  # fmt: skip


def _cleaned(program: Mapping[str, Any]) -> dict[str, Any]:
    steps = [
        dict(step) | {"values": [value | {"name": one_line(value["name"])} for value in step["values"]]}
        for step in program["steps"]
    ]
    return dict(program) | {"steps": steps}
