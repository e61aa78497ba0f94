"""A TTIR module as data: functions, regions, blocks and operations, in MLIR's terms; `ttir` reads them from text.

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
    tt.dot_scaled            scaled: [bool, bool], whether lhs and rhs have scales; the operands stand in the order
                             a, b, c, then the scales that there are
    arith.*                  fastmath, overflow (raw text), exact, nneg (True)
    scf.for                  unsigned (True) where it counts so

Operands stand in the order of Triton's definitions, which the text departs from twice: tt.dot_scaled above, and
tt.descriptor_store and tt.descriptor_reduce, which have (descriptor, source, *indices).

A word of its own in the text (allow_reorder, efficient_layout) is an attribute with the value True. `padding` is 1 for
zero and 2 for NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gradekit.engine.ttir_locations import Location
from gradekit.engine.ttir_values import Type


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


def in_order(blocks: list[Block]) -> list[Block]:
    """The blocks with each after all that branch to it, where no branch leads back: reverse postorder, in which blocks
    that the text has in such an order already stay as they are."""
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
