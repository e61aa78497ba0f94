"""Tensors whose elements are formulas, so that the engine and torch compute with formulas as they do with numbers.

A `FormulaTensor` has a dtype and a shape, and in place of numbers the nodes of a graph (int64). What moves
elements (views, gathers, copies) is done to the nodes by torch itself; what computes makes new nodes. What
is in no table raises `NoFormula`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from gradekit.compat.torch import over
from gradekit.formulas.graph import Graph, NoFormula

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
"""What computes: by torch's name of an operation."""

_MOVES = frozenset((
    "alias", "as_strided", "cat", "clone", "contiguous", "detach", "diagonal", "expand", "flip", "gather", "index",
    "index_select", "movedim", "narrow", "permute", "repeat", "reshape", "roll", "select", "slice", "split",
    "squeeze", "stack", "t", "take_along_dim", "transpose", "unbind", "unfold", "unsqueeze", "_unsafe_view",
    "_reshape_alias", "view", "split_with_sizes", "masked_select", "lift_fresh", "repeat_interleave",
    "constant_pad_nd"
))  # fmt: skip
"""What moves elements and leaves them as they are."""
_WRITES = frozenset((
    "copy_", "index_put_", "fill_", "zero_", "index_copy_", "masked_fill_", "scatter_", "index_fill_",
    "_index_put_impl_"
))  # fmt: skip
"""What writes to its first argument in place."""


class FormulaTensor(torch.Tensor):
    """A tensor of formulas: `nodes` (int64, same shape and strides) of `graph`."""

    nodes: Tensor
    graph: Graph

    @staticmethod
    def __new__(cls, nodes: Tensor, graph: Graph, dtype: torch.dtype) -> Self:
        """A tensor of formulas over these nodes, which it shares."""
        made: Self = over(cls, nodes, dtype)
        made.nodes, made.graph = nodes, graph
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"FormulaTensor({list(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Does what torch asks to nodes."""
        name, kwargs = func.overloadpacket.__name__, kwargs or {}
        if name in RULES:
            return RULES[name](_graph_of(args), *args, **kwargs)
        if name in _MOVES:
            return _moved(func, args, kwargs)
        if name in _WRITES:
            return _written(func, args, kwargs)
        if name.endswith("_") and name[:-1] in RULES:
            return _set(args[0], RULES[name[:-1]](_graph_of(args), *args, **kwargs))
        raise NoFormula(f"torch's {name} has no formula")


def _graph_of(args: Any) -> Graph:
    for arg in args:
        if isinstance(arg, FormulaTensor):
            return arg.graph
        if isinstance(arg, (list, tuple)) and (found := [a for a in arg if isinstance(a, FormulaTensor)]):
            return found[0].graph
    raise NoFormula("formulas in an unexpected place")


def _moved(func: Any, args: Any, kwargs: Any) -> Any:
    whole = [*args, *[a for arg in args if isinstance(arg, (list, tuple)) for a in arg]]
    formula = next(a for a in whole if isinstance(a, FormulaTensor))
    graph, dtype = formula.graph, formula.dtype
    if func.overloadpacket.__name__ == "view" and len(args) > 1 and isinstance(args[1], torch.dtype):
        raise NoFormula("the bits of a number")
    found = func(*[_bare(arg, graph) for arg in args], **kwargs)
    if isinstance(found, (list, tuple)):
        return [FormulaTensor(part, graph, dtype) for part in found]
    return FormulaTensor(found, graph, dtype)


def _bare(arg: Any, graph: Graph) -> Any:
    """Nodes in place of formulas; of a list with formulas in it, all of it as nodes."""
    if isinstance(arg, FormulaTensor):
        return arg.nodes
    if isinstance(arg, (list, tuple)) and any(isinstance(a, FormulaTensor) for a in arg):
        return [nodes_of(a, graph) for a in arg]
    return arg


def _written(func: Any, args: Any, kwargs: Any) -> Any:
    target, *rest = args
    if not isinstance(target, FormulaTensor):
        raise NoFormula("formulas in a tensor of numbers")
    name, graph = func.overloadpacket.__name__, target.graph
    if name == "zero_":
        target.nodes.fill_(graph.zero)
    elif name == "copy_":
        target.nodes.copy_(nodes_of(rest[0], graph, target.dtype))
    elif name in ("index_put_", "_index_put_impl_") and not any(rest[2:3]):
        target.nodes.index_put_([i for i in rest[0]], nodes_of(rest[1], graph, target.dtype))
    elif name in ("index_copy_", "scatter_", "index_fill_", "masked_fill_", "fill_"):
        *where, value = rest
        _fill(func, target, where, value)
    else:
        raise NoFormula(f"torch's {name} has no formula")
    return target


def _fill(func: Any, target: FormulaTensor, where: Sequence[Any], value: Any) -> None:
    nodes = nodes_of(value, target.graph, target.dtype)
    func(target.nodes, *where, nodes if isinstance(value, Tensor) else int(nodes))


def _set(target: Any, value: Any) -> Any:
    if not isinstance(target, FormulaTensor):
        raise NoFormula("formulas in a tensor of numbers")
    target.nodes.copy_(value.nodes)
    return target


def nodes_of(value: Any, graph: Graph, dtype: torch.dtype | None = None) -> Tensor:
    """A tensor or a number as nodes of a graph (int64, same shape)."""
    if isinstance(value, FormulaTensor):
        return value.nodes
    if not isinstance(value, Tensor):
        return torch.tensor(graph.number(value))
    numbers, places = value.detach().reshape(-1).unique(return_inverse=True)
    name = str(value.dtype).removeprefix("torch.") if value.is_floating_point() else "exact"
    known = [graph.number(number, name) for number in numbers.tolist()]
    return torch.tensor(known, dtype=torch.int64)[places].view(value.shape)


def mapped(graph: Graph, make: Callable[..., int], operands: Sequence[Any], dtype: torch.dtype) -> FormulaTensor:
    """make(node, ...) for each element of operands that are broadcast together."""
    nodes = torch.broadcast_tensors(*(nodes_of(operand, graph) for operand in operands))
    known: dict[tuple[int, ...], int] = {}
    made = []
    for key in zip(*(n.reshape(-1).tolist() for n in nodes), strict=True):
        if key not in known:
            known[key] = make(*key)
        made.append(known[key])
    return FormulaTensor(torch.tensor(made, dtype=torch.int64).view(nodes[0].shape), graph, dtype)


def folded(
    graph: Graph,
    make: Callable[[list[int]], int],
    value: FormulaTensor,
    dims: Sequence[int],
    keep: bool,
    dtype: torch.dtype,
) -> FormulaTensor:
    """make(nodes along `dims`) for each element of the rest."""
    dims = [dim % max(value.dim(), 1) for dim in dims] if dims else list(range(value.dim()))
    kept = [dim for dim in range(value.dim()) if dim not in dims]
    shape = [value.shape[dim] for dim in kept]
    rows = value.nodes.permute([*kept, *dims]).reshape(
        [-1 if value.numel() else 0, int(torch.Size([value.shape[d] for d in dims]).numel())]
    )
    made = torch.tensor([make(row) for row in rows.tolist()], dtype=torch.int64).view(shape)
    if keep:
        made = made.view([1 if dim in dims else value.shape[dim] for dim in range(value.dim())])
    return FormulaTensor(made, graph, dtype)
