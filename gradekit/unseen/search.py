"""One search for sizes: among many candidates for a path through host code, those that meet a want.

A want says what must be seen. The smallest call that shows it is made, and a larger one of
that order.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from gradekit.domain import evaluate, names_in
from gradekit.engine.branch_coverage import MASKED, SEVERAL
from gradekit.engine.def_use import LOADS
from gradekit.engine.ttir import Op
from gradekit.prove.host_terms import Leaf, behind, leaves_in
from gradekit.reuse import LruCache, SharedCache, shared
from gradekit.unseen import Limit
from gradekit.unseen.host_branches import HostBranch, Path, TracedForm
from gradekit.unseen.kernel_branches import KernelBranch, KernelText, Place, corners, goes
from gradekit.unseen.layouts import sampled
from gradekit.unseen.scope import CLOSE, CallScope, constants, possible_sizes


@dataclass(frozen=True, eq=False)
class Calls:
    """So many calls beside a path: the numbers that host code is given in them, as columns."""

    path: Path
    leaves: Mapping[Leaf, Any]
    count: int
    _corners: dict[tuple[KernelText, int], list[Place]] = field(default_factory=dict)

    @staticmethod
    def of(path: Path, forms: Sequence[TracedForm]) -> Calls:
        """Those that have been made, and took the path."""
        mine = [form for form in forms if form.kind == path.form.kind and path.taken_by(form)]
        leaves = {leaf: torch.tensor([one.leaves[leaf] for one in mine]) for leaf in (mine[0].leaves if mine else ())}
        return Calls(path, leaves, len(mine))

    def each(self, value: Any) -> Tensor:
        """A value for each of the calls."""
        return torch.as_tensor(value).expand(self.count)

    @functools.cached_property
    def _values(self) -> Sequence[Any]:
        return self.path.values(self.leaves)

    @functools.cached_property
    def held(self) -> Sequence[Any]:
        """For each comparison of the path where it goes as it did; None where that is not known."""
        return self.path.held(self._values)

    @functools.cached_property
    def gaps(self) -> Sequence[Any]:
        """For each comparison how far it is from where it turns (see `Path.gaps`)."""
        return self.path.gaps(self._values)

    @functools.cached_property
    def taking(self) -> Tensor:
        """Where all comparisons go as they did."""
        known = [self.each(went) for went in self.held if went is not None]
        return torch.stack(known).all(dim=0) if known else self.each(True)

    @functools.cached_property
    def launches(self) -> Sequence[tuple[str, tuple[Any, ...], Mapping[str, Any]]]:
        """The kernels' names with the grid and the whole numbers that they get."""

        def at(number: int) -> Any:
            return self._values[number] if 0 <= number < len(self._values) else None

        return [
            (launch.kernel, tuple(map(at, launch.grid)), {name: at(number) for name, number in launch.names})
            for launch in self.path.explored.launches
        ]

    def corners(self, text: KernelText, place: int) -> list[Place]:
        """The corners of a launch, with the values that are known of the kernel there."""
        if (text, place) not in self._corners:
            _, grid, names = self.launches[place]
            self._corners[text, place] = corners(grid, names)
        return self._corners[text, place]


