"""Renders the record of `gradekit prove` for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gradekit.report.text import clean

_MARKS = {"proved": "✓", "refuted": "✗", "open": "?"}
_CLAIMS = {
    "in-bounds": "stays inside",
    "no-wrap": "no integer wraps around",
    "one-writer": "one program for each element",
    "no-race": "no program reads what another writes",
    "covered": "is written",
    "grid-limit": "is one that CUDA launches",
}


def render(record: Mapping[str, Any]) -> str:
    """The claims of each pass with their verdicts, and what was taken for granted."""
    return "\n".join(clean(line) for line in _lines(record)) + "\n"


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    for name, found in record["passes"].items():
        yield f"{name}: {found['proved']} proved, {found['refuted']} refuted, {found['open']} open"
        for claim in found["claims"]:
            yield from _claim(claim)
        yield from _granted(found)
        yield ""


def _claim(claim: Mapping[str, Any]) -> Iterator[str]:
    where = f"line {claim['line']}" if "line" in claim else ""
    what = f"{claim['subject']} {_CLAIMS.get(claim['claim'], claim['claim'])}"
    yield f"  {_MARKS[claim['verdict']]} {where:<9} {what}"
    if claim["verdict"] == "refuted":
        sizes = ", ".join(f"{name} = {value:,}" for name, value in claim.get("sizes", {}).items())
        yield f"              for {sizes}: {claim.get('finding', '')}"
    elif claim.get("why"):
        yield f"              {claim['why']}"


def row(claim: Mapping[str, Any]) -> dict[str, str]:
    """A claim as a row of a table: its verdict with a sign, the line, what it says, and why it is open or refuted."""
    sizes = ", ".join(f"{name} = {value:,}" for name, value in claim.get("sizes", {}).items())
    why = f"for {sizes}: {claim.get('finding', '')}" if claim["verdict"] == "refuted" else claim.get("why", "")
    return {
        "verdict": clean(claim["verdict"]), "sign": _MARKS[claim["verdict"]], "line": str(claim.get("line", "")),
        "what": clean(f"{claim['subject']} {_CLAIMS.get(claim['claim'], claim['claim'])}"), "why": clean(why),
    }  # fmt: skip


def _granted(found: Mapping[str, Any]) -> Iterator[str]:
    for assumption in found["assumptions"]:
        yield f"    assumed: {assumption}"
    for gap in found.get("gaps", ()):
        yield f"    not decided: {gap}"
    if "unseen" in found:
        sizes = ", ".join(f"{name} = {value:,}" for name, value in found["unseen"].items())
        yield f"    host code takes further paths, for example for {sizes}"
