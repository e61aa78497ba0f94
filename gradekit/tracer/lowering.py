"""One compilation for many launches: those that differ in the alignment of their arguments, or in which of their
integers are 1.

Triton compiles a kernel anew for each set of pointers and integers that are multiples of 16. That is an attribute of
the arguments, which stands in the first line of the function and which passes after TTIR read: neither the front end
nor the ttir passes look at it. So a kernel is compiled once with all arguments aligned, and the text for any other set
is that text with the attribute left out where it does not hold.
"""

import ast
import copy
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import triton.language as tl

from gradekit.compat.triton import ASTSource, JITFunction, text_of
from gradekit.program import ALIGNMENT, FUNCTION
from gradekit.tracer.recorder import NAME
from gradekit.wire import ForkedCache

ALIGNED = [["tt.divisibility", 16]]
"""What Triton says of an argument that is a multiple of 16: the only attribute that is understood here."""

_MARK = re.compile(re.escape(ALIGNMENT))
CAN_BE_ALIGNED = re.compile(r"\*.*|[iu](8|16|32|64)")

Path = tuple[int, ...]
Lowered = tuple[str, Any]
Compile = Callable[[ASTSource, dict[str, Any]], Lowered]


class Alignments:
    """`lower` remembers what `compile`, which is `compat.triton.lower` or wraps it, has compiled."""

    def __init__(self, compile: Compile) -> None:
        self._compile = compile
        self._known: dict[str, tuple[ASTSource, Lowered | None]] = {}  # the sources keep alive what keys name by id

    def lower(self, source: ASTSource, options: dict[str, Any]) -> Lowered:
        """As `compat.triton.lower`."""
        paths = tuple(_paths(source))
        if any(specs and (specs != ALIGNED or path not in paths) for path, specs in source.attrs.items()):
            return self._compile(source, options)
        name = source_key(source, options)
        if name not in self._known:
            self._known[name] = source, self._aligned(source, options, paths)
        known = self._known[name][1]
        if known is None:
            return self._compile(source, options)
        marks = iter([ALIGNMENT if source.attrs.get(path) else "" for path in paths])
        return FUNCTION.sub(lambda line: _MARK.sub(lambda mark: next(marks), line[0]), known[0], count=1), known[1]

    def _aligned(self, source: ASTSource, options: dict[str, Any], paths: tuple[Path, ...]) -> Lowered | None:
        """The text of `source` with all arguments at the `paths` aligned; None where it does not say that of each."""
        lowered = self._compile(_with(source, attrs=dict.fromkeys(paths, ALIGNED)), options)
        function = FUNCTION.search(lowered[0])
        return lowered if function and function[0].count(ALIGNMENT) == len(paths) else None


def source_key(source: ASTSource, options: dict[str, Any]) -> str:
    """A name for all that is compiled but for the alignment, as long as the objects in `source` live; that of another
    module's function which says the same, too: a submission that is loaded once for each GPU has each several times."""
    constants = {path: _identity(value) for path, value in source.constants.items()}
    text = text_of(source.fn) or (OWN, id(source.fn), source.fn.src)
    return repr((text, source.signature, constants, options))


def _identity(value: Any) -> Any:
    """What tells a constant from others, without reading a jit function's source, which may be refused."""
    if isinstance(value, (tuple, list)):
        return [_identity(item) for item in value]
    if isinstance(value, tl.constexpr):
        return _identity(value.value)
    if callable(value):
        return OWN, id(value)
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


# --- what other processes of the submission have lowered --------------------------------------------------------------


OWN = "own-to-this-process"  # stands in names that mean nothing elsewhere


class LoweredElsewhere:
    """What the processes of one submission tell each other of its kernels, by names such as `source_key` gives: this
    one reads in `file` what others told the grader, and has in `fresh` what it is to be told. `path` is that of the
    submission here."""

    def __init__(self, path: str, file: ForkedCache | None) -> None:
        self.fresh: dict[str, list[Any]] = {}
        self._path, self._file = path, file

    def get(self, name: str) -> list[Any] | None:
        """What another process has told."""
        return self._file.get(key.encode()) if self._file and (key := self._key(name)) else None

    def put(self, name: str, value: list[Any]) -> None:
        """Tells others, where the name means the same to them."""
        if self._file and (key := self._key(name)):
            self.fresh[key] = value

    def _key(self, name: str) -> str:
        is_own = OWN in name or " at 0x" in name
        return "" if is_own else hashlib.sha256(name.replace(self._path, NAME).encode(errors="replace")).hexdigest()


