"""Walking over TTIR text: tokens, and what is made of tokens alone (types, locations, attributes, lists of values).

`ttir.py` knows the operations; this module knows MLIR's punctuation. Tokens are plain strings, cut by one regular
expression in time linear in the text (every repetition is possessive); where each stands in the text is worked out
only when there is an error to explain.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gradekit.engine.budget import Limit
from gradekit.engine.ttir_locations import Location, Locations
from gradekit.engine.ttir_nodes import Type, read_dense, read_number, read_string, read_type


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
Item = TypeVar("Item")


class Unexpected(Exception):
    """Token number `at` is not the `expected` one."""

    def __init__(self, at: int, expected: str) -> None:
        self.at, self.expected = at, expected


@dataclass(slots=True)
class Clause:
    """What stands between an operation's name and its types."""

    operands: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)


class Reader:
    """One pass over the tokens; `at` is the number of the next one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [*filter(None, _TOKEN.findall(text)), *[END] * 4]
        self.at = 0
        self.depth = 0
        self.locations = Locations(text)

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

    def marked(self, mark: str, expected: str) -> str:
        """The next token, which is to begin with `mark` and go on, without it."""
        token = self.tokens[self.at]
        if token[0] != mark or len(token) == 1:
            raise Unexpected(self.at, expected)
        self.at += 1
        return token[1:]

    def value(self) -> str:
        """The name of an SSA value, without its mark."""
        return self.marked("%", "a value (%...)")

    def symbol(self) -> str:
        """`@name`: a function's name, without its mark."""
        name = self.marked("@", "a function's name (@...)")
        return self.unquoted(name, self.at - 1) if name[0] == '"' else name

    def several(self, close: str, read: Callable[[], Item]) -> list[Item]:
        """What `read` gives of each item of a list with commas, up to and with the token `close`."""
        found = []
        while not self.skip(close):
            found.append(read())
            if not self.skip(",") and self.tokens[self.at] != close:
                raise Unexpected(self.at, f"',' or {close!r}")
        return found

    def enter(self) -> None:
        """One level deeper; raises Unexpected where nesting has no end."""
        self.depth += 1
        if self.depth > Limit.NESTING:
            raise Unexpected(self.at, f"no more than {Limit.NESTING} levels of nesting")

    # types

    def type_list(self) -> list[Type]:
        """`(T, T {attributes})`"""
        self.take("(")
        return self.several(")", self.described_type)

    def described_type(self) -> Type:
        """A type, and attributes that may follow it."""
        found = self.plain_type()
        if self.tokens[self.at] == "{":
            self.dictionary()
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
        return self.locations.of(self.location_text() or "unknown")

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
        found = dict(self.several("}", self.named_attribute))
        self.depth -= 1
        return found

    def named_attribute(self) -> tuple[str, Any]:
        """`name = value` or `name`, which may be quoted."""
        at, token = self.at, self.tokens[self.at]
        if token[0] != '"' and not token[0].isalpha():
            raise Unexpected(at, "an attribute's name")
        self.at += 1
        name = self.unquoted(token, at) if token[0] == '"' else token
        return name, self.attribute() if self.skip("=") else True

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
        found = self.several("]", self.attribute)
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

    # clauses: what stands between an operation's name and its location

    def clause(self, name: str) -> tuple[Clause, list[Type]]:
        """The clause of operation `name`: operands and attributes in ttir_nodes' order, and the types after it."""
        at, clause = self.at, Clause()
        self.operands_and_words(clause)
        types = self.type_section()
        names = _WORDS.get(name)
        if names is None:
            clause.attributes.update(dict.fromkeys(clause.words, True))
        elif len(clause.words) < len(names):
            raise Unexpected(at, " and ".join(names))
        else:
            clause.attributes.update(zip(names, clause.words, strict=False))
        if names == _AXIS:
            if clause.words not in (["x"], ["y"], ["z"]):
                raise Unexpected(at, "x, y or z")
            clause.attributes["axis"] = "xyz".index(clause.words[0])
        if name in _SOURCE_LAST:
            if len(clause.operands) < 2:
                raise Unexpected(at, "a descriptor and a source")
            clause.operands.insert(1, clause.operands.pop())
        return clause, types

    def operands_and_words(self, clause: Clause) -> None:
        """Reads operands, words and attributes into `clause`, up to the types or the next operation."""
        tokens = self.tokens
        while True:
            token = tokens[self.at]
            first = token[0]
            if first == "%":
                if self.begins_results():
                    return
                clause.operands.append(self.value())
            elif first in ",()[]":
                self.at += 1
            elif first == ":":
                self.at += 1
                if tokens[self.at][0] != "%":
                    return
            elif first == "{":
                clause.attributes.update(self.dictionary())
            elif not self.word_in_clause(token, clause):
                return

    def begins_results(self) -> bool:
        """Whether the value that comes next is the next operation's result, since it is followed by `=`."""
        tokens, at = self.tokens, self.at
        if tokens[at + 1] == "=":
            return True
        if tokens[at - 1][-1] not in '"}':  # only there can an operation end that has no types
            return False
        while tokens[at][0] == "%" and tokens[at + 1] == ",":
            at += 2
        counted = tokens[at + 1] == ":" and tokens[at + 2].isdecimal()  # `%a:2`; a type otherwise
        return tokens[at + 1] == "=" or (counted and tokens[at + 3] in ("=", ","))

    def word_in_clause(self, token: str, clause: Clause) -> bool:
        """Takes `name = value`, `name<...>`, a word, a string or a @symbol; False for what belongs to what follows."""
        at = self.at
        if token[0] == '"' and self.tokens[at + 1] != "(":
            self.at += 1
            clause.words.append(self.unquoted(token, at))
        elif token[0] == "@":
            clause.words.append(self.symbol())
        elif not token[0].isalpha() or "." in token or token.startswith("loc"):
            return False
        else:
            self.at += 1
            self.keyword(token, clause)
        return True

    def keyword(self, token: str, clause: Clause) -> None:
        """Reads what follows a word: `= value`, `<...>` or nothing."""
        if self.skip("="):
            clause.attributes[token] = self.attribute_word()
        elif "<" in token:
            name, _, inner = token.partition("<")
            clause.attributes[name] = inner[:-1]
        else:
            clause.words.append(token)

    def attribute_word(self) -> Any:
        """The value after `name =` outside of a dictionary: a bare word (`tf32`), not followed by a type of its own."""
        token = self.tokens[self.at]
        if not token[0].isalpha():
            return self.attribute()
        self.at += 1
        return token

    def type_section(self) -> list[Type]:
        """`T, T`, `T to T`, `T * T -> T`, `(T, T) -> T` or `<short>, T`: what is after an arrow, if there is one."""
        tokens = self.tokens
        if tokens[self.at - 1] != ":" and tokens[self.at] != "->":
            return []
        found: list[Type] = []
        while True:
            token = tokens[self.at]
            if token[0] == "<":  # short for a pointer where it comes first, for a descriptor after that
                token = f"!tt.tensordesc{token}" if found else f"!tt.ptr{token}"
            known = read_type(token)
            if known is not None:
                self.at += 1
                found.append(known)
            elif token == "(":
                found += self.type_list()
            elif token != "->":
                raise Unexpected(self.at, "a type")
            token = tokens[self.at]
            if token == "->" or token == "to":
                self.at += 1
                return self.types_after_arrow()
            if token != "," and token != "*":
                return found
            self.at += 1

    def result_types(self, name: str, types: list[Type], count: int) -> tuple[Type, ...]:
        """The types of the `count` results of the operation `name`, from the `types` in its text."""
        if not types:
            raise Unexpected(self.at, f"the type of {name}")
        if len(types) == count > 1:
            return tuple(types)
        rule = _RESULT.get(name)
        return (rule(types) if rule else types[-1],) * count


