"""A kernel's TTIR walked once, for a program of its grid that could be any: its accesses to memory as formulas.

Over-approximates: what is not known (a value that depends on data, a loop that is too hard) may be anything. So what is
proved of the accesses holds; what is refuted may be a mistake, until the engine has shown it.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from gradekit.engine.def_use import DefUse
from gradekit.engine.kernel_facts import operations
from gradekit.engine.masked_lanes import MASK_AT, mask_of
from gradekit.engine.registry import enters
from gradekit.engine.ttir import Block as OpBlock
from gradekit.engine.ttir import Function, Module, Op, Region, Type
from gradekit.engine.ttir_locations import line_of
from gradekit.prove import Limit
from gradekit.prove.solve import Solver
from gradekit.prove.symbolic_values import (
    OTHER,
    PROGRAM,
    Premise,
    SymbolicAccess,
    SymbolicPointer,
    Value,
    at_lanes,
    lane,
    lanes,
    reshaped,
)
from gradekit.prove.terms import (
    FALSE,
    INT32,
    TRUE,
    ZERO,
    Atom,
    Substitution,
    Term,
    Truth,
    atoms,
    both,
    ceil_div,
    choose,
    equal,
    free,
    greatest,
    least,
    of_atom,
    term,
    var,
)

Environment = dict[str, Value]
NOTHING: frozenset[Premise] = frozenset()


MEMORY: dict[str, Callable[[Walk, Op], Sequence[Value]]] = {}
"""Operations on memory, by their names: the values that each gives; memory_rules.py enters them."""


class TooLong(Exception):
    """The kernel is too large to be followed."""


class Walk:
    """Program ids are below `grid`; `arguments` are the values of the kernel's; `hypotheses` hold throughout."""

    def __init__(
        self, module: Module, file: str, arguments: Sequence[Value], grid: Sequence[Term],
        hypotheses: Sequence[Truth], solver: Solver, constant: frozenset[int] | None = None,
    ) -> None:  # fmt: skip
        self.module, self.file, self.grid, self.solver = module, file, tuple(grid), solver
        self.hypotheses = list(hypotheses)
        self.constant = constant
        self.accesses: list[SymbolicAccess] = []  # in the order in which they stand
        self.reads: set[int] = set()  # arguments whose elements were taken for constants
        self.values: Environment = {}
        self.premises_of: dict[str, frozenset[Premise]] = {}
        self.path: Truth = TRUE
        self.path_premises = NOTHING
        self.turns: tuple[Term, ...] = ()
        self.silent = False
        self.steps = 0
        self._op: Op | None = None
        self._required: set[Premise] = set()
        self._fresh = itertools.count()
        self._needed: frozenset[str] = NOTHING  # type: ignore[assignment]
        self.enter(module.entry, arguments, [NOTHING] * len(arguments))

    # --- functions and blocks

    def enter(self, function: Function, arguments: Sequence[Value], given: Sequence[frozenset[Premise]]) -> list[Value]:
        """Walks through a function; what it returns, OTHER where that depends on the way through it."""
        outer = self.values, self.premises_of, self._needed, self.path, self.path_premises
        self.values, self.premises_of, self._needed = {}, {}, self.followed(function)
        self.bind(function.arguments, arguments, given)
        returned = self.blocks(function.body, 0)
        self.values, self.premises_of, self._needed, self.path, self.path_premises = outer
        return returned

    def followed(self, function: Function) -> frozenset[str]:
        """The names whose values are worked out."""
        return needed(function)

    def blocks(self, region: Region, first: int) -> list[Value]:
        """Walks from a block to the end of its function, by each way that branches take."""
        block = region.blocks[first]
        self.ops(block)
        last = block.ops[-1] if block.ops else None
        if last is None or not last.successors:
            return [self.get(name) for name in last.operands] if last is not None and last.name == "tt.return" else []
        condition = self.condition(last.operands[0]) if last.name == "cf.cond_br" else TRUE
        ways = [condition, ~condition] if len(last.successors) == 2 else [TRUE]
        found: list[list[Value]] = []
        for way, (label, operands) in zip(ways, last.successors, strict=True):
            target = next(number for number, b in enumerate(region.blocks) if b.label == label)
            with self.under(way, self.premises(last.operands[:1]) if last.name == "cf.cond_br" else NOTHING):
                names = region.blocks[target].arguments
                self.bind(names, [self.get(o) for o in operands], [self.premises([o]) for o in operands])
                if self.reached:
                    found.append(self.blocks(region, target))
        return found[0] if len(found) == 1 else [OTHER] * len(found[0]) if found else []

    def bind(self, names: Sequence[str], values: Sequence[Value], premises: Sequence[frozenset[Premise]]) -> None:
        """Gives names their values, and the premises of these."""
        self.values.update(zip(names, values, strict=True))
        self.premises_of.update(zip(names, premises, strict=True))

    def ops(self, block: OpBlock) -> None:
        """Walks through the operations of a block."""
        for op in block.ops:
            self.steps += 1
            if self.steps > Limit.OPERATIONS:
                raise TooLong(f"more than {Limit.OPERATIONS} operations")
            self.op(op)

    def op(self, op: Op) -> None:
        """One operation: gives its results their values."""
        if op.name in CONTROL:
            CONTROL[op.name](self, op)
            return
        self._op, self._required = op, set()
        results = self._results(op)
        premises = self.premises(op.operands) | frozenset(self._required)
        for name, value in zip(op.results, results, strict=True):
            self.values[name], self.premises_of[name] = value, premises

    def _results(self, op: Op) -> Sequence[Value]:
        if op.name in MEMORY:
            return MEMORY[op.name](self, op)
        if not any(name in self._needed for name in op.results):
            return [OTHER] * len(op.results)
        if op.name == "arith.constant":
            return [constant(op, self)]
        if op.name in ("tt.get_program_id", "tt.get_num_programs"):
            return [(PROGRAM if op.name == "tt.get_program_id" else self.grid)[op.attributes["axis"]]]
        operands = [self.get(name) for name in op.operands]
        rule, known = RULES.get(op.name), all(isinstance(one, (Term, Truth, SymbolicPointer)) for one in operands)
        value = rule(self, op, *operands) if rule and known else OTHER
        return [self.unknown(op.result_types[0]) if value is OTHER else value, *map(self.unknown, op.result_types[1:])]

    # --- what rules ask

    def get(self, name: str) -> Value:
        """The value of a name."""
        return self.values.get(name, OTHER)

    def premises(self, names: Sequence[str]) -> frozenset[Premise]:
        """The premises of the values of all the names."""
        return NOTHING.union(*(self.premises_of.get(name, NOTHING) for name in names))

    def require(self, op: Op, value: Term, low: int | None, high: int | None) -> None:
        """The result of the operation is right only if `value` is from `low` to `high`."""
        least, most = value.range
        if (low is None or least is not None and least >= low) and (high is None or most is not None and most <= high):
            return
        self._required.add(Premise(value, low, high, self.path, line_of(op.location, self.file)))

    def known(self, condition: Truth) -> bool:
        """Whether the condition holds wherever the walk is."""
        return condition.op == "true" or self.solver.follows([*self.hypotheses, self.path], condition)

    def unknown(self, type: Type) -> Value:
        """A value of which nothing is known: its own for each program, turn and lane."""
        name = f"?{next(self._fresh)}"
        if type.element == "i1":
            return free("/".join([name, *(place.key for place in self.place(type.shape))]))
        if type.element[0] == "i" and type.element[1:].isdecimal() or type.element == "index":
            half = 1 << (63 if type.element == "index" else int(type.element[1:]) - 1)
            return of_atom(Atom("read", (name, *self.place(type.shape)), (-half, half - 1)))
        return OTHER

    def place(self, shape: Sequence[int]) -> tuple[Term, ...]:
        """What tells a lane of a tile from all others of the launch."""
        return (*PROGRAM, *self.turns, *(lane for lane in lanes(shape) if lane.parts))

    def condition(self, name: str) -> Truth:
        """The value of a condition; one that nobody knows where it is not known."""
        value = self.get(name)
        return value if isinstance(value, Truth) else free(f"?{next(self._fresh)}")

    @property
    def reached(self) -> bool:
        """Whether anything runs here, as far as that is certain."""
        return self.path.op != "false" or bool(self.path_premises)

    @contextmanager
    def under(self, condition: Truth, premises: frozenset[Premise]) -> Iterator[None]:
        """What is walked through inside runs where the condition holds."""
        outer = self.path, self.path_premises
        self.path, self.path_premises = both(self.path, condition), self.path_premises | premises
        yield
        self.path, self.path_premises = outer

    def touch(self, access: SymbolicAccess) -> None:
        """Notes an access; one that is never made only where that has premises."""
        if not self.silent and (access.active.op != "false" or access.premises_always):
            self.accesses.append(access)