# --- integers that are 1 ----------------------------------------------------------------------------------------------


SAME = (ast.Add, ast.Mult, ast.Sub, ast.USub, ast.FloorDiv, ast.Mod)
"""Operators that do the same to constants and to arguments; the last two where nothing is negative."""

LAUNCHED_WITH = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Options that to the front end are numbers which a kernel may ask for, as its constants are."""

TRANSPARENT = (ast.Name, ast.IfExp, ast.Tuple, ast.List, ast.keyword, ast.Return, ast.Compare)
"""Nodes that may be a constant in one walk alone: they hand on what was visited in them, or compare it."""


@dataclass(slots=True)
class Constant:
    """What the front end knows when it compiles."""

    value: Any


class Visit(NamedTuple):
    """What the front end's visit of `node` gave, without what only one walk has: of a tensor its type."""

    file: tuple[str, int]
    node: ast.AST
    result: Any

    @property
    def place(self) -> tuple[Any, ...]:
        """Where in the text the node is: one walk may make nodes anew."""
        node = self.node
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
        return self.file, type(node), getattr(node, "lineno", 0), start, end


Walk = Callable[[ASTSource, dict[str, Any]], list[Visit]]


def summary(result: Any) -> Any:
    """What of a visit's result two walks over one kernel have in common."""
    if isinstance(result, tl.tensor):
        return result.type
    if isinstance(result, tl.constexpr):
        return Constant(result.value)
    if isinstance(result, (tuple, list, tl.tuple)):
        return tuple(map(summary, result))
    return result if isinstance(result, (type(None), str, type, tl.dtype, JITFunction)) else type(result)


class UnitArguments:
    """One lowering for all launches of a kernel that differ in which of its integers are 1.

    Triton makes a constant of an integer argument that is 1, and compiles the kernel anew for each set of them. Nearly
    always that changes nothing but how an index is folded: the kernel with these integers as arguments computes the
    same. That it does is seen, not assumed. The front end's walks over the two are compared, visit by visit: every
    statement and every type must be the same, and what is a constant in one alone must be a name, or arithmetic of
    integers that a constant and an argument do alike. So `if n == 1:`, `n.to(...)`, `tl.arange(0, n)` or a narrow
    integer times `n` make a kernel one that is lowered for each set. The integers are compared as all 1 at once:
    whatever is a constant for some of them is one then, too.

    `general` gives the source to lower in place of another. `lower` lowers one, and may
    leave what the front end visited in `visits`, by `source_key`; `walk` tells that of any."""

    def __init__(self, lower: Compile, walk: Walk, elsewhere: LoweredElsewhere) -> None:
        self._lower, self._walk, self._elsewhere = lower, walk, elsewhere
        self.visits: dict[str, list[Visit]] = {}
        self._chosen: dict[str, bool] = {}
        self._verdicts: dict[str, list[tuple[frozenset[Any], bool]]] = {}  # of all constants with which no other
        # places or types come up: whether the integers may stay arguments

    def general(self, source: ASTSource, options: dict[str, Any]) -> ASTSource:
        """The source with integers that are 1 as arguments, where one lowering serves; `source` itself elsewhere."""
        ones = [place for place in range(len(source.fn.params)) if _is_one(source, place)]
        if not ones:
            return source
        found = _with_arguments(source, ones)
        name = source_key(found, options)
        if name not in self._chosen:
            told = self._elsewhere.get(f"ones {name}")
            self._chosen[name] = told == [True] if told else self._serves(found, options)
            self._elsewhere.put(f"ones {name}", [self._chosen[name]])
        return found if self._chosen[name] else source

    def _serves(self, found: ASTSource, options: dict[str, Any]) -> bool:
        try:
            self._lower(found, options)
            visits = self.visits.get(source_key(found, options)) or self._walk(found, options)
            places = frozenset((visit.place, _kind(visit.result)) for visit in visits)
            others = {name: value for name, value in options.items() if name not in LAUNCHED_WITH}
            known = self._verdicts.setdefault(source_key(_with(found, signature={}, constants={}), others), [])
            is_usual = all(value >= 1 for value in found.constants.values() if type(value) is int)
            for met, holds in known if is_usual else ():
                if places <= met:
                    return holds
            same = _compare(visits, self._walk(_with_ones(found), options))
        except Exception:  # noqa: BLE001  (whatever the front end refuses is lowered, and refused, as it is launched)
            return False
        if is_usual and same is not False:
            known.append((places, same is not None))
        return same is not None


