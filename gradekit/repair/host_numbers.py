"""What a submission's expressions are in one call: sizes and strides, worked out from the tensors that it was given.

Text and shapes alone. What is not understood has no value, and says nothing.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradekit.arithmetic import OF_TWO, SIGNS, cdiv, next_power_of_2
from gradekit.repair.mend import Mend
from gradekit.source.draft import Draft
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import Edit, called

MOST = 200
"""So many assignments of a function are followed."""


@dataclass(frozen=True)
class Layout:
    """A tensor's shape and strides, in elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @staticmethod
    def contiguous(shape: Sequence[int]) -> Layout:
        """That of a new tensor."""
        stride = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
        return Layout(tuple(shape), tuple(stride))


Names = dict[str, Any]
"""What names stand for: whole numbers, Layouts, tuples of numbers; None for what is not known."""


class KnownNumbers:
    """What names are in one call of `entry` with `given`: a Layout for each tensor, whole numbers, None for anything
    else. A function that names its parameters like `entry` is taken to be handed the same."""

    def __init__(self, draft: Draft, entry: str, given: Sequence[Any]) -> None:
        host = draft.source.host
        first = next((f for f in host if f.name == entry), None)
        handed = dict(zip((a.arg for a in first.args.args) if first is not None else (), given, strict=False))
        self._text = draft.source.text.encode("utf-8")
        self._within = [(draft.source.span(f), [_followed(f, handed)]) for f in host]
        kernels = [(draft.source.span(k.node), self._launched(draft, k)) for k in draft.kernels]
        self._within += [(span, names) for span, names in kernels if names]

    def _launched(self, draft: Draft, kernel: KernelDraft) -> list[Names]:
        """The numbers of a kernel's parameters in each of its launches."""
        found = []
        for launch in draft.launches_of(kernel):
            (names, *_) = self._names_at(draft.source.span(launch.call)[0])
            values = {param: _tried(value, names) for param, value in launch.given.items()}
            found.append({p: v for p, v in values.items() if isinstance(v, int) and p not in kernel.values})
        return found

    def _names_at(self, place: int) -> list[Names]:
        """Of the innermost function around a place; no names outside of all."""
        around = [(end - start, names) for (start, end), names in self._within if start <= place < end]
        return min(around, key=lambda one: one[0])[1] if around else [{}]

    def are_left_by(self, mend: Mend) -> bool:
        """Whether a mend puts, for each number, another expression that is the same number here."""
        return all(map(self._is_left_by, mend.edits))

    def _is_left_by(self, edit: Edit) -> bool:
        old = self._text[edit.start : edit.end].decode("utf-8")
        return all(_are_equal(old, edit.new, names) for names in self._names_at(edit.start))


def _are_equal(one: str, other: str, names: Names) -> bool:
    values = [_of_text(text, names) for text in (one, other)]
    return values[0] is not None and values[0] == values[1]


def _of_text(text: str, names: Names) -> Any:
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = _tried(node, names)
    return found if isinstance(found, (int, tuple)) else None


def _followed(function: ast.FunctionDef, handed: Mapping[str, Any]) -> Names:
    names: Names = {a.arg: handed.get(a.arg) for a in function.args.args}
    assigned = [n for n in ast.walk(function) if isinstance(n, (ast.Assign, ast.AugAssign, ast.For))][:MOST]
    for node in sorted(assigned, key=lambda node: node.lineno):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = _tried(node.value, names) if isinstance(node, ast.Assign) else None
        for target in targets:
            _bind(names, target, value)
    return names


def _bind(names: Names, target: ast.expr, value: Any) -> None:
    if isinstance(target, ast.Name):
        names[target.id] = value if names.get(target.id, value) == value else None  # two values: which is not known
    elif isinstance(target, ast.Tuple):
        parts = value if isinstance(value, tuple) and len(value) == len(target.elts) else [None] * len(target.elts)
        for element, part in zip(target.elts, parts, strict=True):
            _bind(names, element, part)


def _tried(node: ast.expr, names: Names) -> Any:
    try:
        return _value(node, names)
    except (ValueError, TypeError, IndexError, KeyError, ArithmeticError, RecursionError):
        return None


def _value(node: ast.expr, names: Names) -> Any:
    """What an expression stands for; None where that is not known."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else None
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, (ast.Tuple, ast.List)):
        parts = tuple(_value(element, names) for element in node.elts)
        return None if None in parts else parts
    if isinstance(node, ast.Attribute):
        return _attribute(_value(node.value, names), node.attr)
    if isinstance(node, ast.Subscript):
        place = _value(node.slice, names)
        of = _value(node.value, names)
        return of[place] if isinstance(of, tuple) and isinstance(place, int) else None
    if isinstance(node, ast.BinOp) and SIGNS[type(node.op)] in _WHOLE:
        left, right = _value(node.left, names), _value(node.right, names)
        return None if left is None or right is None else OF_TWO[SIGNS[type(node.op)]](left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, names)
    return _called(node, names) if isinstance(node, ast.Call) else None


_WHOLE = frozenset({"+", "-", "*", "//", "%"})
"""The operators that give whole numbers of whole numbers."""


def _attribute(of: Any, name: str) -> Any:
    if not isinstance(of, Layout):
        return None
    if name in ("T", "mT") and len(of.shape) == 2:
        return Layout(of.shape[::-1], of.stride[::-1])
    return {"shape": of.shape, "ndim": len(of.shape)}.get(name)


def _called(node: ast.Call, names: Names) -> Any:
    arguments = [_value(argument, names) for argument in node.args]
    plain = called(node).rpartition(".")[2]
    if plain in _FUNCTIONS and None not in arguments:
        return _FUNCTIONS[plain](*arguments)
    if plain in ("empty", "zeros", "ones", "full") and arguments and None not in arguments[:1]:
        shape = arguments[0] if isinstance(arguments[0], tuple) else tuple(arguments)
        return Layout.contiguous(shape)
    if plain.endswith("_like") and isinstance(arguments[0] if arguments else None, Layout):
        return arguments[0] if arguments[0] == Layout.contiguous(arguments[0].shape) else None
    of = _value(node.func.value, names) if isinstance(node.func, ast.Attribute) else None
    return _method(of, plain, arguments) if isinstance(of, Layout) else None


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cdiv": cdiv,
    "next_power_of_2": next_power_of_2,
    "min": min,
    "max": max,
    "int": int,
}


def _method(of: Layout, name: str, arguments: Sequence[Any]) -> Any:
    if name in ("stride", "size"):
        every = of.stride if name == "stride" else of.shape
        return every[arguments[0]] if arguments else every
    if name == "contiguous":
        return Layout.contiguous(of.shape)
    if name == "t" and len(of.shape) == 2:
        return Layout(of.shape[::-1], of.stride[::-1])
    return {"numel": math.prod(of.shape), "dim": len(of.shape)}.get(name)
