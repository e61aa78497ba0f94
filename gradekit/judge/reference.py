"""What the right result is: a function of torch run in float64, and again at the inputs' own dtype."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch.overrides import TorchFunctionMode

from gradekit.compat.torch import without_symbolic_shapes
from gradekit.inputs.spec import Input, values_of
from gradekit.judge import contents, tolerance
from gradekit.judge.contents import versions
from gradekit.judge.tolerance import Precision, Rounding, in_pieces
from gradekit.reuse import Shared, SharedCache, shared

Function = Callable[..., Any]
_TENSORS = (Input, torch.Tensor)


@dataclass(frozen=True, eq=False)
class Worked:
    """One expected result, worked out of the arguments `args`: see Reference.

    Of inputs that were given as specs it keeps the specs alone: a cache keeps many of these, and what a reference is
    worked out of may be a thousand times as large as itself.
    """

    exact: torch.Tensor
    native: torch.Tensor
    surely: torch.Tensor
    args: tuple[Any, ...]
    function: Function
    again: Callable[[Sequence[torch.Tensor]], torch.Tensor]
    allowed: Callable[[], torch.Tensor] | None = None

    @cached_property
    def allowance(self) -> torch.Tensor:
        """What is `allowed`, worked out when a result is off by more than is `surely`, which is no more."""
        return self.surely if self.allowed is None else self.allowed()

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        """The tensors among the arguments, in order."""
        return tuple(tensor for tensor in map(values_of, self.args) if isinstance(tensor, torch.Tensor))

    @property
    def tensors(self) -> list[torch.Tensor]:
        """Those that it was worked out for."""
        return [self.exact, self.native, self.surely]


@dataclass(frozen=True, eq=False)
class Asked:
    """What `reference` was asked for: a function, its arguments, and how rounding is allowed for."""

    function: Function
    args: tuple[Any, ...]
    options: dict[str, Any]
    stay: bool = False  # whether nobody changes the tensors among the arguments

    def references(self) -> tuple[Reference, ...]:
        """What is expected: one for each result of the function."""
        return _references(contents.reference_key(self.function, self.args, *self.options.values()), self)

    def again(self, args: Sequence[Any], **options: Any) -> tuple[Reference, ...]:
        """The same of other arguments, and with other options where some are given."""
        return replace(self, args=tuple(args), options=self.options | options).references()


class Reference:
    """One expected result: that at `place` of those that `work` gives, once somebody looks at it, and what was `asked`.

    `exact` is the result in float64, and of integers equal to `native`: what torch gives at the inputs' dtype, with the
    dtype and shape that the submission must return. `allowance` is how far from `exact` each element may be, in
    float64; `surely` is no larger, and known at once. `inputs` are the tensors among the arguments, `function` is what
    says what is right, the assignment's own, and `again` gives the exact result for other inputs than these.
    """

    exact: torch.Tensor
    native: torch.Tensor
    allowance: torch.Tensor
    surely: torch.Tensor
    inputs: tuple[torch.Tensor, ...]
    function: Function
    again: Callable[[Sequence[torch.Tensor]], torch.Tensor]

    def __init__(
        self, work: Callable[[], Sequence[Worked]], place: int, key: Hashable | None, asked: Asked | None = None
    ) -> None:
        self._work, self.place, self._key, self.asked = work, place, key, asked
        self._versions: list[int] = []

    @cached_property
    def _worked(self) -> Worked:
        worked = self._work()[self.place]
        self._versions = versions(worked.tensors)
        return worked

    @property
    def key(self) -> Hashable | None:
        """References of one key expect the same; None where that is not known, or somebody has changed this one."""
        worked = self.__dict__.get("_worked")
        return self._key if worked is None or versions(worked.tensors) == self._versions else None

    def __getattr__(self, name: str) -> Any:
        """What `Worked` has of that name."""
        if name not in Reference.__annotations__:
            raise AttributeError(name)
        return getattr(self._worked, name)

    @property
    def is_copied(self) -> bool:
        """Whether each element is one of an input's."""
        return self.asked is not None and self.asked.options["steps"] == "copied"

    @property
    def rounded(self) -> torch.Tensor:
        """The best result that the dtype can hold."""
        return self.native if self.is_copied else self.exact.to(self.native.dtype)


