"""Mends of masks: one missing, one that leaves a dimension out or goes a step too far, other values behind it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from gradekit.causes import Cause
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, is_call, target_of
from gradekit.source.kernel import KernelDraft, PointerAccess
from gradekit.submission.parsed_source import Edit


def missing_mask(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A load or store of a tile without a mask: with one that bounds each of its indices."""
    for access in kernel.accesses:
        if access.mask is None:
            for number, mask in enumerate(_masks_for(kernel, access)):
                yield _masked(kernel, access, mask, 10 + 4 * number)
    bare = [(a, m) for a in kernel.accesses if a.mask is None and (m := next(_masks_for(kernel, a), ""))]
    if len(bare) > 1:
        mends = [_masked(kernel, access, mask, 11) for access, mask in bare]
        yield replace(mends[0], edits=tuple(edit for mend in mends for edit in mend.edits))


def _masked(kernel: KernelDraft, access: PointerAccess, mask: str, rank: int) -> Mend:
    verb, what = ("loads", "read") if access.is_load else ("stores", "written")
    other = ", other=0.0" if access.is_load and access.other is None else ""
    return Mend(
        Family.MASK, rank, access.line, (kernel.with_keyword(access.call, f"mask={mask}{other}"),),
        f"Line {access.line} {verb} without a mask, so that lanes past the end are {what} too.",
        f"give it a mask that bounds its offsets, as in `{mask}`", Cause.MISSING_MASK, kernel.name,
    )  # fmt: skip


def _masks_for(kernel: KernelDraft, access: PointerAccess) -> Iterator[str]:
    """Masks for the indices of an address: by the bounds that they have elsewhere, else by each size."""
    atoms = [
        a for a in kernel.atoms(access.address) if a.name in kernel.bounds or len(kernel.atoms(access.address)) == 1
    ]
    if not atoms:
        return
    known = [[f"{a.text} < {bound}" for bound in kernel.bounds.get(a.name, ())[:2]] for a in atoms]
    if all(known):
        pieces = [options[0] for options in known]
        yield pieces[0] if len(pieces) == 1 else " & ".join(f"({piece})" for piece in pieces)
    if len(atoms) == 1 and not all(known):
        yield from (f"{atoms[0].text} < {size}" for size in kernel.lengths[:3])


