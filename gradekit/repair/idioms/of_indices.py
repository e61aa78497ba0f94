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


RULES = (elements_side_by_side, program_left_out, next_tile, quotient_and_rest, loads_exchanged, two_places_off)
