"""Mends of loops: how many steps, what moves on from step to step, and what is summed up."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, is_call, simple, target_of
from gradekit.source.kernel import KernelDraft
from gradekit.source.loops import Loop, counter_of, head_of, names_of_steps, range_of
from gradekit.submission.parsed_source import Edit, called, nodes_of


def steps_rounded_down(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """range(K // BLOCK)."""
    for node in kernel.nodes:
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.FloorDiv)
            and "- 1" not in kernel.source.of(node.left)
        ):
            left, right = kernel.source.of(node.left), kernel.source.of(node.right)
            in_range = any(node in ast.walk(head_of(loop)) for loop in kernel.loops)
            counts = in_range or (isinstance(node.right, ast.Name) and node.right.id in kernel.constexprs)
            if counts:
                by_program = "tl.program_id" in kernel.calls_behind(node.left)
                yield Mend(
                    Family.LOOP, 2 if in_range else 30 if by_program else 7, node.lineno,
                    (kernel.replaced(node, f"tl.cdiv({left}, {right})"),),
                    f"Line {node.lineno} rounds `{kernel.source.of(node)}` down: the last, partial step along `{left}` "
                    "is left out.",
                    "round the number of steps up, with tl.cdiv", None, kernel.name,
                )  # fmt: skip


