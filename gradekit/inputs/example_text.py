"""The arguments of one example as text, so that a command can try exactly this example again, on any machine.

JSON with the name of each parameter. Plain values stand as they are, a tuple is {"tuple": [...]}, a tensor
{"input": [dtype, shape, strides, offset, kind of values, seed, base]}, in which strides are null for a contiguous one
and what is ordinary at the end is left out; {"same": 0} is the tensor of the first "input" once more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input

_FIELDS = ("dtype", "shape", "stride", "offset", "profile", "seed", "base")
_ORDINARY = (None, 0, "normal", 0, 0)
"""Strides, offset, kind of values, seed and base."""


def dumps(arguments: Mapping[str, Any]) -> str | None:
    """`arguments`, by the name of the parameter, as text; None where one of them cannot be written so."""
    try:
        if any(not name.isidentifier() for name in arguments):  # drawn on the way, and no parameter
            return None
        written: list[Input] = []
        return json.dumps({name: _encoded(value, written) for name, value in arguments.items()}, separators=(",", ":"))
    except TypeError:
        return None


def loads(text: str) -> dict[str, Any]:
    """The arguments that `dumps` wrote. Raises ValueError where `text` is anything else."""
    try:
        read: list[Input] = []
        return {name: _decoded(value, read) for name, value in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
        raise ValueError(
            f"no inputs of an example, as a report's replay line has them: {text[:60]!r} ({error})"
        ) from None


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
