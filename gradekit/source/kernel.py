"""A kernel's source: which names are pointers, sizes, strides, indices and program ids, what is loaded and stored
where, what bounds an index, and its loops.

Read from the syntax tree alone: of a kernel that is written in another way than expected less is known.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache

from gradekit.submission.parsed_source import ParsedSource, called, nodes_of

ACCESSES = {"tl.load": 1, "tl.store": 2, "tl.atomic_add": 2, "tl.atomic_max": 2, "tl.atomic_min": 2}
"""The position of the mask among the arguments of each."""


@dataclass(frozen=True)
class PointerAccess:
    """A call of tl.load, tl.store or an atomic: `pointer` is the parameter that it goes through, "" if none is seen."""

    call: ast.Call
    name: str
    address: ast.expr
    mask: ast.expr | None
    other: ast.expr | None
    pointer: str

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.call.lineno

    @property
    def lines(self) -> range:
        """All that it stands on."""
        return range(self.line, (self.call.end_lineno or self.line) + 1)

    @property
    def is_load(self) -> bool:
        """Whether it reads."""
        return self.name == "tl.load"

    @property
    def value(self) -> ast.expr | None:
        """What it stores or adds, where that is given by its position."""
        return self.call.args[1] if not self.is_load and len(self.call.args) > 1 else None


class KernelDraft:
    """One kernel of a submission, and its definition, the `node`. Of `all_params`, in their order, `constexprs` are the
    constants and `params` the others; some launch hands a stride to `known_strides`. `nodes` are all of its body,
    `parents` the node around each."""

    def __init__(self, source: ParsedSource, node: ast.FunctionDef) -> None:
        self.source, self.node, self.name = source, node, node.name
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        self.all_params = [a.arg for a in every]
        self.constexprs = [a.arg for a in every if a.annotation and "constexpr" in ast.unparse(a.annotation)]
        self.params = [name for name in self.all_params if name not in self.constexprs]
        self._origins: dict[str, frozenset[str]] = {}
        self._called: dict[str, set[str]] = {}
        self.known_strides: set[str] = set()
        self.nodes = [n for part in node.body for n in ast.walk(part)]
        self.parents = {child: n for n in ast.walk(node) for child in ast.iter_child_nodes(n)}

    # --- statements and names ----------------------------------------------------------------------------------------

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """Every statement, in the order of the text."""
        found = [n for n in self.nodes if isinstance(n, ast.stmt)]
        return sorted(found, key=lambda n: (n.lineno, n.col_offset))

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement around a node."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    @cached_property
    def values(self) -> dict[str, list[ast.expr]]:
        """For each name, the expressions that it is assigned or that are added to it."""
        found: dict[str, list[ast.expr]] = {}
        for node in self.statements:
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    for name in sorted(_names(target)):
                        found.setdefault(name, []).append(node.value)
            elif isinstance(node, ast.For):
                for name in sorted(_names(node.target)):
                    found.setdefault(name, []).append(node.iter)
        return found

    @cached_property
    def assigned(self) -> list[tuple[str, ast.expr]]:
        """Each assignment to one name, and each `+=` and its like, in the order of the text."""
        steps = [(target_of(one), one.value) for one in self.statements if isinstance(one, (ast.Assign, ast.AugAssign))]
        return [(name, value) for name, value in steps if name]

    def names(self, node: ast.AST) -> set[str]:
        """The names in an expression."""
        return set(_names(node))

    def origins(self, node: ast.AST) -> set[str]:
        """The names in an expression, and all names that those are computed from."""
        return set[str]().union(*map(self._behind, _names(node)))

    def _behind(self, start: str) -> frozenset[str]:
        if start not in self._origins:
            self._origins[start] = frozenset(self._walked(start))
        return self._origins[start]

    def _walked(self, start: str, without: Collection[str] = ()) -> set[str]:
        found: set[str] = set(without)
        todo = [start]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += [other for value in self.values.get(name, ()) for other in _names(value)]
        return found

    def calls_behind(self, node: ast.AST) -> set[str]:
        """The functions that are called in an expression, or in what its names are computed from."""
        found = {called(part) for part in nodes_of(node)}
        return found.union(*map(self._called_for, self.origins(node))) - {""}

    def _called_for(self, name: str) -> set[str]:
        if name not in self._called:
            values = self.values.get(name, ())
            self._called[name] = {called(part) for value in values for part in nodes_of(value)}
        return self._called[name]

    @cached_property
    def uses(self) -> dict[str, int]:
        """How often each name is read, but for its own next value: `s = s.to(tl.int64)` is no use of s."""
        read = (node for node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        given = lambda node: {name for one in getattr(self.statement(node), "targets", ()) for name in _names(one)}
        return Counter(node.id for node in read if node.id not in given(node))

    @cached_property
    def pids(self) -> list[str]:
        """Names of program ids: of nothing that a tile is made of."""
        return [n for n, v in self.values.items() if any(self._is_pid(one) for one in v)]

    def _is_pid(self, value: ast.expr) -> bool:
        behind = self.calls_behind(value)
        return "tl.program_id" in behind and not behind & {"tl.arange", "tl.load", "tl.dot"}

    @cached_property
    def indices(self) -> list[str]:
        """Names of offsets: made by tl.arange, and of no value that was loaded."""
        return [
            name
            for name, values in self.values.items()
            if any("tl.arange" in self.calls_behind(v) for v in values)
            and not any(self._is_of_values(v) or is_condition(v) for v in values)
        ]

    def _is_of_values(self, value: ast.expr) -> bool:
        """Whether loaded values or pointers take part in it, but for those that say where a range of places begins."""
        if _is_range(value):
            return self.pointer_of(value) in self.pointers
        counters = {counter_of(loop) for loop in self.loops} | self._spread
        names = {name for first in _names(value) - counters for name in self._walked(first, counters)} - counters
        made_by = {called(part) for part in nodes_of(value)}.union(*map(self._called_for, names))
        return bool(made_by & _VALUES or names & set(self.pointers))

    @cached_property
    def _spread(self) -> set[str]:
        return {name for name, values in self.values.items() if any(map(_is_range, values))}

    # --- memory ------------------------------------------------------------------------------------------------------

    @cached_property
    def accesses(self) -> list[PointerAccess]:
        """Loads, stores and atomics, in the order of the text."""
        calls = [n for n in self.nodes if isinstance(n, ast.Call) and called(n) in ACCESSES and n.args]
        return sorted(map(self._access, calls), key=lambda access: (access.line, access.call.col_offset))

    def _access(self, call: ast.Call) -> PointerAccess:
        place = ACCESSES[called(call)]
        keywords = {k.arg: k.value for k in call.keywords}
        mask = keywords.get("mask", call.args[place] if len(call.args) > place else None)
        other = keywords.get("other", call.args[place + 1] if len(call.args) > place + 1 else None)
        return PointerAccess(call, called(call), call.args[0], mask, other, self.pointer_of(call.args[0]))

    def pointer_of(self, address: ast.expr, depth: int = 0) -> str:
        """The parameter that an address goes through; "" if none is seen."""
        for part in terms(address):
            if isinstance(part, ast.Name) and depth < 4:
                if part.id in self.params and part.id not in self.values:
                    return part.id
                for value in self.values.get(part.id, ()):
                    found = self.pointer_of(value, depth + 1)
                    if found in self.params and self._looks_like_pointer(found):
                        return found
                if part.id in self.params and self._looks_like_pointer(part.id):
                    return part.id
        return ""

    def _looks_like_pointer(self, name: str) -> bool:
        return "stride" not in name.lower()

    @cached_property
    def pointers(self) -> list[str]:
        """The parameters that something is loaded or stored through."""
        calls = [n for n in self.nodes if isinstance(n, ast.Call) and called(n) in ACCESSES and n.args]
        return list(dict.fromkeys(p for n in calls if (p := self.pointer_of(n.args[0]))))

    @cached_property
    def stored(self) -> set[str]:
        """The parameters that something is stored (or added) through."""
        return {access.pointer for access in self.accesses if not access.is_load}

    @cached_property
    def first_loads(self) -> dict[str, int]:
        """For each pointer that something is loaded through, the line of the first such load."""
        loads = [access for access in self.accesses if access.is_load]
        return {access.pointer: access.line for access in reversed(loads)}

    @cached_property
    def sizes(self) -> list[str]:
        """Parameters that are no pointers and no strides."""
        return [p for p in self.params if p not in self.pointers and p not in self.strides]

    @cached_property
    def lengths(self) -> list[str]:
        """Sizes that count elements: no scale, no eps, no seed."""
        return [p for p in self.sizes if not re.search("eps|scale|alpha|seed|prob|factor", p.lower())]

    @cached_property
    def strides(self) -> list[str]:
        """Parameters that are named as strides, or are nothing but factors of addresses."""
        strides = [p for p in self.params if is_stride(p) or p in self.known_strides]
        return [p for p in strides if p not in self.pointers]

    def resolved(self, address: ast.expr) -> ast.expr:
        """The address as it is written where its name is first assigned."""
        if isinstance(address, ast.Name) and address.id in self.values:
            return self.values[address.id][0]
        return address

    def atoms(self, address: ast.expr) -> dict[str, str]:
        """The indices in an address (`m`), each as it is written there (`m[:, None]`)."""
        nodes = nodes_of(self.resolved(address))
        spread = (node for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name))
        found = {node.value.id: self.source.of(node) for node in spread if node.value.id in self.indices}  # type: ignore[attr-defined]
        names = (node.id for node in nodes if isinstance(node, ast.Name) and node.id in self.indices)
        return found | {name: name for name in names if name not in found}

    # --- bounds and tiles --------------------------------------------------------------------------------------------

    @cached_property
    def bounds(self) -> dict[str, list[str]]:
        """For each index, the texts of what it is compared with."""
        found: dict[str, list[str]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Lt, ast.LtE)):
                for name in sorted(names_outside_calls(node.left) & set(self.indices)):
                    right = self.source.of(node.comparators[0])
                    if right not in found.setdefault(name, []):
                        found[name].append(right)
        return found

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops, in the order of the text."""
        return [node for node in self.statements if isinstance(node, Loop)]

    def bounds_a_loop(self, node: ast.expr) -> bool:
        """Whether a loop goes as far as an expression says."""
        target = target_of(self.statement(node))
        return any(node in nodes_of(head) or target in self.origins(head) for head in map(head_of, self.loops))

    def in_loop(self, node: ast.AST) -> Loop | None:
        """The innermost loop around a node."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, Loop):
                return node
        return None


_VALUES = {"tl.load", "tl.dot", "tl.zeros", "tl.full", "tl.rand", "tl.rand4x", "tl.randn", "tl.randint", "tl.randint4x"}


def _is_range(value: ast.expr) -> bool:
    """Whether it is `start + tl.arange(0, BLOCK)`, wherever that begins."""
    return any(is_call(part, "tl.arange") for part in terms(value))


@lru_cache(maxsize=1 << 13)
def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name)) - {"tl", "triton"}


# --- what the head of a loop shows: what it counts with, and how far. for and while alike -----------------------------


Loop = ast.For | ast.While

RANGES = ("range", "tl.range", "tl.static_range")


def head_of(loop: Loop) -> ast.expr:
    """What decides how often it runs."""
    return loop.iter if isinstance(loop, ast.For) else loop.test


def range_of(loop: Loop) -> list[ast.expr]:
    """The arguments of its range; none where it has no range."""
    over = loop.iter if isinstance(loop, ast.For) else None
    return over.args if isinstance(over, ast.Call) and called(over) in RANGES else []


def counter_of(loop: Loop) -> str:
    """The name that it counts with; "" where there is none."""
    if isinstance(loop, ast.For):
        return loop.target.id if isinstance(loop.target, ast.Name) else ""
    added = {step.target.id for step in steps_of(loop) if isinstance(step.target, ast.Name)}
    named = (node.id for node in ast.walk(loop.test) if isinstance(node, ast.Name))
    return next((name for name in named if name in added), "")


def counts_steps(loop: Loop) -> bool:
    """Whether it counts by one: its steps, and not how far they have come."""
    return 0 < len(range_of(loop)) < 3


def steps_of(loop: Loop) -> list[ast.AugAssign]:
    """What its body adds to something, or takes from it."""
    found = (node for part in loop.body for node in ast.walk(part) if isinstance(node, ast.AugAssign))
    return [node for node in found if isinstance(node.op, (ast.Add, ast.Sub))]


def names_of_steps(loop: Loop) -> set[str]:
    """The names in its head, and in what it adds to its counter."""
    mine = [step.value for step in _moves(loop)]
    return {node.id for part in (head_of(loop), *mine) for node in ast.walk(part) if isinstance(node, ast.Name)}


def _moves(loop: Loop) -> list[ast.AugAssign]:
    every = steps_of(loop) if isinstance(loop, ast.While) else []
    return [step for step in every if isinstance(step.target, ast.Name) and step.target.id == counter_of(loop)]


# --- single expressions and statements --------------------------------------------------------------------------------

EXP = ("tl.exp", "tl.exp2", "tl.math.exp", "tl.math.exp2")


def terms(node: ast.expr) -> list[ast.expr]:
    """The summands of a sum, in their order."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*terms(node.left), *terms(node.right)]
    return [node]