def other_range(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A loop that begins too late, ends too early, or goes in the wrong steps."""
    for loop in kernel.loops:
        given = range_of(loop)
        if not given:
            continue
        stop = given[1] if len(given) > 1 else given[0]
        if len(given) > 1 and kernel.source.of(given[0]) != "0":
            rank, first = 6 if isinstance(given[0], ast.Constant) else 32, kernel.source.of(given[0])
            yield _ranged(kernel, loop, given[0], "0", f"begins at {first}, and skips what is before", rank)
        if isinstance(stop, ast.BinOp) and isinstance(stop.op, ast.Sub):
            left = kernel.source.of(stop.left)
            yield _ranged(kernel, loop, stop, left, f"ends at {kernel.source.of(stop)}: it is one step too short", 5)
        for least in calls(list(ast.walk(stop)), "tl.min"):
            of = kernel.source.of(least.args[0]) if least.args else ""
            what = f"takes as many steps as the smallest of `{of}`: the others end too early"
            yield _ranged(kernel, loop, least.func, "tl.max", what, 9)
        for size in kernel.lengths:
            if isinstance(stop, ast.Name) and stop.id in {*kernel.sizes, *kernel.constexprs} and size != stop.id:
                rank = 34 if stop.id in kernel.bounding else 12
                yield _ranged(kernel, loop, stop, size, f"goes up to {stop.id}, the size of another dimension", rank)
        if len(given) == 3:
            for block in kernel.constexprs:
                step = kernel.source.of(given[2])
                if step != block and "causal" not in block.lower():
                    fits = any(kernel.source.of(c.args[-1]) == step for c in calls(kernel.nodes, "tl.arange") if c.args)
                    yield _ranged(kernel, loop, given[2], block, f"goes in steps of {step}", 34 if fits else 5)
        elif len(given) in (1, 2) and isinstance(stop, ast.Name) and stop.id in kernel.sizes:
            for block in _blocks(kernel, loop):
                yield _ranged(kernel, loop, stop, f"tl.cdiv({stop.id}, {block})", f"takes {stop.id} steps", 14)
        if not isinstance(stop, (ast.Constant, ast.BinOp)):
            longer = kernel.source.operand(stop)
            yield _ranged(kernel, loop, stop, f"{longer} + 1", f"ends at {longer}: it is one step too short", 30)


def _blocks(kernel: KernelDraft, loop: Loop) -> list[str]:
    inside = {n.id for part in loop.body for n in ast.walk(part) if isinstance(n, ast.Name)}
    return [name for name in kernel.constexprs if name in inside][:2]


def _ranged(kernel: KernelDraft, loop: Loop, node: ast.expr, new: str, what: str, rank: int) -> Mend:
    return Mend(
        Family.LOOP, rank, loop.lineno, (kernel.replaced(node, new),), f"The loop in line {loop.lineno} {what}.",
        f"`{new}` belongs in the place of `{kernel.source.of(node)}`", None, kernel.name,
    )  # fmt: skip


def pointer_stays(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Pointers that a loop loads through and never moves on, or moves by the wrong step."""
    for loop in kernel.loops:
        moved = {
            n.target.id: n for n in ast.walk(loop) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
        }
        for access in kernel.accesses:
            name = access.address.id if isinstance(access.address, ast.Name) else ""
            if not name or kernel.in_loop(access.call) is not loop or not simple(loop.body[-1]):
                continue
            if name not in moved and not _made_in(loop, name):
                yield from _moved_on(kernel, loop, name)
            elif name in moved:
                yield from _other_steps(kernel, moved[name], name)


def _made_in(loop: Loop, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(loop))


def _moved_on(kernel: KernelDraft, loop: Loop, name: str) -> Iterator[Mend]:
    for number, step in enumerate(_steps(kernel, loop, name)):
        yield Mend(
            Family.LOOP, 3 + number, loop.lineno, (kernel.after(loop.body[-1], f"{name} += {step}"),),
            f"`{name}` is never advanced: every step of the loop in line {loop.lineno} loads the same tile.",
            f"move {name} on at the end of each step, by a block times its stride", None, kernel.name,
        )  # fmt: skip


def _steps(kernel: KernelDraft, loop: Loop, name: str) -> list[str]:
    values = [part for value in kernel.values.get(name, ()) for part in ast.walk(value)]
    used = [part.id for part in values if isinstance(part, ast.Name)]
    blocks = _blocks(kernel, loop) or kernel.constexprs
    stepped = [b for b in blocks if b in names_of_steps(loop)] or [b for b in blocks if "K" in b.upper()]
    first = (stepped or blocks)[:1]
    mine = {n for part in values if _is_along(kernel, part, first) for n in kernel.names(part)}
    strides = sorted((s for s in kernel.strides if s in used), key=lambda stride: stride not in mine)
    return [f"{block} * {stride}" for block in first for stride in strides] or first


def _is_along(kernel: KernelDraft, node: ast.AST, blocks: list[str]) -> bool:
    """Whether it is a product of an index that has such a block's places, as of its stride."""
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return is_product and any(kernel.block_of(name) in blocks for name in kernel.names(node) & set(kernel.indices))


def _other_steps(kernel: KernelDraft, statement: ast.AugAssign, name: str) -> Iterator[Mend]:
    now = kernel.source.of(statement.value)
    used = {n.id for value in kernel.values.get(name, ()) for n in ast.walk(value) if isinstance(n, ast.Name)}
    mine = [s for s in kernel.strides if s in used]
    blocks = [n for n in kernel.constexprs if n in now] or kernel.constexprs
    for step in [f"{block} * {stride}" for block in blocks[:1] for stride in mine] + [
        f"{block} * {stride}" for block in kernel.constexprs for stride in mine
    ]:
        if step.replace(" ", "") != now.replace(" ", "") and "*".join(reversed(step.split(" * "))) != now.replace(
            " ", ""
        ):
            yield Mend(
                Family.LOOP, 7, statement.lineno, (kernel.replaced(statement.value, step),),
                f"Line {statement.lineno} moves `{name}` on by {now}, which is not one block along its dimension.",
                f"advance it by a block times the stride of that dimension: {step}", None, kernel.name,
            )  # fmt: skip


def _comes_in(kernel: KernelDraft, loop: Loop, name: str) -> int:
    """How often a loop assigns a name that has a value before it; 0 where it has none."""
    before = any(target_of(s) == name for s in kernel.statements if s.lineno < loop.lineno)
    return before * sum(target_of(part) == name for part in nodes_of(loop))


def added_twice(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """`acc += tl.dot(a, b, acc)`."""
    for statement in kernel.statements:
        if (
            isinstance(statement, ast.AugAssign)
            and isinstance(statement.op, ast.Add)
            and isinstance(statement.target, ast.Name)
        ):
            name = statement.target.id
            if name in kernel.names(statement.value):
                yield Mend(
                    Family.SUM, 2, statement.lineno,
                    (kernel.source.between_replaced(statement.target, statement.value, "+=", "="),),
                    f"Line {statement.lineno} adds `{name}` to itself: tl.dot with an accumulator has added it "
                    "already.",
                    "use = where tl.dot is given the accumulator", None, kernel.name,
                )  # fmt: skip


def not_rescaled(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """What was summed up under an old maximum, and is added to under a new one without being scaled down."""
    factors = _rescales(kernel)
    for loop in kernel.loops:
        for statement in ast.walk(loop):
            is_sum = isinstance(statement, (ast.Assign, ast.AugAssign)) and _comes_in(
                kernel, loop, target_of(statement)
            )
            is_counted = target_of(statement) == counter_of(loop)
            if is_sum and isinstance(statement, (ast.Assign, ast.AugAssign)) and not is_counted:
                yield from _scaled_down(kernel, statement, factors)


def _rescales(kernel: KernelDraft) -> list[str]:
    """Names (or expressions) of exp(old maximum - new maximum)."""
    named = [
        name
        for name, values in kernel.values.items()
        if any(
            is_call(v, "tl.exp", "tl.exp2", "tl.math.exp2", "tl.math.exp") and not kernel.names(v) & _tiles(kernel)
            for v in values
        )
        and any(_is_difference(v) for v in values)
    ]
    updated = [
        (old, new) for old, values in kernel.values.items() for v in values if isinstance(v, ast.Name) and (new := v.id)
        and any(is_call(n, "tl.maximum") for n in kernel.values.get(new, ()))
    ]  # fmt: skip
    exp = "tl.exp2" if any(is_call(n, "tl.exp2") for n in kernel.nodes) else "tl.exp"
    return named or [f"{exp}({old} - {new})" for old, new in updated]


def _is_difference(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and bool(value.args) and isinstance(value.args[0], ast.BinOp)


def _tiles(kernel: KernelDraft) -> set[str]:
    """Names of tiles of scores: results of tl.dot or of loads."""
    return {
        name for name, values in kernel.values.items()
        if any(any(is_call(p, "tl.dot", "tl.load") for p in ast.walk(v)) for v in values)
    }  # fmt: skip


def _scaled_down(kernel: KernelDraft, statement: ast.Assign | ast.AugAssign, scales: list[str]) -> Iterator[Mend]:
    target = statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]
    is_sum = isinstance(target, ast.Name) and len(kernel.values.get(target.id, ())) > 1
    if not isinstance(target, ast.Name) or not is_sum or kernel.pointer_of(target) in kernel.pointers:
        return
    name, value = target.id, statement.value
    if any(_is_scaled(part, name) for part in ast.walk(value)):
        return
    for scale in scales:
        if scale in kernel.names(value) or scale in kernel.source.of(value) or name == scale:
            continue
        scale = _factor_there(kernel, statement, scale)
        wide = (
            f"{scale}[:, None]" if kernel.calls_behind(value) & {"tl.dot"} and not is_call(value, "tl.sum") else scale
        )
        for factor in dict.fromkeys([wide, scale]):
            edit = _with_factor(kernel, statement, target, factor)
            if edit is not None:
                yield Mend(
                    Family.SUM, 4, statement.lineno, edit,
                    f"Line {statement.lineno} adds to `{name}` without rescaling it: what it holds was summed up "
                    "under the old "
                    "maximum.",
                    f"when the maximum grows, multiply {name} by exp(old maximum - new maximum) first", None,
                    kernel.name,
                )  # fmt: skip


def _is_scaled(node: ast.AST, name: str) -> bool:
    """Whether it is `name * exp(...)`."""
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else []
    return any(isinstance(side, ast.Name) and side.id == name for side in sides) and any(
        isinstance(side, ast.Call) and called(side).rpartition(".")[2] in ("exp", "exp2") for side in sides
    )


def _factor_there(kernel: KernelDraft, statement: ast.stmt, scale: str) -> str:
    """The factor as this statement can write it: its name, or its expression where the name has a value only later."""
    values = kernel.values.get(scale, ())
    is_later = all(value.lineno > statement.lineno for value in values)
    return kernel.source.of(values[0]) if values and is_later else scale


def _with_factor(
    kernel: KernelDraft, statement: ast.Assign | ast.AugAssign, target: ast.Name, factor: str
) -> tuple[Edit, ...] | None:
    value, name = statement.value, target.id
    if isinstance(statement, ast.AugAssign):
        return (kernel.replaced(statement, f"{name} = {name} * {factor} + {kernel.source.of(value)}"),)
    inside = [n for n in ast.walk(value) if isinstance(n, ast.Name) and n.id == name]
    return (kernel.replaced(inside[0], f"{name} * {factor}"),) if inside else None


RULES = (steps_rounded_down, other_range, pointer_stays, added_twice, not_rescaled)
