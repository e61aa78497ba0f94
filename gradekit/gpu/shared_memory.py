"""Tensors between the grader and the worker: raw bytes in memory that both map, and neither can take back.

The grader makes the memory, with its size, and sends a descriptor of it: nothing that the worker does to files, or to
the memory's size, decides what the grader reads. It is gone when both are.
"""

import fcntl
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Piece = tuple[int, int]  # where a tensor's bytes begin in the memory, and how many they are


@dataclass(frozen=True)
class SharedMemory:
    """Memory for some tensors: its `descriptor`, and the `pieces` that it is made of, each on pages of its own."""

    descriptor: int
    pieces: tuple[Piece, ...]

    def tensor(self, number: int) -> Tensor:
        """A piece's bytes, sharing them: uint8 [nbytes]."""
        return mapped(self.descriptor, self.pieces[number])

    def close(self) -> None:
        """Give the descriptor back; tensors keep what they share."""
        os.close(self.descriptor)


def shared(sizes: Sequence[int]) -> SharedMemory:
    """New memory for tensors of so many bytes each. Raises OSError where there is no room."""
    pieces, end = list[Piece](), 0
    for size in sizes:
        pieces.append((end, size))
        end += -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
    descriptor = os.memfd_create("gradekit-tensors", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        if end:  # else a write to a page that cannot be had ends the process
            os.posix_fallocate(descriptor, 0, end)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except OSError:
        os.close(descriptor)
        raise
    return SharedMemory(descriptor, tuple(pieces))


def mapped(descriptor: int, piece: Sequence[int]) -> Tensor:
    """The bytes of a piece of the memory behind `descriptor`, sharing them: uint8 [nbytes]."""
    start, nbytes = piece
    if nbytes == 0:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(mmap.mmap(descriptor, nbytes, offset=start), dtype=torch.uint8)
