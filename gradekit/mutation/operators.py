"""The table of mutation operators: each finds the places where one kind of small mistake can be made in a source.

operators.toml has them all, with what an author reads below a mutant that survived. Those that no pattern says are
functions here, from a ParsedSource to Edits, under their names.
"""

import ast
import itertools
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradekit.repair.idioms.patterns import filled, matches, parsed
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import Edit, ParsedSource, called, shown

Find = Callable[[ParsedSource], Iterator[Edit]]


@dataclass(frozen=True)
class Operator:
    """A kind of edit: its `name`, what an input `needs` to show it, and what finds its places."""

    name: str
    needs: str
    finds: Sequence[Find]

    def find(self, source: ParsedSource) -> Iterator[Edit]:
        """All edits of its kind."""
        return itertools.chain.from_iterable(find(source) for find in self.finds)


_PLACES = {"everywhere": "everywhere", "kernels": "in_kernels", "host": "on_host"}

_ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call)


def _by_patterns(edits: Sequence[Sequence[str]], at: str) -> Find:
    """What finds the nodes that the first pattern of a pair matches, and puts the second in their place."""
    pairs = [(_statement(before), _statement(after)) for before, after in edits]

    def find(source: ParsedSource) -> Iterator[Edit]:
        for node in getattr(source, _PLACES[at]):
            for before, after in pairs:
                found = next(matches(before, node, {}), None)
                new = filled(after, found) if found is not None else ""
                if new:
                    is_joined = isinstance(node, ast.expr) and not isinstance(ast.parse(new, mode="eval").body, _ATOMS)
                    yield source.replaced(node, f"({new})" if is_joined else new)

    return find


def _statement(text: str) -> Any:
    pattern = parsed(text)
    return pattern[0] if isinstance(pattern, list) else pattern


# --- mutation operators of kernels and host code alike: comparisons, branches, statements, rounding -------------------


def branch_fixed(source: ParsedSource) -> Iterator[Edit]:
    """A condition that always holds, and one that never does."""
    for node in source.everywhere:
        if isinstance(node, (ast.If, ast.IfExp)):
            yield source.replaced(node.test, "True")
            yield source.replaced(node.test, "False")


_ORDERED = ("max", "min", "tl.maximum", "tl.minimum")  # of these, the order of arguments says nothing


def arguments_exchanged(source: ParsedSource) -> Iterator[Edit]:
    """Two neighbours in a call, a launch among them, each in the other's place."""
    for node in source.everywhere:
        if isinstance(node, ast.Call) and called(node) not in _ORDERED:
            for left, right in itertools.pairwise(node.args):
                if not isinstance(left, ast.Starred) and not isinstance(right, ast.Starred):
                    start, middle, next_, end = (*source.span(left), *source.span(right))
                    new = source.of(right) + source.between(middle, next_) + source.of(left)
                    yield Edit(start, end, new, f"{shown(source.of(left))} and {shown(source.of(right))} exchanged")


def statement_dropped(source: ParsedSource) -> Iterator[Edit]:
    """A store, a launch, an update that is gone; and what is assigned to a name that has a value before."""
    for function in (*source.kernels, *source.host):
        known = {argument.arg for argument in function.args.args}
        for node in _statements(function):
            names = _names(node)
            is_update = isinstance(node, ast.AugAssign) or (bool(names) and names <= known)
            if is_update or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
                yield Edit(*source.span(node), "pass", f"{source.of(node).partition('(')[0].strip()}... dropped")
            known |= names


def _statements(function: ast.FunctionDef) -> list[ast.stmt]:
    found = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _names(node: ast.stmt) -> set[str]:
    """The names that an assignment gives a value; none where it also writes elsewhere."""
    if not isinstance(node, ast.Assign):
        return set()
    parts = [part for target in node.targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    names = {part.id if isinstance(part, ast.Name) else "" for part in parts}
    return names if "" not in names else set()


# --- mutation operators of kernels: masks, offsets, loops, reductions, precision --------------------------------------


def other_changed(source: ParsedSource) -> Iterator[Edit]:
    """Another value for masked lanes."""
    for node in source.in_kernels:
        if isinstance(node, ast.keyword) and node.arg == "other":
            is_zero = isinstance(node.value, ast.Constant) and not node.value.value
            yield source.replaced(node.value, "1" if is_zero else "0.0")


def offset_moved(source: ParsedSource) -> Iterator[Edit]:
    """A whole number in a sum that is one larger."""
    for node in source.in_kernels:
        right = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) else None
        if isinstance(right, ast.Constant) and type(right.value) is int:
            yield source.replaced(right, str(right.value + 1))


