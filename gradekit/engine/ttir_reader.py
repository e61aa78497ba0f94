"""Walking over TTIR text: tokens, and what is made of tokens alone (types, locations, attributes, lists of values).

`ttir.py` knows the operations; this module knows MLIR's punctuation. Tokens are plain strings, cut by one regular
expression in time linear in the text (every repetition is possessive); where each stands in the text is worked out
only when there is an error to explain.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from gradekit.engine.ttir_locations import Location, Locations
from gradekit.engine.ttir_values import Type, read_dense, read_number, read_string, read_type


class TTIRError(ValueError):
    """The text is not TTIR: 1-based `line` and `column` of it, and what was `expected` there."""

    def __init__(self, expected: str, line: int, column: int, found: str) -> None:
        super().__init__(f"line {line}, column {column}: expected {expected}, found {found}")
        self.expected, self.line, self.column = expected, line, column


_ANGLES = r"<(?!\{)[^<>]*+(?:<[^<>]*+(?:<[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>[^<>]*+)*+>[^<>]*+)*+>"
_TOKEN = re.compile(
    rf"""[\s]*+(?://.*+\s*+)*+(
      %[\w$.-]++(?:\#\d+)?                          # a value
    | loc\(\#\w++\)                                 # a location's alias
    | ->
    | [A-Za-z_!][\w$.]*+(?:{_ANGLES})?              # a word, an operation, a type, dense<...>
    | [(){{}},:=\[\]]
    | -?0x[0-9A-Fa-f]++ | -?\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?
    | "(?:[^"\\\n]|\\.)*+"?
    | ^\#\w++[ ]=[ ].*+                             # an alias's definition: a line of its own
    | \#[\w.]++(?:{_ANGLES})?
    | \^\w++ | @[\w.$-]++ | @"(?:[^"\\\n]|\\.)*+"?
    | {_ANGLES}
    | \S
    | \Z )""",
    re.VERBOSE | re.MULTILINE,
)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
END = ";end"  # no token begins with a semicolon and goes on
_DEEPEST = 60


class Unexpected(Exception):
    """Token number `at` is not the `expected` one."""

    def __init__(self, at: int, expected: str) -> None:
        self.at, self.expected = at, expected


LINES = 1 << 15
LONGEST_LINE = 400
"""How many lines are remembered, and characters of one that may be: the kernels of a class repeat each other's."""


def _tokens(text: str) -> tuple[str, ...]:
    return tuple([token for token in _TOKEN.findall(text) if token])


def _tokens_of_line(line: str) -> tuple[str, ...] | None:
    """The tokens of a line; None where the last may go on on the next line, because an angle is not closed."""
    found = _tokens(line)
    return None if found.count("<") > line.count("<{") else found


_remembered = functools.lru_cache(maxsize=LINES)(_tokens_of_line)


def _cut(text: str) -> tuple[list[str], dict[int, str]]:
    """The tokens of a text, and its lines by the number of their first token: none if
    not every token ends on its line."""
    tokens: list[str] = []
    lines: dict[int, str] = {}
    for line in text.split("\n"):
        found = _remembered(line) if len(line) <= LONGEST_LINE else _tokens_of_line(line)
        if found is None:
            return [*_tokens(text), *[END] * 4], {}
        if found:
            lines[len(tokens)] = line
            tokens += found
    return [*tokens, *[END] * 4], lines


