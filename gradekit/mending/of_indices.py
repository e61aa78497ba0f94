"""Mends of indices and addresses: which program works on which elements, and where they lie."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradekit.causes import Cause
from gradekit.mending.draft import Draft
from gradekit.mending.kernel_text import KernelText, MemoryAccess, calls, factors, is_call, target_of, terms, value_of
from gradekit.mending.mend import Family, Mend
from gradekit.submission.parsed_source import Edit


def program_left_out(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """Offsets without the program's id, or with the id alone where it should be times the block."""
    for call in calls(kernel.nodes, "tl.arange"):
        statement, sum_ = kernel.statement(call), _sum_around(kernel, call)
        text, block = kernel.source.of(call), kernel.source.of(call.args[-1])
        behind = kernel.calls_behind(statement.value) if isinstance(statement, ast.Assign) else set()
        loop = kernel.in_loop(call)
        if (
            loop is not None
            and isinstance(loop.target, ast.Name)
            and loop.target.id not in behind_names(kernel, statement)
        ):
            for step in (f"{loop.target.id} * {block}", loop.target.id):
                yield Mend(
                    Family.INDEX, 4 if kernel.uses.get(loop.target.id, 0) == 0 else 33, call.lineno,
                    (kernel.replaced(call, f"({step} + {text})"),),
                    f"The offsets in line {call.lineno} are the same in every step of the loop: `{loop.target.id}` takes no part.",
                    "add how far the loop has come", None, kernel.name,
                )  # fmt: skip
        if "tl.program_id" not in behind and loop is None:
            idle = not kernel.pids or any(kernel.uses.get(pid, 0) == 0 for pid in kernel.pids)
            for number, pid in enumerate(_ids(kernel)[:3]):
                yield Mend(
                    Family.INDEX, (5 if idle else 26) + number, call.lineno, (kernel.replaced(call, f"({pid} * {block} + {text})"),),
                    f"The offsets in line {call.lineno} are the same in every program: tl.program_id takes no part in them.",
                    f"program i begins at i * {block}", None, kernel.name,
                )  # fmt: skip
        for part in terms(sum_):
            if part is not call and _is_id(kernel, part):
                yield Mend(
                    Family.INDEX, 4, part.lineno, (kernel.replaced(part, f"{kernel.source.operand(part)} * {block}"),),
                    f"The programs begin one element apart: in line {part.lineno} the program id is not multiplied by {block}.",
                    f"program i begins at i * {block}", None, kernel.name,
                )  # fmt: skip
            elif isinstance(part, ast.BinOp) and part is not call:
                yield from _other_block(kernel, part, block)


def behind_names(kernel: KernelText, statement: ast.stmt) -> set[str]:
    """The names that a statement's value is computed from."""
    value = value_of(statement)
    return kernel.origins(value) if value is not None else set()


def _sum_around(kernel: KernelText, node: ast.expr) -> ast.expr:
    parent = kernel.parents[node]
    while isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub)):
        node, parent = parent, kernel.parents[parent]
    return node


def _ids(kernel: KernelText) -> list[str]:
    plain = [n for n in kernel.pids if all(isinstance(v, ast.Call) for v in kernel.values[n])]
    return plain or ["tl.program_id(0)", "tl.program_id(1)"]


def _is_id(kernel: KernelText, node: ast.expr) -> bool:
    if is_call(node, "tl.program_id"):
        return True
    return isinstance(node, ast.Name) and any(is_call(v, "tl.program_id") for v in kernel.values.get(node.id, ()))


def _other_block(kernel: KernelText, part: ast.BinOp, block: str) -> Iterator[Mend]:
    """`pid_m * BLOCK_N + tl.arange(0, BLOCK_M)`."""
    for factor in factors(part):
        if isinstance(factor, ast.Name) and factor.id in kernel.constexprs and factor.id != block:
            yield Mend(
                Family.INDEX, 3, factor.lineno, (kernel.replaced(factor, block),),
                f"Line {factor.lineno} multiplies by {factor.id} where the tile is {block} long: tiles overlap, or leave gaps.",
                f"the tile that begins there is {block} long", None, kernel.name,
            )  # fmt: skip


