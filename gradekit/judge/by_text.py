"""Diagnoses of what a kernel's text says, whatever values it was given: it cannot be meant."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from gradekit.arithmetic import COMPARISONS
from gradekit.judge.evidence import Diagnosis, Evidence
from gradekit.source.draft import draft_of
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import ParsedSource, called


def unparenthesized_masks(evidence: Evidence) -> Diagnosis | None:
    """A kernel compares with what `&` makes of two comparisons' sides: `i < M & j < N` means `i < (M & j) < N`."""
    source = ParsedSource.parsed(evidence.text)
    if source is None:
        return None
    meant = ((node, _meant(node)) for node in source.in_kernels() if isinstance(node, ast.Compare))
    found = next(((node, parts) for node, parts in meant if len(parts) > 1), None)
    if found is None:
        return None
    node, parts = found
    inner = next(each for each in node.comparators if isinstance(each, ast.BinOp) and isinstance(each.op, ast.BitAnd))
    return Diagnosis(
        evidence.failure.cause,
        f"Line {node.lineno} compares with `{ast.unparse(inner)}`: `&` binds tighter than `<`.",
        node.lineno,
        f"put each comparison into parentheses: {' & '.join(f'({part})' for part in parts)}",
    )


def _meant(chain: ast.Compare) -> list[str]:
    """The comparisons of a chain, cut at each `&` between its first operand and its last."""
    operands = [chain.left, *chain.comparators]
    parts = [ast.unparse(operands[0])]
    for number, (operator, operand) in enumerate(zip(chain.ops, operands[1:], strict=True), 1):
        sign = COMPARISONS[type(operator)]
        if sign[0].isalpha():  # `is` and `in` compare no sizes
            return []
        is_joined = isinstance(operand, ast.BinOp) and isinstance(operand.op, ast.BitAnd)
        if is_joined and number < len(chain.ops):
            parts[-1] += f" {sign} {ast.unparse(operand.left)}"  # type: ignore[attr-defined]
            parts.append(ast.unparse(operand.right))  # type: ignore[attr-defined]
        else:
            parts[-1] += f" {sign} {ast.unparse(operand)}"
    return parts


def _kernels(evidence: Evidence) -> Sequence[KernelDraft]:
    """The kernels of a wrong result, as they are written; none where no result was compared."""
    draft = draft_of(evidence.text) if evidence.comparison is not None else None
    launched = {kernel.name for kernel in evidence.program.kernels.values()} if evidence.program is not None else set()
    return [kernel for kernel in draft.kernels if kernel.name in launched] if draft is not None else []


def rows_beside_columns(evidence: Evidence) -> Diagnosis | None:
    """A number for each row meets a tile and is taken for one for each column: it compiles where the tile is square."""
    draft = draft_of(evidence.text)
    for kernel in draft.kernels if draft is not None else ():
        for node in kernel.nodes:
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
            for one, other in (sides, sides[::-1]) if sides else ():
                if isinstance(one, ast.Name) and _is_by_row(kernel, one) and _is_tile(kernel, other):
                    return Diagnosis(
                        evidence.failure.cause,
                        f"`{one.id}` has one number for each row, and in line {one.lineno} it meets a tile as if it "
                        "had one for each column.",
                        one.lineno,
                        f"make it a column: {one.id}[:, None]",
                    )
    return None


def never_used(evidence: Evidence) -> Diagnosis | None:
    """A kernel of a wrong result computes something that nothing uses."""
    for kernel in _kernels(evidence):
        idle = {name: value.lineno for name, value in kernel.assigned if name not in kernel.uses and name[0] != "_"}
        if idle:
            (name, line), *others = idle.items()
            more = f", nor `{others[0][0]}`" if len(others) == 1 else f", nor {len(others)} others" if others else ""
            return Diagnosis(
                evidence.failure.cause,
                f"Nothing in {kernel.name} uses `{name}`, which line {line} computes{more}.",
                line,
                "compare with the formula: is a part of it missing? What is not needed may be deleted",
            )
    return None


def same_twice(evidence: Evidence) -> Diagnosis | None:
    """A kernel of a wrong result computes one expression under two names, one line after the other, as where a line was
    copied and not changed. What is added to a name is another value each time."""
    for kernel in _kernels(evidence):
        added = {id(one.value) for one in kernel.statements if isinstance(one, ast.AugAssign)}
        for (one, first), (other, second) in itertools.pairwise(kernel.assigned):
            if id(first) in added or id(second) in added:
                continue
            is_formula = any(isinstance(part, ast.BinOp) for part in ast.walk(first)) and not called(first)
            if one != other and is_formula and ast.dump(first) == ast.dump(second):
                return Diagnosis(
                    evidence.failure.cause,
                    f"Lines {first.lineno} and {second.lineno} compute the same, and call it `{one}` and `{other}`.",
                    second.lineno,
                    "compare both with the formula: was one copied from the other?",
                )
    return None


def same_steps(evidence: Evidence) -> Diagnosis | None:
    """A kernel of a wrong result has a loop in which nothing that it loads changes from step to step."""
    for kernel in _kernels(evidence):
        for loop in kernel.loops:
            inside = [access for access in kernel.accesses if access.is_load and kernel.is_within(access.call, loop)]
            made = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            head = loop.target if isinstance(loop, ast.For) else loop.test
            counters = [n.id for n in ast.walk(head) if isinstance(n, ast.Name) and n.id in made]
            if inside and counters and not any(kernel.names(access.call) & made for access in inside):
                return Diagnosis(
                    evidence.failure.cause,
                    f"Every step of the loop in line {loop.lineno} loads the same: no address goes by `{counters[0]}`.",
                    inside[0].line,
                    "let the addresses follow the step of the loop",
                )
    return None


def _is_tile(kernel: KernelDraft, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a value surely has two dimensions."""
    match node:
        case ast.Name(id=name):
            every = kernel.values.get(name, ()) if name not in seen else ()
            return any(_is_tile(kernel, value, seen | {name}) for value in every)
        case ast.Subscript(slice=ast.Tuple(elts=[_, _])):
            return True
        case ast.BinOp(left=left, right=right):
            return _is_tile(kernel, left, seen) or _is_tile(kernel, right, seen)
        case ast.Call(args=args):
            name = called(node)
            return name == "tl.dot" or (name in _ELEMENTWISE and any(_is_tile(kernel, each, seen) for each in args))
    return False


def _is_by_row(kernel: KernelDraft, node: ast.Name) -> bool:
    """Whether every value of a variable is a tile's reduction along axis 1, its dimension not kept."""
    values = kernel.values.get(node.id, [])
    return bool(values) and all(_is_reduced(kernel, value) for value in values)


def _is_reduced(kernel: KernelDraft, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call) or called(value) not in _REDUCTIONS or not value.args:
        return False
    words = {word.arg: word.value for word in value.keywords}
    axis = words.get("axis", value.args[1] if len(value.args) > 1 else None)
    along = isinstance(axis, ast.Constant) and axis.value == 1
    return along and "keep_dims" not in words and len(value.args) < 3 and _is_tile(kernel, value.args[0])


_REDUCTIONS = ("tl.sum", "tl.max", "tl.min")

_ELEMENTWISE = ("tl.exp", "tl.exp2", "tl.where", "tl.load", "tl.maximum", "tl.minimum", "tl.trans")
