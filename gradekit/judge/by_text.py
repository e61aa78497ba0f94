"""Diagnoses of what a kernel's text says, whatever values it was given: it cannot be meant."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from gradekit.arithmetic import COMPARISONS
from gradekit.judge.evidence import Diagnosis, Evidence
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


def rows_beside_columns(evidence: Evidence) -> Diagnosis | None:
    """A number for each row meets a tile and is taken for one for each column: it compiles where the tile is square."""
    source = ParsedSource.parsed(evidence.text)
    if source is None:
        return None
    for kernel in source.kernels:
        shapes = _Shapes(kernel)
        for node in ast.walk(kernel):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
            for one, other in (sides, sides[::-1]) if sides else ():
                if isinstance(one, ast.Name) and shapes.is_by_row(one) and shapes.is_tile(other):
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
    source = ParsedSource.parsed(evidence.text) if evidence.comparison is not None else None
    launched = {kernel.name for kernel in evidence.program.kernels.values()} if evidence.program is not None else set()
    for kernel in source.kernels if source is not None else ():
        used = {n.id for n in ast.walk(kernel) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        idle = {name: value.lineno for name, value in _assigned(kernel) if name not in used and name[0] != "_"}
        if kernel.name in launched and idle:
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
    copied and not changed."""
    source = ParsedSource.parsed(evidence.text) if evidence.comparison is not None else None
    launched = {kernel.name for kernel in evidence.program.kernels.values()} if evidence.program is not None else set()
    for kernel in source.kernels if source is not None else ():
        for (one, first), (other, second) in itertools.pairwise(_assigned(kernel)) if kernel.name in launched else ():
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
    source = ParsedSource.parsed(evidence.text) if evidence.comparison is not None else None
    launched = {kernel.name for kernel in evidence.program.kernels.values()} if evidence.program is not None else set()
    kernels = [kernel for kernel in source.kernels if kernel.name in launched] if source is not None else []
    for loop in (n for kernel in kernels for n in ast.walk(kernel) if isinstance(n, (ast.For, ast.While))):
        inside = [n for part in loop.body for n in ast.walk(part)]
        names = [*inside, *(ast.walk(loop.target) if isinstance(loop, ast.For) else ())]
        made = {n.id for n in names if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        head = ast.walk(loop.target if isinstance(loop, ast.For) else loop.test)
        counters = [n.id for n in head if isinstance(n, ast.Name) and n.id in made]
        loads = [n for n in inside if called(n) == "tl.load"]
        asked = {n.id for load in loads for n in ast.walk(load) if isinstance(n, ast.Name)}
        if loads and counters and not asked & made:
            return Diagnosis(
                evidence.failure.cause,
                f"Every step of the loop in line {loop.lineno} loads the same: no address goes by `{counters[0]}`.",
                loads[0].lineno,  # type: ignore[attr-defined]
                "let the addresses follow the step of the loop",
            )
    return None


class _Shapes:
    """Which variables of a kernel are surely tiles of two dimensions, and which surely have a number for each row."""

    def __init__(self, kernel: ast.FunctionDef) -> None:
        self._values: dict[str, list[ast.expr]] = {}
        for name, value in _assigned(kernel):
            self._values.setdefault(name, []).append(value)

    def is_tile(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether the value has two dimensions."""
        match node:
            case ast.Name(id=name):
                return name not in seen and any(self.is_tile(v, seen | {name}) for v in self._values.get(name, ()))
            case ast.Subscript(slice=ast.Tuple(elts=[_, _])):
                return True
            case ast.BinOp(left=left, right=right):
                return self.is_tile(left, seen) or self.is_tile(right, seen)
            case ast.Call(args=args):
                name = called(node)
                return name == "tl.dot" or (name in _ELEMENTWISE and any(self.is_tile(each, seen) for each in args))
        return False

    def is_by_row(self, node: ast.Name) -> bool:
        """Whether every value of the variable is a tile's reduction along axis 1, its dimension not kept."""
        values = self._values.get(node.id, [])
        return bool(values) and all(map(self._is_reduced, values))

    def _is_reduced(self, value: ast.expr) -> bool:
        if not isinstance(value, ast.Call) or called(value) not in _REDUCTIONS or not value.args:
            return False
        words = {word.arg: word.value for word in value.keywords}
        axis = words.get("axis", value.args[1] if len(value.args) > 1 else None)
        along = isinstance(axis, ast.Constant) and axis.value == 1
        return along and "keep_dims" not in words and len(value.args) < 3 and self.is_tile(value.args[0])


_REDUCTIONS = ("tl.sum", "tl.max", "tl.min")

_ELEMENTWISE = ("tl.exp", "tl.exp2", "tl.where", "tl.load", "tl.maximum", "tl.minimum", "tl.trans")


def _assigned(kernel: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
