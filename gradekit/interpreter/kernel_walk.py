"""The walk of kernels: all programs of a grid at once, and several copies of a launch that differ in single nodes.

Where programs go different ways (`if` and loops by a value of theirs), each statement counts for those alone that are
there: `active` says which, None for all.
"""

import ast
import contextlib
import functools
from collections.abc import Collection, Mapping, Sequence
from copy import copy as shallow
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from gradekit.engine.budget import Meter
from gradekit.interpreter import Limit
from gradekit.interpreter.tile_values import (
    DTYPES,
    NotWalked,
    OutsideEverywhere,
    TileBlocks,
    TileMemory,
    TilePointer,
    aligned,
    computed,
    converted,
    mapped,
    negated,
    spread,
    tile_of,
)
from gradekit.interpreter.vocabulary import FUNCTIONS, combined, scanned, sizes_of
from gradekit.interpreter.walk import Code, Names, Returned, Substitution, Walk, Watched, bound
from gradekit.submission.parsed_source import called, dotted


@functools.lru_cache(maxsize=4096)
def parts_of(node: ast.AST) -> frozenset[ast.AST]:
    """All nodes of a tree, which nobody changes: in a loop, each step asks for them."""
    return frozenset(ast.walk(node))


class KernelWalk(Walk):
    """One launch: `grid` programs of a kernel."""

    def __init__(
        self, code: Code, grid: tuple[int, int, int], memory: TileMemory, meter: Meter,
        substitution: Substitution | None = None, watched: Watched | None = None,
    ) -> None:  # fmt: skip
        super().__init__(meter, substitution, watched)
        self.code, self.grid, self.memory = code, grid, memory
        self.programs, self.copies = grid[0] * grid[1] * grid[2], max(self.substitution.copies, 1)
        self.count = self.programs * self.copies
        self.active: Tensor | None = None
        self.gone: Tensor | None = None  # the programs that have returned
        self._within: Tensor | None = None  # those that were active where the function began that is walked
        self.apart = 0  # expressions that were evaluated for one copy alone
        self.longest, self.patience = 0, Limit.TURNS  # steps of a loop: the most that were seen, and that may be

    # --- values -------------------------------------------------------------------------------------------------------

    def operated(self, sign: str, left: Any, right: Any) -> Any:
        """`left sign right`, as Triton has it."""
        return self._spent(FUNCTIONS["dot"](left, right) if sign == "@" else computed(sign, left, right))

    def inverted(self, sign: str, value: Any) -> Any:
        """A unary operator."""
        return self._spent(negated(sign, value))

    def also(self, op: ast.boolop, found: Any, part: ast.expr, names: Names) -> Any:
        """`and` and `or` of tiles are those of their elements."""
        right = self.value(part, names)
        if not isinstance(found, Tensor):
            return right
        return computed("&" if isinstance(op, ast.And) else "|", found, right) if isinstance(right, Tensor) else found

    def items(self, value: Any) -> Sequence[Any]:
        """The parts of a tuple."""
        if not isinstance(value, tuple):
            raise NotWalked("parts of something else than a tuple")
        return value

    def outside(self, name: str) -> Any:
        """A constant of the module, or a function that is compiled too."""
        for known in (self.code.constants, self.code.functions):
            if name in known:
                return known[name]
        raise NotWalked(f"the name {name}")

    def name(self, name: str, value: Any, names: Names) -> None:
        """Gives a name to a value, for the programs that are active."""
        if self.active is not None and name in names:
            value = _merged(self.active, value, names[name])
        names[name] = value

    def decided(self, value: Any) -> Any:
        """A condition or a bound as a number, where all programs agree; otherwise a tile of one for each."""
        if not isinstance(value, Tensor):
            return value
        flat = value.reshape(-1 if value.dim() < 2 else value.shape[0])  # which a tile of several elements does not fit
        if flat.numel() == 1 or bool((flat == flat[0]).all()):
            return flat[0].item()
        return flat

    def _spent(self, found: Any) -> Any:
        self.meter.spend(1, found.numel() if isinstance(found, Tensor) else 0)
        return found

    # --- copies that differ in an expression --------------------------------------------------------------------------

    def substituted(self, node: ast.expr, names: Names) -> Any:
        """The value of an expression that is another one in some copies."""
        news = self.substitution.news[node]
        self.apart += len(news)
        if self.apart > Limit.FEW_APART:  # of long loops: there the walk itself takes longer than what it computes
            self.meter.spend(Limit.OPERATIONS_APART * len(news))
        if self.copies == 1:
            return super().substituted(node, names)
        del self.substitution.news[node]  # what stands in its place may contain it
        try:
            changed = {copy for copy, new in news if node not in parts_of(new)}
            with self.memory.meant_for(torch.tensor([copy not in changed for copy in range(self.copies)])):
                before = self.value(node, names) if len(changed) < self.copies else None
            values = [(copy, self._in_copy(copy, new, names, (node, before))) for copy, new in news]
        finally:
            self.substitution.news[node] = news
        given = [(copy, value) for copy, value in values if value is not None]
        return self._with_copies(given[0][1] if before is None else before, given) if given else before

    def _in_copy(self, copy: int, new: ast.AST, names: Names, known: tuple[ast.expr, Any]) -> Any:
        """The value of an expression in one copy, given that of the old one; None where the copy goes out of bounds."""
        rows = slice(copy * self.programs, (copy + 1) * self.programs)
        one = shallow(self)
        parts = parts_of(new)
        one.substitution, one.copies, one.count = Substitution(), 1, self.programs
        if any(isinstance(part, ast.Call) for part in parts):  # no other expression touches memory
            one.memory = self.memory.part(copy)
        one.active, one.gone = _rows(self.active, rows, self.count), _rows(self.gone, rows, self.count)
        one.known = {known[0]: _rows(known[1], rows, self.count)} if known[1] is not None else {}
        mine = {part.id for part in parts if isinstance(part, ast.Name)} & names.keys()
        try:
            return one.value(cast(ast.expr, new), {name: _rows(names[name], rows, self.count) for name in mine})
        except OutsideEverywhere:
            self.memory.lose(torch.arange(self.copies) == copy)
            return None

    def _with_copies(self, before: Any, values: Sequence[tuple[int, Any]]) -> Any:
        """A value with others, of its kind, in the rows of some copies."""
        if isinstance(before, TilePointer):
            if any(not isinstance(one, TilePointer) or one.storage != before.storage for _, one in values):
                raise NotWalked("pointers of several storages")
            return replace(before, offset=self._with_copies(before.offset, [(n, one.offset) for n, one in values]))
        tile, size = tile_of(before), self.programs
        first = tile if tile.shape[0] == self.count else tile[:1]  # that of one copy alone, where all have another
        found = first.expand(self.count, *tile.shape[1:]).clone()
        for copy, value in values:
            one = tile_of(value)
            if one.shape[1:] != tile.shape[1:] or one.is_floating_point() and not tile.is_floating_point():
                raise NotWalked("values of several kinds")
            rows = slice(copy * size, (copy + 1) * size)
            found[rows] = one
        return found

    # --- statements ---------------------------------------------------------------------------------------------------

    def run(self, kernel: str, names: Names) -> None:
        """Evaluates a kernel, unless no program is launched."""
        with contextlib.suppress(Returned):
            self.body(self.code.functions[kernel].body if self.count else (), names)

    def _return(self, node: ast.Return, names: Names) -> None:
        if self.active is None or self.active is self._within:
            return super()._return(node, names)
        if self._depth or node.value is not None:
            raise NotWalked("a return of some programs from a function")
        self.gone = self.active if self.gone is None else self.gone | self.active
        self.active = torch.zeros_like(self.active)

    def both_ways(self, node: ast.If, condition: Tensor, names: Names) -> None:
        """The body of a branch for some programs, and what is behind `else` for the others."""
        outer = self.active
        for way, statements in ((condition, node.body), (~condition, node.orelse)):
            self._among(outer, way)
            if statements and bool(self.active.any()):  # type: ignore[union-attr]
                self.body(statements, names)
        self._again(outer)

    def _among(self, outer: Tensor | None, way: Tensor) -> None:
        way = way.expand(self.count)
        self.active = way if outer is None else outer & way
        if self.gone is not None:
            self.active = self.active & ~self.gone

    def _again(self, outer: Tensor | None) -> None:
        self.active = outer
        if self.gone is not None:
            self.active = ~self.gone if outer is None else outer & ~self.gone

    def _while(self, node: ast.While, names: Names) -> None:
        outer = self.active
        for step in range(self.patience + 1):
            condition = self.decided(self.value(node.test, names))
            if isinstance(condition, Tensor):
                self._among(self.active, condition)
                if not bool(self.active.any()):  # type: ignore[union-attr]
                    break
            elif not condition:
                break
            if step == self.patience:
                self._give_up(torch.ones(self.count, dtype=torch.bool) if self.active is None else self.active)
                break
            self.longest = max(self.longest, step + 1)
            self.body(node.body, names)
        self._again(outer)

    def _give_up(self, programs: Tensor) -> None:
        if self.copies == 1:
            raise NotWalked("a loop of too many steps")
        self.memory.lose(programs)

    def statement(self, node: ast.stmt, names: Names) -> None:
        """One; what a loop has named first is not known behind it, unless Triton unrolls it."""
        before = {*names}
        super().statement(node, names)
        if isinstance(node, ast.While) or isinstance(node, ast.For) and not called(node.iter).endswith("static_range"):
            for name in names.keys() - before:
                del names[name]

    def _for(self, node: ast.For, names: Names) -> None:
        call = cast(ast.Call, self.replaced(node.iter))  # of a range: Triton has no other loop
        bounds = [self.decided(self.value(argument, names)) for argument in call.args[:3]]
        first, last = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else 1
        if isinstance(first, Tensor) or isinstance(last, Tensor):
            self._each_its_own(node, (tile_of(first), tile_of(last), step), names)
            return
        self.longest = max(self.longest, len(range(first, last, step)))
        if self.longest > self.patience:
            raise NotWalked("a loop of too many steps")
        for number in range(first, last, step):
            self.bind(node.target, number, names)
            self.body(node.body, names)

    def _each_its_own(self, node: ast.For, bounds: tuple[Tensor, Tensor, int], names: Names) -> None:
        first, last, step = bounds
        counts = -torch.div(first - last, step, rounding_mode="floor") if step > 0 else torch.zeros(1)
        if step < 0 or first.dim() > 1 or last.dim() > 1:
            raise NotWalked("a loop that counts down")
        if int(counts.max()) > self.patience:
            self._give_up((counts > self.patience).expand(self.count))
            counts = counts.clamp(max=self.patience)
        self.longest = max(self.longest, int(counts.max()))
        outer = self.active
        for number in range(max(int(counts.max()), 0)):
            self._among(outer, counts > number)
            self.bind(node.target, (first + number * step).expand(self.count), names)
            self.body(node.body, names)
        self._again(outer)

    # --- places and calls ---------------------------------------------------------------------------------------------

    def _subscript(self, node: ast.Subscript, names: Names) -> Any:
        tile = self.value(node.value, names)
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(tile, (tuple, list)):
            return tile[self.value(node.slice, names)]
        if isinstance(tile, TilePointer):
            return TilePointer(tile.storage, tile.dtype, _indexed(tile_of(tile.offset), places))
        return _indexed(tile_of(tile), places)

    def _attribute(self, node: ast.Attribute, names: Names) -> Any:
        path = dotted(node)
        if path.startswith(("tl.", "triton.language.")) or path.rpartition(".")[0] == "triton.language":
            return DTYPES[node.attr]
        value = self.value(node.value, names)
        if isinstance(value, TileBlocks):
            known = {"dtype": value.base.dtype, "block_shape": value.block, "shape": value.shape}
            return known[node.attr]
        if node.attr in ("dtype", "type"):
            return value if isinstance(value, TilePointer) or not isinstance(value, Tensor) else value.dtype
        if node.attr in ("element_ty", "scalar") and isinstance(value, TilePointer):
            return value.dtype if node.attr == "element_ty" else value
        if node.attr == "shape" and isinstance(value, Tensor):
            return sizes_of(value)
        if node.attr == "T" and isinstance(value, Tensor):
            return FUNCTIONS["trans"](value)
        if node.attr == "value" or isinstance(value, torch.dtype):
            return value
        raise NotWalked(f"the attribute {node.attr}")

    def _call(self, node: ast.Call, names: Names) -> Any:
        path = dotted(node.func)
        name = path.rpartition(".")[2] or getattr(node.func, "attr", "")
        args, given = self.arguments(node, names)
        if path in self.code.functions:
            return self._own(self.code.functions[path], args, given)
        if isinstance(node.func, ast.Attribute) and not path.startswith(("tl.", "triton.", "libdevice.", "math.")):
            args = [self.value(node.func.value, names), *args]
            if name == "to" and isinstance(args[0], TilePointer):
                raise NotWalked("a cast of a pointer")
        if path in ("min", "max") and len(args) == 2:  # Python's own, which Triton takes for numbers
            name = f"{path}imum"
        function = getattr(self, _SPECIAL[name]) if name in _SPECIAL else FUNCTIONS[name]
        return self._spent(function(*args, **given))

    def _own(self, function: ast.FunctionDef, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
        outer, self._within = self._within, self.active
        try:
            return self.returned(function.body, bound(function.args, args, given))
        finally:
            self._within = outer

    def _reduce(self, input: Any, axis: Any, combine_fn: Any) -> Any:
        return combined(input, axis, lambda *parts: self._own(combine_fn, parts, {}))

    def _scan(self, input: Any, axis: int, combine_fn: Any, reverse: bool = False) -> Any:
        return scanned(input, axis, lambda *parts: self._own(combine_fn, parts, {}), reverse)

    def _program_id(self, axis: int) -> Tensor:
        x, y, _ = self.grid
        linear = torch.arange(self.count) % self.programs
        return (linear % x, linear // x % y, linear // (x * y))[axis]

    def _num_programs(self, axis: int) -> int:
        return self.grid[axis]

    def _load(
        self, pointer: Any, mask: Any = None, other: Any = None, boundary_check: Collection[int] = (), **_: Any
    ) -> Tensor:
        if isinstance(pointer, TileBlocks):  # of a descriptor, the second argument is where the tile begins
            pointer, mask = pointer.tile(mask, boundary_check)
        if not isinstance(pointer, TilePointer):
            raise NotWalked("a load of no pointer")
        offset = tile_of(pointer.offset)
        mask = self._there(mask, offset)
        return self.memory.load(TilePointer(pointer.storage, pointer.dtype, offset), mask, other)

    def _store(
        self, pointer: Any, value: Any, mask: Any = None, boundary_check: Collection[int] = (), **_: Any
    ) -> None:
        if isinstance(pointer, TileBlocks):
            value, first = (value, ()) if pointer.offsets is not None else (mask, value)
            pointer, mask = pointer.tile(first, boundary_check)
        if not isinstance(pointer, TilePointer):
            raise NotWalked("a store to no pointer")
        self.memory.store(pointer, value, self._there(mask, tile_of(pointer.offset)), self.count)

    def _accumulated(self, kind: str, pointer: Any, val: Any, mask: Any = None, **_: Any) -> Tensor:
        return self.memory.accumulate(kind, pointer, val, self._there(mask, tile_of(pointer.offset)), self.count)

    _add = functools.partialmethod(_accumulated, "add")
    _max = functools.partialmethod(_accumulated, "max")
    _min = functools.partialmethod(_accumulated, "min")

    def _there(self, mask: Any, offset: Tensor) -> Any:
        """The mask, without the programs that are elsewhere."""
        if self.active is None:
            return mask
        active = self.active.reshape(-1, *(1 for _ in range(offset.dim() - 1)))
        return active if mask is None else torch.logical_and(*aligned(active, tile_of(mask).bool()))

    _list = Walk._tuple


_SPECIAL = {
    "program_id": "_program_id", "num_programs": "_num_programs", "load": "_load", "store": "_store",
    "atomic_add": "_add", "atomic_max": "_max", "atomic_min": "_min", "reduce": "_reduce",
    "associative_scan": "_scan",
}  # fmt: skip
"""The functions of tl that need more than their arguments, by what gives them."""


def _merged(active: Tensor, value: Any, before: Any) -> Any:
    """A value for the programs that are active, and what was before for the others."""
    if isinstance(value, tuple) and isinstance(before, tuple):
        return tuple(_merged(active, one, other) for one, other in zip(value, before, strict=True))
    if isinstance(value, TilePointer) and isinstance(before, TilePointer) and value.storage == before.storage:
        offsets = _merged(active, tile_of(value.offset), tile_of(before.offset))
        return TilePointer(value.storage, value.dtype, offsets)
    if value is before:
        return value
    new, old = aligned(tile_of(value), tile_of(before))
    if new.dtype != old.dtype:
        new = converted(new, old.dtype) if isinstance(before, Tensor) else new
    return torch.where(spread(active.reshape(-1), 1).reshape(-1, *(1 for _ in range(new.dim() - 1))), new, old)


def _rows(value: Any, rows: slice, count: int) -> Any:
    """The part of a value of `count` programs that belongs to some of them."""
    return mapped(value, lambda tile: tile[rows] if tile.shape[:1] == (count,) else tile)


def _indexed(tile: Tensor, places: list[ast.expr]) -> Tensor:
    """`tile[:, None]`, with nothing else than whole dimensions and new ones."""
    at = 1
    for place in places:
        if isinstance(place, ast.Constant) and place.value is None:
            tile = tile.unsqueeze(at)
        elif not isinstance(place, ast.Slice) or place.lower or place.upper or place.step or at >= tile.dim():
            raise NotWalked("an index of another kind")
        at += 1
    return tile
