"""One compilation for all launches of a kernel that differ in the alignment of their arguments alone.

Triton compiles a kernel anew for each set of pointers and integers that are multiples of 16. That is an attribute of
the arguments, which stands in the first line of the function and which passes after TTIR read: neither the front end
nor the ttir passes look at it. So a kernel is compiled once with all arguments aligned, and the text for any other set
is that text with the attribute left out where it does not hold.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import triton.language as tl

from gradekit.compat.triton import ASTSource, known_text
from gradekit.program import ALIGNMENT, FUNCTION

ALIGNED = [["tt.divisibility", 16]]
"""What Triton says of an argument that is a multiple of 16: the only attribute that is understood here."""

CAN_BE_ALIGNED = re.compile(r"\*.*|[iu](8|16|32|64)")

Path = tuple[int, ...]
Lowered = tuple[str, list[str], Any]
Compile = Callable[[ASTSource, dict[str, Any]], Lowered]


@dataclass(frozen=True)
class Template:
    """A kernel's text in `pieces`, between which the attribute stands of those
    arguments, at `paths`, that are aligned."""

    pieces: tuple[str, ...]
    paths: tuple[Path, ...]
    types: list[str]
    options: Any

    def text(self, aligned: Mapping[Path, Any]) -> str:
        """The kernel's text where the arguments at the paths `aligned` are."""
        marks = [ALIGNMENT if aligned.get(path) else "" for path in self.paths]
        return "".join(part for pair in zip(self.pieces, (*marks, ""), strict=True) for part in pair)


class Alignments:
    """`lower` remembers what `compile`, which is `compat.triton.lower` or wraps it, has compiled."""

    def __init__(self, compile: Compile) -> None:
        self._compile = compile
        # the sources keep alive what the keys name by id
        self._known: dict[str, tuple[ASTSource, Template | None]] = {}
        self._by_text: dict[str, Template] = {}

    def lower(self, source: ASTSource, options: dict[str, Any]) -> Lowered:
        """As `compat.triton.lower`."""
        paths = tuple(_paths(source))
        if any(specs and (specs != ALIGNED or path not in paths) for path, specs in source.attrs.items()):
            return self._compile(source, options)
        name = key(source, options)
        if name not in self._known:
            same = self._by_text.get(_text_key(source, options) or "")
            self._known[name] = source, same or self._template(source, options, paths)
        template = self._known[name][1]
        if template is None:
            return self._compile(source, options)
        return template.text(source.attrs), template.types, template.options

    def share(self, source: ASTSource, options: dict[str, Any]) -> None:
        """Lets functions that say the same as that of `source`, which Triton has hashed, have what it was lowered to: a
        submission that is loaded once for each GPU has each function several times."""
        template = self._known.get(key(source, options), (source, None))[1]
        text = _text_key(source, options)
        if template is not None and text is not None:
            self._by_text.setdefault(text, template)

    def _template(self, source: ASTSource, options: dict[str, Any], paths: tuple[Path, ...]) -> Template | None:
        """The text of `source` with a gap at every path; None where it is not as expected."""
        everywhere = copy.copy(source)
        everywhere.attrs = dict.fromkeys(paths, ALIGNED)
        text, types, parsed = self._compile(everywhere, options)
        function = FUNCTION.search(text)
        pieces = function[0].split(ALIGNMENT) if function else []
        if function is None or len(pieces) != len(paths) + 1:
            return None
        pieces[0] = text[: function.start()] + pieces[0]
        pieces[-1] += text[function.end() :]
        return Template(tuple(pieces), paths, types, parsed)


def key(source: ASTSource, options: dict[str, Any]) -> str:
    """A name for all that is compiled but for the alignment, as long as the objects in `source` live."""
    return repr((id(source.fn), source.fn.src, *_specialization(source, options)))


def keys(source: ASTSource, options: dict[str, Any]) -> list[str]:
    """`key`, and where it is known, a name that functions of two modules have which say the same."""
    return [name for name in (key(source, options), _text_key(source, options)) if name is not None]


def _text_key(source: ASTSource, options: dict[str, Any]) -> str | None:
    """As `key`, by what the function says; None where that is not known yet."""
    text = known_text(source.fn)
    return None if text is None else repr((text, *_specialization(source, options)))


def _specialization(source: ASTSource, options: dict[str, Any]) -> tuple[Any, ...]:
    constants = {path: _identity(value) for path, value in source.constants.items()}
    return source.signature, constants, options


def _identity(value: Any) -> Any:
    """What tells a constant from others, without reading a jit function's source, which may be refused."""
    if isinstance(value, (tuple, list)):
        return [_identity(item) for item in value]
    if isinstance(value, tl.constexpr):
        return _identity(value.value)
    if callable(value):
        return id(value)
    return type(value).__name__, str(value)


def _paths(source: ASTSource) -> Iterator[Path]:
    """Where in the signature the arguments are that can be aligned, in the order in which the function takes them."""
    yield from _within(tuple(source.signature.values()), ())


def _within(kinds: tuple[Any, ...], path: Path) -> Iterator[Path]:
    for number, kind in enumerate(kinds):
        if isinstance(kind, tuple):
            yield from _within(kind, (*path, number))
        elif CAN_BE_ALIGNED.fullmatch(kind):
            yield *path, number
