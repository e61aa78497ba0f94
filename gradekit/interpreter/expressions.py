"""Evaluates the expressions of a kernel for all programs of a grid at once."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from copy import copy as shallow
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from gradekit.arithmetic import SIGNS, UNARY
from gradekit.engine.budget import Meter
from gradekit.interpreter.swap import Code, FunctionWalk, Names, Swap, Watched
from gradekit.interpreter.tile_memory import TileMemory
from gradekit.interpreter.tile_values import (
    DTYPES,
    NotWalked,
    OutsideEverywhere,
    TilePointer,
    aligned,
    chosen,
    computed,
    negated,
    tile_of,
)
from gradekit.interpreter.vocabulary import FUNCTIONS, combined, sizes_of
from gradekit.submission.parsed_source import dotted

MOST_STEPS = 4096
"""Of one loop."""


FEW_APART = 1000
"""So many expressions of a walk are evaluated for one copy alone before each of them counts as work of its own."""

OPERATIONS_APART = 6
"""What each of the others costs beside its own operations, in operations."""


@functools.lru_cache(maxsize=4096)
def parts_of(node: ast.AST) -> frozenset[ast.AST]:
    """All nodes of a tree, which nobody changes: in a loop, each step asks for them."""
    return frozenset(ast.walk(node))


class Expressions(FunctionWalk):
    """Expressions of one launch: `grid` programs of a kernel."""

    def __init__(
        self, code: Code, grid: tuple[int, int, int], memory: TileMemory, meter: Meter,
        swap: Swap | None = None, watched: Watched | None = None,
    ) -> None:  # fmt: skip
        self.code, self.grid, self.memory, self.meter = code, grid, memory, meter
        self.swap, self.watched = swap or Swap(), watched
        self.programs, self.copies = grid[0] * grid[1] * grid[2], max(self.swap.copies, 1)
        self.count = self.programs * self.copies
        self.active: Tensor | None = None
        self.gone: Tensor | None = None  # the programs that have returned
        self.apart = 0  # expressions that were evaluated for one copy alone
        self.longest, self.patience = 0, MOST_STEPS  # steps of a loop: the most that were seen, and that may be
        self.known: dict[ast.AST, Any] = {}  # the values of expressions that need no evaluation
        self.given: Mapping[ast.AST, Any] = {}  # of nodes that stand in others' places, in all programs of one copy

    def _in_copies(self, node: ast.expr, names: Names) -> Any:
        """An expression where it is another one in some copies."""
        news = self.swap.news.pop(node)  # what stands in its place may contain it
        self.apart += len(news)
        if self.apart > FEW_APART:  # of long loops: there the walk itself takes longer than what it computes
            self.meter.spend(OPERATIONS_APART * len(news))
        try:
            if self.copies == 1:
                return self.value(cast(ast.expr, news[0][1]), names)
            changed = {copy for copy, new in news if node not in parts_of(new)}
            with self.memory.meant_for(torch.tensor([copy not in changed for copy in range(self.copies)])):
                before = self.value(node, names) if len(changed) < self.copies else None
            values = [(copy, self._in_copy(copy, new, names, (node, before))) for copy, new in news]
        finally:
            self.swap.news[node] = news
        given = [(copy, value) for copy, value in values if value is not None]
        return self._with_copies(given[0][1] if before is None else before, given) if given else before

    def _in_copy(self, copy: int, new: ast.AST, names: Names, known: tuple[ast.expr, Any]) -> Any:
        """What an expression is in one copy, where another is `known`; None where the copy touches what is outside."""
        if new in self.given and self.active is None and self.gone is None:
            return self.given[new]
        rows = slice(copy * self.programs, (copy + 1) * self.programs)
        one = shallow(self)
        parts = parts_of(new)
        one.swap, one.copies, one.count = Swap(), 1, self.programs
        if any(isinstance(part, ast.Call) for part in parts):  # no other expression touches memory
            one.memory = self.memory.part(copy)
        one.active, one.gone = _rows(self.active, rows, self.count), _rows(self.gone, rows, self.count)
        one.known = {known[0]: _rows(known[1], rows, self.count)} if known[1] is not None else {}
        mine = {part.id for part in parts if isinstance(part, ast.Name)} & names.keys()
        try:
            return one.value(cast(ast.expr, new), {name: _rows(names[name], rows, self.count) for name in mine})
        except OutsideEverywhere:
            self.memory.lose_copy(copy)
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

    def decided(self, value: Any) -> Any:
        """A condition or a bound as a number, where all programs agree; otherwise a tile of one for each."""
        if not isinstance(value, Tensor):
            return value
        if value.dim() > 1 and value.numel() != value.shape[0]:
            raise NotWalked("a decision by a tile")
        flat = value.reshape(-1)
        if flat.numel() == 1 or bool((flat == flat[0]).all()):
            return flat[0].item()
        return flat

    def value(self, node: ast.expr, names: Names) -> Any:
        """What an expression is."""
        if node in self.swap.news:
            return self._in_copies(node, names)
        if node in self.known:
            return self.known[node]
        walk = _EXPRESSIONS.get(type(node))
        if walk is None:
            raise NotWalked(f"an expression {type(node).__name__}")
        found = walk(self, node, names)
        if self.watched is not None:
            self.watched.values.setdefault(node, found)
        return found

    def _spent(self, found: Any) -> Any:
        self.meter.spend(1, found.numel() if isinstance(found, Tensor) else 0)
        return found

    def _constant(self, node: ast.Constant, names: Names) -> Any:
        return node.value

    def _name(self, node: ast.Name, names: Names) -> Any:
        found = names.get(node.id, _MISSING)
        if found is _MISSING:
            found = self.code.constants.get(node.id, _MISSING)
        if found is _MISSING:
            raise NotWalked(f"the name {node.id}")
        return found

    def _binary(self, node: ast.BinOp, names: Names) -> Any:
        left, right = self.value(node.left, names), self.value(node.right, names)
        if isinstance(node.op, ast.MatMult):
            return self._spent(FUNCTIONS["dot"](left, right))
        return self._spent(computed(SIGNS[type(node.op)], left, right))

    def _unary(self, node: ast.UnaryOp, names: Names) -> Any:
        return self._spent(negated(UNARY[type(node.op)], self.value(node.operand, names)))

    def _compare(self, node: ast.Compare, names: Names) -> Any:
        left, found = self.value(node.left, names), None
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, names)
            one = self._spent(computed(SIGNS[type(op)], left, right))
            found, left = one if found is None else computed("&", found, one), right
        return found

    def _both(self, node: ast.BoolOp, names: Names) -> Any:
        op = "&" if isinstance(node.op, ast.And) else "|"
        found = self.value(node.values[0], names)
        for one in node.values[1:]:
            if not isinstance(found, Tensor) and bool(found) is (op == "|"):
                return found
            right = self.value(one, names)
            if not isinstance(found, Tensor):
                found = right
            elif isinstance(right, Tensor):
                found = computed(op, found, right)
        return found

    def _either(self, node: ast.IfExp, names: Names) -> Any:
        condition = self.decided(self.value(node.test, names))
        if isinstance(condition, Tensor):
            return chosen(condition, self.value(node.body, names), self.value(node.orelse, names))
        return self.value(node.body if condition else node.orelse, names)

    def _tuple(self, node: ast.Tuple | ast.List, names: Names) -> Any:
        return tuple(self.value(part, names) for part in node.elts)

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
            found = DTYPES.get(node.attr)
            if found is None:
                raise NotWalked(path)
            return found
        value = self.value(node.value, names)
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

    # --- calls --------------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, names: Names) -> Any:
        path = dotted(node.func)
        name = path.rpartition(".")[2] or getattr(node.func, "attr", "")
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            raise NotWalked("a starred argument")
        given: dict[str, Any] = {
            str(k.arg): self.value(k.value, names) for k in node.keywords if name != "reduce" or k.arg != "combine_fn"
        }
        if name == "reduce":
            return self._reduce(node, names)
        args = [self.value(argument, names) for argument in node.args]
        if path in self.code.functions:
            return self._own(self.code.functions[path], args, given)
        if isinstance(node.func, ast.Attribute) and not path.startswith(("tl.", "triton.", "libdevice.", "math.")):
            args = [self.value(node.func.value, names), *args]
            if name == "to" and isinstance(args[0], TilePointer):
                raise NotWalked("a cast of a pointer")
        if path in ("min", "max") and len(args) == 2:  # Python's own, which Triton takes for numbers
            name = f"{path}imum"
        special = _SPECIAL.get(name)
        if special is not None:
            return self._spent(special(self, *args, **given))
        function = FUNCTIONS.get(name)
        if function is None:
            raise NotWalked(f"the function {path or name}")
        return self._spent(function(*args, **given))

    def _own(self, function: ast.FunctionDef, args: list[Any], given: dict[Any, Any]) -> Any:
        return self.returned(function.body, bound(function, args, given))

    def _reduce(self, node: ast.Call, names: Names) -> Any:
        given = {k.arg: k.value for k in node.keywords}
        places = dict(zip(("input", "axis", "combine_fn"), node.args, strict=False)) | given
        function = self.code.functions.get(dotted(places["combine_fn"]))
        if function is None or set(places) - {"input", "axis", "combine_fn"}:
            raise NotWalked("a reduction by something else")
        tile, axis = self.value(places["input"], names), self.value(places["axis"], names)
        return combined(tile, axis, lambda *parts: self._own(function, list(parts), {}))

    def _program_id(self, axis: int) -> Tensor:
        x, y, _ = self.grid
        linear = torch.arange(self.count) % self.programs
        return (linear % x, linear // x % y, linear // (x * y))[axis]

    def _num_programs(self, axis: int) -> int:
        return self.grid[axis]

    def _load(self, pointer: Any, mask: Any = None, other: Any = None, **_: Any) -> Tensor:
        if not isinstance(pointer, TilePointer) or _.get("boundary_check"):
            raise NotWalked("a load of no pointer")
        offset = tile_of(pointer.offset)
        mask = self._there(mask, offset)
        return self.memory.load(TilePointer(pointer.storage, pointer.dtype, offset), mask, other)

    def _store(self, pointer: Any, value: Any, mask: Any = None, **_: Any) -> None:
        if not isinstance(pointer, TilePointer) or _.get("boundary_check"):
            raise NotWalked("a store to no pointer")
        self.memory.store(pointer, value, self._there(mask, tile_of(pointer.offset)), self.count)

    def _added(self, pointer: Any, val: Any, mask: Any = None, **_: Any) -> Tensor:
        return self.memory.accumulate("add", pointer, val, self._there(mask, tile_of(pointer.offset)), self.count)

    def _largest(self, pointer: Any, val: Any, mask: Any = None, **_: Any) -> Tensor:
        return self.memory.accumulate("max", pointer, val, self._there(mask, tile_of(pointer.offset)), self.count)

    def _there(self, mask: Any, offset: Tensor) -> Any:
        """The mask, without the programs that are elsewhere."""
        if self.active is None:
            return mask
        active = self.active.reshape(-1, *(1 for _ in range(offset.dim() - 1)))
        return active if mask is None else torch.logical_and(*aligned(active, tile_of(mask).bool()))


_MISSING = object()

_EXPRESSIONS: dict[type, Callable[[Expressions, Any, Names], Any]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._both,
    ast.IfExp: Expressions._either,
    ast.Tuple: Expressions._tuple,
    ast.List: Expressions._tuple,
    ast.Subscript: Expressions._subscript,
    ast.Attribute: Expressions._attribute,
    ast.Call: Expressions._call,
}

_SPECIAL: dict[str, Callable[..., Any]] = {
    "program_id": Expressions._program_id,
    "num_programs": Expressions._num_programs,
    "load": Expressions._load,
    "store": Expressions._store,
    "atomic_add": Expressions._added,
    "atomic_max": Expressions._largest,
}


def _rows(value: Any, rows: slice, count: int) -> Any:
    """The part of a value of `count` programs that belongs to some of them."""
    if isinstance(value, tuple):
        return tuple(_rows(one, rows, count) for one in value)
    if isinstance(value, TilePointer):
        return replace(value, offset=_rows(value.offset, rows, count))
    return value[rows] if isinstance(value, Tensor) and value.shape[:1] == (count,) else value


def bound(function: ast.FunctionDef, args: list[Any], given: Mapping[Any, Any]) -> Names:
    """The names of a function's parameters with their values; plain defaults among them."""
    every = [*function.args.posonlyargs, *function.args.args]
    defaults = zip(every[len(every) - len(function.args.defaults) :], function.args.defaults, strict=True)
    names = {one.arg: value.value for one, value in defaults if isinstance(value, ast.Constant)}
    names |= {one.arg: value for one, value in zip(every, args, strict=False)} | dict(given)
    if len(args) > len(every) or any(one.arg not in names for one in every):
        raise NotWalked("arguments that do not fit")
    return names


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
