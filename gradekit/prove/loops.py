"""Loops, conditions and calls. What a loop carries is guessed from its first turn, and
the guess is checked by induction.

A carried integer or pointer that changes by the same amount in each turn is its initial value plus that amount for each
turn before; a carried value that does not change is its initial value. The guess is put in, the loop's body is walked
through once for a turn that could be any, and what comes out must be the guess for the turn after. What is not so may
be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gradekit.engine import Block as OpBlock
from gradekit.engine import Op, Type
from gradekit.prove.division import ceil_div
from gradekit.prove.integer_rules import selected
from gradekit.prove.parts import Substitution, atoms
from gradekit.prove.symbolic_values import OTHER, SymbolicPointer, Value
from gradekit.prove.terms import TRUE, ZERO, Term, Truth, at_most, both, choose, less, negated, term, var
from gradekit.prove.walk import CONTROL, TooLong, Walk

if TYPE_CHECKING:
    from gradekit.prove.symbolic_access import Owed

MOST_TURNS = (1 << 31) - 1


def _for(walk: Walk, op: Op) -> None:
    block = op.regions[0].blocks[0]
    low, high, step = (walk.get(name) for name in op.operands[:3])
    owed = walk.owed(op.operands[:3])
    turn = turn_of(walk, op)
    if (
        isinstance(low, Term)
        and isinstance(high, Term)
        and isinstance(step, Term)
        and walk.known(at_most(term(1), step))
    ):
        counter: Value = low + turn * step
        inside = less(low + turn * step, high)
        trips = choose(less(low, high), ceil_div(high - low, step), ZERO)
    else:
        counter, inside, trips = walk.unknown(block.argument_types[0]), TRUE, None
    carried = _Carried(walk, block, op.operands[3:], block.arguments[1:], block.argument_types[1:], turn)

    def body() -> Sequence[str]:
        walk.bind(block.arguments[:1], [counter], [owed])
        walk.ops(block)
        return block.ops[-1].operands if block.ops and block.ops[-1].name == "scf.yield" else ()

    carried.settle(body, inside, owed)
    walk.bind(op.results, *carried.after(trips, op.result_types))


def turn_of(walk: Walk, op: Op) -> Term:
    """The counter of a loop's turns."""
    name = op.results[0] if op.results else (op.regions[0].blocks[0].arguments or ("loop",))[0]
    return var(f"turn {len(walk.turns)} of {name}", 0, MOST_TURNS)


def _while(walk: Walk, op: Op) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    carried = _Carried(walk, before, op.operands, before.arguments, before.argument_types, turn_of(walk, op))

    def body() -> Sequence[str]:
        walk.ops(before)
        condition, *passed = before.ops[-1].operands
        walk.bind(after.arguments, [walk.get(p) for p in passed], [walk.owed([p]) for p in passed])
        with walk.under(walk.condition(condition), walk.owed([condition])):
            walk.ops(after)
        return after.ops[-1].operands if after.ops[-1].name == "scf.yield" else ()

    carried.settle(body, TRUE, frozenset())
    walk.bind(op.results, *carried.after(None, op.result_types))


