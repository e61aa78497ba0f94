"""A submission's text with its syntax tree: finds nodes, and replaces what stands between two places of the text."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

_SIMPLE = (ast.Name, ast.Call, ast.Attribute, ast.Constant, ast.Subscript)


@dataclass(frozen=True)
class Edit:
    """The bytes from `start` to `end` of a source give way to `new`; `says` tells it in a few words."""

    start: int
    end: int
    new: str
    says: str


class ParsedSource:
    """A submission's text, parsed once. Raises SyntaxError where it is not Python."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._data = text.encode("utf-8")
        self.tree = ast.parse(text)
        lines = self._data.splitlines(keepends=True)
        self._starts = [0, *accumulate(map(len, lines))]

    @staticmethod
    def parsed(text: str) -> ParsedSource | None:
        """The text, parsed; None where Python cannot parse it."""
        try:
            return ParsedSource(text)
        except (SyntaxError, ValueError, RecursionError):
            return None

    @cached_property
    def kernels(self) -> list[ast.FunctionDef]:
        """The functions that Triton compiles, in the order of the text."""
        given = jitted(self.tree)
        return [node for node in self._functions if is_kernel(node, given)]

    @cached_property
    def host(self) -> list[ast.FunctionDef]:
        """All other functions and methods, in the order of the text."""
        return [node for node in self._functions if node not in self.kernels]

    @cached_property
    def backwards(self) -> list[ast.FunctionDef]:
        """The functions that autograd asks for gradients: those called backward, or given to register_autograd."""
        given = {first.id for _, call in self._registered for first in call.args[:1] if isinstance(first, ast.Name)}
        return [node for node in self.host if node.name == "backward" or node.name in given]

    @cached_property
    def differentiated(self) -> list[str]:
        """The arguments that gradients are of: those of `forward` behind ctx, or of an operator with a derivative."""
        operators = {name for name, _ in self._registered}
        forward = [node.args.args[1:] for node in self.host if node.name == "forward"]
        found = forward or [node.args.args for node in self.host if node.name in operators]
        return [argument.arg for argument in found[0]] if found else []

    @cached_property
    def _registered(self) -> list[tuple[str, ast.Call]]:
        calls = [(called(node).rpartition("."), node) for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return [(name, node) for (name, _, method), node in calls if method == "register_autograd"]

    @cached_property
    def _functions(self) -> list[ast.FunctionDef]:
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]
        return sorted(found, key=lambda node: node.lineno)

    @cached_property
    def in_kernels(self) -> list[ast.AST]:
        """Every node of the kernels' bodies, in the order of the text."""
        return self._nodes(self.kernels)

    @cached_property
    def on_host(self) -> list[ast.AST]:
        """Every node of the other functions' bodies, in the order of the text."""
        return self._nodes(self.host)

    @cached_property
    def everywhere(self) -> list[ast.AST]:
        """Every node of a function's body, in the order of the text."""
        return self._nodes(self._functions)

    def _nodes(self, functions: list[ast.FunctionDef]) -> list[ast.AST]:
        nodes = dict.fromkeys(node for function in functions for part in function.body for node in ast.walk(part))
        placed = [node for node in nodes if isinstance(node, (ast.expr, ast.stmt, ast.keyword))]
        return sorted(placed, key=lambda node: (self.span(node)[0], -self.span(node)[1]))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends, in bytes."""
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        return (
            self._starts[line - 1] + node.col_offset,  # type: ignore[attr-defined]
            self._starts[end_line - 1] + node.end_col_offset,  # type: ignore[attr-defined]
        )

    def of(self, node: ast.AST) -> str:
        """A node's own text."""
        start, end = self.span(node)
        return self.between(start, end)

    def between(self, start: int, end: int) -> str:
        """The text between two places."""
        return self._data[start:end].decode("utf-8")

    def operand(self, node: ast.AST) -> str:
        """A node's text as it can stand beside any operator: in parentheses, unless it needs none."""
        return self.of(node) if isinstance(node, _SIMPLE) else f"({self.of(node)})"

    def line(self, place: int) -> int:
        """The number of the line, from 1, in which a place lies."""
        return self._data.count(b"\n", 0, place) + 1

    def replaced(self, node: ast.AST, new: str) -> Edit:
        """`new` for a node."""
        start, end = self.span(node)
        return Edit(start, end, new, f"{shown(self.of(node))} becomes {shown(new)}")

    def exchanged(self, one: ast.AST, other: ast.AST) -> tuple[Edit, Edit]:
        """The edits that put two nodes, neither within the other, in each other's place."""
        return self.replaced(one, self.of(other)), self.replaced(other, self.of(one))

    def after(self, edit: Edit, start: int = 0, end: int | None = None) -> str:
        """The text after an edit: the whole, or what was from `start` to `end`."""
        return (self._data[start : edit.start] + edit.new.encode("utf-8") + self._data[edit.end : end]).decode("utf-8")

    def stays_python(self, edit: Edit) -> bool:
        """Whether the text is Python after an edit: the top-level statement in which that lies is parsed again."""
        around = (span for span in self._top_level if span[0] <= edit.start and edit.end <= span[1])
        try:
            ast.parse(self.after(edit, *next(around, ())))
        except SyntaxError:
            return False
        return True

    @cached_property
    def _top_level(self) -> list[tuple[int, int]]:
        found = []
        for node in self.tree.body:
            lines = [node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]
            found.append((self._starts[min(lines) - 1], self.span(node)[1]))
        return found


