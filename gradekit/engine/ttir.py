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
    tt.atomic_rmw            kind, sem, scope              tt.atomic_cas, _load, _store, _poll     sem, scope
    tt.descriptor_reduce     kind                          tt.call                        callee
    tt.print                 prefix                        tt.assert, cf.assert           message
    tt.elementwise_inline_asm                              asm_string
    tt.dot_scaled            scaled: [bool, bool], whether lhs and rhs have scales; the operands stand in the order
                             a, b, c, then the scales that there are
    arith.*                  fastmath, overflow (raw text), exact, nneg (True)
    scf.for                  unsigned (True) where it counts so

Operands stand in the order of Triton's definitions, which the text departs from twice: tt.dot_scaled above, and
tt.descriptor_store and tt.descriptor_reduce, which have (descriptor, source, *indices).

A word of its own in the text (allow_reorder, efficient_layout) is an attribute with the value True. `padding` is 1 for
zero and 2 for NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradekit.engine.ttir_places import Place, name_in
from gradekit.engine.ttir_reader import END, LINES, LONGEST_LINE, Reader, TTIRError, Unexpected
from gradekit.engine.ttir_values import I1, Type, read_dense, read_number, read_short_type, read_type

__all__ = ["Block", "Function", "Module", "Op", "Place", "Region", "TTIRError", "Type", "parse"]


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
    """Operations in order; `label` is without its "^", and "" for a first block that has none.

    `prepared` is what the engine has made of it (see control.py).
    """

    label: str
    arguments: tuple[str, ...]
    argument_types: tuple[Type, ...]
    ops: list[Op]
    prepared: Any = field(default=None, compare=False, repr=False)


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
    except Unexpected as error:
        raise parser.explain(error) from None


_statements: dict[str, tuple[Op, int]] = {}
"""Operations by their lines, with how many tokens each has without its location."""


# --- the grammar ----------------------------------------------------------------------------------------------------


class _Parser(Reader):
    """One pass over a module: functions, regions, blocks, operations."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.value_types: dict[str, Type] = {}
        self.untyped: list[tuple[int, Op]] = []

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
                raise Unexpected(self.at - 1, f"only one function with the name {function.name!r}")
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
        if self.tokens[self.at] != END or not module.functions:
            raise Unexpected(self.at, "tt.func")
        if not any(function.public for function in module.functions.values()):
            raise Unexpected(self.at, "a public function")

    def function(self) -> Function:
        self.take("tt.func")
        public = self.tokens[self.at] not in ("private", "nested")
        if self.tokens[self.at] in ("private", "nested", "public"):
            self.at += 1
        name = self.symbol()
        self.value_types, self.untyped = {}, []
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
            raise Unexpected(self.at, "a function's name (@...)")
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
            self.value_types[value] = self.plain_type()
            if self.tokens[self.at] == "{":
                self.dictionary()
            values.append(value)
            names.append(name_in(self.location_text() or "") or value)
            self.separator(")")
        return tuple(values), tuple(self.value_types[value] for value in values), tuple(names)

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
        return Region(blocks)

    def block(self) -> Block:
        label = self.label()
        arguments: tuple[str, ...] = ()
        if self.tokens[self.at] == "(":
            arguments, _, _ = self.arguments()
        self.take(":")
        return Block(label, arguments, tuple(self.value_types[name] for name in arguments), self.ops())

    def label(self) -> str:
        token = self.tokens[self.at]
        if token[0] != "^" or len(token) == 1:
            raise Unexpected(self.at, "a label (^...)")
        self.at += 1
        return token[1:]

    def ops(self) -> list[Op]:
        found = []
        while self.tokens[self.at][0] not in "}^":
            found.append(self.op())
        return found

    # operations

    def op(self) -> Op:
        """The next operation. One that is alone on its line, with its location's alias, is read once for all texts."""
        line = self.lines.get(self.at)
        if line is None:
            return self.new_op()
        known = _statements.get(line)
        if known is None:
            return self.new_statement(line)
        at, (op, length) = self.at, known
        self.at += length
        return self.finish(at, Op(op.name, op.operands, op.results, (), op.result_types, op.attributes))

    def new_statement(self, line: str) -> Op:
        at = self.at
        op = self.new_op()
        alone = (
            self.at in self.lines and self.tokens[self.at - 1].startswith("loc(#") and not op.regions + op.successors
        )
        if alone and len(line) <= LONGEST_LINE:
            if len(_statements) == LINES:
                _statements.clear()
            _statements[line] = op, self.at - 1 - at
        return op

    def new_op(self) -> Op:
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
        count = self.tokens[self.at]
        if not count.isdecimal() or len(count) > 4:
            raise Unexpected(self.at, "a number of results")
        self.at += 1
        return [f"{name}#{number}" for number in range(int(count))]

    def custom(self, name: str, results: tuple[str, ...]) -> Op:
        """The common form: operands, words and attributes in any mixture, then `: types` and perhaps `-> types`."""
        clause = _Clause(self.at)
        self.operands_and_words(clause)
        types = self.type_section()
        _NORMALIZE.get(name, _words_are_true)(clause)
        result_types = self.result_types(name, types, len(results)) if results else ()
        return Op(name, tuple(clause.operands), results, (), result_types, clause.attributes)

    def operands_and_words(self, clause: _Clause) -> None:
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
        if not types:
            raise Unexpected(self.at, f"the type of {name}")
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
            raise Unexpected(self.at, f"{len(arguments)} types")
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
            raise Unexpected(self.at, f"{len(arguments)} types")
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
        self.take(",")
        first = self.successor()
        self.take(",")
        return Op(name, (condition,), results, (), (), {}, (), (first, self.successor()))

    def assertion(self, name: str, results: tuple[str, ...]) -> Op:
        """`cf.assert %condition, "message"`: has no types, and so ends without a mark."""
        condition = self.value()
        self.take(",")
        at, token = self.at, self.tokens[self.at]
        self.at += 1
        return Op(name, (condition,), results, (), (), {"message": self.unquoted(token, at)})


