"""What a condition of an idiom may ask: the role of a name in its kernel, what an expression has in it, what it is
computed from."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gradekit.source.draft import Draft, LaunchCall
from gradekit.source.kernel import EXP, RANGES, KernelDraft, target_of
from gradekit.submission.parsed_source import called


@dataclass(frozen=True)
class Scope:
    """Where an idiom is looked for: a kernel, the host code of a submission, or one of its launches."""

    draft: Draft
    kernel: KernelDraft | None = None
    launch: LaunchCall | None = None

    @property
    def of(self) -> KernelDraft:
        """The kernel whose names have roles. Raises ValueError where there is none in host code."""
        kernel = self.kernel or (self.launch.kernel if self.launch is not None else None)
        if kernel is None:
            raise ValueError("no name has a role of a kernel in host code")
        return kernel

    @property
    def names(self) -> list[str]:
        """The names of its kernel, parameters first; none in host code."""
        kernel = self.kernel
        return list(dict.fromkeys([*kernel.all_params, *kernel.values])) if kernel is not None else []

    def text(self, node: ast.AST) -> str:
        """A node as it is written; of one that stands nowhere, as it would be."""
        source = self.draft.source
        return " ".join((source.of(node) if hasattr(node, "lineno") else ast.unparse(node)).split())

    def name(self, node: ast.AST) -> str:
        """The name that a node is: of what a launch passes, the parameter's."""
        if self.launch is not None and not (isinstance(node, ast.Name) and node.id in self.of.all_params):
            text = self.text(node)
            return next((param for param, value in self.launch.given.items() if self.text(value) == text), "")
        return node.id if isinstance(node, ast.Name) else ""


Role = Callable[[Scope, ast.AST], bool]


def _is_program(scope: Scope, node: ast.AST) -> bool:
    """Whether it is a program id: the call, or a name that holds its result."""
    return called(node) == "tl.program_id" or _made_by("tl.program_id")(scope, node)


def _named(names: Callable[[KernelDraft], Any]) -> Role:
    return lambda scope, node: scope.name(node) in names(scope.of)


def _written(*texts: str) -> Role:
    return lambda scope, node: ast.unparse(node) in texts


def _made_by(*functions: str) -> Role:
    """Whether a name has a value that is a call of one of these."""
    return lambda scope, node: any(called(value) in functions for value in scope.of.values.get(scope.name(node), ()))


def _number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)


def _is_statistic(scope: Scope, node: ast.AST) -> bool:
    """Whether a name is a sum, or is computed of one in its own line."""
    values = scope.of.values.get(scope.name(node), ())
    return any(called(part) == "tl.sum" for value in values for part in ast.walk(value))


def _is_factor(scope: Scope, node: ast.AST) -> bool:
    around = scope.of.parents.get(node)
    return isinstance(around, ast.BinOp) and isinstance(around.op, ast.Mult)


def _is_stored(scope: Scope, node: ast.AST) -> bool:
    """Whether some kernel stores to what host code allocates there."""
    made = (one for one in scope.draft.source.on_host if isinstance(one, ast.Assign) and one.value is node)
    return any(scope.draft.is_stored(target_of(one)) for one in made)


def _holds_loaded(scope: Scope, node: ast.AST) -> bool:
    values = scope.of.values.get(scope.name(node), ())
    return any(called(part) == "tl.load" for value in values for part in ast.walk(value))