class Candidates(Calls):
    """Calls with sizes that a check may have, `columns` by name: with how many `elements` of the largest tensor; with
    `layouts`, strides and offsets of their own."""

    def __init__(
        self, path: Path, scope: CallScope, columns: Mapping[str, Tensor], layouts: Mapping[Leaf, Tensor] | None = None
    ) -> None:
        leaves, count = scope.leaves(columns), len(next(iter(columns.values())))
        super().__init__(path, {**leaves, **(layouts or {})}, count)
        self.scope, self.columns, self.layouts = scope, columns, layouts or {}

    @functools.cached_property
    def elements(self) -> Tensor:
        """Of the largest tensor."""
        return self.scope.elements(self.columns)

    @functools.cached_property
    def _tiles(self) -> Mapping[str, int]:
        """The sizes that a grid is made of, and by what they are divided."""
        tiles: dict[str, int] = {}
        terms, named = self.path.origins.terms, self.scope.named
        for number in behind(terms, [n for launch in self.path.explored.launches for n in launch.grid]):
            match terms[number]:
                case ("//", int(a), int(b)) if terms[b][0] == "number" and int(terms[b][1]) > 1:
                    for name in {named[leaf] for leaf in leaves_in(terms, a) if named.get(leaf) in self.columns}:
                        tiles[name] = max(tiles.get(name, 1), int(terms[b][1]))
        return tiles

    def _in_several_tiles(self, sizes: Mapping[str, int], want: Want) -> list[dict[str, int]]:
        """These sizes, each of two tiles and a part of one; none where the want is not met so."""
        ragged = {name: size if size > 2 * tile and size % tile else max(size // tile, 2) * tile + 1
                  for name, tile in self._tiles.items() for size in [sizes[name]]}  # fmt: skip
        found = {**sizes, **ragged}
        far = replace(self.scope, beyond=Limit.FAR)
        if self.layouts or far.given or len(ragged) < 2 or not far.has(found):
            return []
        columns = {name: torch.tensor([size]) for name, size in found.items()}
        met = want.met(Candidates(self.path, self.scope, columns))
        return [found] if met is not None and bool(met) else []

    def solutions(self, want: Want) -> list[dict[str, int]]:
        """The smallest sizes and whole scalars, by name, that meet a want, and the largest of that order; and strides
        and offsets as their leaves say, such as "stride 0 1", where candidates have them."""
        fits = want.met(self)
        if fits is None or not bool(fits.any()):
            return []
        places = (self.several(fits) if self.layouts else fits).nonzero().view(-1)
        first = self._smallest(places)
        places = places[self.elements[places] <= max(float(self.elements[first]), Limit.LARGER_ELEMENTS)]
        for column in self.columns.values():
            places = places[column[places] <= Limit.LARGER * max(int(column[first]), Limit.USUAL)]
        product, elements = self._sizes(places).prod(dim=0), self.elements[places]
        most = max(float(self._sizes(torch.tensor([first])).prod()), Limit.LARGER_PRODUCT)
        large = torch.where(product <= most, product + elements / (elements.max() + 1), 0)
        odd = sum(column[places] % 2 for column in self.columns.values()) * (large * Limit.HARDLY_MORE >= large.max())
        is_summed = bool(self.path.form.wanted)  # gradients are, in parts: odd sizes leave a rest
        largest = (is_summed * odd * (large.max() + 1) + large).argmax()
        chosen = dict.fromkeys([first, int(places[largest])])
        every = {**self.columns, **{" ".join(map(str, leaf)): column for leaf, column in self.layouts.items()}}
        sizes = [{name: int(column[place]) for name, column in every.items()} for place in chosen]
        # Of large calls, often only the first is afforded.
        place = int(self.scope.count(sizes[0]) < Limit.MANY_ELEMENTS)
        sizes[place:place] = [one for one in self._in_several_tiles(sizes[0], want) if one not in sizes]
        return sizes

    def several(self, fits: Tensor) -> Tensor:
        """Those of the calls in which most strides count, if there are any: with two of each size or more; with gaps
        among elements, and some repeated where they are in the path's call."""
        among = [torch.stack([column > 1 for column in self.columns.values()]).all(dim=0)]
        for number in self.path.strided if self.layouts else ():
            axes = range(len(self.path.form.views[number].shape))
            columns = ([self.each(self.leaves[kind, number, axis]) for axis in axes] for kind in ("size", "stride"))
            shape, strides = map(torch.stack, columns)
            repeats = ((shape > 1) & (strides == 0)).any(dim=0) == (0 in self.path.form.views[number].stride)
            among += [repeats, 1 + ((shape - 1) * strides).sum(dim=0) > shape.prod(dim=0)]
        for one in among:
            fits = fits & one if bool((fits & one).any()) else fits
        return fits

    def _smallest(self, places: Tensor) -> int:
        """That with the fewest elements; of those with hardly more, the cheapest, whose sizes are most alike."""
        few = self.elements[places]
        places = places[few <= Limit.HARDLY_MORE * few.min()]
        sizes = self._sizes(places)
        return int(places[(sizes.prod(dim=0) * sizes.amax(dim=0)).argmin()])

    def _sizes(self, places: Tensor) -> Tensor:
        return torch.stack([column[places].double().clamp(min=1) for column in self.columns.values()])


_found: SharedCache[Hashable, list[dict[str, int]]] = shared()
"""What was found, by the contents of the path and the want: host code, or a kernel, may be the same in another text."""


Near = int | tuple[tuple[str, int], ...]


class Search:
    """The candidates of paths, worked out once for all wants; of paths that decide the same, those of the first."""

    def __init__(self) -> None:
        self._first: dict[Hashable, Path] = {}
        self._known: LruCache[Hashable, tuple[Candidates | None]] = LruCache(Limit.KEPT_SETS)

    def solutions(
        self, want: Want, path: Path, scope: CallScope, special: tuple[int, ...] = (), close: Near = CLOSE
    ) -> list[dict[str, int]]:
        """Calls of `scope` that take a path and meet a want, looked for near the path's numbers and those that are
        `special`; by how tensors lie in memory, where sizes stand in place of a closeness, with these and others."""
        near = scope.content, special, close
        path = self._first.setdefault((path.way, near), path)
        asked = _content(want), path.content, near
        found = _found.get(asked)
        if found is None:
            (among,) = self._known.get(asked[1:]) or (_candidates(path, scope, special, close),)
            self._known.put(asked[1:], (among,))
            found = among.solutions(want) if among is not None else []
            _found.put(asked, found)
        return found


def _candidates(path: Path, scope: CallScope, special: tuple[int, ...], close: Near) -> Candidates | None:
    terms = path.origins.terms
    compared = [terms[n] for condition, _ in path.steps for n in (condition.left, condition.right)]
    numbers = (*special, *constants([*compared, *terms]))
    if isinstance(close, tuple):
        columns, layouts = sampled(scope, path, numbers, dict(close))
    else:
        columns, layouts = possible_sizes(scope, numbers, scope.sizes_of(path.form), close), {}
    return Candidates(path, scope, columns, layouts) if any(column.numel() for column in columns.values()) else None


# --- wants: what must be seen of a submission, each a question of which calls show it ---------------------------------

Way = tuple[Hashable, bool]
"""A branch, or one with which tensors are contiguous, and whether it is true."""


@dataclass(frozen=True)
class OtherWay:
    """A step of a path that must go the other way. Those before it, all on the `same_path`, or most, go as they did;
    so does the step `kept`, wherever it stands."""

    path: Path
    step: int
    same_path: bool = True
    kept: int | None = None

    @property
    def branch(self) -> HostBranch:
        """The comparison."""
        return self.path.steps[self.step][1]

    @property
    def asked(self) -> set[Leaf]:
        """What the comparison depends on."""
        condition, terms = self.path.steps[self.step][0], self.path.origins.terms
        return leaves_in(terms, condition.left, condition.right)

    @property
    def way(self) -> Way:
        """Equal for wants that one call meets."""
        return self.branch, not self.path.steps[self.step][0].held

    def met(self, among: Calls) -> Tensor | None:
        """By which of the calls it is met: of steps before it, the nearest first, behind which it is likelier to stand;
        beyond a limit, where that can be. None where that does not follow from sizes, as of the other wants."""
        kept = True if self.kept is None else among.held[self.kept]
        if among.held[self.step] is None or kept is None:
            return None
        fits, gap = ~among.each(among.held[self.step]) & torch.as_tensor(kept), among.gaps[self.step]
        for went in reversed(among.held[: self.step]):
            kept = fits & torch.as_tensor(went) if went is not None else fits
            fits = kept if self.same_path or kept.any() else fits
        beyond = fits & among.each(gap != -1) if gap is not None else fits
        return beyond if bool(beyond.any()) else fits


_OF_MANY = ("tt.reduce", "tt.dot")


@dataclass(frozen=True)
class AtEnd(OtherWay):
    """A step of a path that goes as it did, at the largest number for which it does."""

    @property
    def way(self) -> Way:
        """See `OtherWay`."""
        return (self.branch, self.path.form.is_plain), self.path.steps[self.step][0].held

    def met(self, among: Calls) -> Tensor | None:
        """See `OtherWay`."""
        gap = among.gaps[self.step]
        return among.taking & among.each((gap == 0) | (gap == -1)) if gap is not None else None


@dataclass(frozen=True)
class Missing:
    """A way of a kernel that no run has gone, to be gone by some program, lane and turn, or `everywhere`, with two of
    each size where that is possible; and an operation, by number in a kernel, that could go it: in the last turn of the
    loops `around`, which run several times."""

    branch: KernelBranch
    text: KernelText
    number: int
    everywhere: bool = False
    around: tuple[int, ...] = ()

    def met(self, among: Calls) -> Tensor | None:
        """See `OtherWay`."""
        found = torch.zeros(among.count, dtype=torch.bool)
        for place, (kernel, _, _) in enumerate(among.launches):
            if kernel != self.branch.kernel:
                continue
            ways = [*map(self._goes, among.corners(self.text, place))]
            each = [torch.as_tensor(way) for way in ways if way is not None]
            if each and (len(each) == len(ways) or not self.everywhere):
                found |= functools.reduce(torch.logical_and if self.everywhere else torch.logical_or, each)
        found &= among.taking
        return among.several(found) if self.everywhere and isinstance(among, Candidates) else found

    def _goes(self, corner: Place) -> Any:
        again = replace(self.branch, way=SEVERAL)
        ways = [goes(self.text, self.number, self.branch, corner)]
        ways += [goes(self.text, loop, again, corner) for loop in self.around]
        known = not any(way is None for way in ways) and (corner.last_turn or not self.around)
        return functools.reduce(operator.and_, ways) if known else None

    @property
    def line(self) -> int | None:
        """Of the submission."""
        return self.branch.line

    @property
    def column(self) -> int | None:
        """The operation's, in its line: the same in each copy of a function that the kernel calls."""
        location = self.text.ops[self.number].location
        return next((column for file, line, column in location if (file, line) == (self.text.path, self.line)), None)

    def launching(self, paths: Sequence[Path]) -> list[Path]:
        """The paths that launch the kernel: where dtypes matter to it, those with dtypes most like its own. Of those on
        which sizes decide the same, the first."""
        found = [path for path in paths if any(one.kernel == self.branch.kernel for one in path.explored.launches)]
        if self.branch.dtypes and found:
            apart = [len({view.dtype for view in path.form.views} ^ set(self.text.dtypes)) for path in found]
            found = [path for path, count in zip(found, apart, strict=True) if count == min(apart)]
        return list({path.way: path for path in reversed(found)}.values())[::-1]

    @property
    def behind(self) -> list[Op]:
        """What the operation depends on."""
        return self.text.behind(tuple(self.text.ops[self.number].operands))

    @property
    def is_of_sizes(self) -> bool:
        """Whether sizes may decide which way it goes: not what was loaded."""
        return not any(op.name in LOADS for op in self.text.behind(tuple(self._deciding)))

    @property
    def loaded(self) -> int:
        """How many values are loaded at once for what it decides, if that is for a whole program by what was loaded."""
        op = self.text.ops[self.number]
        if op.name not in ("scf.if", "cf.cond_br", "arith.select") or op.operand_types[0].shape:
            return 0
        loads = (op for op in self.text.behind(tuple(self._deciding)) if op.name in LOADS)
        return max((math.prod(op.result_types[0].shape) for op in loads), default=0)

    @property
    def is_of_many(self) -> bool:
        """Whether it depends on many elements together: how many are negative, or their sum."""
        behind = self.text.computed_from(self._deciding)
        return not behind.isdisjoint(_OF_MANY) and not behind.isdisjoint(LOADS)

    @property
    def _deciding(self) -> Sequence[str]:
        """Those of its operands that decide which way it goes: not what is chosen or stored."""
        op = self.text.ops[self.number]
        if op.name in MASKED:
            return op.operands[1 if op.name == "tt.load" else 2 :][:1]
        return op.operands[:1] if op.name in ("arith.select", "scf.if", "cf.cond_br") else op.operands[:3]

    def says(self) -> str:
        """The way, as a sentence about a call that goes it."""
        return self.branch.says()


@dataclass(frozen=True)
class ConstantWay:
    """A way of a kernel's comparison of its compile-time constants, `text`: the compiler decides it, and nothing of the
    way that it does not take is in the TTIR. Or it tells whether a loop `is_repeated`."""

    kernel: str
    line: int
    text: str
    is_repeated: bool = False
    way: bool = True

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those near which sizes are looked for."""
        return tuple(map(int, re.findall(r"\b\d+\b", self.text)))

    def says(self) -> str:
        """The way as a sentence."""
        return f"`{self.text}` is {self.way}"

    def met(self, among: Calls) -> Tensor | None:
        """See `OtherWay`: None where no size has a part in the constants."""
        mine = [names for kernel, _, names in among.launches if kernel == self.kernel]
        asked = names_in(self.text)
        sized = [names for names in mine if any(isinstance(names.get(name), Tensor) for name in asked)]
        known = [names for names in sized if all(names.get(name) is not None for name in asked)]
        found = [value for names in known if (value := _value(self.text, names)) is not None]
        each = [among.each(one).bool() == self.way for one in found]
        return torch.stack(each).any(dim=0) & among.taking if each else None


Want = OtherWay | Missing | ConstantWay
"""What must be seen."""


def _content(want: Want) -> Hashable:
    """Equal for wants that the same calls beside a path meet, of whichever submission."""
    if isinstance(want, Missing):
        return want.branch.kernel, want.branch.way, want.text.ttir, want.number, want.everywhere, want.around
    if isinstance(want, ConstantWay):
        return want
    return type(want), *(part for name, part in vars(want).items() if name != "path")


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


def _compared(kernel: ast.FunctionDef) -> Iterator[tuple[str, int, str, bool]]:
    arguments = [*kernel.args.args, *kernel.args.kwonlyargs]
    constants = {one.arg for one in arguments if one.annotation and "constexpr" in ast.unparse(one.annotation)}
    loops = [*_repeated(kernel)]
    for node in [*ast.walk(kernel), *loops]:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            cheap = not any(isinstance(one, (ast.Pow, ast.LShift)) for one in ast.walk(node))
            text = ast.unparse(node)
            if ast.unparse(node.left) == ast.unparse(node.comparators[0]):
                continue  # one way alone
            if names and names <= constants and cheap and _value(text, dict.fromkeys(names, 7)) is not None:
                yield kernel.name, node.lineno, text, node in loops


def _repeated(kernel: ast.FunctionDef) -> Iterator[ast.Compare]:
    """Of each loop over a range with a step, whether it runs more than once."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and len(node.iter.args) == 3:
            start, stop, step = node.iter.args
            second = step if ast.unparse(start) == "0" else ast.BinOp(start, ast.Add(), step)
            yield ast.copy_location(ast.Compare(stop, [ast.Gt()], [second]), node)
