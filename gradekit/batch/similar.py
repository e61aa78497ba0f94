"""Which submissions of a class resemble each other: a list for a person to look at, and never a verdict.

Compares fingerprints. What many in a class have in common weighs little, and what the starter has counts for nothing in
the source; a program that is the class's usual one is no evidence at all.
"""

import functools
import hashlib
import io
import keyword
import math
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from gradekit.engine.kernel_facts import every_operation, parsed
from gradekit.engine.ttir import Op, TTIRError
from gradekit.program import Aten, Program, run_steps
from gradekit.report.text import one_line

Fingerprint = Mapping[str, Any]

LEAST = 0.8  # the score from which on two submissions are listed

SAME_SOURCE = 0.8
"""How much of the source must agree before two hand-ins of the usual program (which more than a fifth of the class has
handed in, and more than three) are listed."""


@dataclass(frozen=True)
class Pair:
    """Two submissions, the `score` of their programs (1: but for names and constants the same) and sources; `copied`
    names what both have where program, names and comments are the same. Of each, the `programs` and their constants."""

    one: str
    other: str
    score: float
    source: float
    programs: tuple[tuple[str, str], tuple[str, str]]
    evidence: tuple[str, ...] = ()
    copied: str = ""

    @property
    def is_twin(self) -> bool:
        """Whether their programs are the same."""
        return self.programs[0][0] == self.programs[1][0]


@dataclass(frozen=True)
class Resemblance:
    """The pairs to look at, the likeliest first; how many share the usual programs, and have none."""

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
    score = 1.0 if a["whole"] == b["whole"] else min(_weighted(a["shingles"], b["shingles"], weights), 0.99)
    shares = {name: _share(a[name], b[name], starter.get(name, ())) for name in ("tokens", "names", "comments")}
    source = (shares["tokens"][0] + shares["names"][0]) / 2
    copied = _hash(repr(a)) if a == b else ""
    programs = (a["whole"], repr(a.get("numbers"))), (b["whole"], repr(b.get("numbers")))
    return Pair(one, other, score, source, programs, tuple(_evidence(a, b, shares)), copied)


def _weighted(a: Mapping[str, int], b: Mapping[str, int], weights: Mapping[str, float]) -> float:
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
    if a.get("numbers") and a["numbers"] == b.get("numbers"):
        yield "all constants and block sizes of the kernels"


def render(found: Resemblance, most: int = 50) -> str:
    """The list as text."""
    lines = [f"Students compared: {found.compared}. A list to look at, and no verdict: short tasks have few solutions."]
    lines += [f"{number} of them have the same, usual program: that alone says nothing." for number in found.usual]
    lines += [f"{found.without} have no program to compare."] if found.without else []
    rows = list(map(_line, grouped(found.pairs)))
    lines += ["", *rows[:most]] if rows else ["No two stand out."]
    if len(rows) > most:
        lines.append(f"... and {len(rows) - most} more")
    return "\n".join(lines) + "\n"