def other_axis(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """tl.program_id of another axis; two axes in each other's place."""
    found = [c for c in calls(kernel.nodes, "tl.program_id") if c.args and isinstance(c.args[0], ast.Constant)]
    by_axis = {kernel.source.of(c.args[0]): c for c in found}
    if len(by_axis) == 2:
        first, (one, other) = found[0], by_axis
        edits = tuple(kernel.replaced(c.args[0], other if kernel.source.of(c.args[0]) == one else one) for c in found)
        yield Mend(
            Family.INDEX, 9, first.lineno, edits,
            f"The axes of the grid are swapped: line {first.lineno} takes tl.program_id({kernel.source.of(first.args[0])}).",
            "program_id(0) counts along the first number of the grid", None, kernel.name,
        )  # fmt: skip
    for call in found:
        axis = kernel.source.of(call.args[0])
        for new in {"0": ("1",), "1": ("0", "2"), "2": ("1", "0")}.get(axis, ()):
            yield Mend(
                Family.INDEX, 5 if _axes(draft, kernel) > len(by_axis) else 30, call.lineno, (kernel.replaced(call.args[0], new),),
                f"Line {call.lineno} asks for tl.program_id({axis}), which counts along another axis of the grid.",
                f"the axis that is meant there is {new}", None, kernel.name,
            )  # fmt: skip


def _axes(draft: Draft, kernel: KernelText) -> int:
    """How many axes the grid of a kernel's first launch has, as it is written."""
    grids = [draft.grid_of(launch) for launch in draft.launches_of(kernel)]
    return len(grids[0].elts) if grids and isinstance(grids[0], ast.Tuple) else 1


def one_place_off(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """An offset, a bound or a step that is one too large or too small."""
    for node in kernel.nodes:
        if isinstance(node, ast.BinOp) and _is_one_more(node):
            sign = "+" if isinstance(node.op, ast.Add) else "-"
            yield Mend(
                Family.INDEX, 30 if _is_scaled(kernel, node) else 7, node.lineno,
                (kernel.replaced(node, kernel.source.operand(node.left)),),
                f"Line {node.lineno} is one off: `{kernel.source.of(node)}`, where the {sign} 1 does not belong.",
                f"leave out the {sign} 1", None, kernel.name,
            )  # fmt: skip


def _is_scaled(kernel: KernelText, node: ast.BinOp) -> bool:
    """Whether it is the number of the next tile, `(pid + 1) * BLOCK`, or rounds up, `(n + BLOCK - 1) // BLOCK`."""
    parent = kernel.parents[node]
    product = isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Mult, ast.FloorDiv))
    return product and (isinstance(node.op, ast.Add) or isinstance(parent.op, ast.FloorDiv))  # type: ignore[attr-defined]


def next_tile(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """A loop over the keys up to a query's tile that ends before that tile: min(S, pid * BLOCK)."""
    for call in calls(kernel.nodes, "min", "tl.minimum"):
        for part in call.args:
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) and _is_id(kernel, part.left):
                left, right = kernel.source.of(part.left), kernel.source.of(part.right)
                yield Mend(
                    Family.LOOP, 6, part.lineno, (kernel.replaced(part, f"({left} + 1) * {right}"),),
                    f"The loop ends at `{kernel.source.of(part)}` (line {part.lineno}), where this program's own tile begins: it is one "
                    "block too short.",
                    f"the tile ends at ({left} + 1) * {right}", None, kernel.name,
                )  # fmt: skip


def _is_one_more(node: ast.BinOp) -> bool:
    """Whether it is `a + 1` or `a - 1`."""
    return isinstance(node.op, (ast.Add, ast.Sub)) and isinstance(node.right, ast.Constant) and node.right.value == 1


