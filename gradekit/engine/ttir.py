"""Triton's IR as text, read into operations: `parse`.

Runs wherever the engine runs, on text that may be hostile: it needs the standard library alone, takes time linear in
the text, and anything that it cannot read is a `TTIRError` with the line, the column and what was expected.

The grammar of modules, functions, regions and blocks stands here; operations of the common form are read by
`ttir_reader`. What comes out is described in `ttir_nodes`.
"""

from collections.abc import Callable

from gradekit.engine.ttir_locations import Location, name_in
from gradekit.engine.ttir_nodes import I1, Block, Function, Module, Op, Region, Type, in_order, read_dense, read_number
from gradekit.engine.ttir_reader import END, Reader, TTIRError, Unexpected

__all__ = ["Block", "Function", "Location", "Module", "Op", "Region", "TTIRError", "Type", "parse"]


def parse(text: str) -> Module:
    """The module of a TTIR text of Triton 3.6 to 3.9, with or without locations. Raises TTIRError for any other."""
    parser = Parser(text)
    try:
        return parser.module()
    except Unexpected as error:
        raise parser.explain(error) from None


# --- the grammar ------------------------------------------------------------------------------------------------------


class Parser(Reader):
    """One pass over a module: functions, regions, blocks, operations."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.value_types: dict[str, Type] = {}
        self.untyped: list[tuple[int, Op]] = []

    # modules and functions

    def module(self) -> Module:
        """The whole text."""
        module = Module()
        self.definitions()
        wrapped = self.skip("module") or self.skip("builtin.module")
        if wrapped:
            self.module_head()
        while self.tokens[self.at] == "tt.func":
            function = self.function()
            if function.name in module.functions:
                raise Unexpected(self.at - 1, f"only one function with the name {function.name!r}")
            module.functions[function.name] = function
        if wrapped:
            self.take("}")
            self.location()
        self.definitions()
        self.end(module)
        return module

    def definitions(self) -> None:
        """Skips the aliases of locations that stand before and after the module."""
        while self.tokens[self.at][0] == "#" and " = " in self.tokens[self.at]:
            self.at += 1

    def module_head(self) -> None:
        """`@name attributes {...} {`"""
        if self.tokens[self.at][0] == "@":
            self.at += 1
        if self.skip("attributes"):
            self.dictionary()
        self.take("{")

    def end(self, module: Module) -> None:
        """Raises Unexpected where the text goes on, or no public function stands in the module."""
        if self.tokens[self.at] != END or not module.functions:
            raise Unexpected(self.at, "tt.func")
        if not any(function.public for function in module.functions.values()):
            raise Unexpected(self.at, "a public function")

    def function(self) -> Function:
        """`tt.func public @name(arguments) -> results attributes {...} {...}`"""
        self.take("tt.func")
        public = self.tokens[self.at] not in ("private", "nested")
        if self.tokens[self.at] in ("private", "nested", "public"):
            self.at += 1
        name = self.symbol()
        self.value_types, self.untyped = {}, []
        arguments, types, names = self.arguments()
        result_types = self.types_after_arrow() if self.skip("->") else []
        if self.skip("attributes"):
            self.dictionary()
        body = self.region() if self.tokens[self.at] == "{" else Region([])
        self.settle()
        return Function(name, arguments, types, names, tuple(result_types), body, public, self.location())

    def arguments(self) -> tuple[tuple[str, ...], tuple[Type, ...], tuple[str, ...]]:
        """`(%a: T {attributes} loc(...), ...)`: the values, their types and the names that the locations give them."""
        self.take("(")
        found = self.several(")", self.argument)
        values = tuple(value for value, _ in found)
        return values, tuple(self.value_types[value] for value in values), tuple(name for _, name in found)

    def argument(self) -> tuple[str, str]:
        """`%a: T {attributes} loc(...)`: the value and its name."""
        value = self.value()
        self.take(":")
        self.value_types[value] = self.described_type()
        return value, name_in(self.location_text() or "") or value

    def settle(self) -> None:
        """Gives their types to the operands that stand before their definition (blocks may be in any order)."""
        for at, op in self.untyped:
            for value in op.operands:
                if value not in self.value_types:
                    raise Unexpected(at, f"the definition of %{value} somewhere")
            op.operand_types = tuple(self.value_types[value] for value in op.operands)

    # regions and blocks

    def region(self, names: tuple[str, ...] = (), types: tuple[Type, ...] = ()) -> Region:
        """`{ operations ^label(%a: T): operations }`; `names` and `types` are the first block's unwritten arguments."""
        if len(names) != len(types):
            raise Unexpected(self.at, f"{len(names)} types")
        self.take("{")
        self.enter()
        self.value_types.update(zip(names, types, strict=True))
        blocks = []
        if self.tokens[self.at][0] != "^" or names:
            blocks.append(Block("", names, types, self.ops()))
        while self.tokens[self.at][0] == "^":
            blocks.append(self.block())
        self.take("}")
        self.depth -= 1
        return Region(in_order(blocks))

    def block(self) -> Block:
        """`^label(%a: T): operations`"""
        label = self.label()
        arguments: tuple[str, ...] = ()
        if self.tokens[self.at] == "(":
            arguments, _, _ = self.arguments()
        self.take(":")
        return Block(label, arguments, tuple(self.value_types[name] for name in arguments), self.ops())

    def label(self) -> str:
        """`^label`, without its mark."""
        return self.marked("^", "a label (^...)")

    def ops(self) -> list[Op]:
        """The operations up to the end of the block."""
        found = []
        while self.tokens[self.at][0] not in "}^":
            found.append(self.op())
        return found

    # operations

    def op(self) -> Op:
        """Reads an operation, in its own form, the generic form or the common one."""
        at = self.at
        results = self.results() if self.tokens[at][0] == "%" else ()
        name = self.tokens[self.at]
        if name[0] == '"':
            return self.finish(at, self.generic(results))
        if not name[0].isalpha() or "." not in name:
            raise Unexpected(self.at, "an operation")
        self.at += 1
        read = _FORMS.get(name)
        return self.finish(at, read(self, name, results) if read else self.custom(name, results))

    def finish(self, at: int, op: Op) -> Op:
        """Adds what every operation has: operand types, the types of its results for later, and its location."""
        types = self.value_types
        if op.results:
            if len(op.result_types) != len(op.results):
                raise Unexpected(at, f"{len(op.result_types)} results of {op.name}")
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
        """`2` after `%a:` : the names a#0 and a#1."""
        count = self.tokens[self.at]
        if not count.isdecimal() or len(count) > 4:
            raise Unexpected(self.at, "a number of results")
        self.at += 1
        return [f"{name}#{number}" for number in range(int(count))]

    def custom(self, name: str, results: tuple[str, ...]) -> Op:
        """An operation of the common form."""
        clause, types = self.clause(name)
        result_types = self.result_types(name, types, len(results)) if results else ()
        return Op(name, tuple(clause.operands), results, (), result_types, clause.attributes)

    def generic(self, results: tuple[str, ...]) -> Op:
        """`"name"(operands) <{properties}> ({regions}) {attributes} : (T) -> T`"""
        name = self.unquoted(self.tokens[self.at], self.at)
        self.at += 1
        self.take("(")
        op = Op(name, tuple(self.several(")", self.value)), results, (), (), {})
        if self.skip("<"):
            op.attributes.update(self.dictionary())
            self.take(">")
        op.regions = tuple(self.several(")", self.region)) if self.skip("(") else ()
        if self.tokens[self.at] == "{":
            op.attributes.update(self.dictionary())
        self.take(":")
        self.type_list()
        self.take("->")
        op.result_types = tuple(self.types_after_arrow())
        return op

    def successor(self) -> tuple[str, tuple[str, ...]]:
        """`^label` or `^label(%a, %b : T, T)`"""
        label = self.label()
        if not self.skip("("):
            return label, ()
        values = self.several(":", self.value)
        self.several(")", self.plain_type)
        return label, tuple(values)


