"""Whether lanes that the mask of a load leaves out can reach anything, worked out from the text before anything runs.

A lane of a value is *open* where it may depend on such a lane. Which lanes are open is told by guards: sets of
conditions that stand in the text. A lane is open only where one of its guards does not hold in full. What chooses by
the same conditions closes it again, and stores and loads whose masks ask for them leave it out.
"""

from collections.abc import Iterable
from typing import Any

from gradekit.engine.ttir import Op
from gradekit.engine.ttir_nodes import names_used

Condition = tuple[str, tuple[Any, ...]]
"""A value by its name, and the operations of `SHAPES` that it has gone through since."""

Guard = frozenset[Condition]

UNKNOWN: Guard = frozenset({("", ())})  # that of a load whose mask has no name, which nothing implies

SHAPES = frozenset({"tt.broadcast", "tt.expand_dims", "tt.splat", "tt.reshape", "tt.trans"})
"""Operations that move elements and change none."""

MASK_AT = {"tt.load": 1, "tt.atomic_load": 1, "tt.store": 2, "tt.atomic_store": 2, "tt.atomic_rmw": 2}
"""By operation on pointers, the number of the operand that is its mask, where it has one."""

ELEMENTWISE = (
    "arith.", "math.", "tt.fp_to_fp", "tt.bitcast", "tt.clampf", "tt.extern_elementwise", "tt.addptr",
)  # fmt: skip
"""How the names of operations begin whose lanes depend on the same lanes of their operands alone."""


def mask_of(op: Op) -> list[str]:
    """The operand that is an operation's mask; nothing where it has none."""
    return [*op.operands[MASK_AT.get(op.name, len(op.operands)) :][:1]]


def moves(op: Op) -> bool:
    """Whether an operation moves elements, to places that its text tells, and changes none."""
    return op.name in SHAPES and not op.attributes.get("allow_reorder")


def shape_step(op: Op) -> tuple[Any, ...]:
    """An operation of `SHAPES` without its operand."""
    return op.name, repr(sorted(op.attributes.items())), tuple(op.result_types[0].shape)


def left_out_lanes_matter(load: Op, ops: Iterable[Op]) -> bool:
    """Whether lanes that the mask of `load` leaves out can reach memory, an address that is used, or a decision.

    `ops` are all operations of its kernel in the order of the text. What is not known to be harmless matters.
    """
    return _Search(load).finds(ops)


class _Search:
    def __init__(self, load: Op) -> None:
        self._load = load
        self._made: dict[str, Op] = {}
        self._open: dict[str, frozenset[Guard]] = {}

    def finds(self, ops: Iterable[Op]) -> bool:
        for op in ops:
            if op is self._load:
                guard = self._conditions(op.operands[1], ()) if len(op.operands) > 1 else UNKNOWN
                self._open[op.results[0]] = frozenset({guard})
            elif any(self._open.get(name) for name in names_used(op)):
                left = self._passed_on(op)
                if left is None:
                    return True
                self._open |= dict.fromkeys(op.results, left)
            else:
                for name in op.results:  # regions beside each other may use a name twice
                    self._open.pop(name, None)
            self._made |= dict.fromkeys(op.results, op)
        return False

    def _passed_on(self, op: Op) -> frozenset[Guard] | None:
        """The guards of the operation's results; None where an open lane matters to it."""
        each = [self._open.get(name, frozenset()) for name in op.operands]
        if op.name in ("tt.store", "tt.load"):
            return self._access(op, each)
        if moves(op):
            step = shape_step(op)
            return frozenset(frozenset((name, (*steps, step)) for name, steps in guard) for guard in each[0])
        if not op.name.startswith(ELEMENTWISE) or op.regions or len({type.shape for type in op.operand_types}) > 1:
            return None
        if op.name == "arith.select":
            each[1] = self._beyond(each[1], op.operands[0])
        return frozenset().union(*each)

    def _access(self, op: Op, each: list[frozenset[Guard]]) -> frozenset[Guard] | None:
        """A load or a store: what its own mask leaves out is not accessed, and of a load given another value."""
        place = MASK_AT[op.name]
        if len(op.operands) <= place or each[place]:
            return None
        if any(self._beyond(guards, op.operands[place]) for guards in each[:place]):
            return None
        if op.name == "tt.store":
            return frozenset()
        has_other = len(op.operands) > 2
        return each[2] if has_other else frozenset({self._conditions(op.operands[1], ())})

    def _beyond(self, guards: frozenset[Guard], condition: str) -> frozenset[Guard]:
        """The guards that do not hold wherever a condition does."""
        known = self._conditions(condition, ())
        return frozenset(guard for guard in guards if not guard <= known)

    def _conditions(self, name: str, steps: tuple[Any, ...]) -> Guard:
        """What holds where a condition does: its factors, as far as they stand in the text."""
        op = self._made.get(name)
        if op is not None and op.name == "arith.andi":
            return self._conditions(op.operands[0], steps) | self._conditions(op.operands[1], steps)
        if op is not None and moves(op):
            return self._conditions(op.operands[0], (shape_step(op), *steps))
        return frozenset({(name, steps)})
