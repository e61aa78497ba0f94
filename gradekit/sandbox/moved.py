"""What was learned of a submission, as it holds of a text with the same code on other lines."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from gradekit.origins import Explored
from gradekit.program import Kernel, Launch, Program, Scalar, View, key_of
from gradekit.submission.layout import LINE_IN_WORDS, moved_lines

_SPEAKS = re.compile(rf"{LINE_IN_WORDS}|submission\.py:\d")
_PLACE = re.compile(r'("submission\.py":)(\d+)')
_WITHOUT = frozenset({int, float, bool, type(None), View, Scalar})
"""Kinds of values that say nothing of lines."""

T = TypeVar("T")


def moved(value: T, before: str, after: str) -> T | None:
    """`value`, which was learned of the text `before`, as it holds of the text `after`, which has the same code; None
    where words in it may name a line, and lines differ."""
    lines = moved_lines(before, after)
    try:
        return cast(T, _move(before, after).of(value)) if lines else value if lines is not None else None
    except _SpeaksOfLines:
        return None


class _SpeaksOfLines(Exception):
    """Words may name a line."""


class _Move:
    """`lines` are the numbers that lines with code have in the other text."""

    def __init__(self, lines: Mapping[int, int]) -> None:
        self._lines = lines
        self._kernels: dict[str, tuple[str, Kernel]] = {}

    def of(self, value: Any) -> Any:
        """`value` with these numbers."""
        match value:
            case str() if not _SPEAKS.search(value):
                return value
            case tuple() | list():
                return type(value)([item if type(item) in _WITHOUT else self.of(item) for item in value])
            case dict():
                return {key: self.of(item) for key, item in value.items()}
            case Program():
                kernels = dict(self._kernel(key, kernel) for key, kernel in value.kernels.items())
                return replace(value, steps=self.of(value.steps), kernels=kernels)
            case Explored():
                left = tuple((self._lines.get(line, line), self.of(what)) for line, what in value.left)
                return replace(value, origins=self.of(value.origins), launches=self.of(value.launches), left=left)
        if type(value) in _WITHOUT:
            return value
        if not is_dataclass(value):  # words, or an error, whose words may quote a line
            raise _SpeaksOfLines
        changed = {name: self._part(name, getattr(value, name)) for name in _names(cast(object, type(value)))}
        if isinstance(value, Launch):
            changed["kernel"] = self._kernels[value.kernel][0]
        return replace(value, **changed)  # type: ignore[type-var]

    def _part(self, name: str, value: Any) -> Any:
        return self._line(value) if name == "line" else value if type(value) in _WITHOUT else self.of(value)

    def _line(self, line: int | None) -> int | None:
        return None if line is None else self._lines.get(line, line)

    def _kernel(self, key: str, kernel: Kernel) -> tuple[str, Kernel]:
        if key not in self._kernels:
            own = replace(kernel, ttir=_PLACE.sub(lambda at: f"{at[1]}{self._line(int(at[2]))}", kernel.ttir))
            self._kernels[key] = key_of(own), own
        return self._kernels[key]


@functools.lru_cache(maxsize=4)
def _move(before: str, after: str) -> _Move:
    return _Move(moved_lines(before, after) or {})


@functools.cache
def _names(kind: object) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.init)  # type: ignore[arg-type]