def constant(op: Op, walk: Walk) -> Value:
    """The value of a constant; a table of numbers is not known."""
    value = op.attributes.get("value")
    if isinstance(value, bool):
        return TRUE if value else FALSE
    type = op.result_types[0]
    return term(value) if isinstance(value, int) and type.element[0] == "i" else walk.unknown(type)


# --- which values decide where a kernel reads and writes: only those are followed -------------------------------------


def needed(function: Function) -> frozenset[str]:
    """The names of the values on which an address, a mask, a loop's bounds or a branch depends."""
    return DefUse([function]).behind(name for op in operations(function.body) for name in _deciding(op))


def _deciding(op: Op) -> Sequence[str]:
    handed = [name for _, operands in op.successors for name in operands]
    if op.name in ("tt.atomic_cas", "tt.atomic_poll", *MASK_AT):
        return [*op.operands[:1], *mask_of(op)]
    if op.name.startswith("tt.descriptor_") or op.name == "tt.call":
        return op.operands
    if op.name == "scf.for":
        return op.operands[:3]
    return [*handed, *(op.operands[:1] if op.name in ("cf.cond_br", "scf.if", "scf.condition") else ())]


# --- loops ------------------------------------------------------------------------------------------------------------
#
# What a loop carries is guessed from its first turn, and the guess is checked by induction. A carried integer or
# pointer that changes by the same amount in each turn is its initial value plus that amount for each turn before; a
# carried value that does not change is its initial value. The guess is put in, the loop's body is walked through once
# for a turn that could be any, and what comes out must be the guess for the turn after. What is not so may be anything.