@dataclass(slots=True)
class _Clause:
    """What stands between an operation's name and its types; `at` is where it begins.

    A word comes with the number of operands before it.
    """

    at: int
    operands: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    words: list[tuple[int, str]] = field(default_factory=list)


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


def _words_are_true(clause: _Clause) -> None:
    for _, word in clause.words:
        clause.attributes[word] = True


def _named_words(*names: str) -> Callable[[_Clause], None]:
    """The words in the text are, in order, the values of the attributes `names`."""

    def normalize(clause: _Clause) -> None:
        if len(clause.words) < len(names):
            raise Unexpected(clause.at, " and ".join(names))
        clause.attributes.update(zip(names, (word for _, word in clause.words), strict=False))

    return normalize


def _axis(clause: _Clause) -> None:
    words = [word for _, word in clause.words]
    if len(words) != 1 or words[0] not in ("x", "y", "z"):
        raise Unexpected(clause.at, "x, y or z")
    clause.attributes["axis"] = "xyz".index(words[0])


def _scaled(clause: _Clause) -> None:
    """`%a scale %sa, %b scale %sb, %c`: the operands in the order a, b, c, and then the scales that there are."""
    operands = clause.operands
    scales = [number for number, word in clause.words if word == "scale"]
    plain = [value for number, value in enumerate(operands) if number not in scales]
    if len(plain) != 3 or not set(scales) <= {1, 2, 3} or 2 in scales and 1 in scales:
        raise Unexpected(clause.at, "two factors, each with or without a scale, and an accumulator")
    clause.attributes["scaled"] = [1 in scales, (3 if 1 in scales else 2) in scales]
    clause.operands = plain + [operands[number] for number in scales]


def _source_second(clause: _Clause) -> None:
    """`%descriptor[%indices], %source`: the source stands before the indices in Triton's own order of operands."""
    if len(clause.operands) < 2:
        raise Unexpected(clause.at, "a descriptor and a source")
    clause.operands.insert(1, clause.operands.pop())


def _reduced_into(clause: _Clause) -> None:
    _named_words("kind")(clause)
    _source_second(clause)


_NORMALIZE: dict[str, Callable[[_Clause], None]] = {
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
