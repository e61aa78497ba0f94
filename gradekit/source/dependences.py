"""Which lines of a kernel each of its results depends on: an edit elsewhere cannot mend it."""

from __future__ import annotations

import ast
from collections.abc import Collection

from gradekit.source.draft import Draft, draft_of
from gradekit.source.kernel import KernelDraft
from gradekit.source.loops import names_of_steps

Behind = dict[str, dict[str, set[int]]]
"""For each kernel, and "kernel.pointer" in it, line numbers."""

_HEADS = (ast.For, ast.While, ast.If)


def fed_lines(draft: Draft) -> Behind:
    """For each kernel with several results: the lines that the stores through each of its pointers may depend on."""
    return {
        kernel.name: {f"{kernel.name}.{pointer}": _lines_behind(kernel, pointer) for pointer in sorted(kernel.stored)}
        for kernel in draft.kernels
        if len(kernel.stored) > 1 and all(access.pointer for access in kernel.accesses)
    }


def leading_to(kernel: KernelDraft, lines: Collection[int]) -> set[ast.stmt]:
    """The statements that decide where the accesses on these lines go, and whether: they make the addresses and masks,
    or loops and conditions. All statements where no access is on one of the lines."""
    mine = [access for access in kernel.accesses if access.line in lines]
    if not mine:
        return set(kernel.statements)
    heads = [_head(s) for s in kernel.statements if isinstance(s, _HEADS)]
    parts = [part for access in mine for part in (access.address, access.mask) if part is not None]
    names = {behind for node in (*parts, *heads) for behind in kernel.origins(node)}
    made = {s for s in kernel.statements if isinstance(s, _HEADS) or names & _assigned(s)}
    return made | {kernel.statement(access.call) for access in mine}


def making(text: str, line: int) -> frozenset[int]:
    """A line of a kernel, those that give its names their values, heads of loops around it, and launches."""
    draft = draft_of(text)
    found = {line}
    if draft is None:
        return frozenset(found)
    for kernel in draft.kernels:
        mine = [one for one in kernel.statements if not isinstance(one, _HEADS) and line in _span(one)]
        around = [loop for loop in kernel.loops if line in _span(loop)]
        names = {name for one in mine for name in kernel.names(one)}.union(*map(names_of_steps, around))
        found |= {loop.lineno for loop in around}
        values = [value for name in names for value in kernel.values.get(name, ())]
        launches = [launch.call for launch in draft.launches_of(kernel)] if mine or around else []
        found |= {one for node in (*values, *launches) for one in _span(node)}
    return frozenset(found)


def _lines_behind(kernel: KernelDraft, pointer: str) -> set[int]:
    """Those of the stores and of all that they are computed from, and those of loops and conditions always."""
    through = [access.call for access in kernel.accesses if access.pointer == pointer and not access.is_load]
    stores = [kernel.statement(call) for call in through]
    heads = [_head(s) for s in kernel.statements if isinstance(s, _HEADS)]
    names = {behind for node in (*stores, *heads) for behind in kernel.origins(node)}
    made = [s for s in kernel.statements if not isinstance(s, _HEADS) and names & _assigned(s)]
    return {line for node in (*stores, *heads, *made) for line in _span(node)}


def _head(statement: ast.stmt) -> ast.expr:
    assert isinstance(statement, _HEADS)
    return statement.iter if isinstance(statement, ast.For) else statement.test


def _span(node: ast.AST) -> range:
    first = getattr(node, "lineno", 1)
    return range(first, (getattr(node, "end_lineno", None) or first) + 1)


def _assigned(statement: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
