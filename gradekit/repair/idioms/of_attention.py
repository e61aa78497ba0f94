"""Mends of a running softmax and of shared heads: hidden scores, the running maximum, and which head is whose."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.repair.idioms.of_sums import EXP
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, converted, is_call, simple, target_of
from gradekit.source.kernel import KernelDraft

_LEAST = '-float("inf")'


def hidden_as_zero(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Scores past the end that tl.where makes 0, and whose exp is a weight."""
    for call in calls(kernel.nodes, "tl.where"):
        if len(call.args) != 3 or not _is_exponent(kernel, target_of(kernel.statement(call))):
            continue
        fill = call.args[2]
        if isinstance(fill, ast.Constant) and fill.value == 0:
            yield Mend(
                Family.MASK, 4, call.lineno, (kernel.replaced(fill, _LEAST),),
                f"Line {call.lineno} makes the hidden scores 0, and exp of 0 (less the maximum) is a weight.",
                "a score that must not count is -inf", None, kernel.name,
            )  # fmt: skip


def _is_exponent(kernel: KernelDraft, name: str) -> bool:
    """Whether a maximum is taken of a name, and exp of it."""
    taken = [call.args[0] for call in calls(kernel.nodes, "tl.max", *EXP) if call.args]
    return bool(name) and sum(name in kernel.names(node) for node in taken) > 1