def row_left_out(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """An address in which the program's row (or head, or batch) takes no part."""
    for access in kernel.accesses:
        if not access.pointer or _knows_program(kernel, access):
            continue
        base = _pointer_name(kernel, access)
        if base is None:
            continue
        for number, (pid, step) in enumerate(_row_steps(kernel, access)):
            verb = "loads" if access.is_load else "stores"
            yield Mend(
                Family.INDEX, 8 + number, access.line, (kernel.replaced(base, f"{base.id} + {pid} * {step}"),),
                f"The address in line {access.line} leaves `{pid}` out: every program {verb} the same row of {access.pointer}.",
                f"add {pid} times the step from one row to the next to the address", None, kernel.name,
            )  # fmt: skip


def _knows_program(kernel: KernelText, access: MemoryAccess) -> bool:
    unmasked = kernel.calls_behind(access.address)
    added = [n for n in kernel.statements if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
             and n.target.id in kernel.origins(access.address)]  # fmt: skip
    return "tl.program_id" in unmasked or any("tl.program_id" in kernel.calls_behind(n.value) for n in added)


def _pointer_name(kernel: KernelText, access: MemoryAccess) -> ast.Name | None:
    names = [n for n in ast.walk(kernel.resolved(access.address)) if isinstance(n, ast.Name)]
    return next((n for n in names if n.id == access.pointer), None)


def _row_steps(kernel: KernelText, access: MemoryAccess) -> Iterator[tuple[str, str]]:
    pids = _ids(kernel)[:2]
    text = ast.unparse(kernel.resolved(access.address))
    unused = [s for s in kernel.strides if kernel.uses.get(s, 0) == 0]
    mine = [s for s in [*unused, *kernel.strides] if not re.search(rf"\b{s}\b", text)]
    near = [s for s in mine if _stem(access.pointer) and _stem(access.pointer) in s]
    steps = list(dict.fromkeys([*unused, *near[:1], *kernel.sizes[:2]]))
    if not kernel.atoms(access.address):
        steps = ["1", *steps[:1]]
    yield from ((pid, step) for step in steps[:3] for pid in pids[:2])


def _stem(pointer: str) -> str:
    return re.sub(r"_?(ptr|pointer)s?$", "", pointer)[:4]


def head_left_out(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """An address without the head (or the row) that the other addresses of its kernel have."""
    for pid in kernel.pids:
        having = [a for a in kernel.accesses if pid in kernel.origins(a.address)]
        lacking = [a for a in kernel.accesses if pid not in kernel.origins(a.address)]
        if len(having) < len(lacking) or kernel.calls_behind(kernel.values[pid][0]) - {"tl.program_id"}:
            continue
        for access in lacking:
            base = _pointer_name(kernel, access)
            unused = [s for s in kernel.strides if kernel.uses.get(s, 0) == 0]
            for number, step in enumerate(
                [*unused, *_like_others(kernel, pid, having)][:4] if base is not None else ()
            ):
                yield Mend(
                    Family.INDEX, 4 + number, access.line, (kernel.replaced(base, f"{access.pointer} + {pid} * {step}"),),  # type: ignore[arg-type]
                    f"The address in line {access.line} leaves `{pid}` out, which the others have: every program takes the same part of "
                    f"{access.pointer}.",
                    f"add {pid} times its stride to the address", None, kernel.name,
                )  # fmt: skip


def _like_others(kernel: KernelText, pid: str, having: list[MemoryAccess]) -> list[str]:
    """What the id is multiplied by in other addresses."""
    found = []
    for access in having:
        for node in ast.walk(kernel.resolved(access.address)):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and kernel.source.of(node.left) == pid:
                found.append(kernel.source.of(node.right))
    return list(dict.fromkeys(found))


def own_length(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """A row number times the number of rows: the step from one row to the next is the number of columns."""
    for access in kernel.accesses:
        for part in ast.walk(kernel.resolved(access.address)):
            if not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) and isinstance(part.right, ast.Name)):
                continue
            index = kernel.names(part.left) & set(kernel.indices)
            if part.right.id in kernel.lengths and any(part.right.id in kernel.bounds.get(name, ()) for name in index):
                for size in [s for s in kernel.lengths if s != part.right.id]:
                    yield Mend(
                        Family.INDEX, 4, part.lineno, (kernel.replaced(part.right, size),),
                        f"In line {part.lineno} `{kernel.source.of(part)}` steps by {part.right.id}, which is how many of them there are.",
                        f"the step from one to the next is {size}", None, kernel.name,
                    )  # fmt: skip


def stride_left_out(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """An index in an address that no stride multiplies, though there is a parameter for it that nothing uses."""
    unused = [s for s in kernel.strides if kernel.uses.get(s, 0) == 0]
    for stride in unused:
        for access in kernel.accesses:
            for part in terms(kernel.resolved(access.address)):
                named = kernel.names(part) & {*kernel.indices, *kernel.pids}
                if named and not kernel.names(part) & set(kernel.strides):
                    yield Mend(
                        Family.STRIDES, 5 if _stem(access.pointer)[:1] in stride else 9, part.lineno,
                        (kernel.replaced(part, f"{kernel.source.operand(part)} * {stride}"),),
                        f"The kernel takes {stride} and does not use it: in line {part.lineno} "
                        f"`{kernel.source.of(part)}` is not multiplied by a stride.",
                        f"multiply the index by its stride, {stride}", Cause.IGNORES_STRIDES, kernel.name,
                    )  # fmt: skip


def other_stride(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """An index multiplied by the stride of another dimension, of another tensor, or by a size."""
    for access in kernel.accesses:
        address = kernel.resolved(access.address)
        wrong = [n for n in ast.walk(address) if isinstance(n, ast.Name) and n.id in kernel.strides]
        for i, first in enumerate(wrong):
            for second in wrong[i + 1 :]:
                if first.id != second.id:
                    usual = _in_order(kernel, first, second)
                    edits = (kernel.replaced(first, second.id), kernel.replaced(second, first.id))
                    yield Mend(
                        Family.STRIDES, 36 if usual else 6, first.lineno, edits,
                        f"The strides {first.id} and {second.id} are swapped in line {first.lineno}.",
                        "an index goes with the stride of its own dimension", None, kernel.name,
                    )  # fmt: skip
            for rank, stride in _candidates(kernel, access, first.id):
                yield Mend(
                    Family.STRIDES, rank, first.lineno, (kernel.replaced(first, stride),),
                    f"Line {first.lineno} multiplies by {first.id}, which is not the stride of that dimension of {access.pointer}.",
                    f"use {stride} there", None, kernel.name,
                )  # fmt: skip


def _in_order(kernel: KernelText, first: ast.Name, second: ast.Name) -> bool:
    """Whether two strides stand with their indices as usual: rows with the one that comes first among the parameters."""
    places = [(kernel.all_params.index(n.id), _role(kernel, n)) for n in (first, second)]
    return sorted(places) == sorted(places, key=lambda place: place[1]) or places[0][1] == places[1][1]


def _role(kernel: KernelText, stride: ast.Name) -> int:
    """0 for a program's id or a row, 1 for a row of a tile, 2 for a column."""
    parent = kernel.parents[stride]
    text = kernel.source.of(parent).replace(" ", "") if isinstance(parent, ast.BinOp) else ""
    if "[None,:]" in text:
        return 2
    if "[:,None]" in text:
        return 1
    return 2 if kernel.names(parent) & set(kernel.indices) else 0


def _candidates(kernel: KernelText, access: MemoryAccess, now: str) -> Iterator[tuple[int, str]]:
    stem = _stem(access.pointer)
    text = ast.unparse(kernel.resolved(access.address))
    for stride in kernel.strides:
        if stride != now:
            unused, foreign = kernel.uses.get(stride, 0) == 0, bool(stem) and stem[0] in stride and stem[0] not in now
            yield (6 if unused or foreign else 34 if re.search(rf"\b{stride}\b", text) else 28), stride


def other_size(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """A size in an address or a quotient that belongs to another dimension."""
    for node in kernel.nodes:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.FloorDiv, ast.Mod))):
            continue
        right = node.right
        if isinstance(right, ast.Name) and right.id in {*kernel.sizes, *kernel.pids} and _is_whole(kernel, node.left):
            others = [s for s in kernel.lengths if s != right.id] if right.id in kernel.sizes else []
            others += [n for n in kernel.values if right.id in kernel.pids and _alike(n, right.id)]
            for size in others[:3]:
                yield Mend(
                    Family.INDEX, 20, node.lineno, (kernel.replaced(right, size),),
                    f"Line {node.lineno}: `{kernel.source.of(node)}` counts in {right.id}, which is the size of another dimension.",
                    f"count in {size}", None, kernel.name,
                )  # fmt: skip


def _is_whole(kernel: KernelText, node: ast.expr) -> bool:
    return bool(kernel.names(node) & {*kernel.pids, *kernel.indices}) or is_call(node, "tl.program_id")


def _alike(name: str, other: str) -> bool:
    return name != other and len(name) == len(other) and sum(a != b for a, b in zip(name, other, strict=True)) == 1


def quotient_and_rest(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """`pid // n` and `pid % n` in each other's place."""
    found = [n for n in kernel.nodes if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.FloorDiv, ast.Mod))]
    for i, first in enumerate(found):
        for second in found[i + 1 :]:
            ops = {type(first.op), type(second.op)}
            if ops == {ast.FloorDiv, ast.Mod} and kernel.source.of(first.right) == kernel.source.of(second.right):
                edits = tuple(
                    kernel.source.between_replaced(n.left, n.right, *_TURNED[type(n.op)]) for n in (first, second)
                )
                yield Mend(
                    Family.INDEX, 11, first.lineno, edits,
                    f"`//` and `%` are swapped in lines {first.lineno} and {second.lineno}.",
                    "the quotient counts whole groups, the remainder counts within one", None, kernel.name,
                )  # fmt: skip


