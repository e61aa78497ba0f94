"""Mends of host code: the grid, the arguments of a launch, and what is allocated."""

from __future__ import annotations

import ast
import difflib
import itertools
from collections.abc import Iterator

from gradekit.causes import Cause
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft, LaunchCall
from gradekit.source.expressions import calls, simple, target_of, value_of
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import Edit, called


def rounded_down(draft: Draft) -> Iterator[Mend]:
    """n // BLOCK programs."""
    for node in draft.host_nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and not _rounds_up(draft, node):
            text, left, right = (draft.source.of(n) for n in (node, node.left, node.right))
            rank = 3 if _is_in_a_grid(draft, node) else 24
            yield Mend(
                Family.GRID, rank, node.lineno, (draft.source.replaced(node, f"triton.cdiv({left}, {right})"),),
                f"Line {node.lineno} rounds `{text}` down: the last, partial block gets no program.",
                "round the number of programs up, with triton.cdiv", Cause.UNWRITTEN_OUTPUT,
            )  # fmt: skip


def all_rounded_down(draft: Draft) -> Iterator[Mend]:
    """A grid with several axes, each of which is rounded down: up must go all of them."""
    for grid in {id(g): g for g in map(draft.grid_of, draft.launches)}.values():
        elements = grid.elts if isinstance(grid, ast.Tuple) else []
        quotients = [e for e in elements if isinstance(e, ast.BinOp) and isinstance(e.op, ast.FloorDiv)]
        low = [quotient for quotient in quotients if not _rounds_up(draft, quotient)]
        if len(low) > 1:
            texts = [(draft.source.of(e), draft.source.of(e.left), draft.source.of(e.right)) for e in low]
            edits = tuple(
                draft.source.replaced(e, f"triton.cdiv({left}, {right})")
                for e, (_, left, right) in zip(low, texts, strict=True)
            )
            yield Mend(
                Family.GRID, 2, low[0].lineno, edits,
                f"Line {low[0].lineno} rounds {' and '.join(f'`{text}`' for text, _, _ in texts)} down: the last, "
                "partial blocks get no program.",
                "round the numbers of programs up, with triton.cdiv", Cause.UNWRITTEN_OUTPUT,
            )  # fmt: skip


def _is_in_a_grid(draft: Draft, node: ast.BinOp) -> bool:
    """Whether a grid is made of a quotient, or of a name that has it; also where no launch is seen."""
    grids = [part for launch in draft.launches for part in ast.walk(draft.grid_of(launch))]
    named = {part.id for part in grids if isinstance(part, ast.Name)}
    holding = [n for n in draft.host_nodes if isinstance(n, ast.Assign) and any(part is node for part in ast.walk(n))]
    return node in grids or not grids or any(target_of(statement) in named for statement in holding)


def _rounds_up(draft: Draft, node: ast.BinOp) -> bool:
    return "- 1" in draft.source.of(node.left)


def grid_size(draft: Draft) -> Iterator[Mend]:
    """A grid of too few programs, or with its axes in the wrong order."""
    for launch in draft.launches:
        grid = draft.grid_of(launch)
        if isinstance(grid, ast.Tuple):
            yield from _more_axes(draft, launch, grid)
            yield from _other_grids(draft, launch, grid)


def _more_axes(draft: Draft, launch: LaunchCall, grid: ast.Tuple) -> Iterator[Mend]:
    """A grid with fewer axes than its kernel asks for."""
    asked = {draft.source.of(c.args[0]) for c in calls(launch.kernel.nodes, "tl.program_id") if c.args}
    if not grid.elts or str(len(grid.elts)) not in asked:
        return
    sizes = [draft.source.of(v) for p, v in launch.given.items() if p in launch.kernel.lengths]
    blocks = [draft.source.of(v) for p, v in launch.given.items() if p in launch.kernel.constexprs]
    whole = ", ".join(map(draft.source.of, grid.elts))
    for size, block in [(size, block) for size in sizes[:3] for block in blocks[:2] if len(size) < 20]:
        yield Mend(
            Family.GRID, 3, grid.lineno, (draft.source.replaced(grid, f"({whole}, triton.cdiv({size}, {block}))"),),
            f"The grid in line {grid.lineno} has one axis less than the kernel asks for: "
            f"tl.program_id({len(grid.elts)}) is 0 in every program.",
            f"give the grid another axis: triton.cdiv({size}, {block})",
        )  # fmt: skip


