"""Wants: what must be seen of a submission, each a question of which calls show it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.domain import evaluate
from gradekit.domain.expressions import names_in
from gradekit.origins import Condition
from gradekit.prove.assumptions import Symbol, one_of, term_of
from gradekit.prove.parts import atoms
from gradekit.prove.question import REFUTED
from gradekit.prove.solve import Solver
from gradekit.prove.symbolic_host import TERMS, Terms
from gradekit.prove.terms import Term, negated, var
from gradekit.size_terms import Leaf, evaluated, holds
from gradekit.unseen.host_branches import Path
from gradekit.unseen.kernel_branches import KernelText
from gradekit.unseen.kernel_values import goes
from gradekit.unseen.missing_ways import Missing
from gradekit.unseen.scope import CallScope
from gradekit.unseen.search import Calls, Candidates

STEPS = 2_000_000
"""The solver's own count of work for one comparison: about half a second."""


@dataclass(frozen=True)
class OtherWay:
    """A step of a path that is to go the other way, all before it being as they were, or where it need not be the
    `same_path` as many of them as can be."""

    path: Path
    step: int
    same_path: bool = True

    def met(self, among: Calls) -> Tensor | None:
        """See `Want`: of steps before it, the nearest first, behind which it is likelier to stand."""
        if among.held[self.step] is None:
            return None
        fits = ~among.each(among.held[self.step])
        for went in reversed(among.held[: self.step]):
            kept = fits & torch.as_tensor(went) if went is not None else fits
            fits = kept if self.same_path or kept.any() else fits
        return fits

    def level(self, among: Calls) -> Tensor | None:
        """See `Want`."""
        level = among.levels[self.step]
        return None if level is None else among.each(level)


@dataclass(frozen=True)
class KernelWay:
    """A way of a kernel that is to be gone by some program, lane and turn; or `everywhere`, with two of each size where
    that is possible."""

    missing: Missing
    everywhere: bool = False

    def met(self, among: Calls) -> Tensor | None:
        """See `Want`."""
        one, found = self.missing, torch.zeros(among.count, dtype=torch.bool)
        for place, (kernel, _, _) in enumerate(among.launches):
            if kernel != one.branch.kernel:
                continue
            ways = [goes(one.text, one.number, one.branch, corner) for corner in among.corners(one.text, place)]
            each = [torch.as_tensor(way) for way in ways if way is not None]
            if each and (len(each) == len(ways) or not self.everywhere):
                found |= functools.reduce(torch.logical_and if self.everywhere else torch.logical_or, each)
        found &= among.taking
        if not (self.everywhere and isinstance(among, Candidates)):
            return found
        several = found & torch.stack([column > 1 for column in among.columns.values()]).all(dim=0)
        return several if bool(several.any()) else found

    def level(self, among: Calls) -> None:
        """See `Want`."""


@dataclass(frozen=True)
class ConstantWay:
    """A way of a kernel's comparison of its compile-time constants, `text`: the compiler decides it, and nothing of the
    way that it does not take is in the TTIR."""

    kernel: str
    line: int
    text: str
    way: bool = True

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those near which sizes are looked for."""
        found = (one.value for one in ast.walk(ast.parse(self.text)) if isinstance(one, ast.Constant))
        return tuple(value for value in found if type(value) is int)

    def says(self, never: str = "") -> str:
        """The way as a sentence, or that it is `never` gone."""
        return f"`{self.text}` is {never}{self.way}"

    def met(self, among: Calls) -> Tensor | None:
        """See `gradekit.unseen.search.Want`: None where no size has a part in the constants."""
        mine = [names for kernel, _, names in among.launches if kernel == self.kernel]
        asked = names_in(self.text)
        sized = [names for names in mine if any(isinstance(names.get(name), Tensor) for name in asked)]
        known = [names for names in sized if all(names.get(name) is not None for name in asked)]
        found = [value for names in known if (value := _value(self.text, names)) is not None]
        each = [among.each(one).bool() == self.way for one in found]
        return torch.stack(each).any(dim=0) & among.taking if each else None

    def level(self, among: Calls) -> None:
        """See `Want`."""


def _value(text: str, names: Mapping[str, Any]) -> Any:
    """What an expression gives; None where that is nothing, as of a division by 0."""
    try:
        return evaluate(text, names)
    except (ValueError, ArithmeticError, RuntimeError):
        return None


def constant_ways(tree: ast.Module) -> list[ConstantWay]:
    """Those of the kernels of a submission."""
    kernels = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    tests = dict.fromkeys(one for kernel in kernels for one in _compared(kernel))
    return [ConstantWay(*one, way) for one in tests for way in (True, False)]


def _compared(kernel: ast.FunctionDef) -> Iterator[tuple[str, int, str]]:
    arguments = [*kernel.args.args, *kernel.args.kwonlyargs]
    constants = {one.arg for one in arguments if one.annotation and "constexpr" in ast.unparse(one.annotation)}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            cheap = not any(isinstance(one, (ast.Pow, ast.LShift)) for one in ast.walk(node))
            text = ast.unparse(node)
            if names and names <= constants and cheap and _value(text, dict.fromkeys(names, 7)) is not None:
                yield kernel.name, node.lineno, text


@dataclass(frozen=True)
class Wrapped:
    """An index of a kernel taken modulo a number (`b % 64`, `b & 63`) that is to reach it: below, nothing shows what
    becomes of the indices beyond."""

    text: KernelText
    number: int
    divisor: int

    @property
    def kernel(self) -> str:
        """Its name."""
        return self.text.name

    @property
    def line(self) -> int | None:
        """Of the submission."""
        return self.text.line(self.text.ops[self.number])

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those near which sizes are looked for."""
        return (self.divisor,)

    def says(self, never: str = "") -> str:
        """The way as a sentence, or that it is `never` gone."""
        return f"what is taken modulo {self.divisor} {never}reaches {self.divisor}"

    def met(self, among: Calls) -> Tensor | None:
        """See `gradekit.unseen.search.Want`."""
        found: list[Tensor] = []
        for place, (kernel, _, _) in enumerate(among.launches):
            for corner in among.corners(self.text, place) if kernel == self.kernel else ():
                value = corner.operand(self.text, self.number, 0)
                if value is not None:
                    found.append(among.each(value) >= self.divisor)
        return torch.stack(found).any(dim=0) & among.taking if found else None

    def level(self, among: Calls) -> None:
        """See `Want`."""