# --- what single operations do differently ----------------------------------------------------------------------------


def _compared(types: list[Type]) -> Type:
    return Type("i1", types[0].shape)


def _loaded(types: list[Type]) -> Type:
    pointee = types[0].pointee or types[0]
    return Type(pointee.element, types[0].shape or pointee.shape, pointee.pointee)


_RESULT: dict[str, Callable[[list[Type]], Type]] = {
    "arith.cmpi": _compared, "arith.cmpf": _compared, "tt.load": _loaded, "tt.addptr": lambda types: types[0],
}  # fmt: skip
"""The result's type, from the types in the text, where it is not the last one of them."""


_AXIS, _SEMANTICS = ("axis",), ("sem", "scope")
_WORDS: dict[str, tuple[str, ...]] = {
    "arith.cmpi": ("predicate",), "arith.cmpf": ("predicate",),
    "tt.get_program_id": _AXIS, "tt.get_num_programs": _AXIS,
    "tt.atomic_rmw": ("kind", *_SEMANTICS), "tt.atomic_cas": _SEMANTICS, "tt.atomic_load": _SEMANTICS,
    "tt.atomic_store": _SEMANTICS, "tt.atomic_poll": _SEMANTICS, "tt.descriptor_reduce": ("kind",),
    "tt.print": ("prefix",), "tt.assert": ("message",), "cf.assert": ("message",), "tt.call": ("callee",),
    "tt.elementwise_inline_asm": ("asm_string",),
}  # fmt: skip
"""The attributes whose values the words in an operation's text are, in order; any other word is one that is True."""

_SOURCE_LAST = ("tt.descriptor_store", "tt.descriptor_reduce")
"""`%descriptor[%indices], %source`: the source stands before the indices in Triton's own order of operands."""