class _Carried:
    """The values that a loop hands from one turn to the next, of which the walk follows those that it needs."""

    def __init__(self, walk: Walk, block: OpBlock, initial: Sequence[str], names: Sequence[str], types: Sequence[Type],
                 turn: Term) -> None:  # fmt: skip
        self.walk, self.names, self.types, self.turn = walk, names, types, turn
        self.initial = [walk.get(name) for name in initial]
        self.owed = [walk.owed([name]) for name in initial]
        self.steps: list[Value] = [
            ZERO if isinstance(value, (Term, SymbolicPointer)) else OTHER for value in self.initial
        ]
        self.known = [not isinstance(value, type(OTHER)) for value in self.initial]

    def settle(self, body: Callable[[], Sequence[str]], inside: Truth, owed: frozenset[Owed]) -> None:
        """Finds what each value is in any turn, and walks through the body with it."""
        walk, outer = self.walk, self.walk.turns
        walk.turns = (*outer, self.turn)
        with walk.under(inside, owed):
            with walk.quietly():
                self._guess(self._turn(body)[0])
                while not self._check(self._turn(body)[0]):
                    pass
                self._settle_owed(body)
            self._turn(body)
        walk.turns = outer

    def _settle_owed(self, body: Callable[[], Sequence[str]]) -> None:
        """Finds what the values owe: that goes through each of them once at most, but where a turn owes what is new in
        each, such as a half of what nobody knows.

        Raises:
            TooLong: it does.
        """
        for _ in range(len(self.names) + 2):
            if not self._owe(self._turn(body)[1]):
                return
        raise TooLong("each turn of a loop asks for something else")

    def _turn(self, body: Callable[[], Sequence[str]]) -> tuple[list[Value], list[frozenset[Owed]]]:
        self.walk.bind(self.names, [self.at(position, self.turn) for position in range(len(self.names))], self.owed)
        yielded = body()
        return [self.walk.get(name) for name in yielded], [self.walk.owed([name]) for name in yielded]

    def _owe(self, yielded: Sequence[frozenset[Owed]]) -> bool:
        """A value owes what the turns before this one owed; says whether that is news."""
        before = self.owed
        self.owed = [mine | {self._earlier(o) for o in more} for mine, more in zip(before, yielded, strict=True)]
        return self.owed != before

    def _earlier(self, owed: Owed) -> Owed:
        """The same in any turn before this one."""
        (turn,) = next(iter(self.turn.parts))
        name = f"before {turn.args[0]}"
        earlier = var(name, 0, MOST_TURNS)
        if earlier.key[2:] in atoms(owed.value, owed.path):
            return owed
        put = Substitution(lambda atom: earlier if atom.key == turn.key else None)
        path = both(put.truth(owed.path), less(earlier, self.turn))
        return replace(owed, value=put.term(owed.value), path=path)

    def at(self, position: int, turn: Term) -> Value:
        """The value at the beginning of a turn."""
        value, step = self.initial[position], self.steps[position]
        if not self.known[position]:
            unknown = self.walk.unknown(self.types[position])
            return unknown
        if isinstance(value, Term) and isinstance(step, Term):
            return value + turn * step
        if isinstance(value, SymbolicPointer) and isinstance(step, Term):
            return SymbolicPointer(value.base, value.offset + turn * step, value.itemsize)
        return value

    def _guess(self, yielded: Sequence[Value]) -> None:
        for position, (value, after) in enumerate(zip(self.initial, yielded, strict=True)):
            step = _difference(value, after)
            self.steps[position] = step
            self.known[position] = self.known[position] and not isinstance(step, type(OTHER))

    def _check(self, yielded: Sequence[Value]) -> bool:
        """Whether each guess is right in the turn after, too; one that is not is given up."""
        fine = True
        for position, after in enumerate(yielded):
            if self.known[position] and self.at(position, self.turn + 1) != after:
                self.known[position] = fine = False
        return fine

    def after(self, trips: Term | None, types: Sequence[Type]) -> tuple[list[Value], list[frozenset[Owed]]]:
        """The values after the last turn."""
        count = len(types)
        if trips is None or count != len(self.names):
            return [self.walk.unknown(type) for type in types], [frozenset()] * count
        return [self.at(position, trips) for position in range(count)], [
            frozenset(self._at_the_end(o, trips) for o in owed) for owed in self.owed
        ]

    def _at_the_end(self, owed: Owed, trips: Term) -> Owed:
        (turn,) = next(iter(self.turn.parts))
        put = Substitution(lambda atom: trips if atom.key == turn.key else None)
        return replace(owed, value=put.term(owed.value), path=put.truth(owed.path))


def _difference(before: Value, after: Value) -> Value:
    """What a turn adds; ZERO for conditions that it leaves as they are, OTHER for what is not known."""
    if isinstance(before, Term) and isinstance(after, Term):
        return after - before
    if isinstance(before, SymbolicPointer) and isinstance(after, SymbolicPointer):
        same = (before.base, before.itemsize) == (after.base, after.itemsize)
        return after.offset - before.offset if same else OTHER
    return ZERO if before == after else OTHER


# --- conditions and calls --------------------------------------------------------------------------------------------


def _if(walk: Walk, op: Op) -> None:
    condition, owed = walk.condition(op.operands[0]), walk.owed(op.operands[:1])
    sides = []
    for way, region in zip((condition, negated(condition)), op.regions, strict=False):
        with walk.under(way, owed):
            block = region.blocks[0] if region.blocks else OpBlock("", (), (), [])
            if walk.reached:
                walk.ops(block)
            names = block.ops[-1].operands if block.ops and block.ops[-1].name == "scf.yield" else ()
            sides.append(([walk.get(n) for n in names], [walk.owed([n]) for n in names]))
    for position, result in enumerate(op.results):
        values = [side[0][position] for side in sides]
        value = selected(condition, *values)
        if value is OTHER:
            value = walk.unknown(op.result_types[position])
        walk.bind([result], [value], [owed.union(*(side[1][position] for side in sides))])


def _call(walk: Walk, op: Op) -> None:
    function = walk.module.functions[op.attributes["callee"].lstrip("@")]
    arguments = [walk.get(name) for name in op.operands]
    returned = walk.enter(function, arguments, [walk.owed([name]) for name in op.operands])
    values = [
        walk.unknown(type) if isinstance(value, type(OTHER)) else value
        for value, type in zip(returned or [OTHER] * len(op.results), op.result_types, strict=True)
    ]
    walk.bind(op.results, values, [walk.owed(op.operands)] * len(op.results))


def _nothing(walk: Walk, op: Op) -> None:
    """Has no result, or hands values on where the block that it ends is looked at."""


CONTROL.update({
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "tt.call": _call,
    **dict.fromkeys(("scf.yield", "scf.condition", "tt.return", "cf.br", "cf.cond_br", "llvm.intr.assume"), _nothing),
})
