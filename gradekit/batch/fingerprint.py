"""What a submission's programs look like once names, constants, sizes and places are
gone: small, and kept with a result.

A kernel's TTIR becomes a bag of shingles: each is one operation with the operations that its operands come from, and
those that theirs come from. Reordering, renaming and reformatting leave the bag as it is. The source's tokens, names
and comments, hashed too, are evidence beside it.
"""

from __future__ import annotations

import functools
import hashlib
import io
import keyword
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gradekit.engine.kernel_facts import every_operation, parsed
from gradekit.engine.ttir import Module, Op, TTIRError
from gradekit.program import Aten, Program, Step, run_steps
from gradekit.reuse import SharedCache, shared
from gradekit.subject import digest

MOST = 1000
"""Shingles that are kept: those with the smallest hashes, so that two large bags are
still compared by the same sample."""

MOST_WORDS = 300

_SYMMETRIC = frozenset(
    f"arith.{name}" for name in
    ("addf", "addi", "mulf", "muli", "andi", "ori", "xori", "maxnumf", "minnumf", "maximumf", "minimumf", "maxsi",
    "minsi")
)  # fmt: skip
_TELLING = ("predicate", "axis", "kind")
"""Attributes that say what an operation does; the others say how, or with what numbers."""

Fingerprint = dict[str, Any]


def fingerprint(programs: Iterable[Program], text: str) -> Fingerprint:
    """Of a submission by the programs of its calls and its source text.

    `whole` is the same for two submissions whose kernels are the same but for names, constants and order; `shingles`
    count what they are made of; `constants` and `options` are what was left out; `tokens`,
    `names` and `comments` are of the source.
    """
    programs = list(programs)
    kernels = {kernel.unaligned: kernel for program in programs for kernel in program.kernels.values()}
    bags = [bag for ttir in kernels if (bag := _known_bag(ttir)) is not None]
    shingles: Counter[str] = Counter()
    for found, _, _ in bags:
        shingles |= found
    host = {_hash("host", *_steps(program.steps)) for program in programs}
    options = {f"{name}={value}" for k in kernels.values() for name, value in k.options.items() if _is_compared(value)}
    return {
        "whole": _hash(*sorted({whole for _, whole, _ in bags}), *sorted(host)),
        "shingles": dict(sorted((shingles | Counter(host)).items())[:MOST]),
        "constants": sorted({number for _, _, numbers in bags for number in numbers})[:MOST_WORDS],
        "options": sorted(options)[:MOST_WORDS],
    } | of_source(text)


def _is_compared(value: Any) -> bool:
    return isinstance(value, (int, str, bool)) and len(str(value)) < 40


def _steps(steps: Sequence[Step]) -> Iterator[str]:
    """What the host does, in order: "Allocate", "Launch", "aten::sum"."""
    return (step.op if isinstance(step, Aten) else type(step).__name__ for step in run_steps(steps))


# --- kernels ----------------------------------------------------------------------------------------------------------


_Bag = tuple[Counter[str], str, set[int]]

_bags: SharedCache[bytes, tuple[_Bag | None]] = shared(1 << 12)
"""Those of kernels that have come up before, wherever their lines stand: of a class, many have the same."""


def _known_bag(ttir: str) -> _Bag | None:
    kernel = digest.of_kernel(ttir)
    found = _bags.get(kernel)
    if found is None:
        found = (_bag(ttir),)
        _bags.put(kernel, found)
    return found[0]


def _bag(ttir: str) -> _Bag | None:
    """The shingles of a kernel, the hash of its whole dataflow, and its numbers; None
    where the engine cannot read it."""
    try:
        module = parsed(ttir)
    except TTIRError:
        return None
    ops = list(every_operation(module))
    near, nearer, deep = _labels(module, ops)
    bag = Counter(near) + Counter(nearer)
    return bag, _hash(*sorted(deep)), {number for op in ops for number in _numbers(op)}


def _labels(module: Module, ops: Sequence[Op]) -> tuple[list[str], list[str], list[str]]:
    """For each operation: its hash with its operands' makers, with theirs too, and with all that leads to it."""
    kind: dict[str, str] = {}
    near: dict[str, str] = {}
    deep: dict[str, str] = {}
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    for op in ops:
        name = _name(op)
        labels = [_hash(name, *_of(op, before)) for before in (kind, near, deep)]
        for results, label in zip(found, labels, strict=True):
            results.append(label)
        for result in op.results:
            kind[result], near[result], deep[result] = name, labels[0], labels[2]
    return found


def _of(op: Op, before: dict[str, str]) -> list[str]:
    labels = [before.get(operand, "given") for operand in op.operands]
    return sorted(labels) if op.name in _SYMMETRIC else labels


def _name(op: Op) -> str:
    return " ".join([op.name, *(f"{key}={op.attributes[key]}" for key in _TELLING if key in op.attributes)])


def _numbers(op: Op) -> Iterator[int]:
    """Whole numbers that a student chose: constants, and the ends of ranges."""
    values = (op.attributes.get(name) for name in ("value", "end"))
    yield from (value for value in values if type(value) is int and abs(value) < 1 << 31)


# --- the source -------------------------------------------------------------------------------------------------------

_SKIPPED = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING)


def of_source(text: str) -> Fingerprint:
    """Hashes of a source text: runs of tokens with names and numbers gone, names, and comments; nothing where Python
    cannot read it."""
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
