"""Triton's IR as text, read into operations.

Runs wherever the engine runs, on text that may be hostile: it needs the standard library alone, takes time linear in
the text, and anything that it cannot read is a `TTIRError` with the line, the column and what was expected.

SSA names stand without their "%"; the results of `%a:2 = ...` are "a#0" and "a#1". Values are typed where they are
defined, and an operation's operand types are looked up there, so that every operand and result has its type although
the text leaves many out.

Attributes are plain values (numbers, bools, strings, lists, dicts; raw text where not understood), under the names
that the text gives them, and under these where the text gives none:

    arith.constant           value: a number (scalar or splat) or a flat row-major list
    arith.cmpi, arith.cmpf   predicate
    tt.get_program_id, tt.get_num_programs                 axis: 0, 1 or 2
    tt.atomic_rmw            kind, sem, scope              tt.atomic_cas                  sem, scope
    tt.descriptor_reduce     kind                          tt.call                        callee
    tt.print                 prefix                        tt.assert, cf.assert           message
    tt.elementwise_inline_asm                              asm_string
    tt.dot_scaled            scaled: [bool, bool], whether lhs and rhs have scales; the operands stand in the order
                             a, b, c, then the scales that there are
    arith.*                  fastmath, overflow (raw text), exact, nneg (True)
    scf.for                  unsigned (True) where it counts so

A word of its own in the text (allow_reorder, efficient_layout) is an attribute with the value True. `padding` is 1 for
zero and 2 for NaN.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradekit.engine.ttir_places import Place, Places, name_in
from gradekit.engine.ttir_values import I1, Type, read_dense, read_number, read_short_type, read_string, read_type

__all__ = ["Block", "Function", "Module", "Op", "Place", "Region", "TTIRError", "Type", "parse"]


class TTIRError(ValueError):
    """The text is not TTIR: 1-based `line` and `column` of it, and what was `expected` there."""

    def __init__(self, expected: str, line: int, column: int, found: str) -> None:
        super().__init__(f"line {line}, column {column}: expected {expected}, found {found}")
        self.expected, self.line, self.column = expected, line, column


@dataclass(slots=True)
class Op:
    """One operation. `successors` are the (label, operands) that a branch may go to; `location` is innermost first.

    scf.for has the operands (from, to, step, *initial values) and a block with the arguments (counter, *carried);
    scf.while has the regions (before, after); scf.if has (then,) or (then, else).
    """

    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    operand_types: tuple[Type, ...]
    result_types: tuple[Type, ...]
    attributes: dict[str, Any]
    regions: tuple[Region, ...] = ()
    successors: tuple[tuple[str, tuple[str, ...]], ...] = ()
    location: Place = ()


@dataclass(slots=True)
class Block:
    """Operations in order; `label` is without its "^", and "" for a block that has none (a function's or region's first)."""

    label: str
    arguments: tuple[str, ...]
    argument_types: tuple[Type, ...]
    ops: list[Op]


@dataclass(slots=True)
class Region:
    """Blocks; the first is where it begins. It has none where an operation's region is left out or empty."""

    blocks: list[Block]


@dataclass(slots=True)
class Function:
    """A tt.func. `argument_names` are the student's names where the text has them, the SSA names otherwise."""

    name: str
    arguments: tuple[str, ...]
    argument_types: tuple[Type, ...]
    argument_names: tuple[str, ...]
    result_types: tuple[Type, ...]
    body: Region
    public: bool
    location: Place = ()


@dataclass(slots=True)
class Module:
    """All functions by name; `entry` is the public one, which a launch runs."""

    functions: dict[str, Function] = field(default_factory=dict)

    @property
    def entry(self) -> Function:
        return next(function for function in self.functions.values() if function.public)


def parse(text: str) -> Module:
    """The module that `text` (of Triton 3.6 to 3.9, with or without locations) holds.

    Raises:
        TTIRError: the text is not TTIR.
    """
    parser = _Parser(text)
    try:
        return parser.module()
    except _Unexpected as error:
        raise parser.explain(error) from None


