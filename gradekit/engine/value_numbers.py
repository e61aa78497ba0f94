"""A kernel's text by value numbering: the same for kernels that do the same with memory, by what each value is made of.

Names, the order of what has no effect, and where a cast stands among operations that only move elements leave no trace,
nor does the `other` of a load where the lanes that its mask leaves out reach nothing. All else does: two kernels of
one text compute the same, and of two texts nothing follows.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from gradekit.engine.kernel_facts import every_operation, parsed
from gradekit.engine.masked_lanes import ELEMENTWISE, left_out_lanes_matter, moves, shape_step
from gradekit.engine.ttir import Block, Op

_CASTS = frozenset({"arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp"})
_PURE = frozenset({"tt.make_range", "tt.get_program_id", "tt.get_num_programs"})


@functools.lru_cache(maxsize=256)
def numbered(ttir: str) -> str:
    """The text of a kernel that says what it does and nothing else; of one with branches between blocks, its own text.

    Raises:
        TTIRError: the text is not TTIR.
    """
    module = parsed(ttir)
    ops = list(every_operation(module))
    if len(module.functions) != 1 or any(len(region.blocks) > 1 for op in ops for region in op.regions):
        return ttir
    (function,) = module.functions.values()
    if len(function.body.blocks) != 1:
        return ttir
    types = zip(function.arguments, function.argument_types, strict=True)
    arguments = {name: f"argument {place} {type}" for place, (name, type) in enumerate(types)}
    return "\n".join(_Numbering(ops, arguments).lines(function.body.blocks[0]))


@dataclass
class _Numbering:
    """The text as far as it is made: `numbers` by name, and of what was moved last the step and what it was before."""

    ops: list[Op]
    numbers: dict[str, str]
    moved: dict[str, tuple[object, str]] = field(default_factory=dict)
    count: int = 0

    def lines(self, block: Block) -> Iterator[str]:
        """The operations of a block that have an effect."""
        for name, type in zip(block.arguments, block.argument_types, strict=True):
            self.numbers[name] = self._next(f"{type}")
        for op in block.ops:
            if moves(op):
                self.numbers[op.results[0]] = self._moved(shape_step(op), self.numbers[op.operands[0]])
            elif op.name in _CASTS:
                self.numbers[op.results[0]] = self._cast(op, self.numbers[op.operands[0]])
            elif op.name in _PURE or op.name.startswith(ELEMENTWISE) and not op.regions:
                self.numbers |= {name: _digest(f"{self._said(op)} {place}") for place, name in enumerate(op.results)}
            else:
                yield from self._effect(op)

    def _effect(self, op: Op) -> Iterator[str]:
        yield self._said(op)
        for region in op.regions:
            for block in region.blocks:
                yield "{"
                yield from self.lines(block)
                yield "}"
        self.numbers |= {name: self._next("") for name in op.results}

    def _said(self, op: Op) -> str:
        operands = op.operands
        if op.name == "tt.load" and len(operands) == 3 and not left_out_lanes_matter(op, self.ops):
            operands = operands[:2]
        attributes = sorted((name, repr(value)) for name, value in op.attributes.items())
        successors = [(label, [self.numbers[n] for n in names]) for label, names in op.successors]
        return f"{op.name} {attributes} {op.result_types} {[self.numbers[name] for name in operands]} {successors}"

    def _moved(self, step: object, source: str) -> str:
        number = _digest(f"{step} {source}")
        self.moved[number] = step, source
        return number

    def _cast(self, op: Op, source: str) -> str:
        """A cast stands before what moves its operand's elements."""
        if source in self.moved:
            step, before = self.moved[source]
            return self._moved(step, self._cast(op, before))
        return _digest(f"{op.name} {sorted(op.attributes.items())} {op.result_types[0].element} {source}")

    def _next(self, said: str) -> str:
        self.count += 1
        return f"#{self.count}{said}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
