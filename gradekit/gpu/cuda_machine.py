"""Kernels on a CUDA card: TTIR to machine code with Triton's own compiler, and launches that are ready to go.

Worker side. `triton.compile` takes a file of IR as an argument, but its launchers are written for functions in Python,
so what they know of the arguments is corrected before they are made (see gradekit.compat.triton.launchable).
Descriptors that the host makes become TMA descriptors once, when a launch is bound, and not at each launch.
"""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import triton
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from gradekit.compat.triton import active_target, descriptor_arguments, launchable, without_descriptors
from gradekit.gpu.card import Card
from gradekit.gpu.device_memory import DeviceMemory
from gradekit.gpu.faults import CardFault, fault_of
from gradekit.gpu.timing import Call, Clock, sets_for
from gradekit.program import Argument, Descriptor, Kernel, ProgramError, View

_ENTRY = re.compile(r'tt\.func public @("?)([^\s"(]+)\1\(')
_SYMBOL = re.compile(r"[A-Za-z_][\w$.]{0,200}")
_TMA = 90  # the compute capability from which cards have TMA units


class CudaMachine:
    """Compiles and launches on a card; `folder` is for files that only this process reads."""

    def __init__(self, card: Card, folder: Path) -> None:
        torch.cuda.set_device(card.device)
        self.device = card.device
        self._card, self._folder = card, folder
        self._target = active_target()
        self._compiled: dict[str, Any] = {}
        triton.set_allocator(self._scratch)

    def compile(self, kernels: Collection[Kernel]) -> dict[str, CardFault]:
        """Compiles what has not been, several at once; gives the faults of those that cannot be, by `key_of`."""
        wanted = {key_of(kernel): kernel for kernel in kernels if key_of(kernel) not in self._compiled}
        with ThreadPoolExecutor(max(min(len(wanted), len(os.sched_getaffinity(0))), 1)) as pool:
            made = dict(zip(wanted, pool.map(self._tried, wanted.values()), strict=True))
        faults = {key: fault for key, fault in made.items() if isinstance(fault, CardFault)}
        self._compiled |= {key: kernel for key, kernel in made.items() if key not in faults}
        return faults

    def launch(
        self, kernel: Kernel, grid: tuple[int, int, int], args: Sequence[Argument], memory: DeviceMemory
    ) -> Callable[[], None]:
        """The launch of a kernel that has been compiled, bound to the addresses of its arguments. Raises RuntimeError
        where the card cannot hold the kernel, and ProgramError where the kernel takes other arguments."""
        compiled = self._compiled[key_of(kernel)]
        values = _values(compiled, args, memory)
        run = compiled[grid]
        return lambda: run(*values)

    def address(self, number: int, data: Tensor) -> int:
        """Where a storage lies."""
        return data.data_ptr()

    def synchronize(self) -> None:
        """Waits for the card; raises RuntimeError where a kernel misused it."""
        torch.cuda.synchronize(self.device)

    def clock(self, calls: Sequence[Call], refresh: Callable[[], None]) -> Clock:
        """A clock of these calls; `refresh` makes memory fresh before each round of them."""
        return Clock(calls, self._card, refresh)

    def sets_for(self, nbytes: int) -> int:
        """How many sets of inputs a call that touches so many bytes needs."""
        return sets_for(self._card, nbytes)

    def _scratch(self, size: int, alignment: int, stream: int | None) -> Tensor:
        return torch.empty(size, dtype=torch.int8, device=self.device)

    def _tried(self, kernel: Kernel) -> Any:
        try:
            return self._compile(kernel)
        except Exception as error:  # noqa: BLE001  # whatever the compiler has to say
            fault = fault_of(error, kernel.name)
            kind = fault.kind if fault.kind in ("resources", "out-of-memory") else "compile"
            return CardFault(kind, fault.message, kernel.name)

    def _compile(self, kernel: Kernel) -> Any:
        found = _ENTRY.search(kernel.ttir)
        if found is None or not _SYMBOL.fullmatch(found[2]):  # Triton names files by it
            raise CardFault("compile", "the TTIR has no entry function with a plain name", kernel.name)
        file = self._folder / f"{key_of(kernel)}.ttir"
        file.write_text(kernel.ttir, encoding="utf-8")
        options = kernel.compiler_options
        if self._target.arch < _TMA and "tensordesc" in kernel.ttir:
            file.write_text(without_descriptors(str(file), self._target, options), encoding="utf-8")
        return launchable(triton.compile(str(file), target=self._target, options=options))


def key_of(kernel: Kernel) -> str:
    """A name made from all that the machine code depends on."""
    return hashlib.sha256(repr([kernel.ttir, kernel.compiler_options]).encode()).hexdigest()


# --- arguments -------------------------------------------------------------------------------------------------------


def _values(compiled: Any, args: Sequence[Argument], memory: DeviceMemory) -> list[Any]:
    types, metas = list(compiled.src.signature.values()), iter(compiled.descriptors)
    values: list[Any] = []
    for arg in args:
        if isinstance(arg, Descriptor):
            values += _expanded(arg, next(metas, None), memory)
        elif len(values) < len(types):
            value = memory.address(arg) if isinstance(arg, View) else number_for(types[len(values)], arg.value)
            values.append(value)
    if len(values) != len(types):
        raise ProgramError(f"{compiled.name} takes {len(types)} arguments, the launch has {len(values)}")
    return values


def number_for(kind: str, value: Any) -> int | float:
    """A number as the launcher takes it: integers wrapped to the type's range. Raises ProgramError for another."""
    if not isinstance(value, (int, float)):
        raise ProgramError(f"{value!r} for an argument of type {kind}")
    if kind.startswith(("fp", "bf")):
        return float(value)
    whole = int(value)
    if kind.startswith("*"):
        return whole
    if kind == "i1":
        return int(bool(whole))
    half = 1 << (int(kind[1:]) - 1)
    return (whole + half) % (2 * half) - half


def _expanded(arg: Descriptor, meta: Any, memory: DeviceMemory) -> list[Any]:
    """The arguments that stand for a descriptor: a TMA descriptor and sizes; pointer and sizes where `meta` is None."""
    address = memory.address(arg.view)
    base: Any = SimpleNamespace(data_ptr=lambda: address, dtype=getattr(torch, arg.view.dtype))  # all that is asked
    made = TensorDescriptor(base, list(arg.view.shape), list(arg.view.stride), list(arg.block), padding=arg.padding)
    return descriptor_arguments(made, meta)
