"""What torch's operations make of formulas: the one translation that kernels and references share.

Rounding does not exist here: formulas are over the reals, and a cast between floating dtypes changes nothing. NaN and
infinities occur as numbers alone.
"""

from __future__ import annotations

import math
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


# --- what torch's operations make of them -----------------------------------------------------------------------------


def operation(*names: str) -> Callable[[Rule], Rule]:
    """Enters the rule of torch's operations of these names; the graph is its first argument."""

    def enter(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return enter


def result_dtype(*operands: Any) -> torch.dtype:
    """The dtype that torch gives to the result of an operation on these."""
    found = [torch.empty(o.shape, dtype=o.dtype, device="meta") if isinstance(o, Tensor) else o for o in operands]
    dtype = torch.result_type(found[0], found[1]) if len(found) > 1 else found[0].dtype
    for other in found[2:]:
        dtype = torch.promote_types(dtype, torch.result_type(found[0], other))
    return dtype


def _checked(graph: Graph, *operands: Any) -> torch.dtype:
    """The dtype of a result; integers of other widths than the inputs' have no formulas."""
    dtype = result_dtype(*operands)
    if graph.modulus and dtype not in (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64):
        raise NoFormula("integers as floats")
    if graph.modulus and dtype is not torch.bool and 1 << 8 * dtype.itemsize != graph.modulus:
        raise NoFormula("integers of several widths")
    return dtype


# --- arithmetic ------------------------------------------------------------------------------------------------------


def _plain(name: str, make: Callable[[Graph], Callable[..., int]]) -> None:
    def rule(graph: Graph, *operands: Any, **kwargs: Any) -> FormulaTensor:
        if any(value not in (None, 1) for value in kwargs.values()):
            raise NoFormula(f"torch's {name} with {', '.join(kwargs)}")
        return mapped(graph, make(graph), operands, _checked(graph, *operands))

    RULES[name] = rule


for _name, _make in {
    "mul": lambda g: g.mul,
    "neg": lambda g: g.neg,
    "maximum": lambda g: g.max, "fmax": lambda g: g.max, "minimum": lambda g: g.min, "fmin": lambda g: g.min,
    "relu": lambda g: lambda a: g.max(a, g.zero),
    "abs": lambda g: lambda a: g.max(a, g.neg(a)),
    "square": lambda g: lambda a: g.mul(a, a),
    "lerp": lambda g: lambda a, b, w: g.add(a, g.mul(w, g.sub(b, a))),
    "addcmul": lambda g: lambda a, b, c: g.add(a, g.mul(b, c)),
    "copysign": lambda g: lambda a, b: _copysign(g, a, b),
    "sign": lambda g: lambda a: g.sub(g.compare("gt", a, g.zero), g.compare("lt", a, g.zero)),
}.items():  # fmt: skip
    _plain(_name, _make)


def _copysign(g: Graph, a: int, b: int) -> int:
    size = g.max(a, g.neg(a))
    return g.select(g.compare("lt", b, g.zero), g.neg(size), size)


@operation("add")
def _add(graph: Graph, a: Any, b: Any, alpha: Any = 1) -> FormulaTensor:
    factor = graph.number(alpha)
    return mapped(graph, lambda x, y: graph.add(x, graph.mul(factor, y)), (a, b), _checked(graph, a, b))


@operation("sub")
def _subtract(graph: Graph, a: Any, b: Any, alpha: Any = 1) -> FormulaTensor:
    factor = graph.number(alpha)
    return mapped(graph, lambda x, y: graph.sub(x, graph.mul(factor, y)), (a, b), _checked(graph, a, b))


RULES["rsub"] = lambda graph, a, b, alpha=1: _subtract(graph, b, a, alpha)


@operation("div")
def _divide(graph: Graph, a: Any, b: Any, rounding_mode: str | None = None) -> FormulaTensor:
    if graph.modulus:
        raise NoFormula("a division of integers")
    dtype = result_dtype(a, b)
    dtype = dtype if dtype.is_floating_point else torch.float32
    if rounding_mode is not None:
        return mapped(graph, lambda x, y: graph.apply(rounding_mode, graph.div(x, y)), (a, b), dtype)
    return mapped(graph, graph.div, (a, b), dtype)


@operation("reciprocal")
def _reciprocal(graph: Graph, a: Any) -> FormulaTensor:
    return mapped(graph, lambda x: graph.div(graph.one, x), (a,), a.dtype)


@operation("pow")
def _power(graph: Graph, a: Any, exponent: Any) -> FormulaTensor:
    dtype = _checked(graph, a, exponent)
    return mapped(graph, lambda x, y: _power_of(graph, x, y), (a, exponent), dtype)


def _power_of(graph: Graph, x: int, y: int) -> int:
    exponent = graph.value(y) if graph.is_number(y) else math.nan
    if exponent == 0.5 or exponent == -0.5:
        root = graph.apply("sqrt", x)
        return root if exponent > 0 else graph.div(graph.one, root)
    if not (abs(exponent) <= 8 and exponent == int(exponent)):
        return (
            graph.apply("exp", graph.mul(y, graph.apply("log", x)))
            if graph.is_number(x)
            else graph.apply("power", x, y)
        )
    product = graph.one
    for _ in range(abs(int(exponent))):
        product = graph.mul(product, x)
    return product if exponent >= 0 else graph.div(graph.one, product)


# --- functions -------------------------------------------------------------------------------------------------------


def _function(name: str, make: Callable[[Graph, int], int]) -> None:
    def rule(graph: Graph, a: Any) -> FormulaTensor:
        if graph.modulus:
            raise NoFormula("a function of integers")
        return mapped(graph, lambda x: make(graph, x), (a,), a.dtype)

    RULES[name] = rule


def _named(name: str) -> Callable[[Graph, int], int]:
    return lambda g, x: g.apply(name, x)


for _name in (
    "exp", "log", "sqrt", "tanh", "erf", "sigmoid", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "floor", "ceil", "trunc", "round",
):  # fmt: skip
    _function(_name, _named(_name))
for _name, _of in {
    "exp2": lambda g, x: g.apply("exp", g.mul(g.apply("log", g.number(2)), x)),
    "expm1": lambda g, x: g.sub(g.apply("exp", x), g.one),
    "log2": lambda g, x: g.div(g.apply("log", x), g.apply("log", g.number(2))),
    "log10": lambda g, x: g.div(g.apply("log", x), g.apply("log", g.number(10))),
    "log1p": lambda g, x: g.apply("log", g.add(g.one, x)),
    "rsqrt": lambda g, x: g.div(g.one, g.apply("sqrt", x)),
    "erfc": lambda g, x: g.sub(g.one, g.apply("erf", x)),
    "silu": lambda g, x: g.mul(x, g.apply("sigmoid", x)),
}.items():  # fmt: skip
    _function(_name, _of)


@operation("gelu")
def _gelu(graph: Graph, a: Any, approximate: str = "none") -> FormulaTensor:
    g = graph
    half = g.number(0.5)

    def inner(x: int) -> int:
        if approximate == "none":
            return g.apply("erf", g.div(x, g.apply("sqrt", g.number(2))))
        scale = g.apply("sqrt", g.div(g.number(2), g.number(math.pi)))
        cubed = g.mul(x, g.mul(x, x))
        return g.apply("tanh", g.mul(scale, g.add(x, g.mul(g.number(0.044715), cubed))))

    return mapped(g, lambda x: g.mul(half, g.mul(x, g.add(g.one, inner(x)))), (a,), a.dtype)


@operation("clamp", "clamp_min", "clamp_max")
def _clamp(graph: Graph, a: Any, min: Any = None, max: Any = None) -> FormulaTensor:
    found = a
    if min is not None:
        found = mapped(graph, graph.max, (found, min), a.dtype)
    return found if max is None else mapped(graph, graph.min, (found, max), a.dtype)


RULES["clamp_max"] = lambda graph, a, limit: _clamp(graph, a, None, limit)
RULES["hardtanh"] = lambda graph, a, low=-1.0, high=1.0: _clamp(graph, a, low, high)


# --- conditions ------------------------------------------------------------------------------------------------------


def _comparison(relation: str) -> Rule:
    return lambda graph, a, b: mapped(graph, lambda x, y: graph.compare(relation, x, y), (a, b), torch.bool)


for _name in ("gt", "ge", "lt", "le", "eq", "ne"):
    RULES[_name] = _comparison(_name)


def _truth(make: Callable[[Graph], Callable[..., int]]) -> Rule:
    def rule(graph: Graph, *operands: Any) -> FormulaTensor:
        if any(operand.dtype is not torch.bool for operand in operands):
            raise NoFormula("the bits of a number")
        return mapped(graph, make(graph), operands, torch.bool)

    return rule


RULES["logical_and"] = RULES["bitwise_and"] = _truth(lambda g: g.both)
RULES["logical_or"] = RULES["bitwise_or"] = _truth(lambda g: g.either)
RULES["logical_not"] = RULES["bitwise_not"] = _truth(lambda g: g.negated)
RULES["logical_xor"] = RULES["bitwise_xor"] = _truth(
    lambda g: lambda c, d: g.both(g.either(c, d), g.negated(g.both(c, d)))
)


@operation("where")
def _where(graph: Graph, condition: Any, a: Any, b: Any) -> FormulaTensor:
    dtype = _checked(graph, a, b)
    if isinstance(condition, FormulaTensor):
        return mapped(graph, graph.select, (condition, a, b), dtype)
    return FormulaTensor(torch.where(condition, nodes_of(a, graph), nodes_of(b, graph)), graph, dtype)


@operation("masked_fill")
def _masked_fill(graph: Graph, a: Any, mask: Any, value: Any) -> FormulaTensor:
    return _where(graph, mask, value, a)


def _is_number(test: Callable[[float], bool]) -> Rule:
    """Of numbers alone: what a formula gives is finite."""

    def rule(graph: Graph, a: Any) -> Tensor:
        answers = [graph.is_number(n) and test(graph.value(n)) for n in a.nodes.reshape(-1).tolist()]
        return torch.tensor(answers, dtype=torch.bool).view(a.shape)

    return rule


RULES["isnan"] = _is_number(math.isnan)
RULES["isinf"] = _is_number(math.isinf)


@operation("_local_scalar_dense")
def _item(graph: Graph, a: Any) -> Any:
    node = int(a.nodes)
    if not graph.is_number(node):
        raise NoFormula("control flow that depends on values")
    value = graph.value(node)
    return bool(value) if a.dtype is torch.bool else value


# --- dtypes and new tensors ------------------------------------------------------------------------------------------


@operation("_to_copy")
def _to_copy(graph: Graph, a: Any, dtype: torch.dtype | None = None, **_: Any) -> FormulaTensor:
    dtype = dtype or a.dtype
    if graph.modulus and dtype not in (a.dtype, torch.bool):
        raise NoFormula("integers of several widths")
    narrows = a.dtype.is_floating_point and not dtype.is_floating_point
    if narrows and dtype is torch.bool:
        return mapped(graph, lambda x: graph.compare("ne", x, graph.zero), (a,), dtype)
    if narrows:
        return mapped(graph, lambda x: graph.apply("trunc", x), (a,), dtype)
    return FormulaTensor(a.nodes.clone(), graph, dtype)


def _filled(value: float) -> Rule:
    def rule(
        graph: Graph, a: Any, size: Sequence[int] | None = None, dtype: torch.dtype | None = None, **_: Any
    ) -> Any:
        nodes = torch.full(list(a.shape if size is None else size), graph.number(value))
        return FormulaTensor(nodes, graph, dtype or a.dtype)

    return rule


RULES["zeros_like"] = RULES["new_zeros"] = RULES["empty_like"] = RULES["new_empty"] = _filled(0)
RULES["ones_like"] = RULES["new_ones"] = _filled(1)
RULES["new_empty_strided"] = lambda graph, a, size, stride, **kwargs: RULES["new_zeros"](graph, a, size, **kwargs)


@operation("full_like")
def _full_like(graph: Graph, a: Any, value: float, dtype: torch.dtype | None = None, **_: Any) -> FormulaTensor:
    return FormulaTensor(torch.full(list(a.shape), graph.number(value)), graph, dtype or a.dtype)


# --- reductions, and what is made of them: softmax, layer norm, products ----------------------------------------------


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
