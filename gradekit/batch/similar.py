"""Which submissions of a class resemble each other: a list for a person to look at, and never a verdict.

Compares fingerprints. What many in a class have in common weighs little, and what the starter has counts for nothing in
the source; a program that is the class's usual one is no evidence at all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from gradekit.report.text import one_line

Fingerprint = Mapping[str, Any]

LEAST = 0.8
"""The score from which on two submissions are listed."""

SAME_SOURCE = 0.8
"""How much of the source must agree before two hand-ins of the usual program (which more than a fifth of the class has
handed in, and more than three) are listed."""


@dataclass(frozen=True)
class Pair:
    """Two submissions with the `score` of their programs (1: the same but for names and constants) and of their
    sources, and what else they share."""

    one: str
    other: str
    score: float
    source: float
    is_twin: bool
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resemblance:
    """The pairs to look at, the likeliest first, how many students share the usual programs, and how many have none
    (a starter that nobody began with)."""

    pairs: tuple[Pair, ...]
    usual: tuple[int, ...]
    compared: int
    without: int = 0


def resemblance(
    prints: Mapping[str, Fingerprint], starter: Fingerprint | None = None, least: float = LEAST
) -> Resemblance:
    """What resembles what among `prints` (by student)."""
    everybody = len(prints)
    prints = {student: found for student, found in prints.items() if found["shingles"]}
    weights = _weights(prints.values())
    groups = Counter(found["whole"] for found in prints.values())
    usual = {whole for whole, count in groups.items() if count > max(3, len(prints) / 5)}
    pairs = [
        pair
        for one, other in _candidates(prints, weights)
        if (pair := _pair(one, other, prints, weights, starter or {})).score >= least
        and (prints[one]["whole"] not in usual or not pair.is_twin or pair.source >= SAME_SOURCE)
    ]
    ranked = sorted(pairs, key=lambda pair: (-pair.score - pair.source, pair.one, pair.other))
    counts = tuple(sorted((groups[w] for w in usual), reverse=True))
    return Resemblance(tuple(ranked), counts, len(prints), everybody - len(prints))


def _weights(prints: Iterable[Fingerprint]) -> dict[str, float]:
    """The rarer a shingle, the more it weighs; a program that was handed in several times is still one idea."""
    distinct = {found["whole"]: found for found in prints}
    count = Counter(shingle for found in distinct.values() for shingle in found["shingles"])
    return {shingle: math.log((len(distinct) + 1) / number) for shingle, number in count.items()}


def _candidates(prints: Mapping[str, Fingerprint], weights: Mapping[str, float]) -> Iterable[tuple[str, str]]:
    """Pairs whose bags weigh about the same: the others cannot resemble each other."""
    weight = {s: sum(weights[k] * n for k, n in found["shingles"].items()) for s, found in prints.items()}
    for one, other in combinations(sorted(prints), 2):
        small, large = sorted((weight[one], weight[other]))
        if small >= LEAST / 2 * large:
            yield one, other


def _pair(
    one: str, other: str, prints: Mapping[str, Fingerprint], weights: Mapping[str, float], starter: Fingerprint
) -> Pair:
    a, b = prints[one], prints[other]
    is_twin = a["whole"] == b["whole"]
    score = 1.0 if is_twin else min(_weighted(a["shingles"], b["shingles"], weights), 0.99)
    shares = {name: _share(a[name], b[name], starter.get(name, ())) for name in ("tokens", "names", "comments")}
    source = (shares["tokens"][0] + shares["names"][0]) / 2
    return Pair(one, other, score, source, is_twin, tuple(_evidence(a, b, shares)))


def _weighted(a: Mapping[str, int], b: Mapping[str, int], weights: Mapping[str, float]) -> float:
    """Jaccard's measure of two bags: what both have, of what either has."""
    both = sum(weights[k] * min(n, b[k]) for k, n in a.items() if k in b)
    either = sum(weights[k] * max(a.get(k, 0), b.get(k, 0)) for k in a.keys() | b.keys())
    return both / either if either else 0.0


def _share(a: Sequence[str], b: Sequence[str], starter: Sequence[str]) -> tuple[float, int, int]:
    """What part both have of what either has beyond the starter, how many both have, and how many either."""
    own_a, own_b = set(a) - set(starter), set(b) - set(starter)
    both, either = len(own_a & own_b), len(own_a | own_b)
    return (both / either if either else 0.0), both, either


def _evidence(a: Fingerprint, b: Fingerprint, shares: Mapping[str, tuple[float, int, int]]) -> Iterable[str]:
    yield f"{shares['tokens'][0]:.0%} of the source's form"
    yield f"{shares['names'][0]:.0%} of the names"
    _, both, either = shares["comments"]
    if either:
        yield f"{both} of {either} comments"
    if a["constants"] and a["constants"] == b["constants"]:
        yield "all constants and block sizes"
    if a["options"] and a["options"] == b["options"]:
        yield "all options"


def render(found: Resemblance, most: int = 50) -> str:
    """The list as text."""
    lines = [f"{found.compared} students compared. A list to look at, and no verdict: short tasks have few solutions."]
    lines += [f"{number} of them have the same, usual program: that alone says nothing." for number in found.usual]
    lines += [f"{found.without} have no program to compare."] if found.without else []
    rows = list(map(_line, grouped(found.pairs)))
    lines += ["", *rows[:most]] if rows else ["No two stand out."]
    if len(rows) > most:
        lines.append(f"... and {len(rows) - most} more")
    return "\n".join(lines) + "\n"


def grouped(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """The pairs in their order; those of one program, which many handed in, stand together."""
    groups: list[list[Pair]] = []
    of: dict[str, list[Pair]] = {}
    for pair in pairs:
        known = next((of[name] for name in (pair.one, pair.other) if pair.is_twin and name in of), None)
        group = known if known is not None else []
        group.append(pair)
        if known is None:
            groups.append(group)
        if pair.is_twin:
            of[pair.one] = of[pair.other] = group
    return groups


def _line(group: Sequence[Pair]) -> str:
    pair = group[0]
    names = ", ".join(dict.fromkeys(one_line(name) for each in group for name in (each.one, each.other)))
    kind = "same program" if pair.is_twin else f"{pair.score:.2f} alike  "
    if len(group) == 1:
        return f"{kind:<12}  {names}: they share {', '.join(pair.evidence)}"
    share = min(each.source for each in group)
    common = [said for said in pair.evidence[2:] if all(said in each.evidence for each in group)]
    return f"{kind:<12}  {names}: each two share at least {', '.join([f'{share:.0%} of the source', *common])}"