def _other_grids(draft: Draft, launch: LaunchCall, grid: ast.Tuple) -> Iterator[Mend]:
    of, line = draft.source.of, grid.lineno
    for i, first in enumerate(grid.elts):
        for second in grid.elts[i + 1 :]:
            if of(first) != of(second):
                edits = (draft.source.replaced(first, of(second)), draft.source.replaced(second, of(first)))
                yield Mend(
                    Family.GRID, 13, line, edits,
                    f"The grid in line {line} has its axes in another order than the kernel's tl.program_id takes "
                    "them.",
                    "program_id(0) counts along the first number of the grid, program_id(1) along the second",
                )  # fmt: skip
    for element in grid.elts:
        for rank, new in _more_programs(draft, launch, element):
            yield Mend(
                Family.GRID, rank, line, (draft.source.replaced(element, new),),
                f"The grid in line {line} has the wrong number of programs: `{of(element)}`.",
                f"count what one program does, and how many of those there are: {new}",
            )  # fmt: skip


def _more_programs(draft: Draft, launch: LaunchCall, element: ast.expr) -> Iterator[tuple[int, str]]:
    of = draft.source.of
    sizes = [of(v) for p, v in launch.given.items() if p in launch.kernel.sizes and isinstance(v, (ast.Name, ast.Call))]
    sizes = [size for size in sizes if "eps" not in size and "scale" not in size]
    blocks = [
        of(v)
        for p, v in launch.given.items()
        if p in launch.kernel.constexprs and isinstance(v, (ast.Name, ast.Constant))
    ]
    now = of(element)
    if isinstance(element, ast.Constant):
        yield from ((6, f"triton.cdiv({size}, {block})") for size in sizes[:2] for block in blocks[:2])
    elif isinstance(element, ast.BinOp) and isinstance(element.right, ast.Constant):
        yield 7, of(element.left)
    elif called(element) == "triton.cdiv" and isinstance(element, ast.Call) and len(element.args) == 2:
        other, rank = [b for b in blocks if b != of(element.args[1])], 33 if of(element.args[1]) in blocks else 4
        yield from ((rank, f"triton.cdiv({of(element.args[0])}, {block})") for block in other[:2])
        if not any(_is_scaled(launch.kernel, call) for call in calls(launch.kernel.nodes, "tl.program_id")):
            yield 5, of(element.args[0])
        yield from (
            (33, f"triton.cdiv({size}, {of(element.args[1])})") for size in sizes if size != of(element.args[0])
        )
    elif isinstance(element, ast.Name):
        beside = [name for name in _unpacked_with(draft, now) if name != now]
        yield from ((14, f"{name} * {now}") for name in beside[:2])
        yield from ((13, size) for size in dict.fromkeys([*sizes, *beside]) if size != now)


def _is_scaled(kernel: KernelDraft, call: ast.Call) -> bool:
    """Whether a program's number is multiplied by how much one program does."""
    name = target_of(kernel.statement(call))
    names = [n for n in kernel.nodes if n is call or isinstance(n, ast.Name) and n.id == name]
    around = (kernel.parents[node] for node in names)
    products = [n for n in around if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Mult, ast.FloorDiv, ast.Mod))]
    return any(kernel.names(product) & set(kernel.constexprs) for product in products)


def _unpacked_with(draft: Draft, name: str) -> list[str]:
    """The names that get a tensor's sizes in one statement with this one."""
    for node in draft.host_nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = [draft.source.of(element) for element in node.targets[0].elts]
            names = [other for other in names if other.strip("_")]
            if name in names and "shape" in draft.source.of(node.value):
                return names
    return []


# --- arguments --------------------------------------------------------------------------------------------------------


def other_dimension(draft: Draft) -> Iterator[Mend]:
    """The stride or the size of another dimension, or of another tensor; a size where a stride belongs."""
    for node in draft.host_nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("stride", "size"):
            if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, int):
                yield from _renumbered(draft, node, node.args[0], node.func.attr)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and _is_shape(node.value):
            yield from _renumbered(draft, node, node.slice, "size")
    yield from _shapes_for_strides(draft)
    yield from _unpacked(draft)
    for launch in draft.launches:
        for param, value in launch.given.items():
            tensor = _first_of(draft, value)
            if tensor and launch.kernel.lengths == [param]:
                whole = f"{tensor}.numel()"
                yield Mend(
                    Family.GRID, 8, value.lineno, (draft.source.replaced(value, whole),),
                    f"Line {value.lineno} passes {draft.source.of(value)}, the size of one dimension, for the number "
                    "of elements.",
                    f"pass {whole}", None,
                )  # fmt: skip


