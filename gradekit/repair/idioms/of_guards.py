"""Mends of guards: what must not count, be negative or be divided by; and numbers that are passed and never loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import target_of, value_of
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import called


def taken_unloaded(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A place taken for the number that stands there, or a constant for it: `k = e` for what `col_ptr` holds at e."""
    idle = [p for p in kernel.params if "ptr" in p.lower() and kernel.uses.get(p, 0) == 0]
    unused = [s for s in kernel.strides if kernel.uses.get(s, 0) == 0]
    for pointer, stride in ((p, s) for p in idle for s in unused or ["1"]):
        for statement in kernel.statements:
            value, name = value_of(statement), target_of(statement)
            if value is None or not name or any(isinstance(part, ast.Call) for part in ast.walk(value)):
                continue
            for new in _loaded_by(kernel, value, pointer, stride):
                yield Mend(
                    Family.INDEX, 4, statement.lineno, (kernel.replaced(value, new),),
                    f"Line {statement.lineno} takes `{kernel.source.of(value)}` for `{name}`, and nothing loads what "
                    f"{pointer} holds.",
                    f"load {name} through {pointer}", None, kernel.name,
                )  # fmt: skip


def _loaded_by(kernel: KernelDraft, value: ast.expr, pointer: str, stride: str) -> Iterator[str]:
    """Loads that a number could come from: at the index in it, with the mask of another load there; by program."""
    if isinstance(value, ast.Constant):
        yield from (f"tl.load({pointer} + {pid} * {stride})" for pid in kernel.pids[:3])
    for index in sorted(kernel.names(value) & set(kernel.indices)):
        near = [a for a in kernel.accesses if a.is_load and a.mask is not None and index in kernel.names(a.address)]
        mask = next((f", mask={kernel.source.of(a.mask)}, other=0" for a in near if a.mask is not None), "")
        yield f"tl.load({pointer} + {index} * {stride}{mask})"


def other_count(draft: Draft) -> Iterator[Mend]:
    """A host's mean that divides by how many there are, and not by those that count; one that may divide by 0."""
    counts = [t for n in draft.host_nodes if (t := target_of(n)) and _counts(draft, n)]
    shaped = [n for n in draft.host_nodes if isinstance(n, ast.Assign) and "shape" in draft.source.of(n.value)]
    sizes = {part.id for n in shaped for part in ast.walk(n.targets[0]) if isinstance(part, ast.Name)}
    for node in draft.host_nodes:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            continue
        text, names = draft.source.of(node.right), {n.id for n in ast.walk(node.right) if isinstance(n, ast.Name)}
        if isinstance(node.right, ast.Name) and text in counts:
            yield Mend(
                Family.FORMULA, 6, node.lineno, (draft.source.replaced(node.right, f"{text}.clamp(1)"),),
                f"Line {node.lineno} divides by `{text}`, which is 0 where nothing counts: 0 / 0 is NaN.",
                f"divide by at least 1: {text}.clamp(1)",
            )  # fmt: skip
        for count in counts if names and (names <= sizes or "numel" in text or "shape" in text) else ():
            yield Mend(
                Family.FORMULA, 6, node.lineno, (draft.source.replaced(node.right, f"{count}.clamp(1)"),),
                f"Line {node.lineno} divides by `{text}`, the number of all, and not by `{count}`, the number of those "
                "that count: padding takes part in the mean.",
                f"divide by {count}, but by at least 1",
            )  # fmt: skip


def _counts(draft: Draft, node: ast.AST) -> bool:
    """Whether a statement makes a tensor of one number: a sum, or memory that kernels add to."""
    value = value_of(node)
    if not isinstance(value, ast.Call):
        return False
    summed = isinstance(value.func, ast.Attribute) and value.func.attr == "sum"
    made = called(value) in ("torch.zeros", "torch.empty") and bool(value.args)
    return summed or (made and draft.source.of(value.args[0]) == "()")


RULES = (taken_unloaded,)
HOST_RULES = (other_count,)