def reference(
    function: Function, *args: Any, scale: Function | None = None,
    steps: Literal["float32", "native", "once", "copied"] = "float32", terms: int | None = None,
    input_precision: Precision = "ieee", bound: Function | None = None,
) -> Any:  # fmt: skip
    """The expected result of `function(*args)`: a `Reference`, or a tuple of them where `function` returns a tuple.

    Args:
        function: torch code for any floating dtype; it must not name one. It runs on float64 copies and on copies of
            the inputs as they are: `args`, which are `Input` specs, tensors and numbers.
        scale: a function of the same arguments that gives the size of the values that are rounded on the way, in the
            shape of the result. It is called in float64 with the absolute values of the inputs, so that for sums of
            products it is `function` itself. Say it wherever terms can cancel or errors are amplified. A scale that
            needs the signs has the attribute `signed = True`.
        steps: the dtype of those values: "float32" where a right kernel computes in float32 and rounds its result once,
            "native" where it may round every step to the inputs' dtype, as eager torch does; "once" where it is one
            operation of that dtype, whose result is exactly defined, subnormal ones too; "copied" where each element
            is one of an input's, with all its bits: the sign of 0, what a NaN holds.
        terms: how many values are added up for one element; by default the largest dimension of any input.
        input_precision: "tf32" allows a float32 matmul on tensor cores, Triton's default for `tl.dot`; needs `scale`
            or `bound`.
        bound: in place of `scale`, where one size does not bound the rounding errors: a function of a `Rounding` and
            the same arguments in float64 that works out the error of each element; `own_tolerance` makes one of two
            numbers.
    """

    options = {"scale": scale, "steps": steps, "terms": terms, "input_precision": input_precision, "bound": bound}
    references = Asked(function, args, options).references()
    return references if len(references) > 1 else references[0]


_TRIALS, _MOVED = 8, 2.0**-20
"""How often `conditioned` moves the inputs, and by which share of each element: far above what float32 rounds."""


def conditioned(function: Function) -> Function:
    """A `scale` for `reference` where nobody has worked out how large the values are that get rounded on the way.

    It is the worst that random relative changes of all input elements do to each element of the result (rounding in a
    stable algorithm is as bad), and that float32 does to it at these inputs (large values whose sum is small), in units
    of the change and of float32's eps. Not with `input_precision="tf32"`.
    """

    def scale(*args: Any) -> Any:
        exact = _call(function, args)
        worst = [torch.zeros_like(one, dtype=torch.float64) for one in exact]
        for trial in range(_TRIALS):
            generator = torch.Generator().manual_seed(trial)
            moved = [_moved(arg, generator) for arg in args]
            there, rounded = _call(function, [_double(arg) for arg in moved]), _call(function, moved)
            away = [_off(a, b) / _MOVED for a, b in zip(there, exact, strict=True)]
            own = [_off(a, b) / torch.finfo(torch.float32).eps for a, b in zip(rounded, there, strict=True)]
            worst = [torch.stack(each).amax(0) for each in zip(worst, away, own, strict=True)]
        return tuple(worst)

    scale.signed = True  # type: ignore[attr-defined]
    return scale


def _moved(value: Any, generator: torch.Generator) -> Any:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    signs = torch.randint(0, 2, value.shape, generator=generator) * 2 - 1
    return (value * (1 + _MOVED * signs)).float()


def _off(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.double() - b.double()).abs_().nan_to_num_(0.0, 0.0, 0.0)


