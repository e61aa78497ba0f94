"""A TTIR module as data: functions, regions, blocks and operations, in MLIR's terms; `ttir` reads them from text.

Types, numbers and attribute literals are read here, each from its own piece of text.

SSA names stand without their "%"; the results of `%a:2 = ...` are "a#0" and "a#1". Values are typed where they are
defined, and an operation's operand types are looked up there, so that every operand and result has its type although
the text leaves many out.

Attributes are plain values (numbers, bools, strings, lists, dicts; raw text where not understood), under the names
that the text gives them, and under these where the text gives none:

    arith.constant           value: a number (scalar or splat) or a flat row-major list
    arith.cmpi, arith.cmpf   predicate
    tt.get_program_id, tt.get_num_programs                 axis: 0, 1 or 2
    tt.atomic_rmw            kind, sem, scope              tt.atomic_cas, _load, _store, _poll     sem, scope
    tt.descriptor_reduce     kind                          tt.call                        callee
    tt.print                 prefix                        tt.assert, cf.assert           message
    tt.elementwise_inline_asm                              asm_string
    arith.*                  fastmath, overflow (raw text), exact, nneg (True)
    scf.for                  unsigned (True) where it counts so

Operands stand in the order of Triton's definitions, which the text departs from in tt.descriptor_store and
tt.descriptor_reduce: they have (descriptor, source, *indices).

A word of its own in the text (allow_reorder, efficient_layout) is an attribute with the value True. `padding` is 1 for
zero and 2 for NaN.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gradekit.engine.ttir_locations import Location


@dataclass(frozen=True, slots=True)
class Type:
    """A TTIR type.

    `element` is "i1" to "i64", "f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", ..., "ptr", "tensordesc", "index"
    or "none". `shape` is () for a scalar. `pointee` is what a "ptr" points to (a tensor type for a block pointer), and
    the type of one block for a "tensordesc". Signedness in the text (si8, ui8) is dropped: the operations carry it.
    """

    element: str
    shape: tuple[int, ...] = ()
    pointee: Type | None = None


I1 = Type("i1")

_ELEMENT = re.compile(r"[su]?(i\d{1,3})|(f\d{1,3}\w{0,16}|bf16|tf32|index|none)")
_DIMENSIONS = re.compile(r"((?:\d{1,18}x)*+)")


@functools.lru_cache(maxsize=4096)
def read_type(text: str) -> Type | None:
    """The type that `text`, in which angles nest no deeper than in a token, spells; None where it spells none."""
    scalar = _ELEMENT.fullmatch(text)
    if scalar is not None:
        return Type(scalar[1] or scalar[2])
    head, opened, rest = text.partition("<")
    inner = rest[:-1]
    if not opened or not rest.endswith(">"):
        return None
    if head == "tensor":
        return _read_tensor(inner)
    if head in ("!tt.ptr", "ptr"):
        pointee = read_type(inner.rpartition(",")[0] if re.search(r",\s*\d+$", inner) else inner)
        return pointee and Type("ptr", (), pointee)
    if head in ("!tt.tensordesc", "tensordesc"):
        block = read_type(inner) if inner.startswith("tensor<") else _read_tensor(inner)
        return block and Type("tensordesc", (), block)
    return None


def _read_tensor(inner: str) -> Type | None:
    dimensions = _DIMENSIONS.match(inner)
    assert dimensions is not None
    element = read_type(re.sub(r",\s*#.*$", "", inner[dimensions.end() :]))  # a layout, if any, is no matter
    if element is None:
        return None
    return Type(element.element, tuple(int(d) for d in dimensions[1].split("x")[:-1]), element.pointee)


# --- numbers ----------------------------------------------------------------------------------------------------------


def from_bytes(raw: bytes, element: str) -> list[Any]:
    """The numbers of a type, as they lie in memory. Raises ValueError where these do not lie in whole bytes."""
    import torch

    from gradekit.engine.values import BITS, FLOAT, INTEGER

    dtype = FLOAT.get(element) or INTEGER.get(BITS.get(element, 0), torch.bool)
    if dtype is torch.bool or not raw or len(raw) % dtype.itemsize:
        raise ValueError(f"{len(raw)} bytes are no {element}")
    numbers = torch.frombuffer(bytearray(raw), dtype=dtype)
    return numbers.double().tolist() if dtype.is_floating_point else numbers.tolist()


BYTES = {"i1": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "f64": 8}
"""Of the common types of elements."""


_NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]{1,32}|\d{1,40}(?:\.\d{0,400})?(?:[eE][+-]?\d{1,5})?|inf|nan)")


def read_number(text: str, element: str) -> int | float | bool:
    """The number that `text` spells as a value of type `element`, which may be the bits of a float in hexadecimal;
    integers come out signed, as wide as the type (i1 as a bool). Raises ValueError where it spells none."""
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text[:40]!r} is no number")
    if element[0] in "fb":
        if "0x" not in text:
            return float(text)
        bits, size = int(text, 16), BYTES.get(element, 1)
        if bits >> (8 * size):
            raise ValueError(f"{text} has too many bits")
        return float(from_bytes(bits.to_bytes(size, "little"), element)[0])
    number = int(text, 16) if "0x" in text else int(text)
    if element in ("index", "i1"):
        return number if element == "index" else bool(number & 1)
    width = int(element[1:])
    return (number + (1 << width - 1)) % (1 << width) - (1 << width - 1)


def read_dense(body: str, of: Type) -> Any:
    """The value of `dense<body> : of`: a number for a splat, a flat row-major list otherwise. Raises ValueError for a
    malformed body, and for a list whose length is not the tensor's."""
    body = body.strip()
    if body.startswith('"'):
        if not re.fullmatch(r'"0x(?:[0-9A-Fa-f]{2})*"', body):
            raise ValueError("malformed elements in hexadecimal")
        values = from_bytes(bytes.fromhex(body[3:-1]), of.element)
    elif body.startswith("["):
        values = [read_number(item.strip(), of.element) for item in re.sub(r"[\[\]]", "", body).split(",")]
    else:
        return read_number(body, of.element)
    if len(values) == 1:
        return values[0]
    if len(values) != math.prod(of.shape):
        raise ValueError(f"{len(values)} elements for a tensor of shape {of.shape}")
    return values