class Reader:
    """One pass over the tokens; `at` is the number of the next one, `lines` are those that begin with a token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens, self.lines = _cut(text)
        self.at = 0
        self.depth = 0
        self.locations = Locations(text)
        self.location_by_alias: dict[str, Location] = {}

    def explain(self, error: Unexpected) -> TTIRError:
        """The error as its reader sees it: line, column, and what stands there."""
        found = self.tokens[error.at]
        matches = [m for m in _TOKEN.finditer(self.text) if m[1]]
        start = matches[error.at].start(1) if error.at < len(matches) else len(self.text)
        line, column = self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)
        shown = "the end of the text" if found == END else repr(found[:60])
        return TTIRError(error.expected, line, column, shown)

    # steps

    def take(self, token: str) -> None:
        """Steps over `token`; raises Unexpected where another one stands."""
        if self.tokens[self.at] != token:
            raise Unexpected(self.at, repr(token))
        self.at += 1

    def skip(self, token: str) -> bool:
        """Steps over `token` if it comes next; whether it did."""
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def word(self, expected: str) -> str:
        """The next token, which is to be a word."""
        token = self.tokens[self.at]
        if not token[0].isalpha():
            raise Unexpected(self.at, expected)
        self.at += 1
        return token

    def value(self) -> str:
        """The name of an SSA value, without its mark."""
        token = self.tokens[self.at]
        if token[0] != "%" or len(token) == 1:
            raise Unexpected(self.at, "a value (%...)")
        self.at += 1
        return token[1:]

    def symbol(self) -> str:
        """`@name`: a function's name, without its mark."""
        token = self.tokens[self.at]
        if token[0] != "@" or len(token) < 2:
            raise Unexpected(self.at, "a function's name (@...)")
        self.at += 1
        return self.unquoted(token[1:], self.at - 1) if token[1] == '"' else token[1:]

    def values(self, close: str) -> list[str]:
        """`%a, %b` up to and with the token `close`."""
        found = []
        while not self.skip(close):
            found.append(self.value())
            self.separator(close)
        return found

    def separator(self, close: str) -> None:
        """Steps over a comma; nothing else may stand before `close`."""
        if not self.skip(",") and self.tokens[self.at] != close:
            raise Unexpected(self.at, f"',' or {close!r}")

    def enter(self) -> None:
        """One level deeper; raises Unexpected where nesting has no end."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unexpected(self.at, f"no more than {_DEEPEST} levels of nesting")

    # types

    def type_list(self) -> list[Type]:
        """`(T, T)`"""
        self.take("(")
        found = []
        while not self.skip(")"):
            found.append(self.plain_type())
            self.separator(")")
        return found

    def plain_type(self) -> Type:
        """The next token as a type."""
        found = read_type(self.tokens[self.at])
        if found is None:
            raise Unexpected(self.at, "a type")
        self.at += 1
        return found

    def types_after_arrow(self) -> list[Type]:
        """`(T, T)` or `T, T`"""
        if self.tokens[self.at] == "(":
            return self.type_list()
        found = [self.plain_type()]
        while self.skip(","):
            found.append(self.plain_type())
        return found

    # locations

    def location(self) -> Location:
        """The location that comes next; () where none does."""
        token = self.tokens[self.at]
        if not token.startswith("loc"):
            return ()
        known = self.location_by_alias.get(token)
        if known is not None:
            self.at += 1
            return known
        text = self.location_text()
        location = self.locations.of(text or "unknown")
        if token != "loc":
            self.location_by_alias[token] = location
        return location

    def location_text(self) -> str | None:
        """The inside of the `loc(...)` that comes next, or None where none does."""
        token = self.tokens[self.at]
        if token.startswith("loc("):
            self.at += 1
            return token[4:-1]
        if token != "loc" or self.tokens[self.at + 1] != "(":
            return None
        self.at += 2
        return self.rest_of_location()

    def rest_of_location(self) -> str:
        """The inside of a location whose `loc(` has been read, up to its closing parenthesis."""
        first, open_ = self.at, 1
        while open_:
            token = self.tokens[self.at]
            if token == END:
                raise Unexpected(self.at, "')'")
            open_ += (token == "(") - (token == ")")
            self.at += 1
        pieces = self.tokens[first : self.at - 1]
        return "".join(f" {piece} " if piece in ("at", "to") else piece for piece in pieces)

    # attributes

    def dictionary(self) -> dict[str, Any]:
        """`{name = value, name}`"""
        self.take("{")
        self.enter()
        found: dict[str, Any] = {}
        while not self.skip("}"):
            name = self.attribute_name()
            found[name] = self.attribute() if self.skip("=") else True
            self.separator("}")
        self.depth -= 1
        return found

    def attribute_name(self) -> str:
        """A name in a dictionary, quoted or not."""
        token = self.tokens[self.at]
        if token[0] != '"':
            return self.word("an attribute's name")
        self.at += 1
        return self.unquoted(token, self.at - 1)

    def unquoted(self, token: str, at: int) -> str:
        """The string that the quoted `token` means; `at` is its number."""
        if _STRING.fullmatch(token) is None:
            raise Unexpected(at, "a string that ends on its line")
        return read_string(token)

    def attribute(self) -> Any:
        """The value of an attribute, as plain data."""
        token, at = self.tokens[self.at], self.at
        first = token[0]
        if first == "{":
            return self.dictionary()
        if first == "[":
            return self.attribute_list()
        self.at += 1
        if first == '"':
            return self.typed(self.unquoted(token, at))
        if first.isdigit() or first == "-":
            return self.number(token, at)
        if token in ("true", "false"):
            return token == "true"
        if token.startswith("array<"):
            return self.array(token, at)
        if token.startswith("dense<"):
            self.take(":")
            return self.checked(at, lambda: read_dense(token[6:-1], self.plain_type()))
        if first in "#@!" or first.isalpha():
            return self.typed(token)
        raise Unexpected(at, "an attribute")

    def typed(self, value: Any) -> Any:
        """`value`, after stepping over a type that may follow it."""
        if self.skip(":"):
            self.plain_type()
        return value

    def attribute_list(self) -> list[Any]:
        """`[value, value]`"""
        self.take("[")
        self.enter()
        found = []
        while not self.skip("]"):
            found.append(self.attribute())
            self.separator("]")
        self.depth -= 1
        return found

    def number(self, token: str, at: int) -> int | float | bool:
        """The number that `token` spells, of the type that may follow it."""
        element = "f64" if "." in token else "i64"
        if self.skip(":"):
            element = self.plain_type().element
        return self.checked(at, lambda: read_number(token, element))

    def array(self, token: str, at: int) -> list[Any]:
        """`array<i32: 1, 0>`"""
        element, _, items = token[6:-1].partition(":")
        if read_type(element.strip()) is None:
            raise Unexpected(at, "an array")
        pieces = [item.strip() for item in items.split(",")] if items.strip() else []
        return self.checked(at, lambda: [read_number(item, element.strip()) for item in pieces])

    def checked(self, at: int, read: Callable[[], Any]) -> Any:
        """What `read` gives; its errors become Unexpected at token number `at`."""
        try:
            return read()
        except (ValueError, OverflowError) as error:
            raise Unexpected(at, f"a value ({error})") from None