def _for(walk: Walk, op: Op) -> None:
    block = op.regions[0].blocks[0]
    low, high, step = (walk.get(name) for name in op.operands[:3])
    premises = walk.premises(op.operands[:3])
    turn = turn_of(walk, op)
    if isinstance(low, Term) and isinstance(high, Term) and isinstance(step, Term) and walk.known(step >= 1):
        counter: Value = low + turn * step
        inside = low + turn * step < high
        trips = choose(low < high, ceil_div(high - low, step), ZERO)
    else:
        counter, inside, trips = walk.unknown(block.argument_types[0]), TRUE, None
    carried = _Carried(walk, block, op.operands[3:], block.arguments[1:], block.argument_types[1:], turn)

    def body() -> Sequence[str]:
        walk.bind(block.arguments[:1], [counter], [premises])
        walk.ops(block)
        return block.ops[-1].operands if block.ops and block.ops[-1].name == "scf.yield" else ()

    carried.settle(body, inside, premises)
    walk.bind(op.results, *carried.after(trips, op.result_types))


def turn_of(walk: Walk, op: Op) -> Term:
    """The counter of a loop's turns."""
    name = op.results[0] if op.results else (op.regions[0].blocks[0].arguments or ("loop",))[0]
    return var(f"turn {len(walk.turns)} of {name}", 0, INT32)