# --- tokens -----------------------------------------------------------------------------------------------------------

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
    re.X | re.M,
)
_END = ";end"  # no token begins with a semicolon and goes on
_DEEPEST = 60


class _Unexpected(Exception):
    """Token number `at` is not the `expected` one."""

    def __init__(self, at: int, expected: str) -> None:
        self.at, self.expected = at, expected


class _Parser:
    """One pass over the tokens; `at` is the number of the next one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [token for token in _TOKEN.findall(text) if token] + [_END] * 4
        self.at = 0
        self.depth = 0
        self.places = Places(text)
        self.place_of: dict[str, Place] = {}
        self.types: dict[str, Type] = {}
        self.untyped: list[tuple[int, Op]] = []

    def explain(self, error: _Unexpected) -> TTIRError:
        found = self.tokens[error.at]
        matches = [m for m in _TOKEN.finditer(self.text) if m[1]]
        start = matches[error.at].start(1) if error.at < len(matches) else len(self.text)
        line, column = self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)
        shown = "the end of the text" if found == _END else repr(found[:60])
        return TTIRError(error.expected, line, column, shown)

    # steps

    def take(self, token: str) -> None:
        if self.tokens[self.at] != token:
            raise _Unexpected(self.at, repr(token))
        self.at += 1

    def skip(self, token: str) -> bool:
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def word(self, expected: str) -> str:
        token = self.tokens[self.at]
        if not token[0].isalpha():
            raise _Unexpected(self.at, expected)
        self.at += 1
        return token

    def value(self) -> str:
        token = self.tokens[self.at]
        if token[0] != "%" or len(token) == 1:
            raise _Unexpected(self.at, "a value (%...)")
        self.at += 1
        return token[1:]

    def values(self, close: str) -> list[str]:
        """`%a, %b` up to and with the token `close`."""
        found = []
        while not self.skip(close):
            found.append(self.value())
            self.separator(close)
        return found

    def separator(self, close: str) -> None:
        if not self.skip(",") and self.tokens[self.at] != close:
            raise _Unexpected(self.at, f"',' or {close!r}")

    def enter(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Unexpected(self.at, f"no more than {_DEEPEST} levels of nesting")

    # types

    def type(self) -> Type:
        token = self.tokens[self.at]
        found = read_type(token)
        if found is None and token[0] == "(":
            return self.type_in_parentheses()
        if found is None:
            raise _Unexpected(self.at, "a type")
        self.at += 1
        return found

    def type_in_parentheses(self) -> Type:
        found = self.type_list()
        if len(found) != 1:
            raise _Unexpected(self.at, "one type")
        return found[0]

    def type_list(self) -> list[Type]:
        """`(T, T)`"""
        self.take("(")
        found = []
        while not self.skip(")"):
            found.append(self.plain_type())
            self.separator(")")
        return found

    def plain_type(self) -> Type:
        found = read_type(self.tokens[self.at])
        if found is None:
            raise _Unexpected(self.at, "a type")
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

    def location(self) -> Place:
        token = self.tokens[self.at]
        if not token.startswith("loc"):
            return ()
        known = self.place_of.get(token)
        if known is not None:
            self.at += 1
            return known
        text = self.location_text()
        place = self.places.of(text or "unknown")
        if token != "loc":
            self.place_of[token] = place
        return place

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
        first, open_ = self.at, 1
        while open_:
            token = self.tokens[self.at]
            if token == _END:
                raise _Unexpected(self.at, "')'")
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
        token = self.tokens[self.at]
        if token[0] != '"':
            return self.word("an attribute's name")
        self.at += 1
        return self.unquoted(token, self.at - 1)

    def unquoted(self, token: str, at: int) -> str:
        if len(token) < 2 or token[-1] != '"':
            raise _Unexpected(at, "a string that ends on its line")
        return read_string(token)

    def attribute(self) -> Any:
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
        raise _Unexpected(at, "an attribute")

    def typed(self, value: Any) -> Any:
        if self.skip(":"):
            self.plain_type()
        return value

    def attribute_list(self) -> list[Any]:
        self.take("[")
        self.enter()
        found = []
        while not self.skip("]"):
            found.append(self.attribute())
            self.separator("]")
        self.depth -= 1
        return found

    def number(self, token: str, at: int) -> int | float | bool:
        element = "f64" if "." in token else "i64"
        if self.skip(":"):
            element = self.plain_type().element
        return self.checked(at, lambda: read_number(token, element))

    def array(self, token: str, at: int) -> list[Any]:
        """`array<i32: 1, 0>`"""
        element, _, items = token[6:-1].partition(":")
        if read_type(element.strip()) is None:
            raise _Unexpected(at, "an array")
        pieces = [item.strip() for item in items.split(",")] if items.strip() else []
        return self.checked(at, lambda: [read_number(item, element.strip()) for item in pieces])

    def checked(self, at: int, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (ValueError, OverflowError) as error:
            raise _Unexpected(at, f"a value ({error})") from None

    # modules and functions

    def module(self) -> Module:
        module = Module()
        self.definitions()
        wrapped = self.skip("module") or self.skip("builtin.module")
        if wrapped:
            self.module_head()
        while self.tokens[self.at] == "tt.func":
            function = self.function()
            if function.name in module.functions:
                raise _Unexpected(self.at - 1, f"only one function with the name {function.name!r}")
            module.functions[function.name] = function
        if wrapped:
            self.take("}")
            self.location()
        self.definitions()
        self.end(module)
        return module

    def definitions(self) -> None:
        while self.tokens[self.at][0] == "#" and " = " in self.tokens[self.at]:
            self.at += 1

    def module_head(self) -> None:
        if self.tokens[self.at][0] == "@":
            self.at += 1
        if self.skip("attributes"):
            self.dictionary()
        self.take("{")

    def end(self, module: Module) -> None:
        if self.tokens[self.at] != _END or not module.functions:
            raise _Unexpected(self.at, "tt.func")
        if not any(function.public for function in module.functions.values()):
            raise _Unexpected(self.at, "a public function")

    def function(self) -> Function:
        self.take("tt.func")
        public = self.tokens[self.at] not in ("private", "nested")
        if self.tokens[self.at] in ("private", "nested", "public"):
            self.at += 1
        name = self.symbol()
        self.types, self.untyped = {}, []
        arguments, types, names = self.arguments()
        result_types = self.function_results() if self.skip("->") else []
        if self.skip("attributes"):
            self.dictionary()
        body = self.region() if self.tokens[self.at] == "{" else Region([])
        self.settle()
        return Function(name, arguments, types, names, tuple(result_types), body, public, self.location())

    def symbol(self) -> str:
        token = self.tokens[self.at]
        if token[0] != "@" or len(token) < 2:
            raise _Unexpected(self.at, "a function's name (@...)")
        self.at += 1
        return self.unquoted(token[1:], self.at - 1) if token[1] == '"' else token[1:]

    def function_results(self) -> list[Type]:
        """`T` or `(T {attributes}, T)`"""
        if not self.skip("("):
            return [self.plain_type()]
        found = []
        while not self.skip(")"):
            found.append(self.plain_type())
            if self.tokens[self.at] == "{":
                self.dictionary()
            self.separator(")")
        return found

    def arguments(self) -> tuple[tuple[str, ...], tuple[Type, ...], tuple[str, ...]]:
        """`(%a: T {attributes} loc(...), ...)`: the values, their types and the names that the locations give them."""
        self.take("(")
        values, names = [], []
        while not self.skip(")"):
            value = self.value()
            self.take(":")
            self.types[value] = self.plain_type()
            if self.tokens[self.at] == "{":
                self.dictionary()
            values.append(value)
            names.append(name_in(self.location_text() or "") or value)
            self.separator(")")
        return tuple(values), tuple(self.types[value] for value in values), tuple(names)

    def settle(self) -> None:
        """Gives their types to the operands that stand before their definition (blocks may be in any order)."""
        for at, op in self.untyped:
            for value in op.operands:
                if value not in self.types:
                    raise _Unexpected(at, f"the definition of %{value} somewhere")
            op.operand_types = tuple(self.types[value] for value in op.operands)

    # regions and blocks

    def region(self, names: tuple[str, ...] = (), types: tuple[Type, ...] = ()) -> Region:
        """`{ operations ^label(%a: T): operations }`; `names` and `types` are the first block's unwritten arguments."""
        self.take("{")
        self.enter()
        self.types.update(zip(names, types, strict=True))
        blocks = []
        if self.tokens[self.at][0] != "^" or names:
            blocks.append(Block("", names, types, self.ops()))
        while self.tokens[self.at][0] == "^":
            blocks.append(self.block())
        self.take("}")
        self.depth -= 1
        return Region(blocks)

    def block(self) -> Block:
        label = self.label()
        arguments: tuple[str, ...] = ()
        if self.tokens[self.at] == "(":
            arguments, _, _ = self.arguments()
        self.take(":")
        return Block(label, arguments, tuple(self.types[name] for name in arguments), self.ops())

    def label(self) -> str:
        token = self.tokens[self.at]
        if token[0] != "^" or len(token) == 1:
            raise _Unexpected(self.at, "a label (^...)")
        self.at += 1
        return token[1:]

    def ops(self) -> list[Op]:
        found = []
        while self.tokens[self.at][0] not in "}^":
            found.append(self.op())
        return found

    # operations

    def op(self) -> Op:
        at = self.at
        results = self.results() if self.tokens[at][0] == "%" else ()
        name = self.tokens[self.at]
        if name[0] == '"':
            return self.finish(at, self.generic(results))
        if not name[0].isalpha() or "." not in name:
            raise _Unexpected(self.at, "an operation")
        self.at += 1
        read = _FORMS.get(name)
        return self.finish(at, read(self, name, results) if read else self.custom(name, results))

    def finish(self, at: int, op: Op) -> Op:
        """Adds what every operation has: operand types, the types of its results for later, and its location."""
        types = self.types
        if op.results:
            if len(op.result_types) != len(op.results):
                raise _Unexpected(at, f"{len(op.result_types)} results of {op.name}")
            types.update(zip(op.results, op.result_types, strict=True))
        try:
            op.operand_types = tuple([types[value] for value in op.operands])
        except KeyError:
            self.untyped.append((at, op))
        op.location = self.location()
        return op

    def results(self) -> tuple[str, ...]:
        """`%a =`, `%a:2 =` or `%a, %b:2 =`"""
        found: list[str] = []
        while True:
            name = self.value()
            found += self.pack(name) if self.skip(":") else [name]
            if not self.skip(","):
                break
        self.take("=")
        return tuple(found)

    def pack(self, name: str) -> list[str]:
        count = self.tokens[self.at]
        if not count.isdecimal() or len(count) > 4:
            raise _Unexpected(self.at, "a number of results")
        self.at += 1
        return [f"{name}#{number}" for number in range(int(count))]

    def custom(self, name: str, results: tuple[str, ...]) -> Op:
        """The common form: operands, words and attributes in any mixture, then `: types` and perhaps `-> types`."""
        clause = _Clause()
        self.operands_and_words(clause)
        types = self.type_section(clause)
        _NORMALIZE.get(name, _words_are_true)(self, clause)
        result_types = self.result_types(name, types, len(results)) if results else ()
        return Op(name, tuple(clause.operands), results, (), result_types, clause.attributes)

    def operands_and_words(self, clause: _Clause) -> None:
        tokens = self.tokens
        while True:
            token = tokens[self.at]
            first = token[0]
            if first == "%":
                if tokens[self.at + 1] == "=":
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

    def word_in_clause(self, token: str, clause: _Clause) -> bool:
        """Takes `name = value`, `name<...>`, a word, a string or a @symbol; False for what belongs to what follows."""
        at = self.at
        if token[0] == '"' and self.tokens[at + 1] != "(":
            self.at += 1
            clause.words.append((len(clause.operands), self.unquoted(token, at)))
        elif token[0] == "@":
            clause.words.append((len(clause.operands), self.symbol()))
        elif not token[0].isalpha() or "." in token or token.startswith("loc"):
            return False
        else:
            self.at += 1
            self.keyword(token, clause)
        return True

    def keyword(self, token: str, clause: _Clause) -> None:
        if self.skip("="):
            clause.attributes[token] = self.attribute_word()
        elif "<" in token:
            name, _, inner = token.partition("<")
            clause.attributes[name] = inner[:-1]
        else:
            clause.words.append((len(clause.operands), token))

    def attribute_word(self) -> Any:
        """The value after `name =` outside of a dictionary: a bare word (`tf32`), not followed by a type of its own."""
        token = self.tokens[self.at]
        if not token[0].isalpha():
            return self.attribute()
        self.at += 1
        return token

    def type_section(self, clause: _Clause) -> list[Type]:
        """`T, T`, `T to T`, `T * T -> T`, `(T, T) -> T` or `<short>, T`; after an arrow, what comes before is no matter."""
        tokens = self.tokens
        if tokens[self.at - 1] != ":" and tokens[self.at] != "->":
            return []
        found: list[Type] = []
        while True:
            token = tokens[self.at]
            known = read_type(token)
            if known is not None:
                self.at += 1
                found.append(known)
            elif token == "(":
                found += self.type_list()
            elif token[0] == "<":
                found.append(self.short_type(token, first=not found))
            elif token != "->":
                raise _Unexpected(self.at, "a type")
            token = tokens[self.at]
            if token == "->" or token == "to":
                self.at += 1
                clause.arrow = True
                return self.types_after_arrow()
            if token != "," and token != "*":
                return found
            self.at += 1

    def short_type(self, token: str, *, first: bool) -> Type:
        """`<f32>` for a pointer where it comes first, `<16x16xf32>` for a descriptor after that."""
        found = read_short_type(token, "ptr" if first else "tensordesc")
        if found is None:
            raise _Unexpected(self.at, "a type")
        self.at += 1
        return found

    def result_types(self, name: str, types: list[Type], count: int) -> tuple[Type, ...]:
        if not types:
            raise _Unexpected(self.at, f"the type of {name}")
        if len(types) == count > 1:
            return tuple(types)
        rule = _RESULT.get(name)
        return (rule(types) if rule else types[-1],) * count

    def generic(self, results: tuple[str, ...]) -> Op:
        """`"name"(operands)[labels] <{properties}> ({regions}) {attributes} : (T) -> T`"""
        name = self.unquoted(self.tokens[self.at], self.at)
        self.at += 1
        self.take("(")
        op = Op(name, tuple(self.values(")")), results, (), (), {})
        op.successors = self.successors() if self.skip("[") else ()
        if self.skip("<"):
            op.attributes.update(self.dictionary())
            self.take(">")
        op.regions = self.regions() if self.tokens[self.at] == "(" else ()
        if self.tokens[self.at] == "{":
            op.attributes.update(self.dictionary())
        self.take(":")
        self.type_list()
        self.take("->")
        op.result_types = tuple(self.types_after_arrow())
        return op

    def successors(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        found = []
        while not self.skip("]"):
            found.append(self.successor())
            self.separator("]")
        return tuple(found)

    def successor(self) -> tuple[str, tuple[str, ...]]:
        """`^label` or `^label(%a, %b : T, T)`"""
        label = self.label()
        if not self.skip("("):
            return label, ()
        values = self.values(":")
        while not self.skip(")"):
            self.plain_type()
            self.separator(")")
        return label, tuple(values)

    def regions(self) -> tuple[Region, ...]:
        """`({...}, {...})`"""
        self.take("(")
        found = []
        while not self.skip(")"):
            found.append(self.region())
            self.separator(")")
        return tuple(found)

    # operations with a form of their own

    def constant(self, name: str, results: tuple[str, ...]) -> Op:
        attributes = self.dictionary() if self.tokens[self.at] == "{" else {}
        at, token = self.at, self.tokens[self.at]
        self.at += 1
        if token in ("true", "false"):
            attributes["value"], found = token == "true", I1
            return Op(name, (), results, (), (found,), attributes)
        self.take(":")
        found = self.plain_type()
        dense = token.startswith("dense<")
        attributes["value"] = self.checked(
            at, lambda: read_dense(token[6:-1], found) if dense else read_number(token, found.element)
        )
        return Op(name, (), results, (), (found,), attributes)

    def for_(self, name: str, results: tuple[str, ...]) -> Op:
        """`scf.for %i = %from to %to step %step iter_args(%a = %b) -> (T) : i32 {...} {attributes}`"""
        unsigned = self.skip("unsigned")
        counter = self.value()
        self.take("=")
        bounds = [self.value()]
        for word in ("to", "step"):
            self.take(word)
            bounds.append(self.value())
        carried, initial, types = self.carried("iter_args")
        counter_type = self.plain_type() if self.skip(":") else Type("index")
        body = self.region((counter, *carried), (counter_type, *types))
        attributes = self.dictionary() if self.tokens[self.at] == "{" else {}
        attributes |= {"unsigned": True} if unsigned else {}
        return Op(name, (*bounds, *initial), results, (), types, attributes, (body,))

    def carried(self, word: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Type, ...]]:
        """`iter_args(%a = %b, ...) -> (T, ...)`: the arguments, their initial values and their types."""
        if not self.skip(word):
            return (), (), ()
        arguments, initial = self.assignments()
        self.take("->")
        types = self.types_after_arrow()
        if len(types) != len(arguments):
            raise _Unexpected(self.at, f"{len(arguments)} types")
        return arguments, initial, tuple(types)

    def assignments(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """`(%a = %b, ...)`"""
        self.take("(")
        arguments, initial = [], []
        while not self.skip(")"):
            arguments.append(self.value())
            self.take("=")
            initial.append(self.value())
            self.separator(")")
        return tuple(arguments), tuple(initial)

    def while_(self, name: str, results: tuple[str, ...]) -> Op:
        """`scf.while (%a = %b) : (T) -> (T) {...} do {...} attributes {...}`"""
        arguments, initial = self.assignments() if self.tokens[self.at] == "(" else ((), ())
        self.take(":")
        types = self.type_list()
        self.take("->")
        result_types = self.types_after_arrow()
        if len(types) != len(arguments):
            raise _Unexpected(self.at, f"{len(arguments)} types")
        before = self.region(arguments, tuple(types))
        self.take("do")
        after = self.region()
        attributes = self.dictionary() if self.skip("attributes") else {}
        return Op(name, initial, results, (), tuple(result_types), attributes, (before, after))

    def if_(self, name: str, results: tuple[str, ...]) -> Op:
        """`scf.if %condition -> (T) {...} else {...} {attributes}`"""
        condition = self.value()
        types = self.types_after_arrow() if self.skip("->") else []
        regions = [self.region()]
        if self.skip("else"):
            regions.append(self.region())
        attributes = self.dictionary() if self.tokens[self.at] == "{" else {}
        return Op(name, (condition,), results, (), tuple(types), attributes, tuple(regions))

    def execute_region(self, name: str, results: tuple[str, ...]) -> Op:
        types = self.types_after_arrow() if self.skip("->") else []
        return Op(name, (), results, (), tuple(types), {}, (self.region(),))

    def branch(self, name: str, results: tuple[str, ...]) -> Op:
        return Op(name, (), results, (), (), {}, (), (self.successor(),))

    def conditional_branch(self, name: str, results: tuple[str, ...]) -> Op:
        """`cf.cond_br %condition, ^a(%x : T), ^b`"""
        condition = self.value()
        attributes = {}
        if self.tokens[self.at] == "weights":
            self.at += 1
            self.values(")") if self.skip("(") else None
        self.take(",")
        first = self.successor()
        self.take(",")
        return Op(name, (condition,), results, (), (), attributes, (), (first, self.successor()))

    def assertion(self, name: str, results: tuple[str, ...]) -> Op:
        """`cf.assert %condition, "message"`: has no types, and so ends without a mark."""
        condition = self.value()
        self.take(",")
        at, token = self.at, self.tokens[self.at]
        self.at += 1
        return Op(name, (condition,), results, (), (), {"message": self.unquoted(token, at)})


@dataclass(slots=True)
class _Clause:
    """What stands between an operation's name and its types; a word comes with the number of operands before it."""

    operands: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    words: list[tuple[int, str]] = field(default_factory=list)
    arrow: bool = False


# --- what single operations do differently ----------------------------------------------------------------------------

_FORMS: dict[str, Callable[[_Parser, str, tuple[str, ...]], Op]] = {
    "arith.constant": _Parser.constant,
    "scf.for": _Parser.for_,
    "scf.while": _Parser.while_,
    "scf.if": _Parser.if_,
    "scf.execute_region": _Parser.execute_region,
    "cf.br": _Parser.branch,
    "cf.cond_br": _Parser.conditional_branch,
    "cf.assert": _Parser.assertion,
}
"""Operations whose text does not have the common form."""


def _compared(types: list[Type]) -> Type:
    return Type("i1", types[0].shape)


def _loaded(types: list[Type]) -> Type:
    pointee = types[0].pointee or types[0]
    return Type(pointee.element, types[0].shape or pointee.shape, pointee.pointee)


_RESULT: dict[str, Callable[[list[Type]], Type]] = {
    "arith.cmpi": _compared,
    "arith.cmpf": _compared,
    "tt.load": _loaded,
    "tt.addptr": lambda types: types[0],
    "math.fpowi": lambda types: types[0],
}
"""The result's type, from the types in the text, where it is not the last one of them."""


def _words_are_true(parser: _Parser, clause: _Clause) -> None:
    for _, word in clause.words:
        clause.attributes[word] = True


def _named_words(*names: str) -> Callable[[_Parser, _Clause], None]:
    """The words in the text are, in order, the values of the attributes `names`."""

    def normalize(parser: _Parser, clause: _Clause) -> None:
        if len(clause.words) < len(names):
            raise _Unexpected(parser.at, " and ".join(names))
        clause.attributes.update(zip(names, (word for _, word in clause.words), strict=False))

    return normalize


def _axis(parser: _Parser, clause: _Clause) -> None:
    words = [word for _, word in clause.words]
    if len(words) != 1 or words[0] not in ("x", "y", "z"):
        raise _Unexpected(parser.at, "x, y or z")
    clause.attributes["axis"] = "xyz".index(words[0])


def _scaled(parser: _Parser, clause: _Clause) -> None:
    """`%a scale %sa, %b scale %sb, %c`: the operands in the order a, b, c, and then the scales that there are."""
    operands = clause.operands
    scales = [number for number, word in clause.words if word == "scale"]
    plain = [value for number, value in enumerate(operands) if number not in scales]
    if len(plain) != 3 or not set(scales) <= {1, 2, 3} or 2 in scales and 1 in scales:
        raise _Unexpected(parser.at, "two factors, each with or without a scale, and an accumulator")
    clause.attributes["scaled"] = [1 in scales, (3 if 1 in scales else 2) in scales]
    clause.operands = plain + [operands[number] for number in scales]


_NORMALIZE: dict[str, Callable[[_Parser, _Clause], None]] = {
    "arith.cmpi": _named_words("predicate"),
    "arith.cmpf": _named_words("predicate"),
    "tt.get_program_id": _axis,
    "tt.get_num_programs": _axis,
    "tt.atomic_rmw": _named_words("kind", "sem", "scope"),
    "tt.atomic_cas": _named_words("sem", "scope"),
    "tt.descriptor_reduce": _named_words("kind"),
    "tt.experimental_descriptor_reduce": _named_words("kind"),
    "tt.print": _named_words("prefix"),
    "tt.assert": _named_words("message"),
    "tt.call": _named_words("callee"),
    "tt.elementwise_inline_asm": _named_words("asm_string"),
    "tt.dot_scaled": _scaled,
}
"""What the words in an operation's text mean; elsewhere a word is an attribute that is True."""
