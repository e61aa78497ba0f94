"""Wants: what must be seen of a submission, each a question of which calls show it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from gradekit.domain import evaluate
from gradekit.domain.expressions import names_in
from gradekit.engine import Op
from gradekit.engine.branch_coverage import CLAMP
from gradekit.engine.def_use import LOADS
from gradekit.engine.mask_coverage import MASKED
from gradekit.unseen.host_branches import Path
from gradekit.unseen.kernel_branches import NARROW, KernelBranch, KernelText
from gradekit.unseen.kernel_values import goes
from gradekit.unseen.search import Calls, Candidates


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


COMPARING = frozenset({"arith.cmpf", "arith.minnumf", "arith.maxnumf", "arith.minimumf", "arith.maximumf"})
"""Operations that compare two floats."""

_OF_MANY = ("tt.reduce", "tt.dot")

LEAST_FAR = 2.0
"""Numbers nearer to zero than this are reached, or passed, by values of any kind."""


@dataclass(frozen=True)
class Missing:
    """A way of a kernel that no run has gone, to be gone by some program, lane and turn, or `everywhere`, with two of
    each size where that is possible; and an operation, by number in a kernel, that could go it."""

    branch: KernelBranch
    text: KernelText
    number: int
    everywhere: bool = False
    numbers: ClassVar[tuple[int, ...]] = ()

    def met(self, among: Calls) -> Tensor | None:
        """See `gradekit.unseen.search.Want`."""
        found = torch.zeros(among.count, dtype=torch.bool)
        for place, (kernel, _, _) in enumerate(among.launches):
            if kernel != self.branch.kernel:
                continue
            ways = [goes(self.text, self.number, self.branch, corner) for corner in among.corners(self.text, place)]
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

    @property
    def line(self) -> int | None:
        """Of the submission."""
        return self.branch.line

    @property
    def order(self) -> tuple[Any, ...]:
        """Sorts ways by lines."""
        return self.line or 0, self.branch.place, self.branch.name, self.branch.way, self.branch.dtypes

    def launching(self, paths: Sequence[Path]) -> list[Path]:
        """The paths that launch the kernel: where dtypes matter to it, those with dtypes most like its own. Of those on
        which sizes decide the same, the first."""
        found = [path for path in paths if any(one.kernel == self.branch.kernel for one in path.explored.launches)]
        if self.branch.dtypes and found:
            apart = [len({view.dtype for view in path.form.views} ^ set(self.text.dtypes)) for path in found]
            found = [path for path, count in zip(found, apart, strict=True) if count == min(apart)]
        return list({(path.decisions, path.launches): path for path in reversed(found)}.values())[::-1]

    @property
    def behind(self) -> list[Op]:
        """What the operation depends on."""
        return self.text.behind(tuple(self.text.ops[self.number].operands))

    @property
    def is_loaded(self) -> bool:
        """Whether it depends on elements of tensors."""
        return any(op.name in LOADS for op in self.behind)

    @property
    def is_of_sizes(self) -> bool:
        """Whether sizes may decide which way it goes: not what was loaded."""
        return not any(op.name in LOADS for op in self.text.behind(tuple(self._deciding)))

    @property
    def is_of_many(self) -> bool:
        """Whether it depends on many elements together: how many are negative, or their sum."""
        behind = self.text.computed_from(self._deciding)
        return not behind.isdisjoint(_OF_MANY) and not behind.isdisjoint(LOADS)

    @property
    def is_far(self) -> bool:
        """Whether it compares what was computed from loaded elements, through loops too, with a number away from 0."""
        op = self.text.ops[self.number]
        numbers = [n for n in map(self.text.number, op.operands) if n is not None]
        if op.name not in (*COMPARING, CLAMP, "arith.cmpi") or not any(abs(n) > LEAST_FAR for n in numbers):
            return False
        behind = self.text.computed_from(self._deciding)
        return self.is_of_many if op.name == "arith.cmpi" else not behind.isdisjoint(LOADS)

    @property
    def _deciding(self) -> Sequence[str]:
        """Those of its operands that decide which way it goes: not what is chosen or stored."""
        op = self.text.ops[self.number]
        if op.name in MASKED:
            return op.operands[1 if op.name == "tt.load" else 2 :][:1]
        return op.operands[:1] if op.name in ("arith.select", "scf.if", "cf.cond_br") else op.operands[:3]

    def says(self) -> str:
        """The way, as a sentence about a call that goes it."""
        return self.branch.gone


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
    """An index of a kernel taken modulo a number (`b % 64`, `b & 63`, an int8) that is to reach it: below, nothing
    shows what becomes of the indices beyond. Of what was loaded, the largest that a tensor promises reaches twice as
    far."""

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
        return (self.divisor, 2 * self.divisor)

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
        if not found and among.most_held is not None and self._is_loaded:
            found.append(among.each(among.most_held) >= 2 * self.divisor)
        return torch.stack(found).any(dim=0) & among.taking if found else None

    @property
    def _is_loaded(self) -> bool:
        behind = self.text.behind(tuple(self.text.ops[self.number].operands[:1]))
        return any(op.name in LOADS and op.result_types[0].element[0] == "i" for op in behind)

    def level(self, among: Calls) -> None:
        """See `Want`."""


SizeWant = ConstantWay | Wrapped
"""What sizes decide, and no coverage of a kernel's branches shows."""

_REMAINDERS = ("arith.remsi", "arith.remui", "arith.andi")


def wrapped_indices(texts: Iterable[KernelText]) -> list[Wrapped]:
    """The remainders by a number that is the same in each specialization of a kernel: others are sizes."""
    found: dict[tuple[str, Any], dict[int, Wrapped]] = {}
    for text in texts:
        for number, op in enumerate(text.ops):
            divisor = _divisor(text, op)
            if divisor > 1:
                each = found.setdefault((text.name, text.places[number]), {})
                each.setdefault(divisor, Wrapped(text, number, divisor))
    return [one for each in found.values() if len(each) == 1 for one in each.values()]


def _divisor(text: KernelText, op: Op) -> int:
    """From which number on a remainder is another; 0 of what is none."""
    if op.name == "arith.trunci":
        return NARROW.get(op.result_types[0].element, 0)
    divisor = text.number(op.operands[1]) if op.name in _REMAINDERS else None
    if divisor is None or op.result_types[0].element == "i1":
        return 0
    ones = int(divisor) + 1 if op.name == "arith.andi" else 0
    return int(divisor) if not ones else ones if ones & ones - 1 == 0 else 0
