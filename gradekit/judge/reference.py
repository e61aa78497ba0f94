"""What the right result is: a function of torch run in float64, and again at the inputs' own dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from gradekit.inputs.strategies import Input
from gradekit.judge import remembered, tolerance
from gradekit.judge.rounding import Precision, Rounding

Function = Callable[..., Any]

_shelf = remembered.Shelf()


@dataclass(frozen=True, eq=False)
class Reference:
    """One expected result.

    `exact` is float64 (for integer results: equal to `native`), `native` is what torch gives at the inputs' dtype and
    has the dtype and shape that the submission must return, `allowance` is the largest right |result - exact| for each
    element. `inputs` are the tensors among the arguments, in order; `again` gives the exact result for other ones.
    """

    exact: torch.Tensor
    native: torch.Tensor
    allowance: torch.Tensor
    inputs: tuple[torch.Tensor, ...]
    again: Callable[[Sequence[torch.Tensor]], torch.Tensor]

    @property
    def rounded(self) -> torch.Tensor:
        """The best result that the dtype can hold."""
        return self.exact.to(self.native.dtype)


def reference(
    function: Function,
    *args: Any,
    scale: Function | None = None,
    steps: Literal["float32", "native"] = "float32",
    terms: int | None = None,
    input_precision: Precision = "ieee",
    bound: Function | None = None,
) -> Any:
    """The expected result of `function(*args)`: a `Reference`, or a tuple of them where `function` returns a tuple.

    Args:
        function: torch code for any floating dtype; it must not name one. It runs on float64 copies and on copies of
            the inputs as they are.
        args: `Input` specs, tensors, numbers.
        scale: a function of the same arguments that gives the size of the values that are rounded on the way, in the
            shape of the result. It is called in float64 with the absolute values of the inputs, so that for sums of
            products it is `function` itself. Say it wherever terms can cancel or errors are amplified. A scale that
            needs the signs has the attribute `signed = True`.
        steps: the dtype of those values: "float32" where a right kernel accumulates in float32, "native" where it may
            round every step to the inputs' dtype, as eager torch does.
        terms: how many values are added up for one element; by default the largest dimension of any input.
        input_precision: "tf32" allows a float32 matmul on tensor cores, Triton's default for `tl.dot`; needs `scale`
            or `bound`.
        bound: in place of `scale`, where rounding errors cannot be told by one size: a function of a `Rounding` and
            the same arguments in float64 that works out the error of each element.
    """
    question = remembered.question(function, args, scale, steps, terms, input_precision, bound)
    return _shelf.answer(
        question, lambda: _worked_out(function, args, scale, steps, terms, input_precision, bound), _tensors
    )


def _tensors(answer: Any) -> list[torch.Tensor]:
    """What a reference, or a tuple of them, holds."""
    references = answer if isinstance(answer, tuple) else (answer,)
    return [tensor for r in references for tensor in (r.exact, r.native, r.allowance)]


def _worked_out(
    function: Function,
    args: Sequence[Any],
    scale: Function | None,
    steps: str,
    terms: int | None,
    input_precision: Precision,
    bound: Function | None,
) -> Any:
    tensors = [a.tensor() if isinstance(a, Input) else a for a in args]
    exact, native = _call(function, [_double(a) for a in tensors]), _call(function, [_copy(a) for a in tensors])
    allowances = [_allowance(e, n) for e, n in zip(exact, native, strict=True)]
    if scale is not None:
        extra = _scaled(scale, tensors, native, steps, terms, input_precision)
        allowances = [a + x if n.is_floating_point() else a for a, x, n in zip(allowances, extra, native, strict=True)]
    if bound is not None:
        extra = _call(
            lambda *args: bound(Rounding(native[0].dtype, input_precision), *args), list(map(_double, tensors))
        )
        allowances = [a + x.nan_to_num(0.0) for a, x in zip(allowances, extra, strict=True)]
    references = tuple(
        Reference(e, n, a, tuple(t for t in tensors if isinstance(t, torch.Tensor)), _again(function, tensors, i))
        for i, (e, n, a) in enumerate(zip(exact, native, allowances, strict=True))
    )
    return references if len(references) > 1 else references[0]


def _call(function: Function, args: Sequence[Any]) -> list[torch.Tensor]:
    results = function(*args)
    results = results if isinstance(results, (tuple, list)) else (results,)
    return [r.detach() for r in results]


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else _copy(value)


def _magnitude(value: Any) -> Any:
    """Absolute values in float64; whole numbers, such as indices, stay as they are."""
    value = _double(value)
    return value.abs() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _allowance(exact: torch.Tensor, native: torch.Tensor) -> torch.Tensor:
    if not native.is_floating_point():
        return torch.zeros(native.shape, dtype=torch.float64)
    return tolerance.floor(exact, native.dtype) + tolerance.own_error(exact, native)


def _scaled(
    scale: Function,
    tensors: Sequence[Any],
    native: Sequence[torch.Tensor],
    steps: str,
    terms: int | None,
    input_precision: Precision,
) -> list[torch.Tensor]:
    prepare = _double if getattr(scale, "signed", False) else _magnitude
    scales = _call(scale, [prepare(t) for t in tensors])
    count = terms or max([1, *(n for t in tensors if isinstance(t, torch.Tensor) for n in t.shape)])
    extra = [tolerance.running_error(s, _step_dtype(n, steps), count) for s, n in zip(scales, native, strict=True)]
    if input_precision == "tf32":
        larger = _call(scale, [prepare(tolerance.larger_by_tf32(t)) for t in tensors])
        extra = [x + tolerance.widening(more, s) for x, more, s in zip(extra, larger, scales, strict=True)]
    return extra


def _step_dtype(native: torch.Tensor, steps: str) -> torch.dtype:
    return native.dtype if steps == "native" or native.dtype == torch.float64 else torch.float32


def _again(function: Function, tensors: Sequence[Any], result: int) -> Callable[[Sequence[torch.Tensor]], torch.Tensor]:
    def run(others: Sequence[torch.Tensor]) -> torch.Tensor:
        queue = iter(others)
        return _call(function, [_double(next(queue)) if isinstance(t, torch.Tensor) else t for t in tensors])[result]

    return run