_TURNED = {ast.FloorDiv: ("//", "%"), ast.Mod: ("%", "//")}


def turned_tile(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """Rows and columns of a store (or a load) in each other's place: the tile is written transposed."""
    for access in kernel.accesses:
        address = kernel.resolved(access.address)
        names = [n for n in ast.walk(address) if isinstance(n, ast.Name) and n.id in kernel.indices]
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if a.id != b.id]
        for first, second in pairs[:1]:
            subscripts = [n for n in ast.walk(address) if isinstance(n, ast.Subscript)]
            if len(subscripts) >= 2:
                one, two = kernel.source.of(subscripts[0].slice), kernel.source.of(subscripts[1].slice)
                edits = (kernel.replaced(subscripts[0].slice, two), kernel.replaced(subscripts[1].slice, one))
                yield _turned(kernel, access, edits, 21)
            swapped = (kernel.replaced(first, second.id), kernel.replaced(second, first.id))
            yield _turned(kernel, access, swapped, 22)


def _turned(kernel: KernelText, access: MemoryAccess, edits: tuple[Edit, ...], rank: int) -> Mend:
    verb = "loads" if access.is_load else "stores"
    return Mend(
        Family.INDEX, rank, access.line, edits,
        f"Line {access.line} {verb} the tile transposed: its rows and columns are swapped in the address.",
        "a tile of [rows, columns] takes rows[:, None] and columns[None, :]", None, kernel.name,
    )  # fmt: skip


