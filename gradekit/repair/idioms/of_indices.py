"""Mends of indices: which program, and which step of a loop, works on which elements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, factors, is_call, target_of, terms, value_of
from gradekit.source.kernel import KernelDraft, PointerAccess


def program_left_out(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Offsets without the program's id, or with the id alone where it should be times the block."""
    for call in calls(kernel.nodes, "tl.arange"):
        statement, sum_ = kernel.statement(call), _sum_around(kernel, call)
        text, block = kernel.source.of(call), kernel.source.of(call.args[-1])
        behind = kernel.calls_behind(statement.value) if isinstance(statement, ast.Assign) else set()
        if "tl.program_id" not in behind and kernel.in_loop(call) is None:
            idle = not kernel.pids or any(kernel.uses.get(pid, 0) == 0 for pid in kernel.pids)
            for number, pid in enumerate(program_ids(kernel)[:3]):
                yield Mend(
                    Family.INDEX, (5 if idle else 26) + number, call.lineno,
                    (kernel.replaced(call, f"({pid} * {block} + {text})"),),
                    f"The offsets in line {call.lineno} are the same in every program: tl.program_id takes no part "
                    "in them.",
                    f"program i begins at i * {block}", None, kernel.name,
                )  # fmt: skip
        for part in terms(sum_):
            if part is not call and is_program_id(kernel, part):
                yield Mend(
                    Family.INDEX, 4, part.lineno, (kernel.replaced(part, f"{kernel.source.operand(part)} * {block}"),),
                    f"The programs begin one element apart: in line {part.lineno} the program id is not multiplied "
                    f"by {block}.",
                    f"program i begins at i * {block}", None, kernel.name,
                )  # fmt: skip
            elif isinstance(part, ast.BinOp) and part is not call:
                yield from _other_block(kernel, part, block)


def program_times_a_size(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """`start = pid * n`, to which a range of one block is added: a program begins at its own block."""
    ranges = dict.fromkeys(kernel.source.of(c.args[-1]) for c in calls(kernel.nodes, "tl.arange") if c.args)
    for statement in kernel.statements:
        value = value_of(statement)
        if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and is_program_id(kernel, value.left)):
            continue
        size = value.right.id if isinstance(value.right, ast.Name) else ""
        for block in [name for name in ranges if name in kernel.constexprs] if size in kernel.lengths else []:
            yield Mend(
                Family.INDEX, 5, value.lineno, (kernel.replaced(value.right, block),),
                f"Line {value.lineno} lets program i begin at i * {size}, where a program has {block} elements.",
                f"program i begins at i * {block}", None, kernel.name,
            )  # fmt: skip


def tile_of_the_first(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """`ptr + tl.arange(0, BLOCK)` where the other addresses have an index with the same range and the program's id."""
    for access in kernel.accesses:
        for call in calls(list(ast.walk(kernel.resolved(access.address))), "tl.arange"):
            for name in kernel.indices:
                made = [c for value in kernel.values[name] for c in calls(list(ast.walk(value)), "tl.arange")]
                same = kernel.source.of(call) in map(kernel.source.of, made)
                if same and "tl.program_id" in kernel.calls_behind(kernel.values[name][0]):
                    yield Mend(
                        Family.INDEX, 3, call.lineno, (kernel.replaced(call, name),),
                        f"Line {call.lineno} goes through {access.pointer or 'the pointer'} by "
                        f"`{kernel.source.of(call)}`, which is the same in every program: each takes the first tile.",
                        f"use the offsets that the other addresses have, {name}", None, kernel.name,
                    )  # fmt: skip


def _sum_around(kernel: KernelDraft, node: ast.expr) -> ast.expr:
    parent = kernel.parents[node]
    while isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub)):
        node, parent = parent, kernel.parents[parent]
    return node


def program_ids(kernel: KernelDraft) -> list[str]:
    """The names that hold a program id alone; without any, the calls that give one."""
    plain = [n for n in kernel.pids if all(isinstance(v, ast.Call) for v in kernel.values[n])]
    return plain or ["tl.program_id(0)", "tl.program_id(1)"]


