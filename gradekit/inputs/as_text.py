"""Tensors as lines of torch, for a person who wants to see a failing call in a file of their own.

Few numbers are written out; many are made by gradekit itself, as its own specs make them. Either way the tensor is
exactly that of the spec, and what lies between its elements is not a number, as in a check.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.inputs.value_kinds import poison

FEW = 64  # the most elements that are written out

MADE_BY_GRADEKIT = "from gradekit.inputs.spec import Input"  # the line that goes before an expression with `Input(`


def expression(spec: Input, device: str = '"cuda"') -> str:
    """Python that makes the tensor of `spec`, with its strides, on `device` (itself Python)."""
    dtype = f"dtype=torch.{spec.dtype}"
    own = [n if s or n == 0 else 1 for n, s in zip(spec.shape, spec.stride, strict=True)]
    if math.prod(own) <= FEW:
        values = written(spec.tensor()[tuple(slice(n) for n in own)])
        made = f"torch.tensor({values}, {dtype}, device={device})"
        made = made if 0 not in own else f"torch.empty({own}, {dtype}, device={device})"
    else:
        return f"Input.from_json({spec.to_json()!r}).tensor().to({device})"
    if not spec.is_contiguous or spec.offset:
        between = written(torch.tensor(poison(getattr(torch, spec.dtype)), dtype=getattr(torch, spec.dtype)))
        whole = f"torch.full([{spec.storage_size}], {between}, {dtype}, device={device})"
        made = f"{whole}.as_strided({own}, {list(spec.stride)}, {spec.offset}).copy_({made})"
    return made if own == list(spec.shape) else f"{made}.expand({list(spec.shape)})"


def written(tensor: torch.Tensor) -> str:
    """The values as Python writes them, nested as the dimensions are, in no more digits than the dtype needs."""
    if tensor.dim():
        return f"[{', '.join(map(written, tensor))}]"
    return _number(tensor)


def as_data(value: Any, name: str) -> dict[str, Any]:
    """An argument of a call as JSON data: a spec field by field, a tensor by its form, anything else by its value."""
    if isinstance(value, Input):
        return value.to_json() | {"name": name}
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return {"name": name, "shape": list(value.shape), "stride": list(value.stride()), "dtype": dtype}
    plain = value is None or isinstance(value, (bool, int, float, str))
    return {"name": name, "value": value if plain else repr(value)}


def few(tensor: torch.Tensor, most: int) -> list[str] | None:
    """The values in their order as short texts; None where there are more than `most`, or none."""
    return [_number(value) for value in tensor.flatten()] if 0 < tensor.numel() <= most else None


def _number(value: torch.Tensor) -> str:
    number: Any = value.item()
    if not isinstance(number, float):
        return str(number)
    if not math.isfinite(number):
        return f'float("{number}")'
    texts = (f"{number:.{digits}g}" for digits in range(1, 18))
    text = next(text for text in texts if torch.tensor(float(text), dtype=value.dtype).item() == number)
    return text if any(mark in text for mark in ".e") else f"{text}.0"


# --- the arguments of one example as text, so that a command can try exactly this example again, on any machine -------
#
# JSON with the name of each parameter. Plain values stand as they are, a tuple is {"tuple": [...]}, a tensor
# {"input": [dtype, shape, strides, offset, kind of values, seed, base]}, in which strides are null for a contiguous one
# and what is ordinary at the end is left out; {"same": 0} is the tensor of the first "input" once more.


_FIELDS = ("dtype", "shape", "stride", "offset", "profile", "seed", "base")
_ORDINARY = (None, 0, "normal", 0, 0)  # strides, offset, kind of values, seed and base


def dumps(arguments: Mapping[str, Any]) -> str | None:
    """`arguments`, by the name of the parameter, as text; None where one of them cannot be written so."""
    try:
        if any(not name.isidentifier() for name in arguments):  # drawn on the way, and no parameter
            return None
        data = dict(zip(arguments, encoded(arguments.values()), strict=True))
        return json.dumps(data, separators=(",", ":"))
    except TypeError:
        return None


def loads(text: str) -> dict[str, Any]:
    """The arguments that `dumps` wrote. Raises ValueError where `text` is anything else."""
    try:
        data = json.loads(text)
        return dict(zip(data, decoded(data.values()), strict=True))
    except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
        raise ValueError(
            f"no inputs of an example, as a report's replay line has them: {text[:60]!r} ({error})"
        ) from None


def encoded(arguments: Iterable[object]) -> list[object]:
    """The arguments as JSON data. Raises TypeError where one of them cannot be written so."""
    written: list[Input] = []
    return [_encoded(value, written) for value in arguments]


def decoded(data: Iterable[Any]) -> list[Any]:
    """The arguments that `encoded` gave."""
    read: list[Input] = []
    return [_decoded(value, read) for value in data]


def _encoded(value: object, written: list[Input]) -> object:
    """`written` are the tensors that stand before it."""
    if isinstance(value, Input):
        same = next((place for place, one in enumerate(written) if one is value), None)
        written += [value] if same is None else []
        return {"input": _short(value)} if same is None else {"same": same}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(item, written) for item in value]}
    if isinstance(value, list):
        return [_encoded(item, written) for item in value]
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"{type(value).__name__} cannot be written")


def _short(spec: Input) -> list[Any]:
    strides = None if spec.stride == row_major(spec.shape) else list(spec.stride)
    rest: list[Any] = [strides, spec.offset, spec.profile, spec.seed, spec.base]
    while rest and rest[-1] == _ORDINARY[len(rest) - 1]:
        rest.pop()
    return [spec.dtype, list(spec.shape), *rest]


def _decoded(value: Any, read: list[Input]) -> Any:
    if isinstance(value, list):
        return [_decoded(item, read) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"tuple"}:
        return tuple(_decoded(item, read) for item in value["tuple"])
    if set(value) == {"same"}:
        return read[value["same"]]
    found: list[Any] = list(value["input"])
    data = dict(zip(_FIELDS, [*found, *_ORDINARY[max(len(found) - 2, 0) :]], strict=True))
    read.append(Input.from_json({name: item for name, item in data.items() if item is not None}))
    return read[-1]