def own_tolerance(function: Function, why: str, *, relative: float = 0.0, absolute: float = 0.0) -> Function:
    """A `bound` for `reference` where errors cannot be worked out: a share of each element's size, and a number in its
    units, beside what rounding the result takes. `why` is the reason, which students read where a result is wrong.
    Raises ValueError where there is no reason, or nothing is allowed."""
    if not why.strip() or min(relative, absolute) < 0 or not (relative or absolute):
        raise ValueError(f"a tolerance (here {relative:g} and {absolute:g}) needs a positive number and a reason")

    def bound(rounding: Rounding, *args: Any) -> Any:
        return tuple(relative * result.abs() + absolute for result in _call(function, args))

    allowed = [f"{100 * relative:g} % of an element"] * bool(relative) + [f"{absolute:g}"] * bool(absolute)
    bound.why = f"This check allows {' and '.join(allowed)}: {why.strip()}"  # type: ignore[attr-defined]
    return bound


def _references(key: Hashable | None, asked: Asked) -> tuple[Reference, ...]:
    """Those of a key that was asked before are worked out when somebody looks at them."""
    work = functools.partial(_worked_out, asked)
    if key is None:
        answer = work()
        return tuple(Reference(lambda: answer, i, None, asked) for i in range(len(answer)))
    known = _known.get(key)
    if known is not None:
        number, count = known
        again = functools.partial(_worked.current.get_or_make, key, work)
        return tuple(Reference(again, i, (number, i), asked) for i in range(count))
    answer = _worked.current.get_or_make(key, work)
    number = secrets.randbits(96)
    _known.put(key, (number, len(answer)))
    return tuple(Reference(lambda: answer, i, (number, i), asked) for i in range(len(answer)))


_worked = Shared(lambda: contents.TensorCache(lambda answer: [one for worked in answer for one in worked.tensors]))
_known: SharedCache[Hashable, tuple[int, int]] = shared(1 << 14)
"""Of each key that was asked: its number, which no other ever has, in no process, and how many results it has."""


