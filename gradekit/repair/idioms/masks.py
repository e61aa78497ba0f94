"""Masks for the accesses of a kernel that have none: each index is bounded by the size that its loop goes through, or
that the grid or the tile of its launch is made for."""

import ast
import re
from collections.abc import Iterator

from gradekit.causes import Cause
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft, LaunchCall
from gradekit.source.kernel import KernelDraft, PointerAccess, counter_of, range_of
from gradekit.submission.parsed_source import Edit

_FILLED = ("0", '-float("inf")')
"""What lanes that are left out count as: nothing in a sum, and nothing in a maximum."""


_CLAMPING = {"min", "tl.minimum", "tl.clamp", "tl.where"}


def masks_missing(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A mask in each access that has none."""
    bare = [one for one in kernel.accesses if one.mask is None and len(one.call.args) < (2 if one.is_load else 3)]
    masks = {one: mask for one in bare if (mask := _mask(draft, kernel, one))}
    lines = sorted({one.line for one in masks})
    for filled in _FILLED if any(one.is_load for one in masks) else _FILLED[:1] if masks else ():
        *most, last = map(str, lines)
        are = f"Lines {', '.join(most)} and {last} have" if most else f"Line {last} has"
        goes_past = any(kernel.atoms(one.address) for one in masks)  # not by places that were loaded
        past = f"{are} no mask, and lanes past the end go beyond what the tensors hold."
        yield Mend(
            Family.MASK, 8, lines[0], tuple(_edit(draft, one, mask, filled) for one, mask in masks.items()),
            past if goes_past else f"{are} no mask, and lanes past the end take part too.",
            f"leave out what lies past the end: mask={next(iter(masks.values()))}", Cause.MISSING_MASK, kernel.name,
        )  # fmt: skip


def _edit(draft: Draft, access: PointerAccess, mask: str, filled: str) -> Edit:
    end, text = draft.source.span(access.call)[1] - 1, draft.source.of(access.call)[:-1].rstrip()
    other = f", other={filled}" if access.is_load and access.other is None else ""
    return Edit(end, end, f"{',' * (text[-1] != ',')} mask={mask}{other}", mask)


def _mask(draft: Draft, kernel: KernelDraft, access: PointerAccess) -> str:
    """The condition that an access lacks; "" where no size is seen that its indices stand for."""
    texts = kernel.atoms(access.address)
    if not texts:  # the places were loaded: those lanes count that were loaded with a mask
        behind = kernel.origins(access.address) | (kernel.origins(access.value) if access.value is not None else set())
        texts = {name: name for name in kernel.indices if name in behind}
    sizes = {name: size for name in texts if (size := _size_of(draft, kernel, name))}
    compared = [f"{texts[name]} < {size}" for name, size in sizes.items()]
    return " & ".join(f"({one})" for one in compared) if len(compared) > 1 else "".join(compared)


def _size_of(draft: Draft, kernel: KernelDraft, index: str) -> str:
    """How far an index may go: what the kernel compares it with elsewhere, or else by what its tile is for."""
    if index in kernel.bounds:
        return kernel.bounds[index][0]
    if kernel.calls_behind(ast.Name(index, ast.Load())) & _CLAMPING:
        return ""  # it is bounded in another way
    behind = kernel.origins(ast.Name(index, ast.Load())) | {index}
    for loop in kernel.loops:
        ends = range_of(loop)
        if counter_of(loop) in behind and ends:
            end = ends[0] if len(ends) == 1 else ends[1]
            return kernel.source.of(end.args[0] if isinstance(end, ast.Call) and end.args else end)
    blocks = [name for name in kernel.constexprs if name in behind]
    launched = (_launched_for(draft, one, block) for one in draft.launches_of(kernel) for block in blocks)
    return next(filter(None, launched), kernel.lengths[0] if len(kernel.lengths) == 1 else "")


def _launched_for(draft: Draft, launch: LaunchCall, block: str) -> str:
    """The parameter that the grid of a launch divides by a block, or that a block is the next power of 2 of."""
    of = draft.source.of
    value = of(launch.given[block]) if block in launch.given else block
    wide = rf"""(?:{re.escape(value)}|\w+\[["']{re.escape(block)}["']\])"""
    sizes = [
        *re.findall(rf"cdiv\(([^,]+), *{wide}\)", of(draft.grid_of(launch))),
        *re.findall(r"next_power_of_2\((\w[^()]*)\)", value),
    ]
    return next((param for size in sizes for param, given in launch.given.items() if of(given) == size), "")
