"""Walks the syntax tree of a kernel for all programs of a grid at once.

Where programs go different ways (`if` and loops by a value of theirs), each statement counts for those alone that are
there: `active` says which, None for all.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.budget import Meter
from gradekit.screening.tile_memory import TileMemory
from gradekit.screening.tiles import (
    DTYPES,
    NotWalked,
    TilePointer,
    aligned,
    cast,
    chosen,
    computed,
    negated,
    spread,
    tile_of,
)
from gradekit.screening.vocabulary import FUNCTIONS, combined, sizes_of
from gradekit.submission.parsed_source import dotted

Names = dict[str, Any]

_OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not",
}  # fmt: skip

MOST_STEPS = 4096
"""Of one loop."""

DEEPEST = 12
"""Functions that call each other."""


@dataclass(frozen=True)
class Code:
    """What a kernel may refer to: the jitted `functions` of its source and the plain `constants` of its module."""

    functions: Mapping[str, ast.FunctionDef]
    constants: Mapping[str, Any]


@dataclass
class Swap:
    """One node that another takes the place of, while it stands outside of that other."""

    old: ast.AST | None = None
    new: ast.AST | None = None


@dataclass
class Watched:
    """What a walk has seen: the value of each expression, and the names before each statement, when it was met first."""

    values: dict[ast.AST, Any] = field(default_factory=dict)
    names: dict[ast.AST, Names] = field(default_factory=dict)


class Returned(Exception):
    """A function returns `value`."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Walk:
    """One launch: `grid` programs of a kernel."""

    def __init__(
        self, code: Code, grid: tuple[int, int, int], memory: TileMemory, meter: Meter,
        swap: Swap | None = None, watched: Watched | None = None,
    ) -> None:  # fmt: skip
        self.code, self.grid, self.memory, self.meter = code, grid, memory, meter
        self.swap, self.watched = swap or Swap(), watched
        self.count = grid[0] * grid[1] * grid[2]
        self.active: Tensor | None = None
        self.gone: Tensor | None = None  # the programs that have returned
        self._depth = 0

    # --- statements ---------------------------------------------------------------------------------------------------

    def body(self, statements: list[ast.stmt], names: Names) -> None:
        """Statements in order."""
        for statement in statements:
            self.statement(statement, names)

    def statement(self, node: ast.stmt, names: Names) -> None:
        """One statement."""
        if node is self.swap.old:
            self._swapped(lambda new: self.statement(new, names))
            return
        if self.watched is not None and node not in self.watched.names:
            self.watched.names[node] = dict(names)
        walk = _STATEMENTS.get(type(node))
        if walk is None:
            raise NotWalked(f"a statement {type(node).__name__}")
        walk(self, node, names)

    def _swapped(self, walk: Callable[[Any], Any]) -> Any:
        old, self.swap.old = self.swap.old, None
        try:
            return walk(self.swap.new)
        finally:
            self.swap.old = old

    def _assign(self, node: ast.Assign | ast.AnnAssign, names: Names) -> None:
        if node.value is None:
            return
        value = self.value(node.value, names)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self._bind(target, value, names)

    def _augmented(self, node: ast.AugAssign, names: Names) -> None:
        if not isinstance(node.target, ast.Name):
            raise NotWalked("an assignment to no name")
        right = self.value(node.value, names)
        left = names.get(node.target.id)
        if left is None:
            raise NotWalked("a name without a value")
        self._bind(node.target, self._spent(computed(_OPERATORS[type(node.op)], left, right)), names)

    def _bind(self, target: ast.expr, value: Any, names: Names) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(target.elts) == len(value):
            for part, one in zip(target.elts, value, strict=True):
                self._bind(part, one, names)
        elif isinstance(target, ast.Name):
            if self.active is not None and target.id in names:
                value = _merged(self.active, value, names[target.id])
            names[target.id] = value
        else:
            raise NotWalked("an assignment to no name")

    def _expression(self, node: ast.Expr, names: Names) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value, names)

    def _nothing(self, node: ast.stmt, names: Names) -> None:
        pass

    def _return(self, node: ast.Return, names: Names) -> None:
        if self.active is None:
            raise Returned(self.value(node.value, names) if node.value is not None else None)
        if self._depth or node.value is not None:
            raise NotWalked("a return of some programs from a function")
        self.gone = self.active if self.gone is None else self.gone | self.active
        self.active = torch.zeros_like(self.active)

    def _if(self, node: ast.If, names: Names) -> None:
        condition = self.decided(self.value(node.test, names))
        if not isinstance(condition, Tensor):
            self.body(node.body if condition else node.orelse, names)
            return
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
        for _ in range(MOST_STEPS):
            condition = self.decided(self.value(node.test, names))
            if isinstance(condition, Tensor):
                self._among(self.active, condition)
                if not bool(self.active.any()):  # type: ignore[union-attr]
                    break
            elif not condition:
                break
            self.body(node.body, names)
        else:
            raise NotWalked("a loop of too many steps")
        self._again(outer)

    def _for(self, node: ast.For, names: Names) -> None:
        call = node.iter
        if not isinstance(call, ast.Call) or dotted(call.func).rpartition(".")[2] not in ("range", "static_range"):
            raise NotWalked("a loop over something else than a range")
        bounds = [self.decided(self.value(argument, names)) for argument in call.args[:3]]
        first, last = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else 1
        if isinstance(step, Tensor) or not isinstance(step, int) or step == 0:
            raise NotWalked("a step that is no number")
        if isinstance(first, Tensor) or isinstance(last, Tensor):
            self._each_its_own(node, (tile_of(first), tile_of(last), step), names)
            return
        if len(range(first, last, step)) > MOST_STEPS:
            raise NotWalked("a loop of too many steps")
        for number in range(first, last, step):
            self._bind(node.target, number, names)
            self.body(node.body, names)

    def _each_its_own(self, node: ast.For, bounds: tuple[Tensor, Tensor, int], names: Names) -> None:
        first, last, step = bounds
        counts = -torch.div(first - last, step, rounding_mode="floor") if step > 0 else torch.zeros(1)
        if step < 0 or first.dim() > 1 or last.dim() > 1 or int(counts.max()) > MOST_STEPS:
            raise NotWalked("a loop of too many steps, or down")
        outer = self.active
        for number in range(max(int(counts.max()), 0)):
            self._among(outer, counts > number)
            self._bind(node.target, (first + number * step).expand(self.count), names)
            self.body(node.body, names)
        self._again(outer)

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

    # --- expressions --------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr, names: Names) -> Any:
        """What an expression is."""
        if node is self.swap.old:
            return self._swapped(lambda new: self.value(new, names))
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
        op = _OPERATORS.get(type(node.op))
        if op is None:
            return self._spent(FUNCTIONS["dot"](self.value(node.left, names), self.value(node.right, names)))
        return self._spent(computed(op, self.value(node.left, names), self.value(node.right, names)))

    def _unary(self, node: ast.UnaryOp, names: Names) -> Any:
        return self._spent(negated(_OPERATORS[type(node.op)], self.value(node.operand, names)))

    def _compare(self, node: ast.Compare, names: Names) -> Any:
        left, found = self.value(node.left, names), None
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, names)
            one = self._spent(computed(_OPERATORS[type(op)], left, right))
            found, left = one if found is None else computed("&", found, one), right
        return found

    def _both(self, node: ast.BoolOp, names: Names) -> Any:
        op = "&" if isinstance(node.op, ast.And) else "|"
        found = self.value(node.values[0], names)
        for one in node.values[1:]:
            if not isinstance(found, Tensor) and bool(found) is (op == "|"):
                return found
            right = self.value(one, names)
            isolated = isinstance(found, Tensor) and isinstance(right, Tensor)
            found = computed(op, found, right) if isolated else right if not isinstance(found, Tensor) else found
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
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(k.arg is None for k in node.keywords):
            raise NotWalked("a starred argument")
        given = {k.arg: self.value(k.value, names) for k in node.keywords if name != "reduce" or k.arg != "combine_fn"}
        if name == "reduce":
            return self._reduce(node, names)
        args = [self.value(argument, names) for argument in node.args]
        if path in self.code.functions:
            return self._own(self.code.functions[path], args, given)
        if isinstance(node.func, ast.Attribute) and not path.startswith(("tl.", "triton.", "libdevice.", "math.")):
            args = [self.value(node.func.value, names), *args]
            if name == "to" and isinstance(args[0], TilePointer):
                raise NotWalked("a cast of a pointer")
        special = _SPECIAL.get(name)
        if special is not None:
            return self._spent(special(self, *args, **given))
        function = FUNCTIONS.get(name)
        if function is None:
            raise NotWalked(f"the function {path or name}")
        return self._spent(function(*args, **given))

    def _own(self, function: ast.FunctionDef, args: list[Any], given: dict[Any, Any]) -> Any:
        if self._depth >= DEEPEST:
            raise NotWalked("functions that call each other")
        names = bound(function, args, given)
        self._depth += 1
        try:
            self.body(function.body, names)
        except Returned as returned:
            return returned.value
        finally:
            self._depth -= 1
        return None

    def _reduce(self, node: ast.Call, names: Names) -> Any:
        given = {k.arg: k.value for k in node.keywords}
        places = dict(zip(("input", "axis", "combine_fn"), node.args, strict=False)) | given
        function = self.code.functions.get(dotted(places["combine_fn"]))
        if function is None or set(places) - {"input", "axis", "combine_fn"}:
            raise NotWalked("a reduction by something else")
        tile, axis = self.value(places["input"], names), self.value(places["axis"], names)
        return combined(tile, axis, lambda *parts: self._own(function, list(parts), {}))

    def _program_id(self, axis: int) -> Tensor:
        x, y, z = self.grid
        linear = torch.arange(self.count)
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