# --- sources ----------------------------------------------------------------------------------------------------------


def _with(source: ASTSource, **parts: Any) -> ASTSource:
    found = copy.copy(source)
    vars(found).update(parts)
    return found


def _is_one(source: ASTSource, place: int) -> bool:
    parameter, value = source.fn.params[place], source.constants.get((place,))
    given = source.signature[parameter.name] == "constexpr" and not parameter.is_constexpr
    return given and type(value) is int and value == 1


def _with_arguments(source: ASTSource, places: list[int]) -> ASTSource:
    names = {source.fn.params[place].name for place in places}
    signature = {name: "i32" if name in names else kind for name, kind in source.signature.items()}
    constants = {path: value for path, value in source.constants.items() if path not in {(n,) for n in places}}
    return _with(source, signature=signature, constants=constants)


def _with_ones(source: ASTSource) -> ASTSource:
    """The source with every integer a constant that Triton could make one."""
    could = {
        place: parameter.name
        for place, parameter in enumerate(source.fn.params)
        if source.signature[parameter.name] == "i32" and not (parameter.do_not_specialize or parameter.annotation_type)
    }
    signature = {n: "constexpr" if n in could.values() else kind for n, kind in source.signature.items()}
    attrs = {path: specs for path, specs in source.attrs.items() if path[0] not in could}
    return _with(source, signature=signature, constants=source.constants | {(n,): 1 for n in could}, attrs=attrs)


# --- two walks over one kernel ----------------------------------------------------------------------------------------


def _compare(general: list[Visit], unit: list[Visit]) -> bool | None:
    """None where the walks differ in more than they may; else whether no constants would make them."""
    if [visit.place for visit in general] != [visit.place for visit in unit]:
        return None
    functions, operators, values = set[int](), set[type](), list[int | None]()
    for visit, other in zip(general, unit, strict=True):
        if isinstance(visit.result, JITFunction):
            functions.add(id(visit.node))
        constants = list(_only_constant(visit.result, other.result))
        if constants and not _may_differ(visit.node, functions):
            return None
        if constants and isinstance(visit.node, (ast.BinOp, ast.UnaryOp)):
            operators.add(type(visit.node.op))
        values += constants
    known = [value for value in values if value is not None]
    is_negative = bool(operators & {ast.FloorDiv, ast.Mod}) and min(known) < 0
    if len(known) < len(values) or not operators <= set(SAME) or is_negative:
        return None
    return not (operators & {ast.Sub, ast.USub} and operators & {ast.FloorDiv, ast.Mod})


def _only_constant(general: Any, unit: Any) -> Iterator[int | None]:
    """The integers that are constants in the second alone; None for any other difference."""
    if isinstance(general, tuple) and isinstance(unit, tuple) and len(general) == len(unit):
        for one, other in zip(general, unit, strict=True):
            yield from _only_constant(one, other)
    elif isinstance(unit, Constant) and isinstance(general, tl.dtype) and not general.is_block():
        yield int(unit.value) if general.is_int() and isinstance(unit.value, int) else None
    elif type(general) is not type(unit) or general != unit:
        yield None


def _may_differ(node: ast.AST, functions: set[int]) -> bool:
    if isinstance(node, ast.Call):
        return id(node.func) in functions
    return isinstance(node, (*TRANSPARENT, ast.BinOp, ast.UnaryOp))


def _kind(result: Any) -> Any:
    """What of a visit's result other constants may not change: the type of an element, any constant but a number."""
    if isinstance(result, tuple):
        return tuple(map(_kind, result))
    if isinstance(result, tl.dtype):
        return str(result.scalar)
    if isinstance(result, Constant):
        return type(result.value) if type(result.value) in (int, float) else str(result.value)
    return result if isinstance(result, (type, str, type(None))) else id(result)
