"""A program with rounding switched off: float16, bfloat16 and float32 become float64 in its memory and in its kernels.

Conversions between them are then identities, constants keep the value that the text has, numbers that the host passes
keep all their bits, and `tl.dot` multiplies and adds in float64. Nothing else changes: the same operations run in the
same order on the same engine, whose own arithmetic (`casts`, `ops_reduce`) follows the types.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from gradekit.engine.executor import Reader
from gradekit.engine.kernel_facts import KernelFacts, every_operation, facts_of, parsed
from gradekit.engine.ttir import Block, Function, Module, Op, Region, Type
from gradekit.exact.places import RoundingPlace
from gradekit.inputs.layouts import row_major
from gradekit.program import (
    ITEMSIZE,
    Allocate,
    Copy,
    Program,
    Scalar,
    View,
    every_step,
    reads,
    replaced,
    views_in,
    writes,
)

_WIDENED = {"float16", "bfloat16", "float32"}  # the dtypes of views that become float64
_WIDEST = "float64"
_ELEMENTS = {"f16", "bf16", "f32"}
_WIDE = "f64"
_BITS = {
    "arith.bitcast", "tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int", "tt.dot_scaled", "arith.fptosi", "arith.fptoui",
}  # fmt: skip
_BITS_BY_NAME = ("float_as_int", "int_as_float", "double_as_longlong", "longlong_as_double", "nextafter", "rint", "llr")


class NotExact(Exception):
    """The program means something else, or nothing, in exact arithmetic; the message says why, in a few words."""


# --- kernels ---------------------------------------------------------------------------------------------------------

Place = tuple[str, int]
"""An operation of a kernel: the kernel's text (see `Kernel.unaligned`), and the operation's number."""


def decides_by_bits(ttir: str) -> str:
    """Why a kernel cannot run in exact arithmetic: what it does with the bits of floats; "" where it can."""
    for op in every_operation(parsed(ttir)):
        if op.name in _BITS and not _is_plain(op):
            return f"{op.name} looks at the bits of floats" if "cast" in op.name else f"{op.name} rounds on purpose"
        symbol = str(op.attributes.get("symbol", "")).removeprefix("__nv_")
        if symbol.startswith(_BITS_BY_NAME) or symbol.endswith(("_rz", "_ru", "_rd")):
            return f"{symbol} rounds on purpose"
        if any(type.element.startswith("f8") for type in (*op.operand_types, *op.result_types)):
            return "float8 rounds on purpose"
    return ""


def _is_plain(op: Op) -> bool:
    """Whether a cast is one between whole numbers, or pointers to them."""
    types = [type.pointee or type for type in (*op.operand_types, *op.result_types)]
    elements = {type.element for type in types}
    return op.name.endswith("bitcast") and (len(elements) == 1 or not any(e[0] in "fb" for e in elements))


@functools.lru_cache(maxsize=256)
def widened_kernel(
    ttir: str, rounding: int | None = None, moved: int | None = None, by: float = 0.0
) -> tuple[Module, KernelFacts]:
    """The module of a text with every float as float64, and its facts.

    At the operation with the number `rounding` the result is rounded to the type that the text says. The constant at
    the operation `moved` is larger by the share `by`.
    """
    return Widening(rounding, moved, by).module(parsed(ttir))


@dataclasses.dataclass
class Widening:
    """Floats become float64: all, or those of these `names`; see `widened_kernel`."""

    rounding: int | None = None
    moved: int | None = None
    by: float = 0.0
    names: frozenset[str] | None = None

    def module(self, whole: Module) -> tuple[Module, KernelFacts]:
        """The whole of it, and its facts."""
        module = Module({name: self._function(function) for name, function in whole.functions.items()})
        return module, facts_of(module)

    def _function(self, function: Function) -> Function:
        return dataclasses.replace(
            function, argument_types=self._types(function.arguments, function.argument_types),
            result_types=self._types((), function.result_types), body=self._region(function.body),
        )  # fmt: skip

    def _region(self, region: Region) -> Region:
        return Region([self._block(block) for block in region.blocks])

    def _block(self, block: Block) -> Block:
        ops = list(itertools.chain.from_iterable(map(self._op, block.ops)))
        return Block(block.label, block.arguments, self._types(block.arguments, block.argument_types), ops)

    def _op(self, op: Op) -> Iterable[Op]:
        wide = dataclasses.replace(
            op, operand_types=self._types(op.operands, op.operand_types),
            result_types=self._types(op.results, op.result_types),
            regions=tuple(map(self._region, op.regions)), attributes=self._attributes(op),
        )  # fmt: skip
        wide.number = op.number
        return self._rounded(op, wide) if op.number == self.rounding else (wide,)

    def _types(self, names: Sequence[str], types: Sequence[Type]) -> tuple[Type, ...]:
        wide = tuple(map(_wide_type, types))
        if self.names is None:
            return wide
        mine = [name in self.names for name in names]
        return tuple(wide[n] if n < len(mine) and mine[n] else own for n, own in enumerate(types))

    def _attributes(self, op: Op) -> dict[str, Any]:
        if op.number != self.moved:
            return op.attributes
        value = op.attributes["value"]
        larger = [each * (1 + self.by) for each in value] if isinstance(value, list) else value * (1 + self.by)
        return {**op.attributes, "value": larger}

    def _rounded(self, op: Op, wide: Op) -> Iterable[Op]:
        """The operation, then its result to its own type and back."""
        (name,), (own,), (type,) = op.results, op.result_types, wide.result_types
        before, narrow = f"{name} before rounding", f"{name} rounded"
        yield dataclasses.replace(wide, results=(before,))
        yield _cast("arith.truncf", op, before, type, narrow, own)
        yield _cast("arith.extf", op, narrow, own, name, type)


def _cast(kind: str, op: Op, source: str, of: Type, target: str, to: Type) -> Op:
    return Op(kind, (source,), (target,), (of,), (to,), {}, location=op.location, number=op.number)


@functools.lru_cache(maxsize=4096)
def _wide_type(type: Type) -> Type:
    """The type with float64 in place of narrower floats, also in what a pointer points to."""
    pointee = _wide_type(type.pointee) if type.pointee else None
    return Type(_WIDE if type.element in _ELEMENTS else type.element, type.shape, pointee)


# --- programs --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Exact:
    """A program to be run in exact arithmetic, with what reads its kernels."""

    program: Program
    reader: Reader = lambda kernel: widened_kernel(kernel.unaligned)

    def rounding_at(self, place: RoundingPlace) -> Exact:
        """The same, with rounding at this place: a step's results go through memory of the narrow type and back."""
        if place.ttir:
            return self._with(place.ttir, rounding=place.number)
        steps = [*self.program.steps]
        for wide in [view for view in writes(steps[place.number]) if view.dtype == _WIDEST]:
            made = [step.storage for step in every_step(steps) if isinstance(step, Allocate)]
            own = 1 + max([*self.program.storages, *made])
            narrow = View(own, place.dtype, wide.shape, row_major(wide.shape))
            through = Allocate(own, narrow.reach * ITEMSIZE[place.dtype]), Copy(narrow, wide), Copy(wide, narrow)
            steps[place.number + 1 : place.number + 1] = through
        return dataclasses.replace(self, program=dataclasses.replace(self.program, steps=tuple(steps)))

    def with_constant(self, place: Place, by: float) -> Exact:
        """The same, with the constant at `place` larger by this share."""
        text, number = place
        return self._with(text, moved=number, by=by)

    def _with(self, text: str, **change: Any) -> Exact:
        read = lambda kernel: widened_kernel(kernel.unaligned, **(change if kernel.unaligned == text else {}))
        return dataclasses.replace(self, reader=read)