_REMAINDERS = ("arith.remsi", "arith.remui", "arith.andi")


def wrapped_indices(texts: Iterable[KernelText]) -> list[Wrapped]:
    """The remainders by a number that is the same in each specialization of a kernel: others are sizes."""
    found: dict[tuple[str, Any], dict[int, Wrapped]] = {}
    for text in texts:
        for number, op in enumerate(text.ops):
            divisor = text.number(op.operands[1]) if op.name in _REMAINDERS else None
            if divisor is None or op.result_types[0].element == "i1":
                continue
            divisor = int(divisor) + (op.name == "arith.andi")
            if divisor > 1 and (op.name != "arith.andi" or divisor & divisor - 1 == 0):
                each = found.setdefault((text.name, text.places[number]), {})
                each.setdefault(divisor, Wrapped(text, number, divisor))
    return [one for each in found.values() if len(each) == 1 for one in each.values()]


class _Ranged(Terms):
    """Terms whose ranges tell which ways a comparison can go: nothing is known of quotients by what may be negative."""

    def applied(self, symbol: str, a: Any, b: Any) -> Term | None:
        """See `gradekit.size_terms.Algebra`."""
        return None if symbol in ("//", "%") and (b.range[0] or 0) < 1 else super().applied(symbol, a, b)


_RANGED = _Ranged()


def can_go(terms: Sequence[Leaf], leaves: Mapping[Leaf, Term], condition: Condition, way: bool) -> bool:
    """Whether the ranges of sizes leave open that the comparison goes this way: that spares the solver most questions
    (a product of sizes from 1 on is never 0)."""
    asked = holds(condition, evaluated(terms, leaves, _RANGED), _RANGED)
    return asked is None or asked.op != ("false" if way else "true")


def possible(wanted: OtherWay, scope: CallScope) -> bool:
    """The same of the other way."""
    condition, _ = wanted.path.steps[wanted.step]
    return can_go(wanted.path.origins.terms, _leaves(scope, _symbols(scope)), condition, not condition.held)


def solved(wanted: OtherWay, scope: CallScope) -> list[dict[str, int]]:
    """The sizes that the solver finds, if it does."""
    names = _symbols(scope)
    values = evaluated(wanted.path.origins.terms, _leaves(scope, names), TERMS)
    held = [(holds(condition, values, TERMS), condition.held) for condition, _ in wanted.path.steps[: wanted.step + 1]]
    if held[-1][0] is None:
        return []
    conditions = [one if way == (step < wanted.step) else negated(one)
                  for step, (one, way) in enumerate(held) if one is not None]  # fmt: skip
    listed = ((names[name].term, scope.listed(name)) for name in scope.names)
    conditions += [one_of(size, only) for size, only in listed if only is not None]
    answer = Solver(STEPS).example(*scope.formulas(names), *conditions)
    if answer.verdict != REFUTED:
        return []
    return [{name: answer.values.get(atom.key, scope.range(name)[0])
             for name, size in names.items() for atom in atoms(size.term).values()}]  # fmt: skip


def _symbols(scope: CallScope) -> dict[str, Symbol]:
    return {name: Symbol(var(name, *scope.range(name))) for name in scope.names}


def _leaves(scope: CallScope, names: Mapping[str, Symbol]) -> dict[Leaf, Term]:
    return {leaf: term_of(value) for leaf, value in scope.leaves(names).items()}
