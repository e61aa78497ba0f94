"""Mends of addresses: strides, rows and heads, and the tensor that is gone through."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradekit.causes import Cause
from gradekit.repair.idioms.of_indices import program_ids
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import target_of, terms
from gradekit.source.kernel import KernelDraft, PointerAccess
from gradekit.submission.parsed_source import Edit


def row_left_out(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """An address in which the program's row (or head, or batch) takes no part."""
    for access in kernel.accesses:
        if not access.pointer or _knows_program(kernel, access):
            continue
        base = _pointer_name(kernel, access)
        if base is None:
            continue
        for number, (pid, step) in enumerate(_row_steps(kernel, access)):
            verb = "loads" if access.is_load else "stores"
            idle = any(kernel.uses.get(name, 0) == 0 for name in (pid, step) if name != "1")
            rank = 8 if idle or access.pointer in kernel.stored else 23
            yield Mend(
                Family.INDEX, rank + number, base.lineno, (kernel.replaced(base, f"{base.id} + {pid} * {step}"),),
                f"The address in line {base.lineno} leaves `{pid}` out: every program {verb} the same row of "
                f"{access.pointer}.",
                f"add {pid} times the step from one row to the next to the address", None, kernel.name,
            )  # fmt: skip


def _knows_program(kernel: KernelDraft, access: PointerAccess) -> bool:
    unmasked = kernel.calls_behind(access.address)
    added = [n for n in kernel.statements if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
             and n.target.id in kernel.origins(access.address)]  # fmt: skip
    return "tl.program_id" in unmasked or any("tl.program_id" in kernel.calls_behind(n.value) for n in added)


def _pointer_name(kernel: KernelDraft, access: PointerAccess) -> ast.Name | None:
    names = [n for n in ast.walk(kernel.resolved(access.address)) if isinstance(n, ast.Name)]
    return next((n for n in names if n.id == access.pointer), None)


def _row_steps(kernel: KernelDraft, access: PointerAccess) -> Iterator[tuple[str, str]]:
    pids = program_ids(kernel)[:2]
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


