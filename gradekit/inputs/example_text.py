"""The arguments of one example as text, so that a command can try exactly this example again, on any machine.

JSON with the name of each parameter. Plain values stand as they are, a tuple is {"tuple": [...]}, a tensor
{"input": [dtype, shape, strides, offset, kind of values, seed]}, in which strides are null for a contiguous one and
what is ordinary at the end is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input

_FIELDS = ("dtype", "shape", "stride", "offset", "profile", "seed")
_ORDINARY = (None, 0, "normal", 0)
"""Strides, offset, kind of values and seed."""


def dumps(arguments: Mapping[str, Any]) -> str | None:
    """`arguments`, by the name of the parameter, as text; None where one of them cannot be written so."""
    try:
        if any(not name.isidentifier() for name in arguments):  # drawn on the way, and no parameter
            return None
        return json.dumps({name: _encoded(value) for name, value in arguments.items()}, separators=(",", ":"))
    except TypeError:
        return None


def loads(text: str) -> dict[str, Any]:
    """The arguments that `dumps` wrote.

    Raises:
        ValueError: `text` is anything else.
    """
    try:
        return {name: _decoded(value) for name, value in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise ValueError(
            f"no inputs of an example, as a report's replay line has them: {text[:60]!r} ({error})"
        ) from None


def _encoded(value: object) -> object:
    if isinstance(value, Input):
        return {"input": _short(value)}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(item) for item in value]}
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"{type(value).__name__} cannot be written")


def _short(spec: Input) -> list[Any]:
    strides = None if spec.stride == row_major(spec.shape) else list(spec.stride)
    rest: list[Any] = [strides, spec.offset, spec.profile, spec.seed]
    while rest and rest[-1] == _ORDINARY[len(rest) - 1]:
        rest.pop()
    return [spec.dtype, list(spec.shape), *rest]


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"tuple"}:
        return tuple(_decoded(item) for item in value["tuple"])
    found: list[Any] = list(value["input"])
    data = dict(zip(_FIELDS, [*found, *_ORDINARY[max(len(found) - 2, 0) :]], strict=True))
    return Input.from_json({name: item for name, item in data.items() if item is not None})
