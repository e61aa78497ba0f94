"""Where the values of a program come from: its submission's own kernels, another's, or torch.

Runs in the grader's process on data alone. What is said here holds for every option of every choice.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any

from gradekit.program import Aten, Copy, Descriptor, Kernel, Launch, Program, Step, View, every_step

_FILE = re.compile(r'loc\("([^"\n]+)":\d+:\d+')
_STORES = re.compile(r"tt\.(store|atomic_\w+|descriptor_(store|scatter|reduce)|experimental_descriptor_store)\b")
_TRITONS_OWN = re.compile(r"(^|/)triton/")


@functools.lru_cache(maxsize=512)
def _files(ttir: str) -> frozenset[str]:
    return frozenset(_FILE.findall(ttir))


def foreign_file(program: Program, kernel: Kernel) -> str:
    """A file that code of the kernel stands in, which is neither the submission nor Triton's own library; "" where all
    of it stands in those, or the program does not say what the submission's file is called."""
    if not program.path:
        return ""
    files = _files(kernel.ttir)
    others = sorted(file for file in files if file != program.path and not _TRITONS_OWN.search(file))
    return others[0] if others else "" if program.path in files else "another file"


def stores(kernel: Kernel) -> bool:
    """Whether the kernel stores anything at all."""
    return bool(_STORES.search(kernel.ttir))


def computed_by_kernels(program: Program, steps: Iterable[Step] | None = None) -> set[int]:
    """The storages whose values may come from a kernel of the program, after `steps` (all of them, by default): those
    that a kernel which stores has been given, and what was copied or computed from them. An input is none."""
    found: set[int] = set()
    for step in every_step(program.steps) if steps is None else steps:
        found |= _written(program, step, found) - program.storages.keys()
    return found


def _written(program: Program, step: Step, known: set[int]) -> set[int]:
    match step:
        case Launch(kernel=key, args=args) if stores(program.kernels[key]):
            return {view.storage for view in views_in(args)} | program.addresses.keys()
        case Copy(target=target, origin=origin) if origin.storage in known:
            return {target.storage}
        case Aten(args=args, outputs=outputs) if any(view.storage in known for view in views_in(args)):
            return {view.storage for view in outputs}
    return set()


def views_in(value: Any) -> Iterator[View]:
    """The tensors anywhere in arguments: nested tuples, dicts and descriptors."""
    if isinstance(value, View):
        yield value
    elif isinstance(value, Descriptor):
        yield value.view
    elif isinstance(value, (tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from views_in(item)
