"""Mends of what is loaded, computed or passed, and takes no part in the result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.repair.idioms.of_sums import EXP
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import is_call, is_stored, simple, target_of, value_of, without_conversions
from gradekit.source.kernel import KernelDraft


def never_used(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A number that is loaded, computed or passed, and takes no part in the result."""
    for name in _idle(kernel):
        for node, text, where in _places_for(kernel, name):
            yield Mend(
                Family.FORMULA, 6 + where, node.lineno, (kernel.replaced(node, text),),
                f"`{name}` is missing from line {node.lineno}: the kernel {_how(kernel, name)} and never uses it.",
                f"`{name}` belongs into this line: see the formula in the handout", None, kernel.name,
                is_guess=True,
            )  # fmt: skip


def _idle(kernel: KernelDraft) -> list[str]:
    computed = [n for n, v in kernel.values.items() if kernel.uses.get(n, 0) == 0 and not n.startswith("_")]
    given = [p for p in kernel.sizes if kernel.uses.get(p, 0) == 0 and p not in kernel.lengths]
    return [*computed, *given]


def _how(kernel: KernelDraft, name: str) -> str:
    if name in kernel.params:
        return "takes it as a parameter"
    loads = any(is_call(part, "tl.load") for value in kernel.values[name] for part in ast.walk(value))
    return "loads it" if loads else "computes it"


def _places_for(kernel: KernelDraft, name: str) -> Iterator[tuple[ast.expr, str, int]]:
    """Expressions that could have the name as a factor, as a term or as a divisor: the latest statements first."""
    born = max((v.lineno for v in kernel.values.get(name, ())), default=0)
    later = [s for s in kernel.statements if s.lineno > born and simple(s) and not is_index_line(kernel, s)]
    spread = [name] if not _is_row(kernel, name) else [f"{name}[:, None]", name, f"{name}[None, :]"]
    made_of = {n for v in kernel.values.get(name, ()) for n in kernel.names(v)} & set(kernel.values)
    made_of -= {name, *kernel.pids, *kernel.indices}
    for number, statement in enumerate(_relevant(kernel, later)):
        value = value_of(statement)
        if value is None:
            continue
        for part in ast.walk(value):
            if isinstance(part, ast.expr) and _is_product(kernel, part) and not is_call(kernel.parents[part], *EXP):
                yield part, f"({kernel.source.of(part)} - {spread[0]})", -2
        for leaf in ast.walk(value):
            if isinstance(leaf, ast.Name) and leaf.id in made_of:
                yield from ((leaf, f"({leaf.id} - {one})", number - 1) for one in spread)
                yield from (
                    (leaf, f"({leaf.id} - {one} * {tile})", number)
                    for one in spread
                    for tile in sorted(made_of - {leaf.id})
                )
        for one in spread:
            signs = _signs(kernel, name)
            for place, sign in enumerate(signs):
                for node in _operands(value, kernel.lengths):
                    text = kernel.source.operand(node) if sign in "*/" else kernel.source.of(node)
                    new = f"({text} {sign} {one})" if node is not value else f"{text} {sign} {one}"
                    yield node, new, number + 2 * place


def _is_product(kernel: KernelDraft, node: ast.expr) -> bool:
    """Whether it is a product of matrices, or a name of one."""
    named = isinstance(node, ast.Name) and any(is_call(v, "tl.dot") for v in kernel.values.get(node.id, ()))
    return named or is_call(node, "tl.dot")


def _signs(kernel: KernelDraft, name: str) -> str:
    """The operators that could join a name to a formula, the likeliest first."""
    if name in kernel.params or "scale" in name or "rstd" in name or name in ("w", "weight", "alpha"):
        return "*+-"
    if name in ("b", "bias"):
        return "+-*"
    return "/*-+" if _scales(name) else "-+/*"


def _scales(name: str) -> bool:
    return any(word in name.lower() for word in ("total", "sum", "l_i", "denom", "norm"))


def _operands(value: ast.expr, sizes: list[str]) -> list[ast.expr]:
    """The whole expression, and the factors and terms that it is made of at the top, without `sizes`."""
    found = [value]
    if isinstance(value, ast.BinOp):
        found += [value.left, value.right]
        found += [
            n for side in (value.left, value.right) if isinstance(side, ast.BinOp) for n in (side.left, side.right)
        ]
    return [n for n in found if not isinstance(n, ast.Constant) and not (isinstance(n, ast.Name) and n.id in sizes)]


def _relevant(kernel: KernelDraft, statements: list[ast.stmt]) -> list[ast.stmt]:
    values = [s for s in statements if isinstance(s, (ast.Assign, ast.AugAssign)) or is_stored(s)]
    kept = [s for s in values if (v := value_of(s)) is not None and (is_stored(s) or _is_arithmetic(v))]
    bare = [s for s in kept if is_stored(s) and isinstance(value_of(s), ast.Name)]  # a result as it was named
    return list(dict.fromkeys([*(s for s in values if _is_alias(kernel, s)), *bare, *kept]))[:6]


def _is_alias(kernel: KernelDraft, statement: ast.stmt) -> bool:
    """Whether a statement gives a value another name and does nothing to it: something may have been left out."""
    value = value_of(statement)
    return isinstance(statement, ast.Assign) and isinstance(value, ast.Name) and value.id in kernel.values


def _is_arithmetic(value: ast.expr) -> bool:
    """Whether it computes something, and does not just load and convert."""
    value = without_conversions(value)
    works = any(isinstance(n, ast.BinOp) or is_call(n, "tl.dot", *EXP) for n in ast.walk(value))
    return works and not is_call(value, "tl.load")


def _is_row(kernel: KernelDraft, name: str) -> bool:
    """Whether a name has a number for each row, so that it must be spread over a tile."""
    return any("None]" in ast.unparse(n) and name in kernel.names(n) for n in kernel.nodes) or any(
        (
            is_call(v, "tl.sum", "tl.max", "tl.load")
            and kernel.rank_of(v) == 2
            and ":," not in ast.unparse(v).split("mask")[0]
        )
        or (is_call(v, "tl.load") and any(n in kernel.indices for n in kernel.names(v)) and kernel.multiplies)
        for v in kernel.values.get(name, ())
    )


def is_index_line(kernel: KernelDraft, statement: ast.stmt) -> bool:
    """Whether the statement computes an index, a program id or a pointer."""
    name = target_of(statement)
    return name in kernel.indices or name in kernel.pids or "ptr" in name


RULES = (never_used,)
