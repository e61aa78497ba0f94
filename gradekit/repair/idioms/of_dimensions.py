"""Mends of host code that counts the wrong way: axes of a grid that no program asks for or that count another tile, and
one dimension, or a sum, where all elements count."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft, LaunchCall
from gradekit.source.expressions import calls, target_of
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import Edit, called


def behind_conversion(kernel: KernelDraft, node: ast.AST) -> ast.AST:
    """What a node is a part of, but for a conversion of it to another dtype."""
    parent = kernel.parents[node]
    is_converted = isinstance(parent, ast.Attribute) and parent.attr == "to"
    return kernel.parents[kernel.parents[parent]] if is_converted else parent


def axis_not_asked_for(draft: Draft) -> Iterator[Mend]:
    """A grid with an axis whose number no program asks for: all along it do the same."""
    for launch in draft.launches:
        grid, kernel = draft.grid_of(launch), launch.kernel
        asked = {kernel.source.of(c.args[0]) for c in calls(kernel.nodes, "tl.program_id") if c.args}
        for axis, element in enumerate(grid.elts if isinstance(grid, ast.Tuple) and asked else []):
            for index in _of_one_tile(draft, launch, element) if str(axis) not in asked else ():
                block = kernel.source.of(index.args[-1])
                new = f"(tl.program_id({axis}) * {block} + {kernel.source.of(index)})"
                yield Mend(
                    Family.INDEX, 2, index.lineno, (kernel.replaced(index, new),),
                    f"{kernel.name} never asks for tl.program_id({axis}), and the grid in line {element.lineno} has "
                    f"`{draft.source.of(element)}` programs along that axis: all of them do the same.",
                    f"let the indices in line {index.lineno} begin at tl.program_id({axis}) * {block}", None,
                    kernel.name,
                )  # fmt: skip


def _of_one_tile(draft: Draft, launch: LaunchCall, element: ast.expr) -> list[ast.Call]:
    """The tl.arange of a kernel outside of loops, of tiles that an element of a grid counts, and that begin at 0."""
    kernel = launch.kernel
    ranges = [call for call in calls(kernel.nodes, "tl.arange") if len(call.args) == 2]
    steady = [call for call in ranges if kernel.in_loop(call) is None]
    alone = [call for call in steady if "tl.program_id" not in kernel.calls_behind(_whole(kernel, call))]
    return [call for call in alone if _counts(draft, launch, element, kernel.source.of(call.args[1]))]


def _whole(kernel: KernelDraft, node: ast.expr) -> ast.expr:
    """The expression of which a node is a part."""
    while isinstance(parent := kernel.parents.get(node), ast.expr):
        node = parent
    return node


def _counts(draft: Draft, launch: LaunchCall, element: ast.expr, block: str) -> bool:
    """Whether a number of programs is one of tiles as long as a parameter says."""
    return any(
        draft.source.of(part) in _passed(draft, launch, block)
        for part in ast.walk(element)
        if isinstance(part, ast.expr)
    )


def _passed(draft: Draft, launch: LaunchCall, block: str) -> list[str]:
    """How host code writes the width that a parameter says."""
    given = launch.given.get(block)
    return [f'meta["{block}"]', f"meta['{block}']", *([draft.source.of(given)] if given is not None else [])]


def other_tiles_on_an_axis(draft: Draft) -> Iterator[Mend]:
    """A grid that counts tiles of another width along an axis than what the kernel multiplies that axis's number by."""
    for launch in draft.launches:
        grid, name = draft.grid_of(launch), launch.kernel.name
        edits: list[Edit] = []
        said: list[str] = []
        for axis, element in enumerate(grid.elts if isinstance(grid, ast.Tuple) else []):
            block, counted = _multiplied_by(launch.kernel, axis), _divisor(element)
            is_known = block in launch.given or isinstance(counted, ast.Subscript)
            if is_known and counted is not None and not _counts(draft, launch, counted, block):
                edits.append(draft.source.replaced(counted, _passed(draft, launch, block)[-1]))
                says = f"divides by {draft.source.of(counted)} along axis {axis}"
                said.append(f"{says}, and {name} multiplies tl.program_id({axis}) by {block}")
        if edits:
            yield Mend(
                Family.GRID, 2, grid.lineno, tuple(edits),
                f"The grid in line {grid.lineno} {'; it '.join(said)}.",
                "divide the length along each axis by the tile that the kernel has there", None,
            )  # fmt: skip


def _divisor(element: ast.expr) -> ast.expr | None:
    """The second argument of triton.cdiv."""
    is_cdiv = isinstance(element, ast.Call) and called(element) == "triton.cdiv" and len(element.args) == 2
    return element.args[1] if is_cdiv and isinstance(element, ast.Call) else None


def _multiplied_by(kernel: KernelDraft, axis: int) -> str:
    """The width by which a kernel multiplies its number along an axis; "" where that is not one name."""
    own = f"tl.program_id({axis})"
    names = {n for n, values in kernel.values.items() if [kernel.source.of(v) for v in values] == [own]} | {own}
    products = [n for n in kernel.nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)]
    pairs = [(kernel.source.of(n.left), kernel.source.of(n.right)) for n in products]
    by = {two for one, two in [*pairs, *(pair[::-1] for pair in pairs)] if _plain(one) in names}
    return by.pop() if len(by) == 1 and by <= set(kernel.constexprs) else ""


