"""Diagnoses that rest on which of a check's examples passed and which failed: what do the failures have in common?"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from gradekit.findings import Cause
from gradekit.judge.evidence import Diagnosis, EarlierRun, Evidence, errors_are_small, is_power_of_two

ENOUGH = 3
"""So many different examples on each side make a pattern."""

_HALF = ("float16", "bfloat16")


def separates(evidence: Evidence, property_: Callable[[EarlierRun], bool], enough: int = ENOUGH) -> bool:
    """Whether every failed example has the property and no passed one, with `enough` different ones on each side."""
    failed, passed = _distinct(evidence.failed), _distinct(evidence.passed)
    if min(len(failed), len(passed)) < enough:
        return False
    return all(map(property_, failed)) and not any(map(property_, passed))


def _distinct(examples: Iterable[EarlierRun]) -> list[EarlierRun]:
    return list({e.inputs: e for e in examples if e.specs}.values())


def ignores_strides(evidence: Evidence) -> Diagnosis | None:
    """Wrong whenever one of the inputs, always the same, is strided (or has gaps in its rows), right whenever not."""
    here = EarlierRun(evidence.inputs, False)
    for position, spec in enumerate(evidence.specs):
        for strided, what in (
            (_is_strided, "is contiguous"),
            (_has_gaps, "has neighbours in a row next to each other"),
        ):
            if strided(position)(here) and separates(evidence, strided(position)):
                at = f"strides {spec.stride} for shape {list(spec.shape)}"
                return _ignored(evidence.name(position), what, at, position)
    if len(evidence.specs) > 1 and _any_strided(here) and separates(evidence, _any_strided):
        return _ignored("every input", "is contiguous", "; ".join(map(repr, evidence.specs)))
    return None


def _ignored(name: str, what: str, here: str, position: int | None = None) -> Diagnosis:
    return Diagnosis(
        Cause.IGNORES_STRIDES,
        f"The kernel is right whenever {name} {what}, and wrong in all other examples (here: {here}). "
        f"Does it use every stride of {name}, each for its own dimension?",
        input=position,
    )


def strides_separate(evidence: Evidence) -> bool:
    """Whether two or more examples passed with contiguous inputs alone, and none failed so: support for a proof."""
    plain = [e for e in _distinct(evidence.passed) if not _any_strided(e)]
    return len(plain) >= 2 and all(map(_any_strided, _distinct(evidence.failed)))


def _any_strided(example: EarlierRun) -> bool:
    return not all(s.is_contiguous for s in example.specs)


def _is_strided(position: int) -> Callable[[EarlierRun], bool]:
    return lambda example: position < len(example.specs) and not example.specs[position].is_contiguous


def _has_gaps(position: int) -> Callable[[EarlierRun], bool]:
    def gaps(example: EarlierRun) -> bool:
        spec = example.specs[position] if position < len(example.specs) else None
        return spec is not None and bool(spec.shape) and spec.shape[-1] > 1 and spec.stride[-1] != 1

    return gaps


def right_for_powers_of_two(evidence: Evidence) -> Diagnosis | None:
    """Wrong whenever the last dimension is no power of two, so that a block has lanes beyond it."""
    if not evidence.specs or not separates(evidence, _has_partial_block):
        return None
    wide = {_columns(e) for e in evidence.passed if _columns(e) > 1}
    if len(wide) < 2:
        return None
    return Diagnosis(
        Cause.MISSING_MASK,
        f"Right for every row length that is a power of two, and wrong for all others (here {_columns(evidence)}): "
        "as if lanes past the end of a row took part, or the last, partial block were left out. See that every load "
        "has a mask and an `other` that changes nothing (0 for a sum, -inf for a maximum or before exp), and that the "
        "number of blocks is rounded up.",
    )


def _columns(example: EarlierRun | Evidence) -> int:
    shape = example.specs[0].shape
    return shape[-1] if shape else 1


def _has_partial_block(example: EarlierRun) -> bool:
    return not is_power_of_two(_columns(example))


def right_alone(text: str) -> Diagnosis | None:
    """What to say of a call that is wrong after others and right in a process of its own; None where the submission's
    `text` keeps nothing between calls, so that none need be tried."""
    line = next(iter(_keeping(text)), None)
    return None if line is None else Diagnosis(
        Cause.DEPENDS_ON_EARLIER_CALLS,
        "As the first call of a new process, this very call is right: what an earlier call has left behind (a compiled "
        f"kernel, a choice, a tensor) does not fit it. Does line {line} keep something for too many calls?",
        line,
        "let what is kept stand for all that it depends on: each size, dtype, stride and argument; or keep nothing",
    )  # fmt: skip


def _keeping(text: str) -> Iterator[int]:
    """Lines at which something is kept for later calls: in a name of the module, by a tuner or a cache of results."""
    try:
        module = ast.parse(text)
    except SyntaxError:
        return
    stored = (node.id for each in module.body for node in ast.walk(each) if isinstance(node, ast.Name) and _sets(node))
    names = {*stored, *(each.name for each in module.body if isinstance(each, (ast.FunctionDef, ast.ClassDef)))}
    for each in filter(lambda node: isinstance(node, ast.FunctionDef), ast.walk(module)):
        assert isinstance(each, ast.FunctionDef)
        yield from (one.lineno for one in each.decorator_list if re.search("cache|autotune", ast.unparse(one)))
        inside = (node for node in ast.walk(each) if isinstance(node, (ast.stmt, ast.expr)))
        yield from (node.lineno for node in inside if isinstance(node, ast.Global) or _changes(node, names))


def _sets(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _changes(node: ast.AST, names: set[str]) -> bool:
    """Whether a part of one of the `names` is set, or one of their methods called that add something."""
    adds = isinstance(node, ast.Attribute) and node.attr in ("append", "add", "setdefault", "update", "extend")
    of = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    return isinstance(of, ast.Name) and of.id in names and (adds or _sets(node))


def one_dtype(evidence: Evidence) -> Diagnosis | None:
    """Wrong for one dtype of the first input, right for the others."""
    if not evidence.specs:
        return None
    dtype = evidence.specs[0].dtype
    if not separates(evidence, lambda e: e.specs[0].dtype == dtype):
        return None
    others = sorted({e.specs[0].dtype for e in evidence.passed if e.specs})
    small = evidence.comparison is not None and errors_are_small(evidence.comparison)
    cause = Cause.LOW_PRECISION if small and dtype in _HALF else evidence.failure.cause
    return Diagnosis(cause, f"Right for {_listed(others)}, and wrong for {dtype} whatever the shape.")


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
