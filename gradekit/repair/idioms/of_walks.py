"""Mends of loops that walk over rows, tiles or steps: what begins anew, and by which name it goes."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from gradekit.repair.idioms.of_indices import is_program_id, program_ids
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, is_call, simple, target_of, terms, value_of
from gradekit.source.kernel import KernelDraft
from gradekit.source.loops import (
    Loop,
    counter_of,
    counts_down,
    counts_steps,
    names_of_steps,
    range_of,
    steps_of,
)


def step_not_counted(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Offsets in a loop without how far it has come; or with the number of the step, not multiplied by the block."""
    for call in calls(kernel.nodes, "tl.arange"):
        loop = kernel.in_loop(call)
        if loop is None or not counter_of(loop):
            continue
        name, block = counter_of(loop), kernel.source.of(call.args[-1])
        value = value_of(kernel.statement(call))
        steps = [f"{name} * {block}", name] if counts_steps(loop) else [name]
        for step in steps if value is None or name not in kernel.origins(value) else ():
            yield Mend(
                Family.INDEX, 33 if _is_used(loop, name) else 3, call.lineno,
                (kernel.replaced(call, f"({step} + {kernel.source.of(call)})"),),
                f"The offsets in line {call.lineno} are the same in every step of the loop: `{name}` takes no part.",
                "add how far the loop has come", None, kernel.name,
            )  # fmt: skip
        for part in terms(_sum_around(kernel, call)) if counts_steps(loop) else ():
            if isinstance(part, ast.Name) and part.id == name:
                yield Mend(
                    Family.INDEX, 4, part.lineno, (kernel.replaced(part, f"{name} * {block}"),),
                    f"The steps of the loop begin one element apart: in line {part.lineno} `{name}` counts steps, and "
                    f"is not multiplied by {block}.",
                    f"step i begins at i * {block}", None, kernel.name,
                )  # fmt: skip


def _is_used(loop: Loop, name: str) -> bool:
    """Whether a loop's body asks for its counter, but to move it on."""
    return any(node.id == name for part in loop.body for node in _loads(part))


def _sum_around(kernel: KernelDraft, node: ast.expr) -> ast.expr:
    parent = kernel.parents[node]
    while isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub)):
        node, parent = parent, kernel.parents[parent]
    return node


