"""Why what stands in a kernel is wrong: what the difference from its mend says, by the roles of the two."""

import ast
import re
from collections.abc import Iterator
from typing import Any

from gradekit.arithmetic import SIGNS
from gradekit.repair.operators.changes import Change, ChangeKind, parsed
from gradekit.repair.operators.words import sentence_of
from gradekit.source.draft import draft_of
from gradekit.source.kernel import KernelDraft, counter_of, counts_steps, target_of, without_conversions
from gradekit.submission.parsed_source import ParsedSource, called, shown


def reason(change: Change, source: ParsedSource) -> str:
    """What the difference between an expression and its mend says of the expression; "" where that has no role."""
    draft, new = draft_of(source.text), parsed(change)
    kernel = next((one for one in draft.kernels if one.name == change.within), None) if draft is not None else None
    if kernel is None or change.node not in kernel.parents or not isinstance(new, ast.expr):
        return ""
    return next((f" {said}" for said in _reasons(change, kernel, change.node, new)), "")


def _reasons(change: Change, kernel: KernelDraft, node: Any, new: ast.expr) -> Iterator[str]:
    text = kernel.source.of
    if isinstance(node, ast.Name) and isinstance(new, ast.Name) and (loop := _left_by(kernel, node)) is not None:
        yield sentence_of("because-last-step", name=node.id, line=loop.lineno)
    if change.lacks in kernel.constexprs and isinstance(getattr(new, "op", None), ast.Mult) and _counts(kernel, node):
        yield sentence_of("because-tiles", name=text(node), size=change.lacks)
    if change.kind is ChangeKind.FACTOR and isinstance(getattr(new, "op", None), ast.Mult):
        is_factor = lambda side: re.fullmatch(rf"{re.escape(change.lacks)}(\[.*\])?", text(side)) is not None
        every = (one for one in ast.walk(kernel.statement(node)) if isinstance(getattr(one, "op", None), ast.Mult))
        pairs = [(one.left, one.right) for one in every if isinstance(one, ast.BinOp) and node not in ast.walk(one)]
        others = [other for one, two in pairs for side, other in ((one, two), (two, one)) if is_factor(side)]
        yield from (sentence_of("because-beside", name=change.lacks, other=text(one), it=text(node)) for one in others)
    pair = called(node).removeprefix("tl."), called(new).removeprefix("tl.")
    if change.kind is ChangeKind.FUNCTION and {*pair} in ({"exp", "exp2"}, {"log", "log2"}):
        yield sentence_of("because-base-2" if pair[0].endswith("2") else "because-base-e", it=f"tl.{pair[0]}")
    if isinstance(getattr(node, "left", None), ast.BinOp) and change.kind in (ChangeKind.BRACKET, ChangeKind.IDLE_SIDE):
        first, inner = SIGNS.get(type(node.left.op)), getattr(new, "right", None)
        if isinstance(inner, ast.BinOp) and ast.dump(inner.left) == ast.dump(node.left.right):
            rest = f"{SIGNS.get(type(node.op))} {text(node.right)}"
            yield sentence_of("because-alone", sign=first, it=shown(text(node.left.right)), rest=shown(rest))


def _left_by(kernel: KernelDraft, name: ast.Name) -> ast.For | ast.While | None:
    """The loop before an expression whose last step has given a name its value, where each step makes it anew."""
    made = [one for one in kernel.statements if target_of(one) == name.id and one.lineno < name.lineno]
    loop = kernel.in_loop(made[-1]) if made else None
    is_behind = loop is not None and (loop.end_lineno or 0) < name.lineno
    is_anew = is_behind and isinstance(made[-1], ast.Assign) and name.id not in kernel.names(made[-1].value)
    return loop if is_anew else None


def _counts(kernel: KernelDraft, node: ast.expr) -> bool:
    """Whether an expression is a number of steps or of programs: it counts tiles."""
    loop = kernel.in_loop(node)
    is_counter = loop is not None and counts_steps(loop) and counter_of(loop) == getattr(node, "id", "")
    values = (node, *kernel.values.get(getattr(node, "id", ""), ()))
    return is_counter or any(called(without_conversions(one)) == "tl.program_id" for one in values)