def _first_of(draft: Draft, value: ast.expr) -> str:
    """The tensor of which an expression is the size of one dimension: x of x.shape[0] and of len(x)."""
    if isinstance(value, ast.Subscript) and _is_shape(value.value):
        return draft.source.of(value.value.value)  # type: ignore[attr-defined]
    return draft.source.of(value.args[0]) if isinstance(value, ast.Call) and called(value) == "len" else ""


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _renumbered(draft: Draft, node: ast.expr, number: ast.Constant, what: str) -> Iterator[Mend]:
    text = draft.source.of(node)
    rank = 9 if _is_repeated(draft, node) else 28
    last = (-1,) if what == "size" and number.value >= 0 and _counts_from_behind(draft) else ()  # type: ignore[operator]
    for new in (*last, *{0: (1,), 1: (0, 2), 2: (3, 1), 3: (2,)}.get(int(str(number.value)), ())):
        yield Mend(
            Family.STRIDES, rank, node.lineno, (draft.source.replaced(number, str(new)),),
            f"Line {node.lineno} takes `{text}`, the {what} of the wrong dimension.",
            f"the {what} that belongs there is that of dimension {new}",
        )  # fmt: skip


def _counts_from_behind(draft: Draft) -> bool:
    """Whether the last dimension is asked for somewhere as such: tensors have as many dimensions as they like."""
    return ".shape[-1]" in draft.source.text or ".size(-1)" in draft.source.text


def _is_repeated(draft: Draft, node: ast.expr) -> bool:
    """Whether a launch passes the same stride twice."""
    text = draft.source.of(node)
    return any([draft.source.of(a) for a in launch.call.args].count(text) > 1 for launch in draft.launches)


def _shapes_for_strides(draft: Draft) -> Iterator[Mend]:
    for launch in draft.launches:
        for param, value in launch.given.items():
            text = draft.source.of(value)
            if param not in launch.kernel.strides or "stride" in text or isinstance(value, ast.Starred):
                continue
            tensors = draft.tensors_of(launch, param)
            near = sorted(tensors, key=lambda t: -difflib.SequenceMatcher(None, param, t).ratio())[:2]
            for tensor in near:
                for dim in (0, 1):
                    yield Mend(
                        Family.STRIDES, 7, value.lineno, (draft.source.replaced(value, f"{tensor}.stride({dim})"),),
                        f"The launch passes {text} for {param} in line {value.lineno}: that is no stride of {tensor}.",
                        f"pass the stride of {tensor}, {tensor}.stride(...)", Cause.IGNORES_STRIDES,
                    )  # fmt: skip


def _unpacked(draft: Draft) -> Iterator[Mend]:
    """`N, M = x.shape`."""
    for node in draft.host_nodes:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Tuple)
            and "shape" in draft.source.of(node.value)
        ):
            elts = node.targets[0].elts
            for first, second in itertools.pairwise(elts):
                yield Mend(
                    Family.STRIDES, 26, node.lineno, draft.source.exchanged(first, second),
                    f"Line {node.lineno} takes the sizes in the wrong order: `{draft.source.of(node)}`.",
                    "see which dimension is which in the handout",
                )  # fmt: skip


# --- memory -----------------------------------------------------------------------------------------------------------

_EMPTY = ("torch.empty", "torch.empty_like")


def not_zeroed(draft: Draft) -> Iterator[Mend]:
    """Memory that is added to before anything is written to it."""
    for node in draft.host_nodes if any(map(_adds, draft.kernels)) else ():
        if isinstance(node, ast.Call) and called(node) in _EMPTY:
            name = called(node)
            new = draft.source.of(node).replace(name, name.replace("empty", "zeros"), 1)
            line = node.lineno
            says = f"Line {line} allocates with {name}, which holds no values yet, and a kernel adds to what is there."
            hint = f"start from zeros: {name.replace('empty', 'zeros')}"
            if (setter := _setting(draft, node)) is not None:
                line = draft.grid_of(setter).lineno
                says = f"{setter.kernel.name} sets what another kernel adds to, and leaves out a part of it."
                hint = f"how many elements does it set? Look at the grid in line {line}, and at the kernel's mask"
            edits = (draft.source.replaced(node, new),)
            yield Mend(Family.MEMORY, 5, line, edits, says, hint, Cause.UNINITIALIZED_READ)


