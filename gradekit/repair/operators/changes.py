"""Single changes of a kernel's source: at each expression what a beginner may have meant in its place.

What fits is seen from the values that a walk has met (`Watched`): a name of a kind for another of its kind, a factor
that fits a tile. Sentences name what is there, hints what to try.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

from gradekit.causes import Cause
from gradekit.interpreter.tile_values import TilePointer, ValueKind, fitted, kind_of
from gradekit.interpreter.walk import Watched
from gradekit.repair.work import Limit, Turn
from gradekit.source.kernel import EXP, KernelDraft, target_of
from gradekit.submission.parsed_source import ParsedSource, called, shown


class ChangeKind(IntEnum):
    """What a change is; of two that are both right, that which comes first here is the likelier mistake."""

    IDLE = 0
    STEP = 1
    NAME = 2
    FUNCTION = 3
    OPERATOR = 4
    SIDES = 5
    AXIS = 6
    IDLE_SIDE = 7
    COMPARISON = 8
    CONDITION = 9
    NUMBER = 10
    UPDATE = 11
    LANES = 12
    GUARD = 13
    BRACKET = 15
    OTHER_ROLE = 17
    DROPPED = 18
    WRAPPED = 19
    FACTOR = 20
    TERM = 21


PLAIN = (
    ChangeKind.IDLE, ChangeKind.NAME, ChangeKind.FUNCTION, ChangeKind.AXIS, ChangeKind.STEP,
    ChangeKind.COMPARISON, ChangeKind.CONDITION, ChangeKind.IDLE_SIDE,
)  # fmt: skip
"""What is seldom right in two places."""

LIKELY = (
    *PLAIN, ChangeKind.OPERATOR, ChangeKind.SIDES, ChangeKind.UPDATE, ChangeKind.LANES, ChangeKind.GUARD,
)  # fmt: skip
"""Where a change of such a kind makes all calls right, what is less likely is not looked at."""


@dataclass(frozen=True)
class Change:
    """A `new` text for a `node` of the function `within`, tried in its `turn`, with what a mend says.
    `built` is the new text's tree, where that is at hand, `also` what is changed with it, `lacks` the name that it puts
    to what is there, `at` the line to blame where that is not the node's, `cause` what it shows to be the cause,
    `edited` what a mend edits where the node only stands for it."""

    kind: ChangeKind
    within: str
    node: ast.AST
    new: str
    sentence: str
    hint: str
    turn: int = 0
    built: ast.AST | None = None
    also: tuple[Change, ...] = ()
    lacks: str = ""
    at: int = 0
    cause: Cause | None = None
    edited: ast.AST | None = None

    @property
    def parts(self) -> tuple[Change, ...]:
        """It, and those that are made with it."""
        return (self, *self.also)

    @property
    def line(self) -> int:
        """The line to blame."""
        return self.at or getattr(self.node, "lineno", 0)

    @property
    def lines(self) -> tuple[int, ...]:
        """Where it changes something."""
        return tuple(sorted({getattr(part.node, "lineno", 0) for part in self.parts}))


def digits(number: str) -> str:
    """The digits of a number from the first to the last that is not 0, without its power of 10."""
    return re.sub(r"\D", "", number.partition("e")[0]).strip("0")


def at_once(changes: Iterable[Change]) -> Change:
    """Several changes made together, in the words of the first."""
    first, *rest = changes
    return replace(first, also=tuple(rest))


def parsed(change: Change) -> ast.AST | None:
    """The tree of a change's text; None where that is not Python."""
    if change.built is not None:
        return change.built
    try:
        if isinstance(change.node, ast.stmt):
            body = ast.parse(change.new).body
            return body[0] if len(body) == 1 else ast.If(ast.Constant(True), body, [])
        return ast.parse(f"({change.new})", mode="eval").body
    except SyntaxError:
        return None


ALL_TURNS = range(Turn.IDLE, Turn.LAST + 1)