def _while(walk: Walk, op: Op) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    carried = _Carried(walk, before, op.operands, before.arguments, before.argument_types, turn_of(walk, op))

    def body() -> Sequence[str]:
        walk.ops(before)
        condition, *passed = before.ops[-1].operands
        walk.bind(after.arguments, [walk.get(p) for p in passed], [walk.premises([p]) for p in passed])
        with walk.under(walk.condition(condition), walk.premises([condition])):
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
        self.premises = [walk.premises([name]) for name in initial]
        moving = [isinstance(value, (Term, SymbolicPointer)) for value in self.initial]
        self.steps: list[Value] = [ZERO if moves else OTHER for moves in moving]
        self.known = [value is not OTHER for value in self.initial]

    def settle(self, body: Callable[[], Sequence[str]], inside: Truth, premises: frozenset[Premise]) -> None:
        """Finds what each value is in any turn, and walks through the body with it."""
        walk, turns, silent = self.walk, self.walk.turns, self.walk.silent
        walk.turns = (*turns, self.turn)
        with walk.under(inside, premises):
            walk.silent = True  # these are trials: their accesses do not count
            self._guess(self._turn(body)[0])
            while not self._check(self._turn(body)[0]):
                pass
            self._settle_premises(body)
            walk.silent = silent
            self._turn(body)
        walk.turns = turns

    def _settle_premises(self, body: Callable[[], Sequence[str]]) -> None:
        """Finds the values' premises, with those of turns before. Raises TooLong where each turn has others."""
        for _ in range(len(self.names) + 2):
            before = self.premises
            pairs = zip(before, self._turn(body)[1], strict=True)
            self.premises = [mine | {self._earlier(one) for one in more} for mine, more in pairs]
            if self.premises == before:
                return
        raise TooLong("each turn of a loop asks for something else")

    def _turn(self, body: Callable[[], Sequence[str]]) -> tuple[list[Value], list[frozenset[Premise]]]:
        self.walk.bind(self.names, [self.at(position, self.turn) for position in range(len(self.names))], self.premises)
        yielded = body()
        return [self.walk.get(name) for name in yielded], [self.walk.premises([name]) for name in yielded]

    def _earlier(self, premise: Premise) -> Premise:
        turn = self.turn.atom
        assert turn is not None
        earlier = var(f"before {turn.args[0]}", 0, INT32)
        if earlier.atom in atoms(premise.value, premise.path):
            return premise
        put = Substitution({turn: earlier}.get)
        path = both(put.truth(premise.path), earlier < self.turn)
        return replace(premise, value=put.term(premise.value), path=path)

    def at(self, position: int, turn: Term) -> Value:
        """The value at the beginning of a turn."""
        value, step = self.initial[position], self.steps[position]
        if not self.known[position]:
            return self.walk.unknown(self.types[position])
        if isinstance(value, Term) and isinstance(step, Term):
            return value + turn * step
        if isinstance(value, SymbolicPointer) and isinstance(step, Term):
            return value.moved(turn * step)
        return value

    def _guess(self, yielded: Sequence[Value]) -> None:
        for position, (value, after) in enumerate(zip(self.initial, yielded, strict=True)):
            self.steps[position] = step = _difference(value, after)
            self.known[position] = self.known[position] and step is not OTHER

    def _check(self, yielded: Sequence[Value]) -> bool:
        """Whether each guess is right in the turn after, too; one that is not is given up."""
        fine = True
        for position, after in enumerate(yielded):
            if self.known[position] and self.at(position, self.turn + 1) != after:
                self.known[position] = fine = False
        return fine

    def after(self, trips: Term | None, types: Sequence[Type]) -> tuple[list[Value], list[frozenset[Premise]]]:
        """The values after the last turn."""
        count = len(types)
        if trips is None or count != len(self.names):
            return [self.walk.unknown(type) for type in types], [frozenset()] * count
        put = Substitution({self.turn.atom: trips}.get)
        end = lambda premise: replace(premise, value=put.term(premise.value), path=put.truth(premise.path))
        return [self.at(position, trips) for position in range(count)], [frozenset(map(end, o)) for o in self.premises]