def _setting(draft: Draft, made: ast.Call) -> LaunchCall | None:
    """The launch that is the first to store to what was allocated there, of a kernel that adds to nothing."""
    names = {target_of(node) for node in draft.host_nodes if value_of(node) is made} - {""}
    for launch in draft.launches:
        given = {p for p, value in launch.given.items() if isinstance(value, ast.Name) and value.id in names}
        if given & launch.kernel.stored:
            return launch if not _adds(launch.kernel) else None
    return None


def _adds(kernel: KernelDraft) -> bool:
    """Whether a kernel stores something where it also loads from, or adds by atomics."""
    loaded = {access.pointer for access in kernel.accesses if access.is_load}
    is_atomic = any(called(node).startswith("tl.atomic_") for node in kernel.nodes)
    return is_atomic or any(access.pointer in loaded for access in kernel.accesses if not access.is_load)


def result_strides(draft: Draft) -> Iterator[Mend]:
    """empty_like keeps the strides of its argument; the kernel stores row by row."""
    for node in draft.host_nodes:
        if isinstance(node, ast.Call) and called(node) in ("torch.empty_like", "torch.zeros_like") and node.args:
            end = draft.source.span(node)[1] - 1
            edit = Edit(end, end, ", memory_format=torch.contiguous_format", "contiguous")
            if "memory_format" not in draft.source.of(node):
                yield Mend(
                    Family.LAYOUT, 4, node.lineno, (edit,),
                    f"Line {node.lineno}: {called(node)} keeps the strides of {draft.source.of(node.args[0])}, and "
                    "the kernel "
                    "stores as if the result were contiguous.",
                    "allocate the result with torch.empty and its shape, or store with its strides",
                    Cause.IGNORES_STRIDES,
                )  # fmt: skip


def copied_first(draft: Draft) -> Iterator[Mend]:
    """Strides that no kernel uses: right once the tensor is copied, so that it is contiguous."""
    for function in draft.source.host:
        tensors = [a.arg for a in function.args.args if _is_tensor(draft, function, a.arg)]
        for name in tensors:
            yield from _copied(draft, function, [name], 12)
        if len(tensors) > 1:
            yield from _copied(draft, function, tensors, 13)


def _copied(draft: Draft, function: ast.FunctionDef, names: list[str], rank: int) -> Iterator[Mend]:
    statements = (s for s in function.body if simple(s) and not isinstance(getattr(s, "value", None), ast.Constant))
    first = next(statements, None)
    if first is None:
        return
    start, every = draft.source.span(first)[0], ", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1]
    loads = [(name, *_loaded_in(draft, name)) for name in names]
    name, line, where = next((found for found in loads if found[1]), ("it", None, ""))
    yield Mend(
        Family.LAYOUT, rank, line or function.lineno,
        (Edit(start, start, "".join(f"{name} = {name}.contiguous(); " for name in names), f"{every} copied"),),
        f"The kernel ignores the strides of {every}: right once copied by .contiguous()."
        f"{f' Line {line} reads {name} as if it were contiguous.' if line else ''}",
        f"pass the strides of {every} to the kernel{where}; where the assignment allows copies, .contiguous() will do",
        Cause.IGNORES_STRIDES,
    )  # fmt: skip


def _is_tensor(draft: Draft, function: ast.FunctionDef, name: str) -> bool:
    text = draft.source.of(function)
    given = [(launch, p) for launch in draft.launches for p, v in launch.given.items() if draft.source.of(v) == name]
    passed = any(param in launch.kernel.pointers for launch, param in given)
    return passed or any(
        f"{name}.{attribute}" in text for attribute in ("shape", "stride", "numel", "reshape", "dtype")
    )


def _loaded_in(draft: Draft, name: str) -> tuple[int | None, str]:
    """The first line in which a kernel loads what a launch passes by this name."""
    for launch in draft.launches:
        for param, value in launch.given.items():
            if draft.source.of(value) == name and param in launch.kernel.pointers:
                lines = [a.line for a in launch.kernel.accesses if a.pointer == param and a.is_load]
                if lines:
                    return lines[0], f" {launch.kernel.name}"
    return None, ""


RULES = (rounded_down, all_rounded_down, grid_size, other_dimension, not_zeroed, result_strides, copied_first)
