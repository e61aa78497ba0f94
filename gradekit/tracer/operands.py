"""Where the operands of an expression that Triton refuses come from: the lines of the kernel that assign them.

Triton says which sizes do not fit; a student needs to know which block has which, and that is decided lines above.
"""

from __future__ import annotations

import ast

REDUCTIONS = frozenset({"sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce"})


def origins(source: str, node: ast.AST | None, first_line: int, said: str = "") -> str:
    """A sentence on the variables in `node` that earlier lines assign, and on a dimension that a reduction removed; ""
    where there are none.

    `source` is the kernel's text from its `def` on, which stands at `first_line` of the
    submission; `node` is of its tree, and `said` is Triton's message.
    """
    advice = _other_axis if "at index 0" in said else _keeps
    if node is None:
        return ""
    made = {name: line for name in _names(node) if (line := _assignment(source, name, getattr(node, "lineno", 0)))}
    lines = " and ".join(f"`{name}` is made on line {first_line + each.lineno - 1}" for name, each in made.items())
    reduced = [advice(name, each.value) for name, each in made.items() if _reduces(each.value)]
    reduced += [advice(ast.unparse(call), call) for call in ast.walk(node) if _reduces(call)]
    ranges = [name for name, each in made.items() if _is_range(each.value)]
    return " ".join([f"{lines}." if lines else "", *reduced, _crossed(ranges)]).strip()


def beginning(source: str, name: str, node: ast.AST, first_line: int) -> str:
    """A sentence on the line above `node` that gives `name` its first value; "" where there is none."""
    made = _assignment(source, name, getattr(node, "lineno", 0))
    return f"`{name}` begins on line {first_line + made.lineno - 1}: `{ast.unparse(made)}`." if made else ""


def of_the_host(source: str, node: ast.AST | None) -> str:
    """A sentence on the function in `node` that is none of Triton's, by its name; "" where there is none. A method of
    what the kernel, whose text is `source`, calls by a name of its own is none."""
    own = {name for each in ast.walk(ast.parse(source)) if (name := _bound(each))}
    calls = (each for each in ast.walk(node or ast.Pass()) if isinstance(each, ast.Call))
    names = (ast.unparse(call.func) for call in calls if isinstance(call.func, ast.Attribute))
    names = (name for name in names if name.partition(".")[0] not in own)
    name = next((name for name in names if not name.startswith(("tl.", "triton.language."))), "")
    return f"`{name}` works on the host, not in a kernel." if name else ""


def _bound(node: ast.AST) -> str:
    """The name to which the kernel gives a value there: a parameter's, or a variable's."""
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""


def _names(node: ast.AST) -> list[str]:
    """The variables that the expression reads, in order, each once; functions such as tl.exp are none."""
    called = {id(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
    roots = [n for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in called and n.id != "tl"]
    return list(dict.fromkeys(root.id for root in sorted(roots, key=lambda root: (root.lineno, root.col_offset))))


def _assignment(source: str, name: str, before: int) -> ast.Assign | None:
    """The last line above `before` that assigns `name` alone; None where it is a parameter, or made in another way."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assign))
    found = sorted((n for n in nodes if n.lineno < before and _target(n) == name), key=lambda n: n.lineno)
    return found[-1] if found else None


def _target(node: ast.Assign) -> str:
    first = node.targets[0]
    return first.id if isinstance(first, ast.Name) else ""


def _is_range(made: ast.AST) -> bool:
    """Whether the value is a range of one dimension, or one beside a number: start + tl.arange(0, BLOCK)."""
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Add):
        return _is_range(made.right) or _is_range(made.left)
    return isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "arange"


def _crossed(ranges: list[str]) -> str:
    """How two ranges of one dimension make a tile."""
    if len(ranges) != 2:
        return ""
    down, across = ranges
    return (
        f"Each has one dimension: for a tile, write one as a column and one as a row, as in {down}[:, None] and "
        f"{across}[None, :]."
    )


def _reduces(made: ast.AST) -> bool:
    """Whether the value is a reduction along an axis that does not keep its dimension."""
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute) or made.func.attr not in REDUCTIONS:
        return False
    return not any(word.arg == "keep_dims" for word in made.keywords)


def _other_axis(name: str, made: ast.AST) -> str:
    """Where sizes differ in the first dimension, none is missing: what lacks one has the size 1 there, and fits."""
    return f"Does the reduction that makes `{name}` go along the right axis?"


def _keeps(name: str, made: ast.AST) -> str:
    index = "[None, :]" if _along_the_first(made) else "[:, None]"
    return f"The reduction that makes `{name}` removes a dimension: give it keep_dims=True, or write {name}{index}."


def _along_the_first(made: ast.AST) -> bool:
    """Whether the reduction says axis 0, by name or as its second argument."""
    assert isinstance(made, ast.Call)
    axes = [word.value for word in made.keywords if word.arg == "axis"] or made.args[1:2]
    return any(isinstance(axis, ast.Constant) and axis.value == 0 for axis in axes)