def other_pointer(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """A load or a store through the pointer of another tensor."""
    unused = [
        p for p in kernel.params if kernel.uses.get(p, 0) == 0 and p not in kernel.strides and p not in kernel.sizes
    ]
    unused += [p for p in kernel.sizes if kernel.uses.get(p, 0) == 0]
    for access in kernel.accesses:
        name = next((n for n in ast.walk(access.address) if isinstance(n, ast.Name) and n.id == access.pointer), None)
        for pointer in unused:
            if name is None:
                break
            near = target_of(kernel.statement(access.call))[:1] == pointer[:1]
            yield Mend(
                Family.INDEX, 5 if near else 6, access.line, (kernel.replaced(name, pointer),),
                f"Line {access.line} goes through {access.pointer}, and nothing uses {pointer}.",
                f"use {pointer} there", None, kernel.name,
            )  # fmt: skip


def base_moved(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """Tensors of several heads or batches: what is added for the head has the wrong factor."""
    for access in kernel.accesses:
        for part in terms(kernel.resolved(access.address)):
            if not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult)):
                continue
            left, right = part.left, part.right
            if isinstance(left, ast.Name) and left.id in kernel.pids and isinstance(right, ast.Name):
                for size in [*kernel.lengths, *kernel.constexprs][:3]:
                    yield Mend(
                        Family.INDEX, 27, part.lineno, (kernel.replaced(part, f"{kernel.source.of(part)} * {size}"),),
                        f"In line {part.lineno} `{kernel.source.of(part)}` is not the offset of {left.id}: it is too short by a "
                        "factor.",
                        f"one step of {left.id} is {size} times as long", None, kernel.name,
                    )  # fmt: skip


def stays_in_place(draft: Draft, kernel: KernelText) -> Iterator[Mend]:
    """tl.arange that starts anywhere but at 0; an id that is multiplied by a wrong number."""
    for call in calls(kernel.nodes, "tl.arange"):
        if call.args and kernel.source.of(call.args[0]) not in ("0",):
            yield Mend(
                Family.INDEX, 6, call.lineno, (kernel.replaced(call.args[0], "0"),),
                f"Line {call.lineno}: `{kernel.source.of(call)}` does not start at 0.", "a tile starts at 0", None, kernel.name,
            )  # fmt: skip


RULES = (
    head_left_out, next_tile, own_length,
    program_left_out, other_axis, one_place_off, row_left_out, stride_left_out, other_stride, other_size,
    quotient_and_rest, turned_tile, other_pointer, base_moved, stays_in_place,
)  # fmt: skip
