"""Operations whose text has a form of its own: constants, structured control flow, branches and assertions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gradekit.engine.ttir_nodes import Op
from gradekit.engine.ttir_reader import Unexpected
from gradekit.engine.ttir_values import I1, Type, read_dense, read_number

if TYPE_CHECKING:
    from gradekit.engine.ttir import Parser


def _constant(parser: Parser, name: str, results: tuple[str, ...]) -> Op:
    attributes = parser.dictionary() if parser.tokens[parser.at] == "{" else {}
    at, token = parser.at, parser.tokens[parser.at]
    parser.at += 1
    if token in ("true", "false"):
        attributes["value"], found = token == "true", I1
        return Op(name, (), results, (), (found,), attributes)
    parser.take(":")
    found = parser.plain_type()
    dense = token.startswith("dense<")
    attributes["value"] = parser.checked(
        at, lambda: read_dense(token[6:-1], found) if dense else read_number(token, found.element)
    )
    return Op(name, (), results, (), (found,), attributes)


def _for(parser: Parser, name: str, results: tuple[str, ...]) -> Op:
    """`scf.for %i = %from to %to step %step iter_args(%a = %b) -> (T) : i32 {...} {attributes}`"""
    unsigned = parser.skip("unsigned")
    counter = parser.value()
    parser.take("=")
    bounds = [parser.value()]
    for word in ("to", "step"):
        parser.take(word)
        bounds.append(parser.value())
    carried, initial, types = _carried(parser, "iter_args")
    counter_type = parser.plain_type() if parser.skip(":") else Type("index")
    body = parser.region((counter, *carried), (counter_type, *types))
    attributes = parser.dictionary() if parser.tokens[parser.at] == "{" else {}
    attributes |= {"unsigned": True} if unsigned else {}
    return Op(name, (*bounds, *initial), results, (), types, attributes, (body,))


def _carried(parser: Parser, word: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Type, ...]]:
    """`iter_args(%a = %b, ...) -> (T, ...)`: the arguments, their initial values and their types."""
    if not parser.skip(word):
        return (), (), ()
    arguments, initial = _assignments(parser)
    parser.take("->")
    types = parser.types_after_arrow()
    if len(types) != len(arguments):
        raise Unexpected(parser.at, f"{len(arguments)} types")
    return arguments, initial, tuple(types)


def _assignments(parser: Parser) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`(%a = %b, ...)`"""
    parser.take("(")
    arguments, initial = [], []
    while not parser.skip(")"):
        arguments.append(parser.value())
        parser.take("=")
        initial.append(parser.value())
        parser.separator(")")
    return tuple(arguments), tuple(initial)


def _while(parser: Parser, name: str, results: tuple[str, ...]) -> Op:
    """`scf.while (%a = %b) : (T) -> (T) {...} do {...} attributes {...}`"""
    arguments, initial = _assignments(parser) if parser.tokens[parser.at] == "(" else ((), ())
    parser.take(":")
    types = parser.type_list()
    parser.take("->")
    result_types = parser.types_after_arrow()
    if len(types) != len(arguments):
        raise Unexpected(parser.at, f"{len(arguments)} types")
    before = parser.region(arguments, tuple(types))
    parser.take("do")
    after = parser.region()
    attributes = parser.dictionary() if parser.skip("attributes") else {}
    return Op(name, initial, results, (), tuple(result_types), attributes, (before, after))


def _if(parser: Parser, name: str, results: tuple[str, ...]) -> Op:
    """`scf.if %condition -> (T) {...} else {...} {attributes}`"""
    condition = parser.value()
    types = parser.types_after_arrow() if parser.skip("->") else []
    regions = [parser.region()]
    if parser.skip("else"):
        regions.append(parser.region())
    attributes = parser.dictionary() if parser.tokens[parser.at] == "{" else {}
    return Op(name, (condition,), results, (), tuple(types), attributes, tuple(regions))


def _execute_region(parser: Parser, name: str, results: tuple[str, ...]) -> Op:
    types = parser.types_after_arrow() if parser.skip("->") else []
    return Op(name, (), results, (), tuple(types), {}, (parser.region(),))


def _branch(parser: Parser, name: str, results: tuple[str, ...]) -> Op:
    return Op(name, (), results, (), (), {}, (), (parser.successor(),))


def _conditional_branch(parser: Parser, name: str, results: tuple[str, ...]) -> Op:
    """`cf.cond_br %condition, ^a(%x : T), ^b`"""
    condition = parser.value()
    parser.take(",")
    first = parser.successor()
    parser.take(",")
    return Op(name, (condition,), results, (), (), {}, (), (first, parser.successor()))


def _assertion(parser: Parser, name: str, results: tuple[str, ...]) -> Op:
    """`cf.assert %condition, "message"`: has no types, and so ends without a mark."""
    condition = parser.value()
    parser.take(",")
    at, token = parser.at, parser.tokens[parser.at]
    parser.at += 1
    return Op(name, (condition,), results, (), (), {"message": parser.unquoted(token, at)})


FORMS: dict[str, Callable[[Parser, str, tuple[str, ...]], Op]] = {
    "arith.constant": _constant,
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "scf.execute_region": _execute_region,
    "cf.br": _branch,
    "cf.cond_br": _conditional_branch,
    "cf.assert": _assertion,
}
"""What reads the operations of these names: a function of the parser, the name and the names of the results."""