def argument_swapped(source: ParsedSource) -> Iterator[Edit]:
    """Another argument of the kernel where one is read: the next one of its kind, a pointer, a stride or a size."""
    for kernel in source.kernels:
        names = [argument.arg for argument in kernel.args.args if argument.annotation is None]
        for node in ast.walk(kernel):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
                alike = [name for name in names if _kind(name) == _kind(node.id)]
                other = alike[(alike.index(node.id) + 1) % len(alike)]
                if other != node.id:
                    yield source.replaced(node, other)


def _kind(name: str) -> str:
    return next((kind for kind in ("ptr", "stride") if kind in name), "size")


def index_swapped(source: ParsedSource) -> Iterator[Edit]:
    """Another index where one is read: the next one that has a value there."""
    for kernel in (KernelDraft(source, node) for node in source.kernels):
        places = {name: min(value.lineno for value in kernel.values[name]) for name in kernel.indices}
        for node in kernel.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in places:
                known = [name for name, line in places.items() if line < node.lineno]
                if node.id in known and len(known) > 1:
                    yield source.replaced(node, known[(known.index(node.id) + 1) % len(known)])


def loop_runs_once(source: ParsedSource) -> Iterator[Edit]:
    """A loop that ends after its first round."""
    for node in source.in_kernels:
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and called(node.iter).endswith("range"):
            arguments = node.iter.args
            if len(arguments) == 1:
                yield source.replaced(arguments[0], "1")
            elif len(arguments) > 1:
                step = source.operand(arguments[2]) if len(arguments) == 3 else "1"
                yield source.replaced(arguments[1], f"{source.operand(arguments[0])} + {step}")


def constant_changed(source: ParsedSource) -> Iterator[Edit]:
    """A number that is a hundredth larger."""
    for node in source.in_kernels:
        if isinstance(node, ast.Constant) and type(node.value) is float and node.value != 0:
            yield source.replaced(node, f"{node.value * 1.01:.6g}")


# --- mutation operators of host code: grids, strides and shapes, buffers, and torch in place of a kernel --------------


def grid_capped(source: ParsedSource) -> Iterator[Edit]:
    """At most 64 programs along an axis."""
    for size in _grid_sizes(source):
        yield source.replaced(size, f"min({source.of(size)}, 64)")


def _grid_sizes(source: ParsedSource) -> Iterator[ast.expr]:
    """The sizes of grids: what stands in the tuple of a launch, and in any other tuple whose sizes come from a cdiv."""
    nodes = source.on_host
    launches = (node.func for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript))
    grids = {id(launch.slice) for launch in launches if isinstance(launch, ast.Subscript)}
    is_rounded_up = lambda size: any(called(node) == "triton.cdiv" for node in ast.walk(size))
    for node in nodes:
        if isinstance(node, ast.Tuple):
            sizes = [size for size in node.elts if not isinstance(size, ast.Tuple)]
            yield from sizes if id(node) in grids else filter(is_rounded_up, sizes)


_ALLOCATIONS = ("torch.empty", "torch.zeros", "torch.empty_like", "torch.zeros_like", "torch.full")


def buffer_kept(source: ParsedSource) -> Iterator[Edit]:
    """A buffer that is allocated once for each shape and dtype, and handed out again."""
    for node in source.on_host:
        if isinstance(node, ast.Call) and called(node) in _ALLOCATIONS:
            parts = [source.of(part) for part in (*node.args, *(keyword.value for keyword in node.keywords))]
            key = "str([getattr(part, 'shape', part) for part in (" + "".join(f"{part}, " for part in parts) + ")])"
            start, end = source.span(node)
            new = f"globals().setdefault('kept ' + {key}, {source.of(node)})"
            yield Edit(start, end, new, f"{source.of(node)} is kept")


def _operators() -> Iterator[Operator]:
    table = tomllib.loads(Path(__file__).with_name("operators.toml").read_text(encoding="utf-8"))
    for name, of in table.items():
        by_patterns = _by_patterns(of.get("edits", ()), of.get("at", "everywhere"))
        finds = [by_patterns, *filter(None, [globals().get(name.replace(" ", "_"))])]
        yield Operator(name, of["needs"], finds)


OPERATORS: dict[str, Operator] = {one.name: one for one in _operators()}
"""All operators by name, in the order of the table."""