def grouped(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """The pairs in their order, copies first; those of the same programs, which many handed in, stand together, and
    apart from them those that have the same constants, too."""
    groups: dict[Any, list[Pair]] = {}
    for pair in sorted(pairs, key=lambda pair: not pair.copied):
        one, other = pair.programs
        groups.setdefault(pair.copied or (one if one == other else frozenset((one[0], other[0]))), []).append(pair)
    return list(groups.values())


def _line(group: Sequence[Pair]) -> str:
    pair, sides = group[0], dict[Any, dict[str, None]]()
    for each in group:
        for name, program in zip((each.one, each.other), each.programs, strict=True):
            sides.setdefault(program if pair.is_twin else program[0], {})[one_line(name)] = None
    names = (", " if len(group) == 1 else " / ").join(map(", ".join, sides.values()))
    if pair.copied:
        return f"same source   {names}: program, names and comments are the same"
    kind = "same program" if pair.is_twin else f"{pair.score:.2f} alike  "
    if len(group) == 1:
        return f"{kind:<12}  {names}: they share {', '.join(pair.evidence)}"
    share = min(each.source for each in group)
    common = [said for said in pair.evidence[2:] if all(said in each.evidence for each in group)]
    which = "each two" if len(sides) == 1 else "any two that a stroke parts"
    return f"{kind:<12}  {names}: {which} share at least {', '.join([f'{share:.0%} of the source', *common])}"


# --- fingerprint ------------------------------------------------------------------------------------------------------


MOST = 1000
"""Shingles that are kept: those with the smallest hashes, so that large bags are compared by the same sample."""

MOST_WORDS = 300

_SYMMETRIC = frozenset(
    f"arith.{name}" for name in
    ("addf", "addi", "mulf", "muli", "andi", "ori", "xori", "maxnumf", "minnumf", "maximumf", "minimumf", "maxsi",
    "minsi")
)  # fmt: skip
_TELLING = ("predicate", "axis", "kind")
"""Attributes that say what an operation does; the others say how, or with what numbers."""


def fingerprint(programs: Iterable[Program], text: str) -> dict[str, Any]:
    """Of a submission by its calls' programs and its text: `whole` is the same where the kernels are, but for names,
    constants and order; `shingles` count their parts, `numbers` are each kernel's; the rest is of the source."""
    programs = list(programs)
    kernels = {kernel.unaligned: kernel for program in programs for kernel in program.kernels.values()}
    bags = [bag for ttir in kernels if (bag := _bag(ttir)) is not None]
    shingles: Counter[str] = Counter()
    numbers: dict[str, set[str]] = {}
    for found, whole, own in bags:
        shingles |= found
        numbers.setdefault(whole, set()).update(own)
    steps = [run_steps(program.steps) for program in programs]  # what the host does: "Allocate", "aten::sum"
    host = {_hash("host", *(s.op if isinstance(s, Aten) else type(s).__name__ for s in each)) for each in steps}
    return {
        "whole": _hash(*sorted({whole for _, whole, _ in bags}), *sorted(host)),
        "shingles": dict(sorted((shingles | Counter(host)).items())[:MOST]),
        "numbers": sorted(_hash(whole, *sorted(own)) for whole, own in numbers.items() if own),
    } | of_source(text)


# --- kernels ----------------------------------------------------------------------------------------------------------


def _bag(ttir: str) -> tuple[Counter[str], str, set[str]] | None:
    """A kernel's shingles, the hash of its whole dataflow, and its numbers; None for what the engine cannot read."""
    try:
        ops = list(every_operation(parsed(ttir)))
    except TTIRError:
        return None
    labels = list(_labels(ops))
    bag = Counter(label for near, nearer, _ in labels for label in (near, nearer))
    return bag, _hash(*sorted(deep for *_, deep in labels)), {number for op in ops for number in _numbers(op)}


def _labels(ops: Sequence[Op]) -> Iterator[tuple[str, str, str]]:
    """For each operation: its hash with its operands' makers, with theirs too, and with all that leads to it."""
    kind: dict[str, str] = {}
    near: dict[str, str] = {}
    deep: dict[str, str] = {}
    for op in ops:
        name = " ".join([op.name, *(f"{key}={op.attributes[key]}" for key in _TELLING if key in op.attributes)])
        parts = [[before.get(operand, "given") for operand in op.operands] for before in (kind, near, deep)]
        first, second, whole = (_hash(name, *(sorted(part) if op.name in _SYMMETRIC else part)) for part in parts)
        for result in op.results:
            kind[result], near[result], deep[result] = name, first, whole
        yield first, second, whole


def _numbers(op: Op) -> Iterator[str]:
    """Numbers that a student chose: constants, and the ends of ranges."""
    values = (op.attributes.get(name) for name in ("value", "end"))
    yield from (repr(value) for value in values if type(value) in (int, float))


# --- the source -------------------------------------------------------------------------------------------------------

_SKIPPED = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING)


def of_source(text: str) -> dict[str, Any]:
    """Hashes of a text: runs of tokens without names and numbers, names, comments; empty where it is no Python."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        tokens = []
    comments = {_hash(token.string.strip("# \t")) for token in tokens if token.type == tokenize.COMMENT}
    kept = [token for token in tokens if token.type not in (*_SKIPPED, tokenize.COMMENT)]
    names = {_hash(t.string) for t in kept if t.type == tokenize.NAME and not keyword.iskeyword(t.string)}
    plain = [_plain(token) for token in kept]
    runs = {_hash(*six) for six in zip(*(plain[i:] for i in range(6)), strict=False)}
    return {
        "tokens": sorted(runs)[:MOST_WORDS],
        "names": sorted(names)[:MOST_WORDS],
        "comments": sorted(comments)[:MOST_WORDS],
    }


def _plain(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
        return "name"
    return {tokenize.NUMBER: "number", tokenize.STRING: "string"}.get(token.type, token.string)


@functools.lru_cache(maxsize=1 << 14)  # specializations of one kernel have most in common
def _hash(*words: str) -> str:
    return hashlib.blake2b("\0".join(words).encode("utf-8", "replace"), digest_size=5).hexdigest()