def _worked_out(asked: Asked) -> tuple[Worked, ...]:
    function, args, options = asked.function, asked.args, asked.options
    scale, steps, bound = options["scale"], options["steps"], options["bound"]
    tensors = [values_of(a) for a in args]
    exact, native = _unrounded(function, [_double(a) for a in tensors]), _call(function, [_copy(a) for a in tensors])
    single = native
    if steps == "float32" and any(_is_narrow(n) for n in native):
        single = _unrounded(function, [_single(a) for a in tensors])
    before = [_before_rounding(*each, steps) for each in zip(exact, native, single, strict=True)]
    narrower = [n.dtype if n.dtype != one.dtype else None for n, one in zip(native, single, strict=True)]

    def rounded(allowances: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        every = zip(exact, narrower, allowances, strict=True)
        return [a if dtype is None else in_pieces(_and_rounded_once(dtype), e, a) for e, dtype, a in every]

    @functools.cache
    def allowances() -> list[torch.Tensor]:
        given, found = [values_of(a) for a in args], before
        if scale is not None:
            extra = _scaled(options, given, native)
            found = [a + x if n.is_floating_point() else a for a, x, n in zip(found, extra, native, strict=True)]
        if bound is not None:
            rounding = Rounding(native[0].dtype, options["input_precision"])
            extra = _call(lambda *given: bound(rounding, *given), list(map(_double, given)))
            found = [a + x.nan_to_num(0.0) for a, x in zip(found, extra, strict=True)]
        return rounded(found)

    is_all = scale is None and bound is None
    if not is_all and not asked.stay and any(isinstance(a, torch.Tensor) for a in args):
        allowances()
    return tuple(
        Worked(e, n, a, args, function, _again(function, args, i), None if is_all else lambda i=i: allowances()[i])  # type: ignore[misc]
        for i, (e, n, a) in enumerate(zip(exact, native, rounded(before), strict=True))
    )


def _call(function: Function, args: Sequence[Any]) -> list[torch.Tensor]:
    with without_symbolic_shapes():
        results = function(*args)
    results = results if isinstance(results, (tuple, list)) else (results,)
    return [r.detach() for r in results]


def _unrounded(function: Function, args: Sequence[Any]) -> list[torch.Tensor]:
    """The results before their last cast, where that is one to float8: it is a dtype that the inputs need not have, so
    the function must name it, and its steps are wide enough to be judged by. What is too large for it is its largest
    number, as in Triton's casts; torch's own give infinity or NaN."""
    results = _call(function, args)
    if not any(map(_is_float8, results)):
        return results
    with _CastsToFloat8() as casts:
        results = _call(function, args)
    return [_saturated(casts.sources.get(r.data_ptr(), r).detach(), r.dtype) if _is_float8(r) else r for r in results]


def _saturated(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    most = torch.finfo(dtype).max
    return value.double().clamp(-most, most).to(torch.float64 if _is_float8(value) else value.dtype)


class _CastsToFloat8(TorchFunctionMode):
    """While open, keeps what each float8 tensor was cast from, by its address."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: dict[int, torch.Tensor] = {}
        self._alive: list[torch.Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and _is_float8(result) and func in (torch.Tensor.to, torch.Tensor.type):
            self._alive.append(result)  # so that no other gets its address
            self.sources[result.data_ptr()] = args[0]
        return result


def _is_float8(value: torch.Tensor) -> bool:
    return value.is_floating_point() and value.element_size() == 1


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else _copy(value)


def _magnitude(value: Any) -> Any:
    """Absolute values in float64; whole numbers, such as indices, stay as they are."""
    value = _double(value)
    return value.abs() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _single(value: Any) -> Any:
    """A float of 16 bits as float32; anything else as it is."""
    return value.float() if isinstance(value, torch.Tensor) and _is_narrow(value) else _copy(value)


def _is_narrow(value: torch.Tensor) -> bool:
    return value.is_floating_point() and value.element_size() < 4


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _before_rounding(exact: torch.Tensor, native: torch.Tensor, single: torch.Tensor, steps: str) -> torch.Tensor:
    """What a result may be off whose steps have the dtype of `single`, before it is rounded to another."""
    if steps == "copied" or not native.is_floating_point():
        return torch.zeros(native.shape, dtype=torch.float64)
    if steps == "once":
        return (single.double() - exact).abs_().nan_to_num_(0.0, 0.0, 0.0)
    return in_pieces(lambda e, s: tolerance.floor(e, s.dtype).add_(tolerance.own_error(e, s)), exact, single)


def _and_rounded_once(dtype: torch.dtype) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda exact, off: tolerance.rounded_once(exact, off, dtype).add_(off)


def _scaled(options: dict[str, Any], tensors: Sequence[Any], native: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    scale, steps = options["scale"], options["steps"]
    prepare = _double if getattr(scale, "signed", False) else _magnitude
    scales = _call(scale, [prepare(t) for t in tensors])
    count = options["terms"] or max([1, *(n for t in tensors if isinstance(t, torch.Tensor) for n in t.shape)])
    extra = [tolerance.running_error(s, _step_dtype(n, steps), count) for s, n in zip(scales, native, strict=True)]
    if options["input_precision"] == "tf32":
        larger = _call(scale, [prepare(tolerance.larger_by_tf32(t)) for t in tensors])
        extra = [x + tolerance.widening(more, s) for x, more, s in zip(extra, larger, scales, strict=True)]
    return extra


def _step_dtype(native: torch.Tensor, steps: str) -> torch.dtype:
    return native.dtype if steps == "native" or native.dtype == torch.float64 else torch.float32


def _again(function: Function, args: Sequence[Any], result: int) -> Callable[[Sequence[torch.Tensor]], torch.Tensor]:
    def run(others: Sequence[torch.Tensor]) -> torch.Tensor:
        queue = iter(others)
        return _unrounded(function, [_double(next(queue)) if isinstance(a, _TENSORS) else a for a in args])[result]

    return run
