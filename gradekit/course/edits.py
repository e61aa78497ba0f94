"""Edits of a source, written down as data: which lines give way to which, so that they fit in exactly one way.

An edit is written like a unified diff: `-` before a line that goes, `+` before one that comes, a space before one that
stays. Empty lines part its places, and each place must be found exactly once: in the whole text, or below `@@ NAME` in
the function called NAME. Text to text: nothing is imported or run here.
"""

import ast
import contextlib
import difflib
import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass


class EditError(ValueError):
    """An edit is written wrongly, or does not fit in exactly one way: one sentence, and the lines in question."""


@dataclass(frozen=True)
class _Place:
    """The lines `old` give way to `new`, somewhere in `function`, or anywhere where that is empty."""

    function: str
    old: tuple[str, ...]
    new: tuple[str, ...]


def edited(text: str, edit: str, name: str) -> str:
    """`text`, called `name`, after `edit`. Raises EditError where that is wrong, or does not fit in exactly one way."""
    lines = text.splitlines()
    found = sorted(_found(place, lines, name) for place in _places(edit))
    for (_, end, _), (start, *_) in itertools.pairwise(found):
        if start < end:
            raise EditError(f"two of its places share line {start + 1} of {name}")
    for start, end, new in reversed(found):
        lines[start:end] = new
    return "\n".join(lines) + "\n"


def _places(edit: str) -> list[_Place]:
    places = [_place(part.splitlines()) for part in re.split(r"\n{2,}", edit) if part.strip()]
    if not any(place.old != place.new for place in places):
        raise EditError("its edit changes nothing")
    return places


def _place(lines: Sequence[str]) -> _Place:
    function = lines[0].removeprefix("@@ ") if lines and lines[0].startswith("@@ ") else ""
    marked = [(line[:1], line[1:]) for line in lines[1 if function else 0 :]]
    if wrong := [sign + rest for sign, rest in marked if sign not in ("-", "+", " ")]:
        raise EditError(f"a line of an edit begins with -, + or a space, and this one does not: {wrong[0]}")
    old = tuple(rest for sign, rest in marked if sign != "+")
    if not old:
        raise EditError("it adds lines beside nothing: put a line that stays before or after them")
    return _Place(function, old, tuple(rest for sign, rest in marked if sign != "-"))


def _found(place: _Place, lines: Sequence[str], name: str) -> tuple[int, int, tuple[str, ...]]:
    """Where the old lines begin and end, counted from 0, and what stands there instead."""
    first, last = _function(place.function, lines, name) if place.function else (0, len(lines))
    size = len(place.old)
    starts = [n for n in range(first, last - size + 1) if tuple(lines[n : n + size]) == place.old]
    if len(starts) != 1:
        where = f"{place.function} of {name}" if place.function else name
        raise EditError(f"these lines stand {len(starts)} times in {where}, not once:\n" + "\n".join(place.old))
    return starts[0], starts[0] + size, place.new


def _function(function: str, lines: Sequence[str], name: str) -> tuple[int, int]:
    named = [node for node in _functions("\n".join(lines)) if node.name == function]
    if len(named) != 1:
        raise EditError(f"{name} has {len(named)} functions called {function}, not one")
    return named[0].lineno - 1, named[0].end_lineno or len(lines)


@functools.lru_cache(maxsize=16)
def _functions(text: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]


def edit_between(old: str, new: str) -> str:
    """The shortest edit that makes `new` of `old`. Raises EditError where there is none."""
    before, after = old.splitlines(), new.splitlines()
    for context in range(len(before) + 1):
        lines = difflib.unified_diff(before, after, n=context, lineterm="")
        edit = "".join("\n" if line.startswith("@@") else f"{line}\n" for line in list(lines)[2:]).strip("\n") + "\n"
        with contextlib.suppress(EditError):
            if edited(old, edit, "").splitlines() == after:
                return edit
    raise EditError("no edit makes one of the other")
