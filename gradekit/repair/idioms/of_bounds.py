"""Mends of comparisons: one place too many, the wrong side, another length."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.causes import Cause
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import names_outside_calls
from gradekit.source.kernel import KernelDraft
from gradekit.source.loops import counter_of, head_of

_SHARPER = {ast.LtE: ("<=", "<"), ast.Lt: ("<", "<="), ast.GtE: (">=", ">"), ast.Gt: (">", ">=")}


def off_by_one(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A comparison that takes one place too many, or one too few."""
    for node in kernel.nodes:
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SHARPER:
            old, new = _SHARPER[type(node.ops[0])]
            edit = kernel.source.between_replaced(node.left, node.comparators[0], old, new)
            bound = kernel.source.of(node.comparators[0])
            many = (
                "takes one place too many"
                if old == "<="
                else "leaves one place out"
                if old == "<"
                else "is one place off"
            )
            both = all(kernel.names(side) & set(kernel.indices) for side in (node.left, node.comparators[0]))
            rank = 8 if old == "<=" else 4 if old == ">" and both else 30 if old in "<>" else 38
            rank = 38 if old == "<=" and kernel.names(node.comparators[0]) & set(kernel.indices) else rank
            sentence = f"The comparison `{kernel.source.of(node)}` in line {node.lineno} {many} at {bound}."
            parent = kernel.parents[node]
            if isinstance(parent, ast.If) and parent.test is node and "=" not in old:
                rank = 8
                sentence = (
                    f"The `if` in line {node.lineno} leaves out the case {kernel.source.of(node.left)} == {bound}: "
                    "what it guards is not done there, as in an empty row, whose elements are then never written."
                )
            yield Mend(
                Family.MASK, rank, node.lineno, (edit,), sentence, f"compare with {new} in place of {old}", None,
                kernel.name,
            )  # fmt: skip


def comparison_turned(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Two indices compared the wrong way round, as in a causal mask."""
    for node in kernel.nodes:
        if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SHARPER):
            continue
        right = node.comparators[0]
        both = kernel.names(node.left) & set(kernel.indices) and kernel.names(right) & set(kernel.indices)
        if both:
            old = _SHARPER[type(node.ops[0])][0]
            usual = ("<=", ">=")[kernel.source.of(node.left).replace(" ", "").endswith("[:,None]")]
            for new in ((">=", "<=")[old.startswith(">")], (">", "<")[old.startswith(">")]):
                yield Mend(
                    Family.MASK, 5 if new == usual else 34, node.lineno,
                    (kernel.source.between_replaced(node.left, right, old, new),),
                    f"The comparison `{kernel.source.of(node)}` in line {node.lineno} keeps the wrong side: the "
                    "direction of the "
                    "causal mask is turned round.",
                    "a query may look at itself and at what stands before it", None, kernel.name,
                )  # fmt: skip


def other_bound(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """An index held against the size of another dimension, or against a size that is one off."""
    for node in kernel.nodes:
        if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Lt, ast.LtE))):
            continue
        index = next(iter(sorted(names_outside_calls(node.left) & set(kernel.indices))), "")
        right = node.comparators[0]
        if not index:
            continue
        for size in kernel.lengths:
            if isinstance(right, ast.Name) and size != right.id:
                yield _bounded(kernel, node, right, size, index, _bound_rank(kernel, index, size))
        if isinstance(right, ast.BinOp) and isinstance(right.right, ast.Constant):
            yield _bounded(kernel, node, right, kernel.source.of(right.left), index, 9)
        if isinstance(right, ast.Name) and right.id in kernel.constexprs:
            for size in kernel.lengths:
                yield _bounded(kernel, node, right, size, index, 9)
        for end in _ends_of_loop(kernel, node):
            yield _bounded(kernel, node, right, end, index, 8)


def _ends_of_loop(kernel: KernelDraft, node: ast.Compare) -> list[str]:
    """What the loop around a comparison goes up to, computed or loaded, and the comparison does not ask for."""
    loop = kernel.in_loop(node)
    known = {*kernel.params, *kernel.constexprs, *kernel.pids, *kernel.names(node), counter_of(loop) if loop else ""}
    return sorted(kernel.names(head_of(loop)) & set(kernel.values) - known) if loop is not None else []


def bound_by_nothing(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """An index held against 0, which is never less: the condition holds in all lanes."""
    for node in (one for one in kernel.nodes if isinstance(one, ast.Compare) and len(one.ops) == 1):
        is_idle = isinstance(node.ops[0], ast.GtE) and kernel.source.of(node.comparators[0]) == "0"
        if not is_idle or not isinstance(node.left, ast.Name) or node.left.id not in kernel.indices:
            continue
        for size in kernel.lengths:
            yield Mend(
                Family.MASK, 6 if size in kernel.bounding else 4, node.lineno,
                (kernel.replaced(node, f"{node.left.id} < {size}"),),
                f"The mask `{kernel.source.of(node)}` in line {node.lineno} holds in all lanes, and bounds nothing.",
                f"an index is to be less than its length, {size}", Cause.MISSING_MASK, kernel.name,
            )  # fmt: skip


def _bound_rank(kernel: KernelDraft, index: str, size: str) -> int:
    """By what bounds the index, and other indices, elsewhere in the kernel."""
    if size in kernel.bounds.get(index, ()):
        return 5
    return 12 if size not in kernel.bounding else 27


def _bounded(kernel: KernelDraft, node: ast.Compare, right: ast.expr, size: str, index: str, rank: int) -> Mend:
    return Mend(
        Family.MASK, rank, node.lineno, (kernel.replaced(right, size),),
        f"Line {node.lineno} bounds `{index}` by {kernel.source.of(right)}, which is the wrong bound for it.",
        f"its bound is {size}", Cause.MISSING_MASK if rank == 9 else None, kernel.name,
    )  # fmt: skip


RULES = (off_by_one, comparison_turned, other_bound, bound_by_nothing)
