"""The step view as one page that loads nothing: a pure function of the record of steps (see gradekit.stepview.played).

The page's one script plays the steps and builds what it shows from text alone. Without a script, the page has the
source and a table of what the first program did.
"""

import html
import re
from collections.abc import Mapping
from typing import Any

from gradekit.report import templates
from gradekit.report.translation import say
from gradekit.submission import line_of

MOST_ROWS = 300  # rows of the table for those who have no script


def render(record: Mapping[str, Any]) -> str:
    """The page of a record of steps."""
    return templates.page("steps.html", view(record), script="steps.js")


def framed(page: str) -> str:
    """A page inside of a frame for a notebook's cell, which may run the page's script and nothing else."""
    inner = html.escape(page, quote=True)
    return (
        '<iframe title="gradekit step view" sandbox="allow-scripts" width="100%" height="720" '
        f'srcdoc="{inner}"></iframe>'
    )


def view(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the template shows beside the record itself."""
    played = record["programs"][0]
    values = [(step, value) for step in played["steps"] for value in step["values"]]
    places = [line_of(record, number) for number, _ in enumerate(record["source"], 1)]
    data = {name: record.get(name) for name in ("tensors", "launches", "programs", "wrong", "blamed")}
    data |= {"places": list(map(say, places))}
    return {
        "title": f"{record['assignment']}: step by step", "record": record, "blamed": record.get("blamed"),
        "numbers": [re.split(r"\D", place)[-1] for place in places],
        "values": values[:MOST_ROWS], "more": len(values) - MOST_ROWS,
        "program": f"({', '.join(map(str, played['id']))})", "data": templates.data_block(data),
    }  # fmt: skip
