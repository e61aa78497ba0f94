"""What to say of a call that is wrong after other calls alone: something is kept for too many of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradekit.findings import Cause
from gradekit.judge.evidence import Diagnosis


def right_alone(text: str) -> Diagnosis | None:
    """What to say of a call that is wrong after others and right in a process of its own; None where the submission's
    `text` keeps nothing between calls, so that none need be tried."""
    line = next(iter(_keeping(text)), None)
    return None if line is None else Diagnosis(
        Cause.DEPENDS_ON_EARLIER_CALLS,
        "As the first call of a new process, this very call is right: what an earlier call has left behind (a compiled "
        f"kernel, a choice, a tensor) does not fit it. Does line {line} keep something for too many calls?",
        line,
        "let what is kept stand for all that it depends on: each size, dtype, stride and argument; or keep nothing",
    )  # fmt: skip


def _keeping(text: str) -> Iterator[int]:
    """Lines at which something is kept for later calls: in a name of the module, by a tuner or a cache of results."""
    try:
        module = ast.parse(text)
    except SyntaxError:
        return
    stored = (node.id for each in module.body for node in ast.walk(each) if isinstance(node, ast.Name) and _sets(node))
    names = {*stored, *(each.name for each in module.body if isinstance(each, (ast.FunctionDef, ast.ClassDef)))}
    for each in filter(lambda node: isinstance(node, ast.FunctionDef), ast.walk(module)):
        assert isinstance(each, ast.FunctionDef)
        yield from (one.lineno for one in each.decorator_list if re.search("cache|autotune", ast.unparse(one)))
        inside = (node for node in ast.walk(each) if isinstance(node, (ast.stmt, ast.expr)))
        yield from (node.lineno for node in inside if isinstance(node, ast.Global) or _changes(node, names))


def _sets(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _changes(node: ast.AST, names: set[str]) -> bool:
    """Whether a part of one of the `names` is set, or one of their methods called that add something."""
    adds = isinstance(node, ast.Attribute) and node.attr in ("append", "add", "setdefault", "update", "extend")
    of = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    return isinstance(of, ast.Name) and of.id in names and (adds or _sets(node))