class Site:
    """Source as it was walked: `parents` has the node around each node, `within` the function that changes are of."""

    def __init__(self, source: ParsedSource, parents: Mapping[ast.AST, ast.AST], within: str = "") -> None:
        self.source, self.parents, self.within = source, parents, within

    def statement(self, node: ast.AST) -> ast.AST:
        """The statement that a node is part of."""
        while not isinstance(node, ast.stmt) and node in self.parents:
            node = self.parents[node]
        return node

    def change(
        self, kind: ChangeKind, node: ast.AST, new: str, says: tuple[str, str], turn: int = 0,
        built: ast.AST | None = None, lacks: str = "",
    ) -> Change:  # fmt: skip
        """A change with what it says: a sentence without its "Line n", and a hint."""
        line = getattr(node, "lineno", 0)
        return Change(kind, self.within, node, new, f"Line {line} {says[0]}", says[1], turn, built, lacks=lacks)

    def context(self, node: ast.AST) -> str:
        """The piece of source around a node that a sentence shows: as much of the expression around it as that can
        show, the node in sight, and no other like it."""
        own, best, wider = self.source.of(node), node, self.parents.get(node)
        while isinstance(wider, (ast.expr, ast.keyword)) and len(text := self.source.of(wider)) <= Limit.CHANGE_TEXT:
            if best is not node and text.count(own) > 1 and self._stands_again(own, wider):
                break
            best, wider = wider, self.parents.get(wider)
        if best is node and isinstance(wider, (ast.expr, ast.stmt)):
            best = wider
        return shown(self.source.of(best), at=self.source.span(node)[0] - self.source.span(best)[0])

    def _stands_again(self, text: str, around: ast.AST) -> bool:
        """Whether more than one expression in a larger one has this text."""
        return sum(isinstance(one, ast.expr) and self.source.of(one) == text for one in ast.walk(around)) > 1


