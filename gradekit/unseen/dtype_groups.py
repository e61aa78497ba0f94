"""Which dtypes a kernel treats alike: those for which it becomes the same operations, casts aside.

A kernel that asks for the dtype of a pointer is another one for each answer, and what one has been tried on says
nothing of the other.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from gradekit.program import View
from gradekit.unseen.kernel_branches import KernelText

_OF_DTYPES = re.compile(r"arith\.(constant|(ext|trunc)[sufi]{1,2}|[suf]itofp|fpto[su]i|bitcast)|tt\.(fp_to_fp|splat)")
"""Operations that a kernel has for some dtypes and not for others, though its source makes no difference."""

_NUMBERS = re.compile(r"(?<=arith\.)(add|sub|mul|div|cmp)(f|s?i)$")


@functools.lru_cache(maxsize=256)
def structure(text: KernelText) -> int:
    """Equal for texts of a kernel that differ in dtypes, numbers and casts alone."""
    kept = ((op.name, len(op.results)) for op in text.ops if not _OF_DTYPES.match(op.name))
    return hash(tuple((_NUMBERS.sub(r"\1", name), count) for name, count in kept))


def dtype_groups(texts: Iterable[KernelText]) -> dict[tuple[str, tuple[str, ...]], tuple[str, ...]]:
    """For each kernel and each of its dtypes, the first dtypes that it treats like these; () where it treats all that
    have been seen alike."""
    structures: dict[str, dict[tuple[str, ...], set[int]]] = {}
    for text in texts:
        structures.setdefault(text.name, {}).setdefault(text.dtypes, set()).add(structure(text))
    found: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
    for kernel, of_dtypes in structures.items():
        groups: list[tuple[list[tuple[str, ...]], set[int]]] = []
        for dtypes, own in of_dtypes.items():
            alike = [group for group in groups if group[1] & own]
            together = ([one for group in alike for one in group[0]] + [dtypes], own.union(*(g[1] for g in alike)))
            groups = [group for group in groups if group not in alike] + [together]
        for members, _ in groups:
            found |= {(kernel, one): min(members) if len(groups) > 1 else () for one in members}
    return found


def nearest(views: Sequence[Sequence[View]], dtypes: Sequence[str]) -> list[int]:
    """The numbers of those calls, by their tensors, whose dtypes are most like those of a kernel's pointers."""
    apart = [len({view.dtype for view in each} ^ set(dtypes)) for each in views]
    return [number for number, one in enumerate(apart) if one == min(apart)]
