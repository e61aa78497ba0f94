"""Mends of the numbers in a formula: one that is mistyped, left out or too many, and powers."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from gradekit.repair.idioms.of_unused import is_index_line
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, factors, is_condition, is_stored, target_of, value_of
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import called

_CURVES = (
    "tl.sigmoid",
    "tl.exp",
    "tl.exp2",
    "tl.erf",
    "tl.math.erf",
    "tl.math.tanh",
    "libdevice.tanh",
    "libdevice.erf",
)
"""Functions whose argument a formula multiplies by a number."""

_ROOT_OF_A_HALF = "0.7071067811865476"


def _formulas(kernel: KernelDraft) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The statements that compute values, with what they compute."""
    for statement in kernel.statements:
        value = value_of(statement)
        if value is not None and not is_index_line(kernel, statement) and not is_condition(value):
            yield statement, value


def _lacked(draft: Draft) -> list[str]:
    """The handout's numbers that stand nowhere in the source, but for those like 1e-5."""
    known = [node.value for node in ast.walk(draft.source.tree) if isinstance(node, ast.Constant)]
    numbers = [value for value in known if isinstance(value, float)]
    return [one for one in draft.numbers if "e-" not in one and not any(_is_number(value, one) for value in numbers)]


def _is_number(value: float, written: str) -> bool:
    """Whether a number is one of the handout, which has fewer digits at times."""
    return math.isclose(value, float(written), rel_tol=1e-6)


def factor_left_out(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A number that the formula has as a factor: of a function's argument, or of what a line computes."""
    for call in calls(kernel.nodes, *_CURVES):
        if call.args and not any(isinstance(n, ast.Constant) for n in ast.walk(call.args[0])):
            inner = kernel.source.operand(call.args[0])
            exponential = called(call) in ("tl.exp", "tl.exp2")
            turned = isinstance(call.args[0], ast.BinOp) and isinstance(call.args[0].op, ast.Sub)  # another rule's
            for rank, new in enumerate(("-1", "0.5")[turned:] if exponential else ("2", "0.5", _ROOT_OF_A_HALF)):
                yield Mend(
                    Family.FORMULA, 16 + rank, call.lineno, (kernel.replaced(call.args[0], f"{new} * {inner}"),),
                    f"The argument of {called(call)} in line {call.lineno} lacks {_named(new)}.",
                    f"compare the argument with the formula in the handout: it is {new} * {inner}", None, kernel.name,
                )  # fmt: skip
    yield from _wrong_arguments(kernel)
    missing = _lacked(draft)
    for statement, value in _formulas(kernel):
        if not isinstance(value, ast.BinOp) or not (is_stored(statement) or target_of(statement)):
            continue
        for number in missing:
            yield Mend(
                Family.FORMULA, 17, statement.lineno,
                (kernel.replaced(value, f"{number} * {kernel.source.operand(value)}"),),
                f"Line {statement.lineno} lacks the factor {number}, which the formula in the handout has.",
                f"multiply by {number}", None, kernel.name,
            )  # fmt: skip


def _wrong_arguments(kernel: KernelDraft) -> Iterator[Mend]:
    """exp(2 * u) for exp(-2 * u); erf of h and another number than 1 / sqrt(2)."""
    for call in calls(kernel.nodes, *_CURVES):
        inner = call.args[0] if call.args else None
        if inner is None or not any(isinstance(n, ast.Constant) for n in ast.walk(inner)):
            continue
        names = sorted(kernel.names(inner))
        turned = [(f"-({kernel.source.of(inner)})", "has the wrong sign", "the other sign belongs there")]
        if "erf" in called(call):
            turned = [(f"{name} * {_ROOT_OF_A_HALF}", "has another factor than 1 / sqrt(2)",
                       f"it is {name} * {_ROOT_OF_A_HALF}") for name in names[:1] if len(names) == 1]  # fmt: skip
        for new, what, way in turned:
            yield Mend(
                Family.FORMULA, 14, call.lineno, (kernel.replaced(inner, new),),
                f"The argument of {called(call)} in line {call.lineno} {what}.",
                f"compare the argument with the formula in the handout: {way}", None, kernel.name,
            )  # fmt: skip


def _named(number: str) -> str:
    return {"-1": "its sign", _ROOT_OF_A_HALF: "a factor: 1 / sqrt(2)"}.get(number, f"a factor {number}")


def other_power(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A square for a third power, or the other way round."""
    for _, value in _formulas(kernel):
        for node in ast.walk(value):
            if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)) or _within_product(kernel, node):
                continue
            names = [part.id for part in factors(node) if isinstance(part, ast.Name)]
            for name in dict.fromkeys(n for n in names if names.count(n) > 1):
                power = names.count(name)
                yield Mend(
                    Family.FORMULA, 18, node.lineno, (kernel.replaced(node, f"{kernel.source.of(node)} * {name}"),),
                    f"Line {node.lineno} has `{name}` {_times(power)} as a factor where the formula has it "
                    f"{_times(power + 1)}.",
                    f"another factor of {name} belongs there: see the formula in the handout", None, kernel.name,
                )  # fmt: skip


def _within_product(kernel: KernelDraft, node: ast.BinOp) -> bool:
    parent = kernel.parents[node]
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult)


def _times(count: int) -> str:
    return {2: "twice", 3: "three times (its cube)"}.get(count, f"{count} times")


def term_too_early(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A loaded term that belongs to the result and is added to what a function is then applied to."""
    stored = next((a.value for a in reversed(kernel.accesses) if a.value is not None), None)
    if stored is None:
        return
    loaded = [
        n for n, values in kernel.values.items() if any("tl.load" in {called(p) for p in ast.walk(v)} for v in values)
    ]
    for statement, value in _formulas(kernel):
        if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)) or is_stored(statement):
            continue
        for term, rest in ((value.right, value.left), (value.left, value.right)):
            if isinstance(term, ast.Name) and term.id in loaded and term.id not in kernel.names(stored):
                edits = (
                    kernel.replaced(value, kernel.source.of(rest)),
                    kernel.replaced(stored, f"{kernel.source.operand(stored)} + {term.id}"),
                )
                yield Mend(
                    Family.FORMULA, 14, statement.lineno, edits,
                    f"Line {statement.lineno} adds `{term.id}` too early: it belongs to the result, after the "
                    "function.",
                    f"add {term.id} at the end, to what is stored", None, kernel.name,
                )  # fmt: skip


RULES = (factor_left_out, other_power, term_too_early)