def _difference(before: Value, after: Value) -> Value:
    """What a turn adds; ZERO for conditions that it leaves as they are, OTHER for what is not known."""
    if isinstance(before, Term) and isinstance(after, Term):
        return after - before
    if isinstance(before, SymbolicPointer) and isinstance(after, SymbolicPointer):
        return after.offset - before.offset if before.is_beside(after) else OTHER
    return ZERO if before == after else OTHER


# --- conditions and calls ---------------------------------------------------------------------------------------------


def _if(walk: Walk, op: Op) -> None:
    condition, premises = walk.condition(op.operands[0]), walk.premises(op.operands[:1])
    sides = []
    for way, region in zip((condition, ~condition), op.regions, strict=False):
        with walk.under(way, premises):
            block = region.blocks[0] if region.blocks else OpBlock("", (), (), [])
            if walk.reached:
                walk.ops(block)
            names = block.ops[-1].operands if block.ops and block.ops[-1].name == "scf.yield" else ()
            sides.append(([walk.get(n) for n in names], [walk.premises([n]) for n in names]))
    for position, result in enumerate(op.results):
        values = [side[0][position] for side in sides]
        value = selected(condition, *values)
        if value is OTHER:
            value = walk.unknown(op.result_types[position])
        walk.bind([result], [value], [premises.union(*(side[1][position] for side in sides))])


def _call(walk: Walk, op: Op) -> None:
    function = walk.module.functions[op.attributes["callee"].lstrip("@")]
    arguments = [walk.get(name) for name in op.operands]
    returned = walk.enter(function, arguments, [walk.premises([name]) for name in op.operands])
    given = zip(returned or [OTHER] * len(op.results), op.result_types, strict=True)
    values = [walk.unknown(type) if value is OTHER else value for value, type in given]
    walk.bind(op.results, values, [walk.premises(op.operands)] * len(op.results))


CONTROL: dict[str, Callable[[Walk, Op], None]] = {
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "tt.call": _call,
    # these have no results, or hand values on where the block that they end is looked at
    **dict.fromkeys(("scf.yield", "scf.condition", "tt.return", "cf.br", "cf.cond_br"), lambda walk, op: None),
    "llvm.intr.assume": lambda walk, op: None,
}
"""What each gives its results, by its name."""


# --- integer arithmetic of TTIR as terms: what each operation gives, if nothing wraps around --------------------------


RULES: dict[str, Callable[..., Any]] = {}  # by the operation's name; a rule takes (walk, op, *operands)


def bits_of(op: Op) -> int:
    """The width of the result's elements."""
    element = op.result_types[0].element
    return 64 if element == "index" else int(element[1:])


def fit(walk: Walk, op: Op, value: Term) -> Term:
    """`value`, which must be one that the result's type can hold."""
    half = 1 << (bits_of(op) - 1)
    walk.require(op, value, -half, half - 1)
    return value


@enters(RULES, "arith.divsi", "arith.remsi")
def _towards_zero(walk: Walk, op: Op, a: Term, b: Term) -> Value:
    """A quotient is rounded towards zero, a remainder has the sign of `a`."""
    divide = operator.floordiv if op.name == "arith.divsi" else operator.mod
    if op.name == "arith.divsi" and b.number is not None and b.number < 0:
        return fit(walk, op, -_with_sign(walk, divide, a, -b))
    walk.require(op, b, 1, None)
    return _with_sign(walk, divide, a, b)


def _with_sign(walk: Walk, divide: Callable[[Term, Term], Term], a: Term, b: Term) -> Term:
    positive = a >= 0
    return divide(a, b) if walk.known(positive) else choose(positive, divide(a, b), -divide(-a, b))