def is_program_id(kernel: KernelDraft, node: ast.expr) -> bool:
    """Whether the expression is a program id: the call, or a name that holds its result."""
    if is_call(node, "tl.program_id"):
        return True
    return isinstance(node, ast.Name) and any(is_call(v, "tl.program_id") for v in kernel.values.get(node.id, ()))


def _other_block(kernel: KernelDraft, part: ast.BinOp, block: str) -> Iterator[Mend]:
    """`pid_m * BLOCK_N + tl.arange(0, BLOCK_M)`."""
    for factor in factors(part):
        if isinstance(factor, ast.Name) and factor.id in kernel.constexprs and factor.id != block:
            yield Mend(
                Family.INDEX, 3, factor.lineno, (kernel.replaced(factor, block),),
                f"Line {factor.lineno} multiplies by {factor.id} where the tile is {block} long: tiles overlap, or "
                "leave gaps.",
                f"the tile that begins there is {block} long", None, kernel.name,
            )  # fmt: skip


def other_axis(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """tl.program_id of another axis; two axes in each other's place."""
    found = [c for c in calls(kernel.nodes, "tl.program_id") if c.args and isinstance(c.args[0], ast.Constant)]
    by_axis = {kernel.source.of(c.args[0]): c for c in found}
    if len(by_axis) == 2:
        first, (one, other) = found[0], by_axis
        edits = tuple(kernel.replaced(c.args[0], other if kernel.source.of(c.args[0]) == one else one) for c in found)
        yield Mend(
            Family.INDEX, 9, first.lineno, edits,
            f"The axes of the grid are swapped: line {first.lineno} takes "
            f"tl.program_id({kernel.source.of(first.args[0])}).",
            "program_id(0) counts along the first number of the grid", None, kernel.name,
        )  # fmt: skip
    for call in found:
        axis = kernel.source.of(call.args[0])
        for new in {"0": ("1",), "1": ("0", "2"), "2": ("1", "0")}.get(axis, ()):
            yield Mend(
                Family.INDEX, 5 if _axes(draft, kernel) > len(by_axis) else 30, call.lineno,
                (kernel.replaced(call.args[0], new),),
                f"Line {call.lineno} asks for tl.program_id({axis}), which counts along another axis of the grid.",
                f"the axis that is meant there is {new}", None, kernel.name,
            )  # fmt: skip


def _axes(draft: Draft, kernel: KernelDraft) -> int:
    """How many axes the grid of a kernel's first launch has, as it is written."""
    grids = [draft.grid_of(launch) for launch in draft.launches_of(kernel)]
    return len(grids[0].elts) if grids and isinstance(grids[0], ast.Tuple) else 1


def one_place_off(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """An offset, a bound or a step that is one too large or too small."""
    for node in kernel.nodes:
        if isinstance(node, ast.BinOp) and _is_one_more(node) and not kernel.names(node) & set(kernel.pointers):
            sign = "+" if isinstance(node.op, ast.Add) else "-"
            yield Mend(
                Family.INDEX, 30 if _is_scaled(kernel, node) else 7, node.lineno,
                (kernel.replaced(node, kernel.source.operand(node.left)),),
                f"Line {node.lineno} is one off: `{kernel.source.of(node)}`, where the {sign} 1 does not belong.",
                f"leave out the {sign} 1", None, kernel.name,
            )  # fmt: skip


def loads_exchanged(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Two loads through one pointer in each other's place: begin and end, top and right."""
    loads = [access for access in kernel.accesses if access.is_load and access.pointer]
    for i, first in enumerate(loads):
        for second in loads[i + 1 : i + 4]:
            one, two = kernel.source.of(first.address), kernel.source.of(second.address)
            apart = kernel.in_loop(first.call) is not kernel.in_loop(second.call)
            if first.pointer != second.pointer or one == two or apart:
                continue
            yield Mend(
                Family.INDEX, 7 if _place(kernel, first) > _place(kernel, second) else 23, first.line,
                (kernel.replaced(first.address, two), kernel.replaced(second.address, one)),
                f"Lines {first.line} and {second.line} load {_names_of(kernel, first, second)} from each other's "
                "place: the two are exchanged.",
                "see in the handout which place has which value", None, kernel.name,
            )  # fmt: skip


def _place(kernel: KernelDraft, access: PointerAccess) -> tuple[int, int]:
    """How far from its pointer an address seems to lie, by its numbers: `ptr + row + 1` after `ptr + row`."""
    numbers = [n.value for n in ast.walk(access.address) if isinstance(n, ast.Constant) and isinstance(n.value, int)]
    return max(numbers, default=0), len(kernel.source.of(access.address))


def _names_of(kernel: KernelDraft, *accesses: PointerAccess) -> str:
    """ "`start` and `end`", what loads are assigned to; "values" where one has no name."""
    names = [target_of(kernel.statement(access.call)) for access in accesses]
    return " and ".join(f"`{name}`" for name in names) if all(names) else "values"


def two_places_off(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """`row + 2` where `row + 1` belongs."""
    for node in kernel.nodes:
        number = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) else None
        if not isinstance(node, ast.BinOp) or _is_address(kernel, node):
            continue
        if isinstance(number, ast.Constant) and number.value == 2:
            yield Mend(
                Family.INDEX, 9, node.lineno, (kernel.replaced(number, "1"),),
                f"Line {node.lineno} is one off: `{kernel.source.of(node)}`, where 1 belongs and not 2"
                f"{f', for `{name}`' if (name := target_of(kernel.statement(node))) else ''}.",
                "the next one stands one place on", None, kernel.name,
            )  # fmt: skip


def _is_address(kernel: KernelDraft, node: ast.expr) -> bool:
    return bool(kernel.names(node) & set(kernel.pointers))


def _is_scaled(kernel: KernelDraft, node: ast.BinOp) -> bool:
    """Whether it is the number of the next tile, `(pid + 1) * BLOCK`, or rounds up, `(n + BLOCK - 1) // BLOCK`."""
    parent = kernel.parents[node]
    product = isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Mult, ast.FloorDiv))
    return product and (isinstance(node.op, ast.Add) or isinstance(parent.op, ast.FloorDiv))  # type: ignore[attr-defined]


def next_tile(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A loop over the keys up to a query's tile that ends before that tile: min(S, pid * BLOCK)."""
    for call in calls(kernel.nodes, "min", "tl.minimum"):
        for part in call.args:
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) and is_program_id(kernel, part.left):
                left, right = kernel.source.of(part.left), kernel.source.of(part.right)
                yield Mend(
                    Family.LOOP, 6, part.lineno, (kernel.replaced(part, f"({left} + 1) * {right}"),),
                    f"The loop ends at `{kernel.source.of(part)}` (line {part.lineno}), where this program's own "
                    "tile begins: it is one "
                    "block too short.",
                    f"the tile ends at ({left} + 1) * {right}", None, kernel.name,
                )  # fmt: skip


def _is_one_more(node: ast.BinOp) -> bool:
    """Whether it is `a + 1` or `a - 1`."""
    return isinstance(node.op, (ast.Add, ast.Sub)) and isinstance(node.right, ast.Constant) and node.right.value == 1


def other_size(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A size in an address or a quotient that belongs to another dimension."""
    for node in kernel.nodes:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.FloorDiv, ast.Mod))):
            continue
        right = node.right
        if isinstance(right, ast.Name) and right.id in {*kernel.sizes, *kernel.pids} and _is_whole(kernel, node.left):
            others = [s for s in kernel.lengths if s != right.id] if right.id in kernel.sizes else []
            others += [n for n in kernel.values if right.id in kernel.pids and _alike(n, right.id)]
            others.sort(key=lambda name: not _alike(name, right.id))  # n2 for n3 before all others
            alike = sum(
                isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) and kernel.source.of(n.right) == right.id
                for n in kernel.nodes
            )
            near = bool(others) and _alike(others[0], right.id)
            rank = 9 if isinstance(node.op, ast.Mod) and alike > 1 else 13 if near else 20
            for size in others[:3]:
                yield Mend(
                    Family.INDEX, rank, node.lineno, (kernel.replaced(right, size),),
                    f"Line {node.lineno}: `{kernel.source.of(node)}` counts in {right.id}, which is the size of "
                    "another dimension.",
                    f"count in {size}", None, kernel.name,
                )  # fmt: skip


def _is_whole(kernel: KernelDraft, node: ast.expr) -> bool:
    return bool(kernel.names(node) & {*kernel.pids, *kernel.indices}) or is_call(node, "tl.program_id")


def _alike(name: str, other: str) -> bool:
    return name != other and len(name) == len(other) and sum(a != b for a, b in zip(name, other, strict=True)) == 1


def quotient_and_rest(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
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


def last_group(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A grouped order in which every group is as high as the first."""
    counts = [name for name, values in kernel.values.items() if any(is_call(v, "tl.cdiv") for v in values)]
    for statement in kernel.statements:
        value = value_of(statement)
        if not (isinstance(value, ast.Name) and value.id in kernel.constexprs and target_of(statement)):
            continue
        firsts = [name for name, values in kernel.values.items() if any(_is_product_with(v, value.id) for v in values)]
        for first, count in [(first, count) for first in firsts for count in counts]:
            if first not in counts and "tl.program_id" in kernel.calls_behind(kernel.values[first][0]):
                yield Mend(
                    Family.INDEX, 6, value.lineno, (kernel.replaced(value, f"min({count} - {first}, {value.id})"),),
                    f"Line {value.lineno} makes every group {value.id} tiles high: the last one may be lower, and then "
                    "some tiles are computed twice and others never.",
                    f"a group has at most what is left: the smaller of {value.id} and {count} - {first}", None,
                    kernel.name,
                )  # fmt: skip


def _is_product_with(value: ast.expr, name: str) -> bool:
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and any(
        isinstance(factor, ast.Name) and factor.id == name for factor in factors(value)
    )  # fmt: skip


def stays_in_place(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """tl.arange that starts anywhere but at 0; an id that is multiplied by a wrong number."""
    for call in calls(kernel.nodes, "tl.arange"):
        if call.args and kernel.source.of(call.args[0]) not in ("0",):
            yield Mend(
                Family.INDEX, 6, call.lineno, (kernel.replaced(call.args[0], "0"),),
                f"Line {call.lineno}: `{kernel.source.of(call)}` does not start at 0.", "a tile starts at 0", None,
                kernel.name,
            )  # fmt: skip


def elements_side_by_side(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Several elements of an item that lie side by side, where the next item begins one element behind the last."""
    for pointer in dict.fromkeys(access.pointer for access in kernel.accesses if access.pointer):
        places = [terms(access.address) for access in kernel.accesses if access.pointer == pointer]
        numbers = {getattr(part, "value", None) for parts in places for part in parts}
        count = 1 + max((n for n in numbers if isinstance(n, int)), default=0)
        if count < 2 or not set(range(1, count)) <= numbers:
            continue
        for value in _advances(kernel, pointer):
            if count not in {getattr(part, "value", None) for part in ast.walk(value)} and _index_names(kernel, value):
                line = value.lineno
                yield Mend(
                    Family.INDEX, 3, line, (kernel.replaced(value, f"({kernel.source.of(value)}) * {count}"),),
                    f"Line {line} puts one item 1 element behind the other, and each item has {count} elements of "
                    f"{pointer} side by side.",
                    f"the next item begins {count} elements further on", None, kernel.name,
                )  # fmt: skip


def _advances(kernel: KernelDraft, pointer: str) -> Iterator[ast.expr]:
    """What is added to a pointer itself; strides say there how far apart items are."""
    for statement in kernel.statements:
        is_sum = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add)
        value = value_of(statement) if is_sum and target_of(statement) == pointer else None
        if value is not None and not kernel.names(value) & set(kernel.strides):
            yield value


def _index_names(kernel: KernelDraft, value: ast.expr) -> set[str]:
    return kernel.names(value) & {*kernel.indices, *kernel.pids}


RULES = (
    elements_side_by_side,
    program_left_out, program_times_a_size,
    tile_of_the_first, other_axis, one_place_off, next_tile, other_size, quotient_and_rest,
    stays_in_place, loads_exchanged, two_places_off, last_group,
)  # fmt: skip
