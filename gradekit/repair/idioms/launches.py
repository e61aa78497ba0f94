"""Mends of launch arguments that are exchanged, and of results that host code drops."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft, LaunchCall
from gradekit.source.kernel import target_of
from gradekit.submission.parsed_source import Edit, called


def arguments_swapped(draft: Draft) -> Iterator[Mend]:
    """Two arguments of a launch, exchanged."""
    for launch in draft.launches:
        places = [a for a in launch.call.args if not isinstance(a, ast.Starred)]
        params = {id(v): p for p, v in launch.given.items()}
        for i, first in enumerate(places):
            for second in places[i + 1 : i + 5]:
                if draft.source.of(first) == draft.source.of(second):
                    continue
                p, q = params.get(id(first), ""), params.get(id(second), "")
                if p and q and _kind(launch, p) == _kind(launch, q):
                    gain = (
                        _fit(draft, first, q) + _fit(draft, second, p) - _fit(draft, first, p) - _fit(draft, second, q)
                    )
                    rank = 6 if gain > 0.2 else 32 if gain > -0.3 else 60
                    rank = 4 if _is_reversed(draft, first, second) else rank
                    yield _swapped(draft, launch, (first, second), (p, q), rank)


def named_otherwise(draft: Draft) -> Iterator[Mend]:
    """Another name than the parameter's, where host code has made something of that name. A look at all changes of host
    code finds it, too, but has none where two calls were compared with each other."""
    made = {target_of(node) for node in draft.host_nodes if isinstance(node, ast.Assign)}
    for launch in draft.launches:
        for param, value in launch.given.items():
            if isinstance(value, ast.Name) and value.id != param and param in made:
                yield Mend(
                    Family.STRIDES, 6, value.lineno, (draft.source.replaced(value, param),),
                    f"The launch passes {value.id} for {param} of {launch.kernel.name} in line {value.lineno}, where "
                    f"{param} belongs.",
                    f"pass {param} for {param}",
                )  # fmt: skip


def not_kept(draft: Draft) -> Iterator[Mend]:
    """A call of a tensor's method alone in a line, which changes nothing: all of them, kept under the tensor's name."""
    alone = [one.value for one in draft.host_nodes if isinstance(one, ast.Expr)]
    made = {one: called(one).rpartition(".") for one in alone if isinstance(one, ast.Call)}
    lost = [one for one, (name, _, method) in made.items() if name.isidentifier() and method in _MAKING_ANOTHER]
    if lost:
        name, _, method = made[lost[0]]
        yield Mend(
            Family.STRIDES, 3, lost[0].lineno,
            tuple(Edit(start := draft.source.span(one)[0], start, f"{made[one][0]} = ", "") for one in lost),
            f"Line {lost[0].lineno} calls {name}.{method}() and does not keep what it returns: {name} stays as it is.",
            f"give it the name: {name} = {name}.{method}(...)",
        )  # fmt: skip


_MAKING_ANOTHER = {"contiguous", "to", "float", "half", "reshape", "view", "flatten", "transpose", "permute", "expand"}
"""Methods of a tensor that return another, or a view, and leave it as it is."""


def _is_reversed(draft: Draft, first: ast.expr, second: ast.expr) -> bool:
    """Whether they are two strides of one tensor, the later dimension first."""
    one, other = (re.fullmatch(r"(.*)\.stride\((-?\d+)\)", draft.source.of(node)) for node in (first, second))
    return one is not None and other is not None and one[1] == other[1] and int(one[2]) > int(other[2])


def _kind(launch: LaunchCall, param: str) -> str:
    kernel = launch.kernel
    if param in kernel.constexprs:
        return "constexpr"
    return "pointer" if param in kernel.pointers else "stride" if param in kernel.strides else "size"


def _fit(draft: Draft, argument: ast.expr, param: str) -> float:
    """How much an argument's text looks like a parameter's name."""
    plain = _plain(param)
    text = re.sub(r"(stride|[^a-z0-9])", "", draft.source.of(argument).lower())
    return difflib.SequenceMatcher(None, plain, text).ratio()


def _plain(param: str) -> str:
    return re.sub(r"(_ptr|_pointer|stride|[^a-z0-9])", "", param.lower())


def _swapped(
    draft: Draft, launch: LaunchCall, pair: tuple[ast.expr, ast.expr], params: tuple[str, str], rank: int
) -> Mend:
    first, second = pair
    of, replaced, line = draft.source.of, draft.source.replaced, first.lineno
    return Mend(
        Family.STRIDES, rank, line, (replaced(first, of(second)), replaced(second, of(first))),
        f"The launch passes {of(first)} for {params[0]} and {of(second)} for {params[1]} in line {line}: they are "
        "swapped.",
        "give the launch's arguments in the order of the kernel's parameters",
    )  # fmt: skip


def loaded_in(draft: Draft, name: str) -> tuple[int | None, str]:
    """The first line in which a kernel loads what a launch passes by this name."""
    for launch in draft.launches:
        for param, value in launch.given.items():
            if draft.source.of(value) == name and param in launch.kernel.pointers:
                lines = [a.line for a in launch.kernel.accesses if a.pointer == param and a.is_load]
                if lines:
                    return lines[0], f" {launch.kernel.name}"
    return None, ""


RULES = (arguments_swapped, named_otherwise, not_kept)