_STATEMENTS: dict[type, Callable[[Walk, Any, Names], None]] = {
    ast.Assign: Walk._assign, ast.AnnAssign: Walk._assign, ast.AugAssign: Walk._augmented, ast.Expr: Walk._expression,
    ast.If: Walk._if, ast.For: Walk._for, ast.While: Walk._while, ast.Return: Walk._return, ast.Pass: Walk._nothing,
    ast.Assert: Walk._nothing,
}  # fmt: skip

_EXPRESSIONS: dict[type, Callable[[Walk, Any, Names], Any]] = {
    ast.Constant: Walk._constant, ast.Name: Walk._name, ast.BinOp: Walk._binary, ast.UnaryOp: Walk._unary,
    ast.Compare: Walk._compare, ast.BoolOp: Walk._both, ast.IfExp: Walk._either, ast.Tuple: Walk._tuple,
    ast.List: Walk._tuple, ast.Subscript: Walk._subscript, ast.Attribute: Walk._attribute, ast.Call: Walk._call,
}  # fmt: skip

_SPECIAL: dict[str, Callable[..., Any]] = {
    "program_id": Walk._program_id, "num_programs": Walk._num_programs, "load": Walk._load, "store": Walk._store,
    "atomic_add": Walk._added, "atomic_max": Walk._largest,
}  # fmt: skip


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
        new = cast(new, old.dtype) if isinstance(before, Tensor) else new
    return torch.where(spread(active.reshape(-1), 1).reshape(-1, *(1 for _ in range(new.dim() - 1))), new, old)