def maximum_of_a_tile(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A maximum that is kept from step to step, and is that of the last tile alone."""
    for loop in kernel.loops:
        inside = [part for part in ast.walk(loop) if isinstance(part, ast.Assign)]
        kept = {part.value.id: target_of(part) for part in inside if isinstance(part.value, ast.Name)}
        for part in inside:
            new = target_of(part)
            old = kept.get(new, "")
            if old and is_call(part.value, "tl.max") and old not in kernel.names(part.value):
                yield Mend(
                    Family.SUM, 3, part.lineno,
                    (kernel.replaced(part.value, f"tl.maximum({old}, {kernel.source.of(part.value)})"),),
                    f"Line {part.lineno} takes the maximum of this tile alone: the running maximum `{old}` has no part "
                    "in it, and may be higher.",
                    f"take the maximum of {old} and that of the tile", None, kernel.name,
                )  # fmt: skip


def no_maximum(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """exp of the scores themselves, with a rescaling factor of 1, beside a running maximum that nothing uses."""
    for loop in kernel.loops:
        inside = [part for part in ast.walk(loop) if isinstance(part, ast.Assign) and simple(part)]
        tops = [target_of(part) for part in inside if is_call(part.value, "tl.maximum")]
        olds = {p.value.id: target_of(p) for p in inside if isinstance(p.value, ast.Name)}
        ones = [p.value for p in inside if isinstance(p.value, ast.Constant) and p.value.value == 1]
        bare = [c for c in calls(list(ast.walk(loop)), *EXP) if c.args and isinstance(c.args[0], ast.Name)]
        for top in (top for top in tops if top in olds):
            for call in bare:
                text, exp = kernel.source.of(call.args[0]), kernel.source.of(call.func)
                wide = f"{top}[:, None]" if kernel.rank_of(call.args[0]) == 2 and kernel.multiplies else top
                factors = [kernel.replaced(one, f"{exp}({olds[top]} - {top})") for one in ones]
                yield Mend(
                    Family.FORMULA, 4, call.lineno, (kernel.replaced(call.args[0], f"{text} - {wide}"), *factors),
                    f"Line {call.lineno} takes exp of the scores themselves: it overflows float32 above 88.7, and then "
                    f"the row is NaN. Nothing uses the running maximum `{top}`.",
                    "subtract the running maximum before exp, and rescale what was summed up by exp(old - new)", None,
                    kernel.name,
                )  # fmt: skip


def group_at_the_launch(draft: Draft) -> Iterator[Mend]:
    """How many there are for how many share one: a launch passes `n` for a size that the kernel divides by."""
    for launch in draft.launches:
        kernel = launch.kernel
        divisors = {
            node.right.id for node in kernel.nodes
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and isinstance(node.right, ast.Name)
            and kernel.names(node.left) & set(kernel.pids)
        }  # fmt: skip
        rests = (node.right for node in kernel.nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod))
        divisors -= {node.id for node in rests if isinstance(node, ast.Name)}  # a quotient and a rest: that is how many
        sizes = [draft.source.of(v) for p, v in launch.given.items() if p in kernel.sizes and isinstance(v, ast.Name)]
        for param, value in launch.given.items():
            text = draft.source.of(value)
            for size in sizes if param in divisors and isinstance(value, ast.Name) else ():
                if size != text:
                    yield Mend(
                        Family.INDEX, 5, value.lineno, (draft.source.replaced(value, f"{size} // {text}"),),
                        f"Line {value.lineno} passes {text} for `{param}`, which the kernel divides by: it is how many "
                        "groups there are, and not how many belong to a group.",
                        f"pass the size of a group: {size} // {text}",
                    )  # fmt: skip


def index_of_its_twin(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A load that goes by another head (or row) than the load beside it; a number of each program for another's."""
    loads = [access for access in kernel.accesses if access.is_load and access.pointer]
    for mine in loads:
        used = {n.id: n for n in ast.walk(kernel.resolved(mine.address)) if isinstance(n, ast.Name)}
        here = [name for name in used if name in kernel.pids]
        for other in loads:
            beside = kernel.in_loop(mine.call) is kernel.in_loop(other.call) and other.pointer != mine.pointer
            there = kernel.names(kernel.resolved(other.address)) & set(kernel.pids) if beside else set()
            for name in sorted(there - set(here)):
                for instead in (n for n in here if n not in there):
                    yield _by_another(kernel, used[instead], name, 4)
        one_number = not kernel.names(kernel.resolved(mine.address)) & set(kernel.indices)
        if len(here) == 1 and one_number:
            yield from (_by_another(kernel, used[here[0]], name, 9) for name in _parts(kernel) if name not in here)


def _parts(kernel: KernelDraft) -> list[str]:
    """Names of what a program works on: its id, or a quotient or a rest of it."""
    return [n for n in kernel.pids if len(kernel.values[n]) == 1 and _is_part(kernel.values[n][0])]


def _is_part(value: ast.expr) -> bool:
    divides = isinstance(value, ast.BinOp) and isinstance(value.op, (ast.FloorDiv, ast.Mod))
    return divides or is_call(value, "tl.program_id")


def _by_another(kernel: KernelDraft, node: ast.Name, name: str, rank: int) -> Mend:
    line = node.lineno
    return Mend(
        Family.INDEX, rank, line, (kernel.replaced(node, name),),
        f"Line {line} goes by `{node.id}` where `{name}` belongs: it takes the part of another batch or head.",
        f"see which number counts what: use {name} there", None, kernel.name,
    )  # fmt: skip


def not_transposed(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """An operand of tl.dot that is not transposed, where another product may transpose one in that place: it compiles
    where tiles are square."""
    products = [call for call in calls(kernel.nodes, "tl.dot") if len(call.args) > 1]
    turned = {place for call in products for place in (0, 1) if "tl.trans" in kernel.source.of(call.args[place])}
    for call in products:
        for place, operand in enumerate(call.args[:2]):
            inner = converted(operand) or operand
            values = kernel.values.get(inner.id, ()) if isinstance(inner, ast.Name) else ()
            if isinstance(inner, ast.Name) and not any(is_call(value, "tl.trans") for value in values):
                yield Mend(
                    Family.FORMULA, 5 if place in turned else 12, call.lineno,
                    (kernel.replaced(inner, f"tl.trans({inner.id})"),),
                    f"Line {call.lineno} multiplies `{inner.id}` as it lies: its rows and columns are exchanged in the "
                    "formula.",
                    f"transpose it: tl.trans({inner.id})", None, kernel.name,
                )  # fmt: skip


RULES = (not_transposed, hidden_as_zero, maximum_of_a_tile, no_maximum, index_of_its_twin)
HOST_RULES = (group_at_the_launch,)
