"""Mends of statistics: what a sum goes along, what it is divided by, its precision, and the gradient through it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.causes import Cause
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, converted, is_call, is_condition, is_stored, target_of, value_of
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import Edit, called

EXP = ("tl.exp", "tl.exp2", "tl.math.exp", "tl.math.exp2")

_REDUCTIONS = ("tl.sum", "tl.max", "tl.min", "tl.argmax")


def other_divisor(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A statistic divided by the block, by n - 1, or by nothing."""
    for node in kernel.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield from _divided(kernel, node)
    for call in calls(kernel.nodes, "tl.sum"):
        parent = kernel.parents[call]
        if not (isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div)) and not isinstance(parent, ast.Call):
            for size in lengths(kernel):
                yield Mend(
                    Family.SUM, 12 if _others_divide(kernel) else 30, call.lineno,
                    (kernel.replaced(call, f"{kernel.source.of(call)} / {size}"),),
                    f"Line {call.lineno} sums up and does not divide: a mean is the sum divided by the number of "
                    "elements.",
                    f"divide by {size}", None, kernel.name,
                )  # fmt: skip


def _others_divide(kernel: KernelDraft) -> bool:
    return any(
        isinstance(p := kernel.parents[c], ast.BinOp) and isinstance(p.op, ast.Div)
        for c in calls(kernel.nodes, "tl.sum")
    )


def _divided(kernel: KernelDraft, node: ast.BinOp) -> Iterator[Mend]:
    right = node.right
    text, block = kernel.source.of(right), isinstance(right, ast.Name) and right.id in kernel.constexprs
    if block or isinstance(right, ast.Constant) or (isinstance(right, ast.Name) and right.id in kernel.sizes):
        for size in lengths(kernel):
            if size != text:
                why = (
                    "the block's width, and not the number of elements in a row"
                    if block
                    else "not the number of elements"
                )
                yield Mend(
                    Family.SUM, 3 if block else 28, node.lineno, (kernel.replaced(right, size),),
                    f"Line {node.lineno} divides by {text}, {why}.",
                    f"divide by the number of elements, {size}", None, kernel.name,
                )  # fmt: skip
    for name in _idle_sums(kernel) if isinstance(right, ast.Name) and right.id in kernel.sizes else ():
        yield Mend(
            Family.SUM, 4, node.lineno, (kernel.replaced(right, name),),
            f"Line {node.lineno} divides by {text}, and nothing uses `{name}`, the sum.", f"divide by {name}", None,
            kernel.name,
        )  # fmt: skip
    if isinstance(right, ast.BinOp) and isinstance(right.right, ast.Constant):
        yield Mend(
            Family.SUM, 4, node.lineno, (kernel.replaced(right, kernel.source.of(right.left)),),
            f"Line {node.lineno} divides by {text}: this mean divides by {kernel.source.of(right.left)}.",
            f"divide by {kernel.source.of(right.left)}", None, kernel.name,
        )  # fmt: skip


def _idle_sums(kernel: KernelDraft) -> list[str]:
    sums = [name for name, values in kernel.values.items() if any(is_call(value, "tl.sum") for value in values)]
    return [name for name in sums if not kernel.uses.get(name, 0)]


def lengths(kernel: KernelDraft) -> list[str]:
    """At most three names that may be the length of what is summed: bounds of masks first."""
    bounds = [b for values in kernel.bounds.values() for b in values if b in kernel.sizes]
    return list(dict.fromkeys([*bounds, *kernel.lengths]))[:3]