class ChangeSite(Site):
    """One function of a source, as it was walked. Of some rules, only changes of these `turns` are asked for; `numbers`
    are those of the handout's formulas, and `lacks` is what all of the result must be multiplied by, if that is all."""

    def __init__(
        self, kernel: KernelDraft, watched: Watched, turns: range = ALL_TURNS, numbers: Sequence[str] = (),
        lacks: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(kernel.source, kernel.parents, kernel.name)
        self.kernel, self.watched, self.turns, self.numbers, self.lacks = kernel, watched, turns, numbers, lacks
        self._kinds: dict[ast.AST, ValueKind | None] = {}
        self._names: dict[ast.AST, dict[str, ValueKind]] = {}

    def kind(self, node: ast.AST) -> ValueKind | None:
        """The kind of the value that an expression had when it was met first; None where it was not met."""
        if node not in self._kinds:
            self._kinds[node] = kind_of(self.watched.values.get(node))
        return self._kinds[node]

    def names(self, node: ast.AST) -> dict[str, ValueKind]:
        """The names that are known where an expression stands, with their kinds."""
        statement = self.kernel.statement(node)
        if statement not in self._names:
            known = self.watched.names.get(statement, {})
            self._names[statement] = {
                name: kind for name, value in known.items() if (kind := kind_of(value)) is not None
            }
        return self._names[statement]

    def role(self, name: str) -> str:
        """What a parameter is for: "stride", "constant" or "length"; "" for any other, and for what is computed."""
        kernel = self.kernel
        roles = {"stride": kernel.strides, "constant": kernel.constexprs, "length": kernel.lengths}
        return next((role for role, names in roles.items() if name in names), "")

    def is_idle(self, name: str) -> bool:
        """Whether nothing uses a name's value and something should: a length may be there for masks alone."""
        is_length = name in self.kernel.lengths and name not in self._pointers
        known = name in self.kernel.values or name in self.kernel.all_params and not is_length
        return known and not self.kernel.uses.get(name) and not name.startswith("_")

    def is_number(self, name: str, node: ast.AST) -> bool:
        """Whether a name is 0 or 1 where a node stands, and nothing else: it was given no other value."""
        known = self.watched.names.get(self.kernel.statement(node), {}).get(name)
        given = (value for of, value in self.kernel.assigned if of == name and isinstance(value, ast.Constant))
        is_one = isinstance(known, (int, float)) and known in (0, 1)
        return is_one and self.is_steady(node) and any(one.value == known for one in given)

    @cached_property
    def _pointers(self) -> set[str]:
        """The parameters that were pointers when the kernel began."""
        first = next(iter(self.watched.names.values()), {})
        return {name for name, value in first.items() if isinstance(value, TilePointer)}

    def is_near(self, name: str, node: ast.AST, lines: int = Limit.NEAR) -> bool:
        """Whether a name is used or made within so many lines of a node, or spelled almost like a name there."""
        line, mine = getattr(node, "lineno", 0), getattr(node, "id", "")
        is_alike = name in mine or mine in name or len(name) == len(mine) and sum(map(str.__ne__, name, mine)) == 1
        return mine != "" and is_alike or any(abs(other - line) <= lines for other in self._lines.get(name, ()))

    @cached_property
    def _lines(self) -> dict[str, list[int]]:
        """The lines in which a name stands."""
        found: dict[str, list[int]] = {}
        for node in self.kernel.nodes:
            if isinstance(node, ast.Name):
                found.setdefault(node.id, []).append(node.lineno)
        return found

    @cached_property
    def comparisons(self) -> list[ast.Compare]:
        """All of the source."""
        return [one for one in ast.walk(self.source.tree) if isinstance(one, ast.Compare)]

    @cached_property
    def module_numbers(self) -> dict[str, ast.Constant]:
        """The number with a point that stands in the value of each name of the module."""
        given = ((one, part) for one in self.source.tree.body if isinstance(one, ast.Assign) for part in ast.walk(one))
        return {
            target_of(one): part for one, part in given
            if isinstance(part, ast.Constant) and isinstance(part.value, float)
        }  # fmt: skip

    @cached_property
    def missing_numbers(self) -> list[str]:
        """The numbers of the handout's formulas that the kernel does not have, be it with fewer digits."""
        shared = (part for one in self.source.tree.body if isinstance(one, ast.Assign) for part in ast.walk(one))
        every = (one.value for one in (*self.kernel.nodes, *shared) if isinstance(one, ast.Constant))
        known = {digits(repr(one))[: Limit.SHORT] for one in every if isinstance(one, float)}
        return [number for number in self.numbers if digits(number)[: Limit.SHORT] not in known]

    @cached_property
    def exp(self) -> str:
        """The function with which the source's kernels compute powers."""
        return min(self._called & {*EXP}, default=EXP[0])

    @cached_property
    def has_powers_of_2(self) -> bool:
        """Whether the source's kernels compute powers of 2, or logarithms to that base."""
        return any(name.endswith(("exp2", "log2")) for name in self._called)

    @cached_property
    def _called(self) -> set[str]:
        return {called(node) for function in self.source.kernels for node in ast.walk(function)}

    def less_maxima(self, node: ast.AST) -> dict[str, tuple[int, ...]]:
        """exp(a - b) for each maximum b, of a or of a and another, that is known at a node; with the shape of a."""
        found, names = dict[str, tuple[int, ...]](), self.names(node)
        for top, part in ((top, part) for top, parts in self._maxima.items() for part in parts if top in names):
            if (one := names.get(part)) and (text := fitted(top, names[top].shape, one.shape)):
                found[f"{self.exp}({part} - {text})"] = one.shape
        return found

    @cached_property
    def _maxima(self) -> dict[str, set[str]]:
        """For each name that is given a maximum, or chooses one by a condition, the names of what it is that of."""
        found: dict[str, set[str]] = {}
        for name, value in self.kernel.assigned:
            named = [one.id for one in getattr(value, "args", ()) if isinstance(one, ast.Name)]
            if called(value) == "tl.where":
                named = [part for one in named for part in found.get(one, ())]
            if called(value) in ("tl.max", "tl.maximum", "tl.where"):
                found.setdefault(name, set()).update({*named} - {name})
        return found

    @cached_property
    def functions(self) -> set[str]:
        """The functions of the source that a kernel may call."""
        return {function.name for function in self.source.kernels}

    def is_steady(self, node: ast.AST) -> bool:
        """Whether an expression stands in no loop."""
        return not any(isinstance(one, (ast.For, ast.While)) for one in self._around(node))

    def _around(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.kernel.parents:
            node = self.kernel.parents[node]
            yield node

    def change(self, kind: ChangeKind, node: ast.AST, new: str, *told: Any, **more: Any) -> Change:
        """A change; a stride that nobody used is why whatever was seen went wrong."""
        change = super().change(kind, node, new, *told, **more)
        is_stride = kind is ChangeKind.IDLE and "stride" in (self.role(new), self.role(change.lacks))
        return replace(change, cause=Cause.IGNORES_STRIDES) if is_stride else change
