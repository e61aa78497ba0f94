"""Mends of launch arguments that are exchanged."""

import ast
import difflib
import re
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft, LaunchCall


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
    plain = re.sub(r"(_ptr|_pointer|stride|[^a-z0-9])", "", param.lower())
    text = re.sub(r"(stride|[^a-z0-9])", "", draft.source.of(argument).lower())
    return difflib.SequenceMatcher(None, plain, text).ratio()


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
            if draft.source.of(value) == name and param in launch.kernel.first_loads:
                return launch.kernel.first_loads[param], f" {launch.kernel.name}"
    return None, ""


RULES = (arguments_swapped,)