def shown(text: str, most: int = 60, at: int = 0) -> str:
    """A piece of source for a sentence: on one line, and not longer than `most`; what stands `at` is never cut off."""
    flat = " ".join(text.split())
    if len(flat) <= most:
        return f"`{flat}`"
    begin = min(len(" ".join(text[:at].split())) - most // 3, len(flat) - most + 3)
    if begin <= 0:
        return f"`{flat[: most - 3]}...`"
    end = begin + most - (3 if begin + most - 3 == len(flat) else 6)
    return f"`...{flat[begin:end]}{'...' * (end < len(flat))}`"


def called(node: ast.AST) -> str:
    """The name of what a call calls, as it is written ("tl.load", "torch.empty"); "" for what is no call of a name."""
    return dotted(node.func) if isinstance(node, ast.Call) else ""


def dotted(node: ast.AST) -> str:
    """`a.b.c` as it is written; "" for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


@lru_cache(maxsize=1 << 13)
def nodes_of(node: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a tree that nobody changes, as ast.walk gives them; kept, for they are asked for often."""
    return tuple(ast.walk(node))


def blocks_of(nodes: Iterable[ast.AST]) -> list[list[ast.stmt]]:
    """The bodies of these functions, loops, ifs and withs, those behind an else as well."""
    bodies = (getattr(node, name, None) for node in nodes for name in ("body", "orelse"))
    return [body for body in bodies if isinstance(body, list)]


def is_decorated(node: ast.AST, *names: str) -> bool:
    """Whether a function has a decorator whose last name is one of these."""
    decorators = getattr(node, "decorator_list", ())
    return any((called(one) or dotted(one)).rpartition(".")[2] in names for one in decorators)


def jitted(tree: ast.AST) -> set[str]:
    """The names of functions that are given to triton.jit, as in kernel = triton.jit(kernel)."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    made = (one for one in calls if (called(one) or called(one.func)).rpartition(".")[2] == "jit")
    return {argument.id for one in made for argument in one.args if isinstance(argument, ast.Name)}


def is_kernel(node: ast.AST, given: Collection[str]) -> bool:
    """Whether Triton compiles a function: it is decorated, or its name is among those `given` to triton.jit."""
    return is_decorated(node, "jit") or getattr(node, "name", "") in given


def meaning(text: str) -> str:
    """Equal for texts that differ in brackets and spaces alone; the text itself where it is not Python."""
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return text