def other_axis_of_reduction(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A reduction along the other axis."""
    for call in calls(kernel.nodes, *_REDUCTIONS):
        axes = [k.value for k in call.keywords if k.arg == "axis"] + call.args[1:2]
        for axis in axes:
            if isinstance(axis, ast.Constant) and isinstance(axis.value, int):
                edits = [kernel.replaced(axis, str(1 - axis.value))]
                edits += [e for use in _spread(kernel, call) if (e := _turned_slice(kernel, use)) is not None]
                for given in (edits, edits[:1]) if len(edits) > 1 else (edits,):
                    yield Mend(
                        Family.SUM, _odd_axis(kernel, call, axis.value), call.lineno, tuple(given),
                        f"Line {call.lineno}: {called(call)} goes along axis {axis.value}, the wrong axis.",
                        f"reduce along axis {1 - axis.value}", None, kernel.name,
                    )  # fmt: skip


def _odd_axis(kernel: KernelDraft, call: ast.Call, axis: int) -> int:
    """The rank of a reduction along the other axis: by how its result is spread over a tile again."""
    if kernel.rank_of(call.args[0]) == 1:
        return 50
    slices = {kernel.source.of(use.slice).replace(" ", "") for use in _spread(kernel, call)}
    if not slices:
        return 12
    return 34 if (":,None" in slices) == (axis == 1) else 3


def _spread(kernel: KernelDraft, call: ast.Call) -> list[ast.Subscript]:
    """Where the result of a reduction is spread over a tile again: `total[:, None]`."""
    parent = kernel.parents[call]
    direct = [parent] if isinstance(parent, ast.Subscript) else []
    statement = kernel.statement(call)
    name = (
        statement.targets[0].id
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        else ""
    )
    named = [
        n for n in kernel.nodes if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id == name
    ]
    return [*direct, *named]


def _turned_slice(kernel: KernelDraft, node: ast.Subscript) -> Edit | None:
    text = kernel.source.of(node.slice).replace(" ", "")
    other = {":,None": "None, :", "None,:": ":, None"}.get(text)
    return kernel.replaced(node.slice, other) if other else None


def eps_misplaced(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """eps beside the root, or nowhere."""
    eps = next((p for p in kernel.all_params if "eps" in p.lower()), "")
    for call in calls(kernel.nodes, "tl.sqrt", "tl.rsqrt", "tl.math.sqrt", "tl.math.rsqrt") if eps else ():
        if not call.args or eps in kernel.names(call):
            continue
        inner = kernel.source.of(call.args[0])
        edits: list[Edit] = [kernel.replaced(call.args[0], f"{inner} + {eps}")]
        parent = kernel.parents[call]
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add) and eps in kernel.names(parent):
            edits = [kernel.replaced(parent, f"{called(call)}({inner} + {eps})")]
        yield Mend(
            Family.FORMULA, 4, call.lineno, tuple(edits),
            f"The square root in line {call.lineno} has no {eps} under it.",
            f"add {eps} to the variance, before the square root", None, kernel.name,
        )  # fmt: skip
    for name, values in kernel.values.items() if eps else ():
        for value in values:
            rooted = any(is_call(n, "tl.sqrt", "tl.rsqrt") for n in ast.walk(value))
            divides = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div)
            if isinstance(value, ast.BinOp) and divides and not rooted and eps in kernel.names(value.right):
                yield Mend(
                    Family.FORMULA, 5, value.lineno,
                    (kernel.replaced(value.right, f"tl.sqrt({kernel.source.of(value.right)})"),),
                    f"`{name}` in line {value.lineno} divides by the variance: the square root is missing.",
                    "divide by the standard deviation, tl.sqrt(variance + eps)", None, kernel.name,
                )  # fmt: skip


def cancelled_variance(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """mean(x * x) - mean * mean."""
    for name, values in kernel.values.items():
        for value in values:
            if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub)):
                continue
            square = kernel.source.of(value.right).replace(" ", "")
            mean = square.split("*")[0].strip("()")
            behind = [value, *(v for n in sorted(kernel.names(value)) for v in kernel.values.get(n, ()))]
            sums = [c for v in behind for c in calls(list(ast.walk(v)), "tl.sum")]
            masks = [kernel.source.of(a.mask) for a in kernel.accesses if a.mask is not None and a.is_load]
            tiles = [n for c in sums for n in sorted(kernel.names(c)) if n not in (mean, *kernel.sizes)]
            if square in (f"{mean}*{mean}", f"{mean}**2") and mean in kernel.values and tiles:
                tile, size = tiles[0], (lengths(kernel) or ["1"])[0]
                inner = (
                    f"{tile} - {mean}" if kernel.rank_of(kernel.values[tile][0]) == 1 else f"{tile} - {mean}[:, None]"
                )
                kept = f"tl.where({masks[0]}, {inner}, 0.0)" if masks else f"({inner})"
                axis = 0 if kernel.rank_of(kernel.values[tile][0]) == 1 else 1
                new = f"tl.sum({kept} * {kept}, axis={axis}) / {size}"
                yield Mend(
                    Family.SUM, 3, value.lineno, (kernel.replaced(value, new),),
                    f"`{name}` in line {value.lineno} is a difference of two large numbers, mean(x * x) - mean * "
                    "mean: far from "
                    "zero they cancel, and no digit is left.",
                    "take the differences from the mean first, and the mean of their squares", Cause.LOW_PRECISION,
                    kernel.name,
                )  # fmt: skip


def terms_of_the_gradient(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A gradient through a statistic without the term that the statistic adds: `- mean(g)`, `- n * mean(g * n)`."""
    means = [n for n, vs in kernel.values.items() if any(is_call(p, "tl.sum") for v in vs for p in ast.walk(v))]
    tiles = [n for n in kernel.values if n not in kernel.indices and n not in kernel.pids and n not in means]
    size = next(iter(lengths(kernel)), "")
    for statement in kernel.statements:
        value = value_of(statement)
        if not size or value is None or not is_stored(statement):
            continue
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and isinstance(value.left, ast.Name):
            yield from _both_terms(kernel, value.left, [t for t in tiles if t != value.left.id], size)
        for node in ast.walk(value):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                for tile in [t for t in tiles if t in kernel.names(value)][:2]:
                    other = next((t for t in tiles if t in kernel.names(value) and t != tile), tile)
                    axis = 0 if kernel.rank_of(value) == 1 else 1
                    for sums in (
                        f"tl.sum({tile}, axis={axis}) / {size}",
                        f"{tile} * tl.sum({tile} * {other}, axis={axis}) / {size}",
                    ):
                        yield Mend(
                            Family.FORMULA, 25, node.lineno,
                            (kernel.replaced(node, f"{kernel.source.of(node)} - {sums}"),),
                            f"The formula in line {node.lineno} lacks a term: mean and variance depend on x too, and "
                            "each takes a mean "
                            "off the gradient.",
                            "the gradient of x has two means: see the formula in the handout", None, kernel.name,
                        )  # fmt: skip
                break


def _both_terms(kernel: KernelDraft, tile: ast.Name, others: list[str], size: str) -> Iterator[Mend]:
    for other in others:
        if not is_call(kernel.values[other][0], "tl.load") and not is_condition(kernel.values[other][0]):
            means = f"tl.sum({tile.id}, axis=0) / {size} - {other} * tl.sum({tile.id} * {other}, axis=0) / {size}"
            yield Mend(
                Family.FORMULA, 15 if kernel.uses.get(other, 0) else 4, tile.lineno,
                (kernel.replaced(tile, f"({tile.id} - {means})"),),
                f"The formula in line {tile.lineno} lacks two terms: mean and variance depend on x too, and each "
                "takes a mean off the "
                "gradient.",
                "the gradient of x has two means: see the formula in the handout", None, kernel.name,
            )  # fmt: skip


def narrow_sum(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """An accumulator of 16 bits."""
    for call in calls(kernel.nodes, "tl.zeros", "tl.full", "tl.zeros_like"):
        statement = kernel.statement(call)
        name = kernel.source.of(statement.targets[0]) if isinstance(statement, ast.Assign) else "it"
        given = [k.value for k in call.keywords if k.arg == "dtype"]
        given += call.args[1:2] if kernel.source.of(call).startswith("tl.zeros(") else call.args[2:3]
        for dtype in given:
            text = kernel.source.of(dtype)
            if "float32" not in text:
                casts = [kernel.replaced(dtype, "tl.float32"), *_casts_beside(kernel, name)]
                yield Mend(
                    Family.SUM if "16" in text else Family.CAST, 2, call.lineno, tuple(casts),
                    f"`{name}` is kept in {text} (line {call.lineno}): each addition rounds to 16 bits.",
                    "accumulate in float32, tl.float32, and convert when you store", Cause.LOW_PRECISION, kernel.name,
                )  # fmt: skip


def _casts_beside(kernel: KernelDraft, name: str) -> Iterator[Edit]:
    """The casts to the narrow dtype where something is added to an accumulator; tl.dot's out_dtype."""
    for statement in kernel.statements:
        value = value_of(statement)
        if value is None or target_of(statement) != name or kernel.in_loop(statement) is None:
            continue
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and converted(node) is not None and node.args:
                outer = kernel.parents[node]
                if not is_call(outer, "tl.dot"):
                    yield kernel.replaced(node.args[0], "tl.float32")
            elif isinstance(node, ast.keyword) and node.arg == "out_dtype":
                yield kernel.replaced(node.value, "tl.float32")


RULES = (narrow_sum, other_divisor, other_axis_of_reduction, eps_misplaced, cancelled_variance, terms_of_the_gradient)
