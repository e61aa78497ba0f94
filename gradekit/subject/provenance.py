"""Where the values of a program come from: its submission's own kernels, another's, or torch.

Runs in the grader's process on data alone. What is said here holds for every option of every choice.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Iterable

from gradekit.engine import TTIRError
from gradekit.engine.def_use import STORES
from gradekit.engine.kernel_facts import every_operation, parsed
from gradekit.inputs.layouts import row_major
from gradekit.program import (
    Allocate,
    Aten,
    Copy,
    Kernel,
    Launch,
    Program,
    Step,
    View,
    every_step,
    reads,
    writes,
)

_FILE = re.compile(r'loc\("([^"\n]+)":\d+:\d+')
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


@functools.lru_cache(maxsize=512)
def _stores(ttir: str) -> bool:
    try:
        return any(op.name in STORES or op.name.startswith("tt.atomic") for op in every_operation(parsed(ttir)))
    except TTIRError:
        return True


def stores(kernel: Kernel) -> bool:
    """Whether the kernel stores anything at all; one that cannot be read may."""
    return _stores(kernel.unaligned)


def computed_by_kernels(program: Program, steps: Iterable[Step] | None = None) -> set[int]:
    """The storages whose values may come from a kernel of the program, after `steps` (all of them, by default): those
    that a kernel which stores has been given, and what was copied or computed from them. An input is none."""
    found: set[int] = set()
    for step in every_step(program.steps) if steps is None else steps:
        found |= _written(program, step, found) - program.storages.keys()
    return found


def constants(program: Program, steps: Iterable[Step] | None = None) -> set[int]:
    """The storages, after `steps` (all of them, by default), whose values are the same whatever the inputs hold: those
    that the host has filled, and what it copied or computed from these alone."""
    found, others = set[int](), set[int]()
    for step in every_step(program.steps) if steps is None else steps:
        if isinstance(step, Launch):
            others |= _written(program, step, found)
        elif not isinstance(step, Allocate):
            alike = {view.storage for view in reads(step)} <= found - others
            (found if alike else others).update(view.storage for view in writes(step))
    return found - others


def copied_inputs(program: Program, results: Iterable[View]) -> bool:
    """Whether each of the results has the elements of an input in their order, and nothing else was ever written."""
    known, storages = set(map(_elements, program.inputs)), set(program.storages)
    for step in every_step(program.steps):
        if isinstance(step, Copy) and step.target.storage not in storages and step.target.numel == step.origin.numel:
            storages.add(step.target.storage)
            known |= {_elements(step.target)} if _elements(step.origin) in known else set()
        elif not isinstance(step, Allocate):
            return False
    return all(_elements(result) in known for result in results)


def _elements(view: View) -> Hashable:
    """What a view shows, in order: the same for two shapes of contiguous elements."""
    contiguous = view.stride == row_major(view.shape)
    return (view.storage, view.dtype, view.offset, *((view.numel,) if contiguous else (view.shape, view.stride)))


def _written(program: Program, step: Step, known: set[int]) -> set[int]:
    if isinstance(step, Launch):
        stored = {view.storage for view in writes(step)} | program.addresses.keys()
        return stored if stores(program.kernels[step.kernel]) else set()
    computed = isinstance(step, (Copy, Aten)) and any(view.storage in known for view in reads(step))
    return {view.storage for view in writes(step)} if computed else set()