# --- forms of their own: constants, structured control flow, branches -------------------------------------------------


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
    parser.skip("iter_args")
    carried, initial = _assignments(parser)
    types = parser.types_after_arrow() if parser.skip("->") else []
    counter_type = parser.plain_type() if parser.skip(":") else Type("index")
    body = parser.region((counter, *carried), (counter_type, *types))
    attributes = parser.dictionary() if parser.tokens[parser.at] == "{" else {}
    attributes |= {"unsigned": True} if unsigned else {}
    return Op(name, (*bounds, *initial), results, (), tuple(types), attributes, (body,))


def _assignments(parser: Parser) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`(%a = %b, ...)`, or nothing"""
    if not parser.skip("("):
        return (), ()

    def pair() -> tuple[str, str]:
        argument = parser.value()
        parser.take("=")
        return argument, parser.value()

    pairs = parser.several(")", pair)
    return tuple(argument for argument, _ in pairs), tuple(value for _, value in pairs)


def _while(parser: Parser, name: str, results: tuple[str, ...]) -> Op:
    """`scf.while (%a = %b) : (T) -> (T) {...} do {...} attributes {...}`"""
    arguments, initial = _assignments(parser)
    parser.take(":")
    types = parser.type_list()
    parser.take("->")
    result_types = parser.types_after_arrow()
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


def _branch(parser: Parser, name: str, results: tuple[str, ...]) -> Op:
    """`cf.br ^a(%x : T)` or `cf.cond_br %condition, ^a(%x : T), ^b`"""
    if name == "cf.br":
        return Op(name, (), results, (), (), {}, (), (parser.successor(),))
    condition = parser.value()
    parser.take(",")
    first = parser.successor()
    parser.take(",")
    return Op(name, (condition,), results, (), (), {}, (), (first, parser.successor()))


_FORMS: dict[str, Callable[[Parser, str, tuple[str, ...]], Op]] = {
    "arith.constant": _constant, "scf.for": _for, "scf.while": _while, "scf.if": _if, "cf.br": _branch,
    "cf.cond_br": _branch,
}  # fmt: skip
"""What reads the operations of these names: a function of the parser, the name and the names of the results."""