_ESCAPE = re.compile(r"(?:\\(?:[0-9A-Fa-f]{2}|.))+", re.DOTALL)


def read_string(text: str) -> str:
    """The string that the quoted `text` means: MLIR writes escapes as two hexadecimal digits of a UTF-8 byte."""
    return _ESCAPE.sub(_unescape, text[1:-1])


def _unescape(run: re.Match[str]) -> str:
    named = {"n": b"\n", "t": b"\t"}
    pieces = re.findall(r"\\([0-9A-Fa-f]{2}|.)", run[0], re.DOTALL)
    raw = b"".join(bytes.fromhex(p) if len(p) == 2 else named.get(p, p.encode()) for p in pieces)
    return raw.decode("utf-8", "replace")


@dataclass(slots=True)
class Op:
    """One operation. `successors` are the (label, operands) that a branch may go to; `location` is innermost first.

    scf.for has the operands (from, to, step, *initial values) and a block with the arguments (counter, *carried);
    scf.while has the regions (before, after); scf.if has (then,) or (then, else). `number`
    counts all operations of a module, `dead` are the values that nothing needs after it; its
    result is `only_stored` where one store of its block needs it, and nothing else.
    """

    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    operand_types: tuple[Type, ...]
    result_types: tuple[Type, ...]
    attributes: dict[str, Any]
    regions: tuple[Region, ...] = ()
    successors: tuple[tuple[str, tuple[str, ...]], ...] = ()
    location: Location = ()
    number: int = field(default=-1, compare=False, repr=False)
    dead: tuple[str, ...] = field(default=(), compare=False, repr=False)
    only_stored: bool = field(default=False, compare=False, repr=False)


@dataclass(slots=True)
class Block:
    """Operations in order; `label` is without its "^", and "" for a first block that has none.

    `compiled` is what the engine has made of it (see blocks.py).
    """

    label: str
    arguments: tuple[str, ...]
    argument_types: tuple[Type, ...]
    ops: list[Op]
    compiled: Any = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class Region:
    """Blocks; the first is where it begins. It has none where an operation's region is left out or empty."""

    blocks: list[Block]


def names_used(op: Op) -> Iterator[str]:
    """The values that an operation needs, and those that the regions inside it need; those defined inside, too."""
    yield from op.operands
    for _, names in op.successors:
        yield from names
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from names_used(inner)


def in_order(blocks: list[Block]) -> list[Block]:
    """The blocks, each after all that branch to it where none leads back: reverse postorder, if need be."""
    if len(blocks) < 3:
        return blocks
    by_label = {block.label: block for block in blocks}
    done: list[Block] = []
    seen, open_blocks = {blocks[0].label}, [(blocks[0], _successors(blocks[0]))]
    while open_blocks:
        _, left = open_blocks[-1]
        label = next((label for label in left if label in by_label and label not in seen), None)
        if label is None:
            done.append(open_blocks.pop()[0])
        else:
            seen.add(label)
            open_blocks.append((by_label[label], _successors(by_label[label])))
    return done[::-1] + [block for block in blocks if block.label not in seen]


def _successors(block: Block) -> Iterator[str]:
    return (label for label, _ in reversed(block.ops[-1].successors)) if block.ops else iter(())


@dataclass(slots=True)
class Function:
    """A tt.func. `argument_names` are the student's names where the text has them, the SSA names otherwise."""

    name: str
    arguments: tuple[str, ...]
    argument_types: tuple[Type, ...]
    argument_names: tuple[str, ...]
    result_types: tuple[Type, ...]
    body: Region
    public: bool
    location: Location = ()


@dataclass(slots=True)
class Module:
    """All functions by name; `entry` is the public one, which a launch runs."""

    functions: dict[str, Function] = field(default_factory=dict)

    @property
    def entry(self) -> Function:
        """The public function."""
        return next(function for function in self.functions.values() if function.public)
