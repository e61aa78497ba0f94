"""What torch's reductions make of formulas, and the operations that are made of them: softmax, layer norm, products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gradekit.formulas.arrays import RULES, FormulaTensor, folded, nodes_of
from gradekit.formulas.graph import Graph, NoFormula
from gradekit.formulas.torch_rules import operation


def _dims(dim: Any) -> list[int]:
    return [] if dim is None else [dim] if isinstance(dim, int) else list(dim)


def _sum_dtype(graph: Graph, a: Any, dtype: torch.dtype | None) -> torch.dtype:
    if graph.modulus:
        raise NoFormula("a sum of integers")
    return dtype or (a.dtype if a.dtype.is_floating_point else torch.int64)


@operation("sum")
def _sum(graph: Graph, a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> FormulaTensor:
    return folded(graph, lambda row: graph.add(*row), a, _dims(dim), keepdim, _sum_dtype(graph, a, dtype))


@operation("mean")
def _mean(graph: Graph, a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> FormulaTensor:
    def mean(row: list[int]) -> int:
        return graph.div(graph.add(*row), graph.number(len(row)))

    return folded(graph, mean, a, _dims(dim), keepdim, _sum_dtype(graph, a, dtype))


@operation("prod")
def _product(graph: Graph, a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> FormulaTensor:
    def product(row: list[int]) -> int:
        result = graph.one
        for node in row:
            result = graph.mul(result, node)
        return result

    return folded(graph, product, a, _dims(dim), keepdim, _sum_dtype(graph, a, dtype))


@operation("amax", "amin")
def _largest(graph: Graph, a: Any, dim: Any = (), keepdim: bool = False) -> FormulaTensor:
    return folded(graph, lambda row: graph.max(*row), a, _dims(dim), keepdim, a.dtype)


RULES["amin"] = lambda graph, a, dim=(), keepdim=False: folded(
    graph, lambda row: graph.min(*row), a, _dims(dim), keepdim, a.dtype
)


@operation("max")
def _max(graph: Graph, a: Any, *where: Any, **kwargs: Any) -> FormulaTensor:
    if where or kwargs:
        raise NoFormula("the place of the largest element")
    return _largest(graph, a)


@operation("var")
def _variance(graph: Graph, a: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> FormulaTensor:
    correction = 1 if correction is None else correction
    return folded(graph, lambda row: _variance_of(graph, row, correction), a, _dims(dim), keepdim, a.dtype)


def _variance_of(graph: Graph, row: list[int], correction: float) -> int:
    mean = graph.div(graph.add(*row), graph.number(len(row)))
    apart = [graph.sub(x, mean) for x in row]
    return graph.div(graph.add(*(graph.mul(d, d) for d in apart)), graph.number(len(row) - correction))


@operation("cumsum")
def _running_sum(graph: Graph, a: Any, dim: int, dtype: Any = None) -> FormulaTensor:
    rows = a.nodes.movedim(dim, -1)
    sums = [_sums(graph, row) for row in rows.reshape(-1, rows.shape[-1]).tolist()]
    nodes = torch.tensor(sums, dtype=torch.int64).view(rows.shape).movedim(-1, dim)
    return FormulaTensor(nodes.contiguous(), graph, _sum_dtype(graph, a, dtype))


def _sums(graph: Graph, row: list[int]) -> list[int]:
    return [graph.add(*row[: end + 1]) for end in range(len(row))]


@operation("_softmax")
def _softmax(graph: Graph, a: Any, dim: int, half_to_float: bool) -> FormulaTensor:
    powers = RULES["exp"](graph, a)
    return RULES["div"](graph, powers, _sum(graph, powers, dim, True))


@operation("_log_softmax")
def _log_softmax(graph: Graph, a: Any, dim: int, half_to_float: bool) -> FormulaTensor:
    return RULES["sub"](graph, a, RULES["log"](graph, _sum(graph, RULES["exp"](graph, a), dim, True)))


@operation("native_layer_norm")
def _layer_norm(graph: Graph, a: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    dims = list(range(a.dim() - len(shape), a.dim()))
    mean = _mean(graph, a, dims, True)
    spread = RULES["add"](graph, _variance(graph, a, dims, 0, True), eps)
    scale = RULES["rsqrt"](graph, spread)
    result = RULES["mul"](graph, RULES["sub"](graph, a, mean), scale)
    result = result if weight is None else RULES["mul"](graph, result, weight)
    return (result if bias is None else RULES["add"](graph, result, bias)), mean, scale


@operation("mm")
def _matmul(graph: Graph, a: Any, b: Any) -> FormulaTensor:
    products = RULES["mul"](graph, _unsqueezed(a, graph, -1), _unsqueezed(b, graph, 0))
    return _sum(graph, products, [1])


def _unsqueezed(a: Any, graph: Graph, dim: int) -> FormulaTensor:
    return FormulaTensor(nodes_of(a, graph).unsqueeze(dim), graph, a.dtype)
