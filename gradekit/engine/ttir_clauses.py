"""The common form of an operation's text: operands, words and attributes in any mixture, then the types.

`ClauseReader` reads the clause; the tables at the end say what its words and types mean for single operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradekit.engine.ttir_reader import Reader, Unexpected
from gradekit.engine.ttir_values import Type, read_short_type, read_type


@dataclass(slots=True)
class Clause:
    """What stands between an operation's name and its types; `at` is where it begins.

    A word comes with the number of operands before it.
    """

    at: int
    operands: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    words: list[tuple[int, str]] = field(default_factory=list)


class ClauseReader(Reader):
    """Reads what stands between an operation's name and its location."""

    def clause(self, name: str) -> tuple[Clause, list[Type]]:
        """The clause of the operation `name`, with operands and attributes in the order that ttir_nodes describes, and
        the types that follow it."""
        clause = Clause(self.at)
        self.operands_and_words(clause)
        types = self.type_section()
        _NORMALIZE.get(name, _words_are_true)(clause)
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
            clause.words.append((len(clause.operands), self.unquoted(token, at)))
        elif token[0] == "@":
            clause.words.append((len(clause.operands), self.symbol()))
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
            clause.words.append((len(clause.operands), token))

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
            known = read_type(token)
            if known is not None:
                self.at += 1
                found.append(known)
            elif token == "(":
                found += self.type_list()
            elif token[0] == "<":
                found.append(self.short_type(token, first=not found))
            elif token != "->":
                raise Unexpected(self.at, "a type")
            token = tokens[self.at]
            if token == "->" or token == "to":
                self.at += 1
                return self.types_after_arrow()
            if token != "," and token != "*":
                return found
            self.at += 1

    def short_type(self, token: str, *, first: bool) -> Type:
        """`<f32>` for a pointer where it comes first, `<16x16xf32>` for a descriptor after that."""
        found = read_short_type(token, "ptr" if first else "tensordesc")
        if found is None:
            raise Unexpected(self.at, "a type")
        self.at += 1
        return found

    def result_types(self, name: str, types: list[Type], count: int) -> tuple[Type, ...]:
        """The types of the `count` results of the operation `name`, from the `types` in its text."""
        if not types:
            raise Unexpected(self.at, f"the type of {name}")
        if len(types) == count > 1:
            return tuple(types)
        rule = _RESULT.get(name)
        return (rule(types) if rule else types[-1],) * count


# --- what single operations do differently ---------------------------------------------------------------------------


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


def _words_are_true(clause: Clause) -> None:
    for _, word in clause.words:
        clause.attributes[word] = True


def _named_words(*names: str) -> Callable[[Clause], None]:
    """The words in the text are, in order, the values of the attributes `names`."""

    def normalize(clause: Clause) -> None:
        if len(clause.words) < len(names):
            raise Unexpected(clause.at, " and ".join(names))
        clause.attributes.update(zip(names, (word for _, word in clause.words), strict=False))

    return normalize


def _axis(clause: Clause) -> None:
    words = [word for _, word in clause.words]
    if len(words) != 1 or words[0] not in ("x", "y", "z"):
        raise Unexpected(clause.at, "x, y or z")
    clause.attributes["axis"] = "xyz".index(words[0])


def _scaled(clause: Clause) -> None:
    """`%a scale %sa, %b scale %sb, %c`: the operands in the order a, b, c, and then the scales that there are."""
    operands = clause.operands
    scales = [number for number, word in clause.words if word == "scale"]
    plain = [value for number, value in enumerate(operands) if number not in scales]
    if len(plain) != 3 or not set(scales) <= {1, 2, 3} or 2 in scales and 1 in scales:
        raise Unexpected(clause.at, "two factors, each with or without a scale, and an accumulator")
    clause.attributes["scaled"] = [1 in scales, (3 if 1 in scales else 2) in scales]
    clause.operands = plain + [operands[number] for number in scales]


def _source_second(clause: Clause) -> None:
    """`%descriptor[%indices], %source`: the source stands before the indices in Triton's own order of operands."""
    if len(clause.operands) < 2:
        raise Unexpected(clause.at, "a descriptor and a source")
    clause.operands.insert(1, clause.operands.pop())


def _reduced_into(clause: Clause) -> None:
    _named_words("kind")(clause)
    _source_second(clause)


_NORMALIZE: dict[str, Callable[[Clause], None]] = {
    "arith.cmpi": _named_words("predicate"),
    "arith.cmpf": _named_words("predicate"),
    "tt.get_program_id": _axis,
    "tt.get_num_programs": _axis,
    "tt.atomic_rmw": _named_words("kind", "sem", "scope"),
    "tt.atomic_cas": _named_words("sem", "scope"),
    "tt.atomic_load": _named_words("sem", "scope"),
    "tt.atomic_store": _named_words("sem", "scope"),
    "tt.atomic_poll": _named_words("sem", "scope"),
    "tt.descriptor_store": _source_second,
    "tt.experimental_descriptor_store": _source_second,
    "tt.descriptor_reduce": _reduced_into,
    "tt.experimental_descriptor_reduce": _reduced_into,
    "tt.print": _named_words("prefix"),
    "tt.assert": _named_words("message"),
    "tt.call": _named_words("callee"),
    "tt.elementwise_inline_asm": _named_words("asm_string"),
    "tt.dot_scaled": _scaled,
}
"""What the words in an operation's text mean; elsewhere a word is an attribute that is True."""