def shared_steps(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Steps that several programs share, and each of them takes: a constexpr that nothing uses."""
    idle = [name for name in kernel.constexprs if kernel.uses.get(name, 0) == 0]
    for loop in kernel.loops:
        given = range_of(loop)
        for name in idle if len(given) == 3 and "tl.program_id" in kernel.calls_behind(given[0]) else ():
            step = kernel.source.operand(given[2])
            yield Mend(
                Family.LOOP, 3, loop.lineno, (kernel.replaced(given[2], f"{step} * {name}"),),
                f"The loop in line {loop.lineno} goes in steps of {step}: each of {name} programs takes every step "
                "from its own on.",
                f"programs that share the steps go on by {step} * {name}", None, kernel.name,
            )  # fmt: skip


def walks_of_programs(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A loop that all programs share, as many steps apart as there are programs: it begins with the program's own
    number, times a block where it counts elements."""
    for loop in kernel.loops:
        given = range_of(loop)
        if len(given) == 2 and is_program_id(kernel, given[0]) and "tl.program_id" not in kernel.calls_behind(given[1]):
            stop, axis = kernel.source.of(given[1]), _axis_of(kernel, given[0])
            says = "goes on to the very next step, which another program takes"
            yield _shared(kernel, loop, given[1], f"{stop}, tl.num_programs({axis})", says)
        shared = len(given) == 3 and "tl.num_programs" in kernel.calls_behind(given[2])
        for pid in program_ids(kernel)[:1] if shared else ():
            first, step = given[0], given[2]
            mine, steps = (kernel.origins(part) & set(kernel.constexprs) for part in (first, step))
            if "tl.program_id" not in kernel.calls_behind(first):
                own = " * ".join([pid, *sorted(steps)])
                yield _shared(kernel, loop, first, own, "begins with the same step in every program")
            for block in sorted(mine - steps):
                new = f"{kernel.source.operand(step)} * {block}"
                yield _shared(kernel, loop, step, new, f"begins {block} apart in each program, and goes on by less")


def _axis_of(kernel: KernelDraft, pid: ast.expr) -> str:
    """The axis of the grid that a program's number counts along, as it is written."""
    made = [pid, *(value for name in kernel.names(pid) for value in kernel.values.get(name, ()))]
    found = calls([part for value in made for part in ast.walk(value)], "tl.program_id")
    return next((kernel.source.of(call.args[0]) for call in found if call.args), "0")


def _shared(kernel: KernelDraft, loop: Loop, node: ast.expr, new: str, what: str) -> Mend:
    return Mend(
        Family.LOOP, 3, loop.lineno, (kernel.replaced(node, new),), f"The loop in line {loop.lineno} {what}.",
        f"`{new}` belongs in the place of `{kernel.source.of(node)}`", None, kernel.name,
    )  # fmt: skip


def not_begun_anew(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """An accumulator that is summed up in a loop within a loop, or in two loops, and set to 0 once."""
    for name, values in kernel.values.items():
        begun = [v for v in values if is_call(v, "tl.zeros", "tl.full")]
        if len(begun) != 1:
            continue
        for loop in kernel.loops:
            adds = any(target_of(part) == name for part in ast.walk(loop)) and kernel.in_loop(begun[0]) is not loop
            outer = kernel.in_loop(loop)
            before = _simple_before(kernel, loop)
            again = outer is not None and not kernel.is_within(begun[0], outer)
            earlier = [other for other in kernel.loops if other.lineno < loop.lineno]
            second = outer is None and any(_sums_in(other, name) for other in earlier)
            if adds and before is not None and (again or second):
                yield Mend(
                    Family.SUM, 4, begun[0].lineno if again else loop.lineno,
                    (kernel.after(before, f"{name} = {kernel.source.of(begun[0])}"),),
                    f"`{name}` is set to 0 once, in line {begun[0].lineno}, and goes on from what it held when the "
                    f"loop in line {loop.lineno} begins again.",
                    f"begin {name} anew before that loop", None, kernel.name,
                )  # fmt: skip


def index_stays(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Places that a loop loads from, made before it and never moved on, where nothing in it asks for its counter."""
    for loop in kernel.loops:
        moved = {step.target.id for step in steps_of(loop) if isinstance(step.target, ast.Name)}
        still = [a for a in kernel.accesses if kernel.in_loop(a.call) is loop and not kernel.names(a.address) & moved]
        named = {n for access in still for n in kernel.origins(access.address)}
        named -= {n for a in kernel.accesses if not a.is_load for n in kernel.origins(a.address)}
        idle = not _is_used(loop, counter_of(loop)) and simple(loop.body[-1])
        for name, start in _ranges(kernel).items() if idle else ():
            if name in named and len(kernel.values[name]) == 1 and not kernel.is_within(start, loop):
                block = kernel.block_of(name)
                yield Mend(
                    Family.LOOP, 3, loop.lineno, (kernel.after(loop.body[-1], f"{name} += {block}"),),
                    f"`{name}` is the same in every step of the loop in line {loop.lineno}: each takes the same.",
                    f"move {name} on by {block} at the end of each step", None, kernel.name,
                )  # fmt: skip


def _ranges(kernel: KernelDraft) -> dict[str, ast.expr]:
    """The names of ranges of places, each with what it begins as."""
    first = {name: kernel.values[name][0] for name in kernel.indices}
    return {name: value for name, value in first.items() if any(is_call(p, "tl.arange") for p in terms(value))}


def takes_too_few_steps(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A loop that moves places on, and does not go on until they have reached what they are compared with."""
    starts = _ranges(kernel)
    for loop in kernel.loops:
        moved = [step.target.id for step in steps_of(loop) if isinstance(step.target, ast.Name)]
        for name in moved if counts_steps(loop) else ():
            bound, stop = next(iter(kernel.bounds.get(name, ())), ""), range_of(loop)[-1]
            if name not in starts or not bound or bound in kernel.origins(stop):
                continue
            first = [kernel.source.of(part) for part in terms(starts[name]) if not is_call(part, "tl.arange")]
            steps = f"tl.cdiv({' - '.join([bound, *first])}, {kernel.block_of(name)})"
            yield Mend(
                Family.LOOP, 4, loop.lineno, (kernel.replaced(stop, steps),),
                f"The loop in line {loop.lineno} ends at {kernel.source.of(stop)}, and `{name}` goes up to {bound}: "
                "the rest is left out.",
                f"go on until `{name}` has reached `{bound}`", None, kernel.name,
            )  # fmt: skip


def ends_with_a_step_left(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """`while left > BLOCK` and `while done + BLOCK <= n`: the last, partial step is left out."""
    for loop in kernel.loops:
        test = loop.test if isinstance(loop, ast.While) else None
        if not isinstance(test, ast.Compare) or not counter_of(loop):
            continue
        left, right = kernel.source.of(test.left), kernel.source.of(test.comparators[0])
        whole = f"{counter_of(loop)} > 0" if counts_down(loop) else f"{counter_of(loop)} < {right}"
        if isinstance(test.comparators[0], ast.BinOp) and isinstance(test.comparators[0].op, ast.Sub):
            whole = f"{left} < {kernel.source.of(test.comparators[0].left)}"
        if kernel.names(test) & names_of_steps(loop) & set(kernel.constexprs) and whole != kernel.source.of(test):
            yield Mend(
                Family.LOOP, 4, loop.lineno, (kernel.replaced(test, whole),),
                f"The loop in line {loop.lineno} goes on only while `{kernel.source.of(test)}`: the last, partial step "
                "is left out.",
                f"go on as long as anything is left: while {whole}", None, kernel.name,
            )  # fmt: skip


def counter_not_set_back(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Two `while` loops that count with one name, which stands at its end when the second begins."""
    walks = [loop for loop in kernel.loops if isinstance(loop, ast.While) and counter_of(loop)]
    for first, second in itertools.pairwise(walks):
        name, before = counter_of(second), _simple_before(kernel, second)
        begun = [s for s in kernel.statements if isinstance(s, ast.Assign) and target_of(s) == name]
        earlier = [s for s in begun if s.lineno < first.lineno]
        if name != counter_of(first) or before is None or not earlier or earlier != begun:
            continue
        yield Mend(
            Family.LOOP, 3, second.lineno, (kernel.after(before, f"{name} = {kernel.source.of(earlier[-1].value)}"),),
            f"`{name}` stands where the loop in line {first.lineno} has left it: the one in line {second.lineno} takes "
            "no step.",
            f"set {name} back before the second loop", None, kernel.name,
        )  # fmt: skip


def _sums_in(loop: Loop, name: str) -> bool:
    return any(target_of(part) == name for part in ast.walk(loop))


def overwritten_too_early(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """What a loop carries on is given its new value before a statement that needs the old one."""
    for loop in kernel.loops:
        for place, first in enumerate(loop.body):
            name = target_of(first)
            later = loop.body[place + 1 : place + 4]
            reads = [n for n, one in enumerate(later) if name in {n.id for n in _loads(one)}]
            body = [first, *later[: reads[0] + 1]] if reads else []
            is_carried = name and len(kernel.values.get(name, ())) > 1 and isinstance(first, ast.Assign)
            if is_carried and body and all(one.lineno == one.end_lineno and simple(one) for one in body):
                texts = [kernel.source.of(one) for one in (*body[1:], first)]
                yield Mend(
                    Family.LOOP, 4, first.lineno,
                    tuple(kernel.replaced(old, new) for old, new in zip(body, texts, strict=True)),
                    f"Line {first.lineno} gives `{name}` its new value before line {body[-1].lineno}, which needs the "
                    "old one.",
                    f"let line {first.lineno} come after line {body[-1].lineno}", None, kernel.name,
                )  # fmt: skip


def _loads(statement: ast.stmt) -> Iterator[ast.Name]:
    return (n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _simple_before(kernel: KernelDraft, loop: Loop) -> ast.stmt | None:
    """The simple statement right before a loop, in the same body."""
    parent = kernel.parents[loop]
    body = getattr(parent, "body", [])
    place = body.index(loop) if loop in body else 0
    return body[place - 1] if place and simple(body[place - 1]) else None


def parts_rounded_down(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A length that is divided into a fixed number of parts, rounded down: `n // 4`."""
    for node in kernel.nodes:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)):
            continue
        parts = node.right.value if isinstance(node.right, ast.Constant) else None
        left = kernel.source.of(node.left)
        by_program = kernel.names(node.left) & {*kernel.pids, *kernel.indices} or "program_id" in left
        if isinstance(parts, int) and parts > 1 and "+" not in left and not by_program:
            yield Mend(
                Family.LOOP, 6, node.lineno, (kernel.replaced(node, f"(({left}) + {parts - 1}) // {parts}"),),
                f"Line {node.lineno} rounds `{kernel.source.of(node)}` down: {parts} parts of that size leave the last "
                f"of `{left}` out.",
                f"round up: `({left} + {parts - 1}) // {parts}`", None, kernel.name,
            )  # fmt: skip


RULES = (
    step_not_counted,
    shared_steps,
    walks_of_programs,
    not_begun_anew,
    counter_not_set_back,
    ends_with_a_step_left,
    index_stays,
    takes_too_few_steps,
    parts_rounded_down,
    overwritten_too_early,
)