def widened(program: Program) -> Exact:
    """The program with every float as float64. Raises NotExact where it looks at the bits of floats."""
    for kernel in program.kernels.values():
        if why := decides_by_bits(kernel.unaligned):
            raise NotExact(why)
    if program.addresses:
        raise NotExact("addresses are numbers")
    sizes = _sizes(program)
    wide: Program = replaced(dataclasses.replace(program, kernels={}), _Views(sizes))
    storages = {id: nbytes * sizes.get(id, 1) for id, nbytes in program.storages.items()}
    return Exact(dataclasses.replace(wide, kernels=program.kernels, storages=storages))


def _sizes(program: Program) -> Mapping[int, int]:
    """By how much each storage grows. Raises NotExact where one is seen as several types."""
    seen: dict[int, set[str]] = {}
    touched = itertools.chain.from_iterable((*reads(step), *writes(step)) for step in every_step(program.steps))
    for view in (*views_in((program.inputs, program.results)), *touched):
        if view.numel or view.storage in program.storages:
            seen.setdefault(view.storage, set()).add(view.dtype)
    for dtypes in seen.values():
        if len(dtypes) > 1 and dtypes & _WIDENED:
            raise NotExact("memory is seen as several types")
    return {id: 8 // ITEMSIZE[dtype] for id, (dtype,) in seen.items() if dtype in _WIDENED}


@dataclasses.dataclass(frozen=True)
class _Views:
    sizes: Mapping[int, int]

    def __call__(self, value: Any) -> Any:
        """A leaf of a program, made wide; None for what is none."""
        match value:
            case View(dtype=dtype):
                return dataclasses.replace(value, dtype=_WIDEST) if dtype in _WIDENED else value
            case Allocate(storage=storage, nbytes=nbytes):
                return dataclasses.replace(value, nbytes=nbytes * self.sizes.get(storage, 1))
            case Scalar(value=name, dtype="dtype"):
                return dataclasses.replace(value, value=_WIDEST) if str(name) in _WIDENED else value
        return None


def wide_tensors(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The inputs of a program in float64; those that share memory share it again."""
    made: dict[int, torch.Tensor] = {}

    def wide(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in made:
            whole = torch.empty(0, dtype=tensor.dtype).set_(storage)
            made[storage.data_ptr()] = whole.double()
        return made[storage.data_ptr()].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    return [wide(tensor) for tensor in tensors]