def converted(node: ast.AST) -> ast.expr | None:
    """What an expression converts, x of `x.to(dtype)`; None where it is no conversion."""
    is_conversion = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to"
    return node.func.value if is_conversion else None  # type: ignore[attr-defined]


def without_conversions(node: ast.expr) -> ast.expr:
    """The expression, or what it converts, once or several times."""
    inner = converted(node)
    return node if inner is None else without_conversions(inner)


def names_outside_calls(node: ast.AST) -> set[str]:
    """The names in an expression that no function is applied to, but for a conversion."""
    if isinstance(node, ast.Call):
        inner = converted(node)
        return names_outside_calls(inner) if inner is not None else set()
    found = {node.id} if isinstance(node, ast.Name) else set()
    return found.union(*map(names_outside_calls, ast.iter_child_nodes(node)))


def is_stride(name: str) -> bool:
    """Whether a parameter is named as strides are: stride_am, x_row_stride, sxm, sn."""
    lower = name.lower()
    return "stride" in lower or (len(lower) in (2, 3) and lower[0] == "s")


def simple(statement: ast.stmt) -> bool:
    """Whether another statement may stand behind it on its line."""
    return isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Pass))


def value_of(statement: ast.AST) -> ast.expr | None:
    """What a statement computes: the right side of an assignment, or the value that a store stores."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)) else None
    if isinstance(statement, ast.Expr):
        return value.args[1] if isinstance(value, ast.Call) and is_stored(statement) else None
    return value


def is_stored(statement: ast.AST) -> bool:
    """Whether a statement stores a value, or adds one atomically."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and called(value) in ("tl.store", "tl.atomic_add") and len(value.args) > 1


def target_of(statement: ast.AST) -> str:
    """The one name that a statement assigns; "" where it is none or several."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return target.id if isinstance(target, ast.Name) and not isinstance(statement, ast.For) else ""


def is_call(node: ast.AST | None, *names: str) -> bool:
    """Whether a node is a call of one of these."""
    return node is not None and called(node) in names


def is_condition(node: ast.expr) -> bool:
    """Whether an expression is a comparison, or several that are joined by & or |."""
    joined = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr))
    return isinstance(node, ast.Compare) or (joined and any(isinstance(part, ast.Compare) for part in ast.walk(node)))