def head_left_out(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """An address without the head (or the row) that the other addresses of its kernel have."""
    for pid in kernel.pids:
        having = [a for a in kernel.accesses if pid in kernel.origins(a.address)]
        lacking = [a for a in kernel.accesses if pid not in kernel.origins(a.address)]
        if len(having) < len(lacking) or kernel.calls_behind(kernel.values[pid][0]) - {"tl.program_id"}:
            continue
        for access in lacking:
            base = _pointer_name(kernel, access)
            if base is None:
                continue
            unused = [s for s in kernel.strides if kernel.uses.get(s, 0) == 0]
            for number, step in enumerate([*unused, *_like_others(kernel, pid, having)][:4]):
                likely = access.pointer in kernel.stored or step in unused
                yield Mend(
                    Family.INDEX, (4 if likely else 24) + number, base.lineno,
                    (kernel.replaced(base, f"{access.pointer} + {pid} * {step}"),),
                    f"The address in line {base.lineno} leaves `{pid}` out, which the others have: every program "
                    "takes the same part of "
                    f"{access.pointer}.",
                    f"add {pid} times its stride to the address", None, kernel.name,
                )  # fmt: skip


def _like_others(kernel: KernelDraft, pid: str, having: list[PointerAccess]) -> list[str]:
    """What the id is multiplied by in other addresses."""
    found = []
    for access in having:
        for node in ast.walk(kernel.resolved(access.address)):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and kernel.source.of(node.left) == pid:
                found.append(kernel.source.of(node.right))
    return list(dict.fromkeys(found))


def numbers_without_stride(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Numbers in the addresses of a tensor that no stride multiplies, though nothing uses a parameter for it: all of
    them at once."""
    for stride in (s for s in kernel.strides if kernel.uses.get(s, 0) == 0):
        for pointer in dict.fromkeys(access.pointer for access in kernel.accesses):
            mine = [access for access in kernel.accesses if access.pointer == pointer]
            plain = [part for access in mine for part in terms(access.address) if isinstance(part, ast.Constant)]
            if plain:
                first, which = plain[0].lineno, " and ".join(kernel.source.of(part) for part in plain)
                edits = tuple(kernel.replaced(part, f"{kernel.source.of(part)} * {stride}") for part in plain)
                yield Mend(
                    Family.STRIDES, 4, first, edits,
                    f"The kernel takes {stride} and does not use it: from line {first} on, {which} in the addresses "
                    f"of {pointer} are not multiplied by a stride.",
                    f"multiply the numbers in these addresses by the stride, {stride}", Cause.IGNORES_STRIDES,
                    kernel.name,
                )  # fmt: skip


def other_stride(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
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
            if access.pointer in kernel.stored and not _has_own_stride(kernel, access):
                for size in kernel.lengths[:3]:
                    yield Mend(
                        Family.STRIDES, 7, first.lineno, (kernel.replaced(first, size),),
                        f"Line {first.lineno} stores to {access.pointer} with {first.id}, the stride of another "
                        "tensor.",
                        f"the rows of a contiguous result are {size} apart; or pass its own strides", None,
                        kernel.name,
                    )  # fmt: skip
            for rank, stride in _candidates(kernel, access, first.id):
                yield Mend(
                    Family.STRIDES, rank, first.lineno, (kernel.replaced(first, stride),),
                    f"Line {first.lineno} multiplies by {first.id}, which is not the stride of that dimension of "
                    f"{access.pointer}.",
                    f"use {stride} there", None, kernel.name,
                )  # fmt: skip


def _has_own_stride(kernel: KernelDraft, access: PointerAccess) -> bool:
    stem = _stem(access.pointer)
    return any(re.match(rf"s(tride)?_?{stem[:1]}", name) or name.startswith(f"{stem}_") for name in kernel.strides)


def _in_order(kernel: KernelDraft, first: ast.Name, second: ast.Name) -> bool:
    """Whether two strides stand with their indices as usual: rows with the one that
    comes first among the parameters."""
    places = [(kernel.all_params.index(n.id), _role(kernel, n)) for n in (first, second)]
    return sorted(places) == sorted(places, key=lambda place: place[1]) or places[0][1] == places[1][1]


def _role(kernel: KernelDraft, stride: ast.Name) -> int:
    """0 for a program's id or a row, 1 for a row of a tile, 2 for a column."""
    parent = kernel.parents[stride]
    text = kernel.source.of(parent).replace(" ", "") if isinstance(parent, ast.BinOp) else ""
    if "[None,:]" in text:
        return 2
    if "[:,None]" in text:
        return 1
    return 2 if kernel.names(parent) & set(kernel.indices) else 0


def _candidates(kernel: KernelDraft, access: PointerAccess, now: str) -> Iterator[tuple[int, str]]:
    stem = _stem(access.pointer)
    text = ast.unparse(kernel.resolved(access.address))
    for stride in kernel.strides:
        if stride != now:
            others = {_stem(p)[:1] for p in kernel.pointers} - {stem[:1]}
            foreign = bool(stem) and stem[0] in stride and stem[0] not in now and any(o in now for o in others if o)
            likely = kernel.uses.get(stride, 0) == 0 or foreign
            yield (6 if likely else 34 if re.search(rf"\b{stride}\b", text) else 28), stride


def strides_of_another(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """An address with the strides of another tensor, where the kernel takes as many that nothing uses."""
    unused = [s for s in kernel.strides if kernel.uses.get(s, 0) == 0]
    for statement, pointer, address in _addresses(kernel) if len(unused) > 1 else ():
        found = [n for n in ast.walk(address) if isinstance(n, ast.Name) and n.id in kernel.strides]
        now = sorted({n.id for n in found}, key=kernel.all_params.index)
        if len(now) == len(unused) and len(found) == len(now):
            own = dict(zip(now, unused, strict=True))
            yield Mend(
                Family.STRIDES, 3, statement.lineno, tuple(kernel.replaced(n, own[n.id]) for n in found),
                f"Line {statement.lineno} goes through {pointer} with {' and '.join(now)}, the strides of another "
                f"tensor, and nothing uses {' and '.join(unused)}.",
                f"the strides of {pointer} belong there", Cause.IGNORES_STRIDES, kernel.name,
            )  # fmt: skip


def _addresses(kernel: KernelDraft) -> Iterator[tuple[ast.stmt | ast.expr, str, ast.expr]]:
    """Where each is computed, the pointer, and the address: of accesses, and what is added to a pointer itself."""
    for access in kernel.accesses:
        if access.pointer:
            address = kernel.resolved(access.address)
            yield address, access.pointer, address
    for statement in kernel.statements:
        if isinstance(statement, ast.AugAssign) and target_of(statement) in kernel.pointers:
            yield statement, target_of(statement), statement.value


def strides_of_its_own(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """An address that counts in sizes, or in single elements, where the kernel takes strides that nothing uses."""
    unused = [s for s in kernel.strides if kernel.uses.get(s, 0) == 0]
    for statement, pointer, address in _addresses(kernel) if unused else ():
        parts = [p for p in terms(address) if kernel.names(p) & {*kernel.values} and not _strides_in(kernel, p)]
        mine = [s for s in unused if _stem(pointer)[:1] in s] or unused
        for own in (mine, unused) if mine != unused else (unused,):
            if len(own) == len(parts) and all(map(_index_in, parts)):
                edits = tuple(
                    kernel.replaced(part, f"{kernel.source.operand(_index_in(part))} * {stride}")  # type: ignore[arg-type]
                    for part, stride in zip(parts, own, strict=True)
                )
                yield Mend(
                    Family.STRIDES, 4, statement.lineno, edits,
                    f"Line {statement.lineno} goes through {pointer} as if it were contiguous, and nothing uses "
                    f"{' and '.join(own)}.",
                    "multiply each index by the stride of its dimension", Cause.IGNORES_STRIDES, kernel.name,
                )  # fmt: skip


def _strides_in(kernel: KernelDraft, node: ast.expr) -> set[str]:
    return kernel.names(node) & set(kernel.strides)


def _index_in(part: ast.expr) -> ast.expr | None:
    """`k[:, None]` in `k[:, None] * N`, or the whole term where nothing multiplies it."""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) and isinstance(part.right, ast.Name):
        return part.left
    return part


def program_not_added(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """`ptr += n * stride` without the program's id, where there is a stride for it that nothing uses."""
    unused = [s for s in kernel.strides if kernel.uses.get(s, 0) == 0]
    for statement in kernel.statements:
        pointer = target_of(statement)
        if not isinstance(statement, ast.AugAssign) or pointer not in kernel.pointers:
            continue
        for pid in kernel.pids if "tl.program_id" not in kernel.calls_behind(statement.value) else ():
            for stride in unused[:2]:
                yield Mend(
                    Family.INDEX, 4, statement.lineno,
                    (kernel.replaced(statement.value, f"{kernel.source.of(statement.value)} + {pid} * {stride}"),),
                    f"Line {statement.lineno} leaves `{pid}` out of the address: every program takes the same part of "
                    f"{pointer}.",
                    f"add {pid} times its stride, {stride}", None, kernel.name,
                )  # fmt: skip


def step_of_the_other(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """`rows + cols * M` where `rows * N + cols` belongs: the steps of rows and columns are in each other's place."""
    for access in kernel.accesses:
        parts = terms(kernel.resolved(access.address))
        bare = [p for p in parts if kernel.names(p) & set(kernel.indices) and not isinstance(p, ast.BinOp)]
        stepped = [p for p in parts if isinstance(p, ast.BinOp) and isinstance(p.op, ast.Mult)]
        for one, product in [(one, product) for one in bare for product in stepped]:
            index, step = product.left, product.right
            if not (isinstance(step, ast.Name) and step.id in kernel.lengths and kernel.rank_of(access.address) == 2):
                continue
            for size in [s for s in kernel.lengths if s != step.id]:
                edits = (
                    kernel.replaced(one, f"{kernel.source.operand(one)} * {size}"),
                    kernel.replaced(product, kernel.source.of(index)),
                )
                yield _turned(kernel, access, edits, 8)


def _turned(kernel: KernelDraft, access: PointerAccess, edits: tuple[Edit, ...], rank: int) -> Mend:
    verb, line = "loads" if access.is_load else "stores", kernel.resolved(access.address).lineno
    return Mend(
        Family.INDEX, rank, line, edits,
        f"Line {line} {verb} the tile transposed: its rows and columns are swapped in the address.",
        "a tile of [rows, columns] takes rows[:, None] and columns[None, :]", None, kernel.name,
    )  # fmt: skip


def other_pointer(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A load or a store through the pointer of another tensor."""
    unused = [
        p for p in kernel.params if kernel.uses.get(p, 0) == 0 and p not in kernel.strides and p not in kernel.sizes
    ]
    unused += [p for p in kernel.sizes if kernel.uses.get(p, 0) == 0]
    numbers = {p for launch in draft.launches_of(kernel) for p in unused if draft.is_number(launch.given.get(p))}
    for access in kernel.accesses:
        name = next((n for n in ast.walk(access.address) if isinstance(n, ast.Name) and n.id == access.pointer), None)
        for pointer in (p for p in unused if p not in numbers):
            if name is None:
                break
            near = target_of(kernel.statement(access.call))[:1] == pointer[:1]
            yield Mend(
                Family.INDEX, 5 if near else 6, access.line, (kernel.replaced(name, pointer),),
                f"Line {access.line} goes through {access.pointer}, and nothing uses {pointer}.",
                f"use {pointer} there", None, kernel.name,
            )  # fmt: skip


RULES = (
    row_left_out,
    head_left_out,
    numbers_without_stride,
    other_stride,
    strides_of_another,
    strides_of_its_own,
    program_not_added,
    step_of_the_other,
    other_pointer,
)