ROLES: dict[str, Role] = {
    "name": lambda scope, node: isinstance(node, ast.Name),
    "number": lambda scope, node: _number(node.operand if isinstance(node, ast.UnaryOp) else node),
    "given": lambda scope, node: scope.text(node) in {a.arg for f in scope.draft.source.backwards for a in f.args.args},
    "parameter": _named(lambda kernel: kernel.all_params),
    "pointer": _named(lambda kernel: kernel.pointers),
    "result": _named(lambda kernel: kernel.stored),
    "stride": _named(lambda kernel: kernel.strides),
    "size": _named(lambda kernel: kernel.sizes),
    "length": _named(lambda kernel: kernel.lengths),
    "block": _named(lambda kernel: kernel.constexprs),
    "index": _named(lambda kernel: kernel.indices),
    "place": _named(lambda kernel: kernel.pids),
    "value": _named(lambda kernel: [n for n in kernel.values if n not in kernel.indices and n not in kernel.pids]),
    "unused": lambda scope, node: scope.name(node) != "" and not scope.of.uses.get(scope.name(node), 0),
    "factor": _is_factor,
    "stored": _is_stored,
    "float32": lambda scope, node: "float32" in ast.unparse(node),
    "tile": lambda scope, node: any("None" in ast.unparse(part) for part in _parts("knows", node, scope)),
    "reduction": _written("tl.sum", "tl.max", "tl.min", "tl.argmax"),
    "program": _is_program,
    "loaded": _holds_loaded,
    "product-of-matrices": lambda scope, node: called(node) == "tl.dot",
    "statistic": _is_statistic,
    "exp": _written(*EXP),
    "root": _written("tl.sqrt", "tl.rsqrt", "tl.math.sqrt", "tl.math.rsqrt"),
    "range": _written(*RANGES),
    "only-length": lambda scope, node: scope.of.lengths == [scope.name(node)],
    "least": _written("min", "tl.minimum"),
    "looped": lambda scope, node: scope.of.in_loop(node) is not None,
}
"""The words behind `is`: of a name what it is in its kernel, of other expressions what they are."""


def holds(condition: str, scope: Scope, found: Mapping[Any, Any]) -> bool:
    """Whether a condition holds of what holes stand for: `X is length unused`, `X is not tl.sum`, `X has program`, `X
    has no Y`, `X knows tl.load`, `X knows no place`, `S bounds X`. `has` asks for what stands in an expression, `knows`
    for that and all that it is computed from. `~eps` is a name with eps in it, a word with a point a function, `a|b`
    either. Raises KeyError where a word is neither a hole nor a role."""
    subject, verb, *words = condition.split()
    node = found[subject]
    wanted = words[0] not in ("not", "no")
    words = words if wanted else words[1:]
    if verb in _OF_TWO:
        return wanted == _OF_TWO[verb](scope, node, found[words[0]])
    return wanted == any(all(_fits(word, part, scope, found) for word in words) for part in _parts(verb, node, scope))


_OF_TWO: dict[str, Callable[[Scope, Any, ast.AST], bool]] = {
    "bounds": lambda scope, node, index: scope.text(node) in scope.of.bounds.get(scope.text(index), ()),
}
"""A verb between two holes: a size is what an index is compared with somewhere."""


def _parts(verb: str, node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """What a verb asks about."""
    if verb == "is":
        yield node
        return
    yield from (part for part in ast.walk(node) if isinstance(part, (ast.expr, ast.stmt)))
    if verb == "knows":
        yield from (ast.Name(name, ast.Load()) for name in sorted(scope.of.origins(node)))
        values = (value for name in sorted(scope.of.origins(node)) for value in scope.of.values.get(name, ()))
        yield from (part for value in values for part in ast.walk(value) if isinstance(part, ast.Call))


def _fits(word: str, node: ast.AST, scope: Scope, found: Mapping[Any, Any]) -> bool:
    if word.startswith("~"):
        name = getattr(node, "id", getattr(node, "attr", ""))
        return re.search(word[1:], name.lower()) is not None
    if "|" in word:
        return any(_fits(one, node, scope, found) for one in word.split("|"))
    if word in found:
        return ast.unparse(node) == ast.unparse(found[word])
    if "." in word:
        return called(node) == word
    if word.isdigit():
        return _number(node) and float(node.value) == int(word)  # type: ignore[attr-defined]
    return ROLES[word](scope, node)
