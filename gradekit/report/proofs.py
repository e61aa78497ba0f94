"""Renders the record of `gradekit prove` for a terminal."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradekit.report.text import clean
from gradekit.report.translation import say

MOST_NAMED = 2  # sizes that a check's line names

_MARKS = {"proved": "✓", "refuted": "✗", "open": "?"}
_CLAIMS = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))

OPEN = "?: it is not known whether this holds. Checks try such sizes; you need not change anything."


def render(record: Mapping[str, Any]) -> str:
    """The claims of each pass with their verdicts, and what was taken for granted."""
    return "\n".join(clean(say(line)) for line in _lines(record)) + "\n"


def summary(details: Mapping[str, Any]) -> str:
    """What a memory check's proofs say, in a few words for its line; "" where nothing was proved."""
    passes = list(details.get("proofs", {}).values())
    proved, open_ = (sum(found[verdict] for found in passes) for verdict in ("proved", "open"))
    if not proved or any(found["refuted"] for found in passes):
        return ""
    if open_:
        return f"{proved} of {proved + open_} claims proved for all sizes"
    partly = any("unseen" in found or found.get("gaps") for found in passes)
    return f"proved for {_largest(passes)}" + (", where host code was followed" if partly else "")


def _largest(passes: Sequence[Mapping[str, Any]]) -> str:
    sizes = {name: most for found in passes for name, most in found.get("largest", {}).items()}
    if not 0 < len(sizes) <= MOST_NAMED or not all(name.isidentifier() for name in sizes):
        return "all sizes"
    return " and ".join(f"every {name} up to {most:,}" for name, most in sizes.items())


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    for name, found in record["passes"].items():
        yield f"{name}: {found['proved']} proved, {found['refuted']} refuted, {found['open']} open"
        for claim in found["claims"]:
            yield from _claim(claim)
        yield from _granted(found)
        yield from [f"    {OPEN}"] if found["open"] else []
        yield ""


def _claim(claim: Mapping[str, Any]) -> Iterator[str]:
    said = row(claim)
    where = say(f"line {said['line']}") if said["line"] else ""
    yield f"  {said['sign']} {where:<9} {say(said['what'])}"
    yield from (f"              {say(line)}" for line in (said["why"], said["to_do"]) if line)


def row(claim: Mapping[str, Any]) -> dict[str, str]:
    """A row for a claim: verdict, sign, line, what it says, why it is open or refuted, what to do if refuted."""
    is_refuted = claim["verdict"] == "refuted"
    why = f"for {sized(claim.get('sizes', {}))}: {claim.get('finding', '')}" if is_refuted else claim.get("why", "")
    said = _CLAIMS[claim["claim"]]
    return {
        "verdict": clean(claim["verdict"]), "sign": _MARKS[claim["verdict"]], "line": str(claim.get("line", "")),
        "what": clean(said["says"].format(subject=claim["subject"])), "why": clean(why),
        "to_do": f"to do: {said['hint']}" if is_refuted else "",
    }  # fmt: skip


def sized(sizes: Mapping[str, int]) -> str:
    """ "N = 1,024, K = 8"."""
    return ", ".join(f"{name} = {value:,}" for name, value in sizes.items())


def _granted(found: Mapping[str, Any]) -> Iterator[str]:
    for assumption in found["assumptions"]:
        yield f"    assumed: {assumption}"
    for fault in found.get("faults", ()):
        yield f"    fault of this proof: {fault}"
    for gap in found.get("gaps", ()):
        yield f"    not decided: {gap}"
    if "unseen" in found:
        at = sized(found["unseen"])
        yield f"    not decided: for {at}, where another kernel is compiled or your host code takes another path"
