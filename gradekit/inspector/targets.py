"""The architectures that kernels are compiled for without a card, and how many blocks of a kernel one SM holds.

The limits are those of the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; how registers
and shared memory are handed out (by warp and by block, in what portions) is what NVIDIA's occupancy calculator, the
header cuda_occupancy.h of the CUDA toolkit, computes with. AMD's are those of the CDNA 3 instruction set guide and of
LLVM's AMDGPU backend. The number of SMs is a fact of one card, named beside it.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from gradekit.assignment import UsageError
from gradekit.schemas import nearest

PARTITIONS = 4  # parts of an SM with a scheduler and a quarter of the registers each: a warp stays in one


@dataclass(frozen=True)
class Target:
    """An architecture: most resident `warps` and `blocks` of an SM, shared memory of one SM and of one block in bytes.

    `reserved` bytes of shared memory go to the system for each block, and `portion` is what sizes are rounded up to. A
    warp has `warp` threads, and is given registers in multiples of `register_portion`, of the SM's `registers`.
    `card` is one with this architecture, and `sms` how many SMs it has. AMD's, whose compute units are called SMs here,
    have no NVIDIA `capability`: 0.
    """

    name: str
    capability: int
    card: str
    sms: int
    warps: int
    blocks: int
    shared_per_sm: int
    shared_per_block: int
    reserved: int = 1 << 10
    portion: int = 128
    warp: int = 32
    registers: int = 64 << 10
    register_portion: int = 256

    @property
    def arch(self) -> int | str:
        """What Triton calls it: 90 for sm_90, "gfx942"."""
        return self.capability or self.name

    @property
    def assembly(self) -> str:
        """The stage in which instructions are what Triton wrote."""
        return "ptx" if self.capability else "amdgcn"

    @property
    def last(self) -> str:
        """The last stage that is compiled."""
        return "sass" if self.capability else "amdgcn"

    @property
    def unit(self) -> str:
        """What the vendor calls that which holds blocks: a streaming multiprocessor or a compute unit."""
        return "SM" if self.capability else "CU"

    @property
    def matrix_units(self) -> str:
        """What the vendor calls that which multiplies matrices."""
        return "tensor cores" if self.capability else "matrix cores"


_FILE = Path(__file__).with_name("targets.toml")
TARGETS = {name: Target(name, **row) for name, row in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()}
"""By name: NVIDIA's, oldest first, then AMD's."""


def target(name: str) -> Target:
    """The architecture called `name`: "sm_90", "sm90", "90" or "gfx942". Raises UsageError where there is none."""
    digits = name.lower().removeprefix("sm").removeprefix("_")
    found = TARGETS.get(f"sm_{digits}") or TARGETS.get(name.lower())
    if found is None:
        raise UsageError(f"no target {name!r}; {nearest(name, TARGETS)}")
    return found


@dataclass(frozen=True)
class Occupancy:
    """How many `blocks` of a kernel one SM holds at once, their `warps`, of `most` warps; and `limit`, what stops more.
    `limit` is "registers", "shared memory", "warps" or "blocks"; 0 blocks mean that the kernel cannot be launched."""

    blocks: int
    warps: int
    most: int
    limit: str


def occupancy(where: Target, *, warps: int, registers: int, shared: int) -> Occupancy:
    """The occupancy of blocks of `warps` warps with `registers` a thread and `shared` bytes of shared memory."""
    room = {
        "warps": where.warps // warps, "blocks": where.blocks, "registers": _by_registers(where, warps, registers),
        "shared memory": _by_shared(where, shared),
    }  # fmt: skip
    limit = min(room, key=lambda name: room[name])
    return Occupancy(room[limit], room[limit] * warps, where.warps, limit)


def _by_registers(where: Target, warps: int, registers: int) -> int:
    of_warp = _rounded(max(registers, 1) * where.warp, where.register_portion)
    return where.registers // PARTITIONS // of_warp * PARTITIONS // warps


def _by_shared(where: Target, shared: int) -> int:
    if shared > where.shared_per_block:
        return 0
    of_block = _rounded(shared + where.reserved, where.portion)
    return where.shared_per_sm // of_block if of_block else where.blocks


def _rounded(value: int, portion: int) -> int:
    return -(-value // portion) * portion