def _of(
    function: Callable[[Term, Term], Value], unsigned: bool = False, divides: bool = False, may_wrap: bool = False,
    of_masks: Callable[[Truth, Truth], Truth] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """What a function gives of two numbers, none of which may be negative where they are `unsigned`, or two masks."""

    def rule(walk: Walk, op: Op, a: Value, b: Value) -> Value:
        if isinstance(a, Truth) and isinstance(b, Truth):
            return of_masks(a, b) if of_masks else OTHER
        if not isinstance(a, Term) or not isinstance(b, Term):
            return OTHER
        if unsigned:
            _not_negative(walk, op, *((a,) if divides else (a, b)))
        if divides:
            walk.require(op, b, 1, None)
        value = function(a, b)
        return fit(walk, op, value) if may_wrap and isinstance(value, Term) else value

    return rule


def _either_alone(a: Truth, b: Truth) -> Truth:
    """The sum, or the difference, of two conditions: in one bit 1 + 1 is 0."""
    return (a & ~b) | (~a & b)


def _low_bits(a: Term, b: Term) -> Value:
    """`a & b`, where one of them is a number of which the low bits are set."""
    for value, number in ((a, b.number), (b, a.number)):
        if number is not None and number >= 0 and number & (number + 1) == 0:
            return value % (number + 1)
    return OTHER


RULES |= {
    "arith.select": lambda walk, op, condition, a, b: selected(condition, a, b),
    "arith.addi": _of(operator.add, may_wrap=True, of_masks=_either_alone),
    "arith.subi": _of(operator.sub, may_wrap=True, of_masks=_either_alone),
    "arith.muli": _of(operator.mul, may_wrap=True, of_masks=operator.and_),
    "arith.andi": _of(_low_bits, of_masks=operator.and_),
    "arith.ori": _of(lambda a, b: OTHER, of_masks=operator.or_),
    "arith.xori": _of(lambda a, b: -1 - a if b.number == -1 else OTHER, of_masks=_either_alone),
    "arith.divui": _of(operator.floordiv, unsigned=True, divides=True),
    "arith.remui": _of(operator.mod, unsigned=True, divides=True),
    "arith.floordivsi": _of(operator.floordiv, divides=True),
    "arith.ceildivsi": _of(lambda a, b: -(-a // b), divides=True),
    "arith.minsi": _of(least, of_masks=operator.or_),  # of signed bits, true is -1
    "arith.maxsi": _of(greatest, of_masks=operator.and_),
    "arith.minui": _of(least, unsigned=True, of_masks=operator.and_),
    "arith.maxui": _of(greatest, unsigned=True, of_masks=operator.or_),
}


def _not_negative(walk: Walk, op: Op, *values: Term) -> None:
    for value in values:
        walk.require(op, value, 0, None)


# --- bits -------------------------------------------------------------------------------------------------------------


@enters(RULES, "arith.shli")
def _shift_left(walk: Walk, op: Op, a: Term, b: Term) -> Value:
    return fit(walk, op, a * (1 << b.number)) if _is_shift(b, bits_of(op)) else OTHER  # type: ignore[operator]


@enters(RULES, "arith.shrsi", "arith.shrui")
def _shift_right(walk: Walk, op: Op, a: Term, b: Term) -> Value:
    if not _is_shift(b, bits_of(op)):
        return OTHER
    if op.name == "arith.shrui":
        walk.require(op, a, 0, None)
    return a // (1 << b.number)  # type: ignore[operator]


def _is_shift(value: Value, bits: int) -> bool:
    return isinstance(value, Term) and value.number is not None and 0 <= value.number < bits


# --- other types ------------------------------------------------------------------------------------------------------


@enters(RULES, "arith.extsi", "arith.extui")
def _widen(walk: Walk, op: Op, a: Value) -> Value:
    signed = op.name == "arith.extsi"
    if isinstance(a, Truth):
        return choose(a, term(-1 if signed else 1), ZERO)
    if not signed:
        walk.require(op, a, 0, None)  # type: ignore[arg-type]
    return a


@enters(RULES, "arith.trunci")
def _narrow(walk: Walk, op: Op, a: Term) -> Value:
    if op.result_types[0].element == "i1":
        return equal(a % 2, 1)
    return fit(walk, op, a)


@enters(RULES, "arith.index_cast")
def _index(walk: Walk, op: Op, a: Value) -> Value:
    return fit(walk, op, a) if isinstance(a, Term) else OTHER


# --- comparing and choosing -------------------------------------------------------------------------------------------

COMPARE: dict[str, Callable[[Term, Term], Truth]] = {
    "eq": equal, "ne": lambda a, b: ~equal(a, b), "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge,
}  # fmt: skip
"""By the predicate without its sign."""


@enters(RULES, "arith.cmpi")
def _compare(walk: Walk, op: Op, a: Value, b: Value) -> Value:
    predicate = str(op.attributes["predicate"])
    if isinstance(a, Truth) and isinstance(b, Truth):
        same = (a & b) | (~a & ~b)
        return {"eq": same, "ne": ~same}.get(predicate, OTHER)
    if not isinstance(a, Term) or not isinstance(b, Term):
        return OTHER
    if predicate[0] == "u":
        _not_negative(walk, op, a, b)
    return COMPARE[predicate if predicate in ("eq", "ne") else predicate[1:]](a, b)


def selected(condition: Truth, a: Value, b: Value) -> Value:
    """`a` where the condition holds, else `b`; OTHER where they are not of one kind."""
    if a is b or condition == TRUE:
        return a
    if isinstance(a, Term) and isinstance(b, Term):
        return choose(condition, a, b)
    if isinstance(a, Truth) and isinstance(b, Truth):
        return (condition & a) | (~condition & b)
    if isinstance(a, SymbolicPointer) and isinstance(b, SymbolicPointer) and a.is_beside(b):
        return replace(a, offset=choose(condition, a.offset, b.offset))
    return OTHER


# --- tiles: which element of which operand each lane of the result has ------------------------------------------------


@enters(RULES, "tt.make_range")
def _range(walk: Walk, op: Op) -> Value:
    start = op.attributes["start"]
    return lane(0, op.attributes["end"] - start) + start


@enters(RULES, "tt.splat", "tt.unsplat", "ttg.convert_layout")
def _same(walk: Walk, op: Op, a: Value) -> Value:
    shape = op.operand_types[0].shape
    return at_lanes(a, shape, [ZERO] * len(shape)) if op.name == "tt.unsplat" else a


@enters(RULES, "tt.expand_dims")
def _expand_dims(walk: Walk, op: Op, a: Value) -> Value:
    axis = op.attributes["axis"]
    places = lanes(op.result_types[0].shape)
    return at_lanes(a, op.operand_types[0].shape, places[:axis] + places[axis + 1 :])


@enters(RULES, "tt.broadcast")
def _broadcast(walk: Walk, op: Op, a: Value) -> Value:
    old, new = op.operand_types[0].shape, op.result_types[0].shape
    places = [ZERO if size == 1 else place for size, place in zip(old, lanes(new), strict=True)]
    return at_lanes(a, old, places)


@enters(RULES, "tt.trans")
def _transpose(walk: Walk, op: Op, a: Value) -> Value:
    order, new = op.attributes["order"], lanes(op.result_types[0].shape)
    places = [new[order.index(axis)] for axis in range(len(order))]
    return at_lanes(a, op.operand_types[0].shape, places)


@enters(RULES, "tt.reshape")
def _reshape(walk: Walk, op: Op, a: Value) -> Value:
    if op.attributes.get("allow_reorder"):
        return OTHER
    return reshaped(a, op.operand_types[0].shape, op.result_types[0].shape)


@enters(RULES, "tt.join")
def _join(walk: Walk, op: Op, a: Value, b: Value) -> Value:
    shape = op.result_types[0].shape
    return selected(equal(lane(len(shape) - 1, 2), ZERO), a, b)


@enters(RULES, "tt.addptr")
def _move(walk: Walk, op: Op, pointer: Value, by: Value) -> Value:
    return pointer.moved(by) if isinstance(pointer, SymbolicPointer) and isinstance(by, Term) else OTHER
