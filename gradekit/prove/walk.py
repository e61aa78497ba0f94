"""A kernel's TTIR walked once, for a program of its grid that could be any: its accesses to memory as formulas.

Over-approximates: what is not known (a value that depends on data, a loop that is too hard) may be anything. So what is
proved of the accesses holds; what is refuted may be a mistake, until the engine has shown it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gradekit.engine import Block as OpBlock
from gradekit.engine import Function, Module, Op, Region, Type
from gradekit.prove.integer_rules import RULES, known_operands
from gradekit.prove.slicing import needed
from gradekit.prove.solve import Solver
from gradekit.prove.symbolic_access import Accesses, Owed, SymbolicAccess
from gradekit.prove.symbolic_values import OTHER, Value, lanes
from gradekit.prove.terms import FALSE, TRUE, Atom, Term, Truth, both, free, negated, of_atom, term

MOST_STEPS = 20_000
"""Operations that one walk may come by: branches and loops inside of each other multiply."""

Environment = dict[str, Value]
NOTHING: frozenset[Owed] = frozenset()


CONTROL: dict[str, Callable[[Walk, Op], None]] = {}
"""Loops, branches and calls: what each gives its results, by its name; loops.py enters them."""

MEMORY: dict[str, Callable[[Walk, Op], Sequence[Value]]] = {}
"""Operations on memory, by their names: the values that each gives; memory_rules.py enters them."""


class TooLong(Exception):
    """The kernel is too large to be followed."""


class Walk:
    """`program` are its ids, below `grid`; `arguments` are the values of the kernel's; `hypotheses` hold throughout."""

    def __init__(
        self, module: Module, file: str, arguments: Sequence[Value], grid: Sequence[Term],
        hypotheses: Sequence[Truth], solver: Solver, constant: frozenset[int] | None = None,
    ) -> None:  # fmt: skip
        self.module, self.file, self.grid, self.solver = module, file, tuple(grid), solver
        self.program = tuple(program_ids())
        self.hypotheses = list(hypotheses)
        self.constant = constant
        self.accesses = Accesses()
        self.values: Environment = {}
        self.owed_by: dict[str, frozenset[Owed]] = {}
        self.path: Truth = TRUE
        self.path_owed = NOTHING
        self.turns: tuple[Term, ...] = ()
        self.silent = False
        self.steps = 0
        self._op: Op | None = None
        self._owing: set[Owed] = set()
        self._fresh = itertools.count()
        self._needed: frozenset[str] = NOTHING  # type: ignore[assignment]
        self.enter(module.entry, arguments, [NOTHING] * len(arguments))

    # --- functions and blocks

    def enter(self, function: Function, arguments: Sequence[Value], owed: Sequence[frozenset[Owed]]) -> list[Value]:
        """Walks through a function; what it returns, OTHER where that depends on the way through it."""
        outer = self.values, self.owed_by, self._needed, self.path, self.path_owed
        self.values, self.owed_by, self._needed = {}, {}, self.followed(function)
        self.bind(function.arguments, arguments, owed)
        returned = self.blocks(function.body, 0)
        self.values, self.owed_by, self._needed, self.path, self.path_owed = outer
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
        ways = [condition, negated(condition)] if len(last.successors) == 2 else [TRUE]
        found: list[list[Value]] = []
        for way, (label, operands) in zip(ways, last.successors, strict=True):
            target = next(number for number, b in enumerate(region.blocks) if b.label == label)
            with self.under(way, self.owed(last.operands[:1]) if last.name == "cf.cond_br" else NOTHING):
                names = region.blocks[target].arguments
                self.bind(names, [self.get(o) for o in operands], [self.owed([o]) for o in operands])
                if self.reached:
                    found.append(self.blocks(region, target))
        return found[0] if len(found) == 1 else [OTHER] * len(found[0]) if found else []

    def bind(self, names: Sequence[str], values: Sequence[Value], owed: Sequence[frozenset[Owed]]) -> None:
        """Gives names their values, and what these owe."""
        self.values.update(zip(names, values, strict=True))
        self.owed_by.update(zip(names, owed, strict=True))

    def ops(self, block: OpBlock) -> None:
        """Walks through the operations of a block."""
        for op in block.ops:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise TooLong(f"more than {MOST_STEPS} operations")
            self.op(op)

    def op(self, op: Op) -> None:
        """One operation: gives its results their values."""
        if op.name in CONTROL:
            CONTROL[op.name](self, op)
            return
        self._op, self._owing = op, set()
        results = self._results(op)
        owed = self.owed(op.operands) | frozenset(self._owing)
        for name, value in zip(op.results, results, strict=True):
            self.values[name], self.owed_by[name] = value, owed

    def _results(self, op: Op) -> Sequence[Value]:
        if op.name in MEMORY:
            return MEMORY[op.name](self, op)
        if not any(name in self._needed for name in op.results):
            return [OTHER] * len(op.results)
        if op.name == "arith.constant":
            return [constant(op, self)]
        if op.name in ("tt.get_program_id", "tt.get_num_programs"):
            return [(self.program if op.name == "tt.get_program_id" else self.grid)[op.attributes["axis"]]]
        operands = [self.get(name) for name in op.operands]
        rule = RULES.get(op.name)
        value = rule(self, op, *operands) if rule and known_operands(operands) else OTHER
        return [self.unknown(op.result_types[0]) if value is OTHER else value, *map(self.unknown, op.result_types[1:])]

    # --- what rules ask

    def get(self, name: str) -> Value:
        """The value of a name."""
        return self.values.get(name, OTHER)

    def owed(self, names: Sequence[str]) -> frozenset[Owed]:
        """What the values of all the names owe."""
        return NOTHING.union(*(self.owed_by.get(name, NOTHING) for name in names))

    def owe(self, op: Op, value: Term, low: int | None, high: int | None) -> None:
        """The result of the operation is right only if `value` is from `low` to `high`."""
        least, most = value.range
        if (low is None or least is not None and least >= low) and (high is None or most is not None and most <= high):
            return
        self._owing.add(Owed(value, low, high, self.path, self.line(op)))

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
        return (*self.program, *self.turns, *(lane for lane in lanes(shape) if lane.parts))

    def condition(self, name: str) -> Truth:
        """The value of a condition; one that nobody knows where it is not known."""
        value = self.get(name)
        return value if isinstance(value, Truth) else free(f"?{next(self._fresh)}")

    @property
    def reached(self) -> bool:
        """Whether anything runs here, as far as that is certain."""
        return self.path.op != "false" or bool(self.path_owed)

    def line(self, op: Op) -> int | None:
        """The innermost line of the submission that the operation comes from."""
        return next((line for file, line, _ in op.location if file == self.file), None)

    @contextmanager
    def under(self, condition: Truth, owed: frozenset[Owed]) -> Iterator[None]:
        """What is walked through inside runs where the condition holds."""
        outer = self.path, self.path_owed
        self.path, self.path_owed = both(self.path, condition), self.path_owed | owed
        yield
        self.path, self.path_owed = outer

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """What is walked through inside is a trial: its accesses do not count."""
        outer, self.silent = self.silent, True
        yield
        self.silent = outer

    def touch(self, access: SymbolicAccess) -> None:
        """An access was found. One that is never made is one only if nothing is owed for that."""
        if not self.silent and (access.active.op != "false" or access.owed_always):
            self.accesses.found.append(access)


def constant(op: Op, walk: Walk) -> Value:
    """The value of a constant; a table of numbers is not known."""
    value = op.attributes.get("value")
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return (
        term(value)
        if isinstance(value, int) and op.result_types[0].element[0] == "i"
        else (walk.unknown(op.result_types[0]))
    )


def program_ids() -> list[Term]:
    """The place of a program in its grid: x, y and z."""
    from gradekit.prove.terms import var

    return [var(f"program {axis}", 0, most) for axis, most in zip("xyz", (2**31 - 2, 65534, 65534), strict=True)]