def _plain(text: str) -> str:
    """A text without the conversion at its end, and how tl.program_id is written otherwise."""
    return re.sub(r"\.to\(tl\.\w+\)$", "", text).replace("axis=", "")


def count_of_all(draft: Draft) -> Iterator[Mend]:
    """The size of one dimension that host code keeps as a number of elements, and a sum of sizes for their product."""
    shapes = {target_of(n): draft.source.of(n.value) for n in draft.host_nodes if isinstance(n, ast.Assign)}
    for node in draft.host_nodes:
        value = node.value if isinstance(node, ast.Assign) and target_of(node) else None
        found = re.fullmatch(r"len\((\w+)\)|(\w+)\.(?:shape\[-?\d\]|size\(-?\d\))|(\w+)\[-?\d\]", _text(draft, value))
        if found and value is not None:
            tensor = found[1] or found[2] or shapes.get(found[3], "").removesuffix(".shape")
            if tensor.isidentifier() and tensor != found[3]:
                rank = 28 if _is_one_of_several(draft, target_of(node)) else 9
                yield Mend(
                    Family.GRID, rank, value.lineno, (draft.source.replaced(value, f"{tensor}.numel()"),),
                    f"Line {value.lineno} takes `{found[0]}`, the size of one dimension, for the number of elements.",
                    f"all elements are {tensor}.numel()", None,
                )  # fmt: skip
    divided = [n.left for n in draft.host_nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.FloorDiv)]
    rounding = {part for one in divided for part in ast.walk(one)}  # (n + BLOCK - 1) // BLOCK is meant as it is
    for node in (one for one in draft.host_nodes if one not in rounding):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _are_numbers(draft, node):
            yield Mend(
                Family.GRID, 8, node.lineno,
                (draft.source.between_replaced(node.left, node.right, "+", "*"),),
                f"Line {node.lineno} adds two numbers, `{draft.source.of(node)}`, where their product is wanted.",
                "for each of the one there are all of the other: multiply", None,
            )  # fmt: skip


def _is_one_of_several(draft: Draft, name: str) -> bool:
    """Whether launches pass a size by this name, to kernels of several lengths alone."""
    given = [n for n in draft.launches for v in n.given.values() if isinstance(v, ast.Name) and v.id == name]
    return bool(given) and all(len(launch.kernel.lengths) > 1 for launch in given)


def _text(draft: Draft, node: ast.expr | None) -> str:
    return draft.source.of(node) if node is not None else ""


def _are_numbers(draft: Draft, node: ast.BinOp) -> bool:
    """Whether both sides are sizes, or computed of sizes; a constant is none here."""
    sides = (node.left, node.right)
    return all(isinstance(side, (ast.Name, ast.Call)) and draft.is_number(side) for side in sides)


def _is_whole_row(launch: LaunchCall, param: str) -> bool:
    """Whether a tile of this width begins at 0 in every program, and no loop goes along a row in steps of it: one
    tile for the whole row would only make such a loop, and with it any mistake in it, run once."""
    kernel = launch.kernel
    loops = [n for n in kernel.nodes if isinstance(n, (ast.For, ast.While))]
    if any(name.id == param for loop in loops for name in ast.walk(loop) if isinstance(name, ast.Name)):
        return False
    ranges = [c for c in calls(kernel.nodes, "tl.arange") if c.args and kernel.source.of(c.args[-1]) == param]
    sums = [behind_conversion(kernel, c) for c in ranges]
    return bool(ranges) and not any(isinstance(s, ast.BinOp) and isinstance(s.op, ast.Add) for s in sums)


def block_covers(draft: Draft) -> Iterator[Mend]:
    """A tile of a fixed width where a row may be longer."""
    for launch in draft.launches:
        for param, value in launch.given.items():
            if param not in launch.kernel.constexprs or not _is_whole_row(launch, param):
                continue
            value = _assigned_number(draft, value)
            fixed = isinstance(value, ast.Constant) and isinstance(value.value, int)
            named = isinstance(value, ast.Name) and value.id.isupper()
            for size in [draft.source.of(v) for p, v in launch.given.items() if p in launch.kernel.sizes][:3]:
                if fixed or named:
                    yield Mend(
                        Family.GRID, 16, value.lineno,
                        (draft.source.replaced(value, f"triton.next_power_of_2({size})"),),
                        f"The tile of {draft.source.of(value)} lanes in line {value.lineno} is too narrow for a "
                        "longer row: what "
                        "lies beyond it is left out.",
                        f"let {param} cover the whole row, with triton.next_power_of_2, or walk along it in a loop",
                    )  # fmt: skip


def _assigned_number(draft: Draft, value: ast.expr) -> ast.expr:
    """128 where a name stands for what is assigned once, in `BLOCK = 128`; any other expression as it is."""
    around = [f for f in draft.source.host if f.lineno <= value.lineno <= (f.end_lineno or 0)]
    named = ast.walk(around[-1]) if around and isinstance(value, ast.Name) else ()
    made = [n for n in named if target_of(n) == draft.source.of(value)]
    number = made[0].value if len(made) == 1 and isinstance(made[0], ast.Assign) else None
    return number if isinstance(number, ast.Constant) else value


HOST_RULES = (axis_not_asked_for, other_tiles_on_an_axis, count_of_all, block_covers)
