"""What the compiler makes of a kernel's TTIR: its shared memory, and the registers of its machine code.

Both are exact. Shared memory is known before LLVM is asked (0.015 s); registers need the whole compiler (0.1 s).
"""

from __future__ import annotations

import contextlib
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gradekit.compat import triton

REGISTER_BYTES = 4
MOST_REGISTERS = 255
"""That one thread can have."""

_REGISTERS, _STACK = 0x2F, 0x12
"""Attributes in a cubin's `.nv.info`: how many registers a function has, and the bytes of stack that it needs."""

_SIZED = 4
"""Form of an attribute that is followed by its size."""


@dataclass(frozen=True)
class Registers:
    """How many registers one thread has, and how many more it would have liked."""

    registers: int
    spills: int


def shared_memory(ttir: str, options: Any) -> int:
    """The bytes of shared memory that a block of the kernel needs, as Triton's `metadata.shared`."""
    with _file(ttir) as path:
        return triton.shared_memory(path, options)


def registers(ttir: str, options: Any) -> Registers:
    """As Triton's `n_regs` and `n_spills`."""
    with _file(ttir) as path:
        return registers_of(triton.cubin(path, options))


@contextlib.contextmanager
def _file(ttir: str) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".ttir", encoding="utf-8") as file:
        file.write(ttir)
        file.flush()
        yield file.name


def registers_of(cubin: bytes) -> Registers:
    """The figures of the one kernel in a cubin.

    Raises:
        ValueError: they are not in there.
    """
    found = {kind: struct.unpack("<II", value)[1] for kind, value in _attributes(cubin) if len(value) == 8}
    if _REGISTERS not in found or not 0 < found[_REGISTERS] <= MOST_REGISTERS:
        raise ValueError("no register count in the machine code")
    return Registers(found[_REGISTERS], found.get(_STACK, 0) // REGISTER_BYTES)  # Triton counts the stack as spilled


def _attributes(cubin: bytes) -> Iterator[tuple[int, bytes]]:
    """Each attribute in `.nv.info` that has a size: its kind and its value."""
    info = _section(cubin, b".nv.info")
    at = 0
    while at + 4 <= len(info):
        form, kind, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _SIZED:
            yield kind, info[at : at + size]
            at += size


def _section(elf: bytes, name: bytes) -> bytes:
    """The content of a section of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + number * size) for number in range(count)]
    for header in headers:
        start = headers[names][4] + header[0]
        if elf[start : elf.index(b"\0", start)] == name:
            return elf[header[4] : header[4] + header[5]]
    raise ValueError(f"no section {name.decode()}")