def half_a_mask(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A mask that bounds one index of the address and not another."""
    for access in kernel.accesses:
        if access.mask is None:
            continue
        atoms = kernel.atoms(access.address)
        for atom in atoms:
            if kernel.is_bounded(access.mask, atom.name) or len(atoms) < 2:
                continue
            for number, bound in enumerate(_bounds_for(kernel, atom.name)[:3]):
                yield _widened(kernel, access, f"({atom.text} < {bound})", atom.name, 12 + 3 * number)
    yield from _all_widened(kernel)


def _bounds_for(kernel: KernelDraft, index: str) -> list[str]:
    """What may bound an index: what does elsewhere; else what bounds one that is made of the same, as rows and columns
    of one step of a loop are; else the sizes that bound nothing."""
    made_of = kernel.origins(ast.Name(index, ast.Load())) - {index}
    alike = [name for name in kernel.bounds if kernel.origins(ast.Name(name, ast.Load())) - {name} == made_of]
    of_alike = [bound for name in alike for bound in kernel.bounds[name]]
    return kernel.bounds.get(index) or of_alike or [s for s in kernel.lengths if s not in kernel.bounding]


def _all_widened(kernel: KernelDraft) -> Iterator[Mend]:
    """An index that no mask of several accesses bounds, bounded in all of them."""
    for index in kernel.indices:
        without = [
            (access, atom) for access in kernel.accesses if access.mask is not None
            for atom in kernel.atoms(access.address) if atom.name == index and not kernel.is_bounded(access.mask, index)
        ]  # fmt: skip
        for bound in _bounds_for(kernel, index)[:2] if len(without) > 1 else ():
            mends = [_widened(kernel, access, f"({atom.text} < {bound})", index, 11) for access, atom in without]
            yield replace(mends[0], edits=tuple(edit for mend in mends for edit in mend.edits))


def _widened(kernel: KernelDraft, access: PointerAccess, more: str, index: str, rank: int) -> Mend:
    assert access.mask is not None
    mask = kernel.source.operand(access.mask)
    verb = "load" if access.is_load else "store"
    other = "" if access.other is not None or not access.is_load else ", other=0.0"
    edits: tuple[Edit, ...] = (kernel.replaced(access.mask, f"{mask} & {more}{other}"),)
    made = _made_at(kernel, access.mask, index)
    where = f", which line {made} makes," if made and made != access.line else ""
    return Mend(
        Family.MASK, rank, made or access.line, edits,
        f"The mask of the {verb} in line {access.line}{where} does not bound `{index}`: lanes past the end get "
        "through in that dimension.",
        f"let the mask bound `{index}` too, joined with &", Cause.MISSING_MASK, kernel.name,
    )  # fmt: skip


def _made_at(kernel: KernelDraft, mask: ast.expr, index: str) -> int | None:
    """The line that makes a mask, where the mistake is there: every access with this mask has the index in its address
    too. None where the mask stands in the access itself, or is right for another access."""
    values = kernel.values.get(mask.id, ()) if isinstance(mask, ast.Name) else ()
    if len(values) != 1:
        return None
    users = [a for a in kernel.accesses if a.mask is not None and kernel.source.of(a.mask) == kernel.source.of(mask)]
    wanted = all(any(atom.name == index for atom in kernel.atoms(access.address)) for access in users)
    return values[0].lineno if wanted else None


def other_value(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A masked load that fills its lanes past the end with something that takes part in what is computed."""
    exponential = any(is_call(n, "tl.exp", "tl.exp2", "tl.max") for n in kernel.nodes)
    for access in kernel.accesses:
        if access.mask is None or not access.is_load:
            continue
        now = kernel.source.of(access.other) if access.other is not None else ""
        for value in ('-float("inf")', "0.0") if exponential else ("0.0",):
            if not _is_same(now, value):
                yield _filled(kernel, access, now, value)


def _is_same(now: str, value: str) -> bool:
    plain = now.replace("'", '"').replace(" ", "")
    return (
        plain == value
        or (value == "0.0" and plain in ("0", "0.", "0.0"))
        or (value != "0.0" and plain == 'float("-inf")')
    )


def _is_neutral(now: str) -> bool:
    return now.replace(" ", "").strip("+-") in ("0", "0.", "0.0") or "inf" in now


def _is_exponent(kernel: KernelDraft, access: PointerAccess) -> bool:
    """Whether what is loaded goes into a maximum or into exp, without a product of matrices on its way."""
    name = target_of(kernel.statement(access.call))
    for call in calls(kernel.nodes, "tl.max", "tl.exp", "tl.exp2"):
        if kernel.is_within(access.call, call):
            return True
        if (
            name
            and call.args
            and name in kernel.origins(call.args[0])
            and "tl.dot" not in kernel.calls_behind(call.args[0])
        ):
            return True
    return False


def _filled(kernel: KernelDraft, access: PointerAccess, now: str, value: str) -> Mend:
    shown = "-inf" if value != "0.0" else "0"
    does = "changes neither the maximum nor the sum of exp" if shown == "-inf" else "adds nothing"
    if access.other is not None:
        edit = kernel.replaced(access.other, value)
        said = f"fills the lanes past the end with other={now}, and they take part in the result"
    else:
        edit = kernel.with_keyword(access.call, f"other={value}")
        said = "has a mask and no `other`: the lanes past the end hold anything, and take part in the result"
    rank = 14 if (shown == "-inf") == _is_exponent(kernel, access) else 36
    rank = 6 if now and rank == 14 and not _is_neutral(now) else rank
    return Mend(
        Family.MASK, rank, access.line, (edit,), f"The load in line {access.line} {said}.",
        f"fill them with other={shown}, which {does}", Cause.WRONG_VALUES if access.other is not None else None,
        kernel.name,
    )  # fmt: skip


def strict_mask(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A sum of masked lanes: what stands past the end is not 0 after a subtraction."""
    for call in kernel.nodes:
        if not (is_call(call, "tl.sum") and isinstance(call, ast.Call) and call.args):
            continue
        for name in sorted(kernel.origins(call.args[0])):
            for value in kernel.values.get(name, ())[:3]:
                if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub) and not _has_where(value):
                    yield from _kept_out(kernel, value, name)
        inner = call.args[0]
        for part in ast.walk(inner):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) and not _has_where(inner):
                yield from _kept_out(kernel, part, "")
                break


def _has_where(node: ast.AST) -> bool:
    return any(is_call(part, "tl.where") for part in ast.walk(node))


def _kept_out(kernel: KernelDraft, value: ast.BinOp, name: str) -> Iterator[Mend]:
    for mask in _known_masks(kernel)[:2]:
        new = f"tl.where({mask}, {kernel.source.of(value)}, 0.0)"
        yield Mend(
            Family.SUM, 11, value.lineno, (kernel.replaced(value, new),),
            f"In line {value.lineno} the lanes past the end of a row take part: they were loaded as 0, and "
            f"`{kernel.source.of(value)}` makes them something else before they are summed up.",
            "set them to 0 again with tl.where(mask, ..., 0.0) before the sum", None, kernel.name,
        )  # fmt: skip


def _known_masks(kernel: KernelDraft) -> list[str]:
    masks = [kernel.source.of(a.mask) for a in kernel.accesses if a.mask is not None and a.is_load]
    return sorted(set(masks), key=masks.index)


def one_of_two(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """`(a < m) | (b < n)` for a mask that both must bound."""
    masks = [access.mask for access in kernel.accesses if access.mask is not None]
    used = {name for mask in masks for name in kernel.origins(mask)}
    parts = {part for mask in masks for part in ast.walk(mask)}
    for node in kernel.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.BitOr):
            continue
        if node in parts or target_of(kernel.statement(node)) in used:
            yield Mend(
                Family.MASK, 3, node.lineno, (kernel.source.between_replaced(node.left, node.right, "|", "&"),),
                f"Line {node.lineno} joins `{kernel.source.of(node)}` with |: one of the two is enough, so that lanes "
                "past the end of the other count as inside.",
                "join the conditions with &: both must hold", None, kernel.name,
            )  # fmt: skip


RULES = (one_of_two, missing_mask, half_a_mask, other_value, strict_mask)
