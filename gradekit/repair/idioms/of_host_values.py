"""Mends of host code, one value in another's place: what a launch passes, counts or allocates, and what is returned.

Any value of the same kind may have been meant: those come first whose names are like the parameter's.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft, LaunchCall
from gradekit.source.expressions import target_of
from gradekit.submission.parsed_source import called

ALIKE = 0.25
"""How much better a name must fit a parameter for its mend to come early."""

EARLY, SOON, LATE = 6, 15, 36
"""Ranks: of a name that fits much better than what is passed, of one that fits better, of any other."""


def argument_for_argument(draft: Draft) -> Iterator[Mend]:
    """Another tensor, size or stride for what a launch passes."""
    for launch in draft.launches:
        function = _function_of(draft, launch.call)
        if function is None:
            continue
        for param, value in launch.given.items():
            kind = _kind(launch, param)
            if isinstance(value, ast.Starred) or not kind:
                continue
            now = draft.source.of(value)
            for new in _others(draft, launch, function, param, kind):
                if _squeezed(new) != _squeezed(now):
                    yield _passed(draft, launch, (param, value), new, _rank(param, now, new))
            for new in _of_other_dimensions(draft, function, now) if kind == "size" else ():
                yield _passed(draft, launch, (param, value), new, SOON)


def _rank(param: str, now: str, new: str) -> int:
    gain = _likeness(param, new) - _likeness(param, now)
    return EARLY if gain > ALIKE else SOON if gain > 0 else LATE


def _passed(draft: Draft, launch: LaunchCall, given: tuple[str, ast.expr], new: str, rank: int) -> Mend:
    param, value = given
    now = draft.source.of(value)
    return Mend(
        Family.STRIDES, rank, value.lineno, (draft.source.replaced(value, new),),
        f"The launch passes {now} for {param} of {launch.kernel.name} in line {value.lineno}, where {new} belongs.",
        f"pass {new} for {param}",
    )  # fmt: skip


def _others(draft: Draft, launch: LaunchCall, function: ast.FunctionDef, param: str, kind: str) -> list[str]:
    """What a launch could pass for a parameter."""
    if kind == "pointer":
        return _tensors(draft, function, launch)
    if kind == "stride":
        tensors = [t for t in draft.tensors_of(launch, param) if t.isidentifier()]
        return [f"{tensor}.stride({dim})" for tensor in tensors[:2] for dim in range(_dimensions(draft, function))]
    same = [draft.source.of(v) for p, v in launch.given.items() if _kind(launch, p) == kind and _is_plain(v)]
    return list(dict.fromkeys([*same, *(_sizes(draft, function) if kind == "size" else [])]))


def _of_other_dimensions(draft: Draft, function: ast.FunctionDef, now: str) -> Iterator[str]:
    """`x.size(1)` for `x.size(0)`, and `x.shape[1]` for `x.shape[0]`."""
    found = re.fullmatch(r"(\w+\.(?:size\(|shape\[))(\d)([\])])", now)
    for dim in range(_dimensions(draft, function)) if found else ():
        if found and str(dim) != found[2]:
            yield f"{found[1]}{dim}{found[3]}"


def _is_plain(value: ast.expr) -> bool:
    return not isinstance(value, (ast.Starred, ast.Constant))


def _kind(launch: LaunchCall, param: str) -> str:
    """ "pointer", "stride", "size" or "constexpr"; "" for a number that counts nothing."""
    kernel = launch.kernel
    if param in kernel.pointers:
        return "pointer"
    if param in kernel.strides:
        return "stride"
    if param in kernel.constexprs:
        return "constexpr" if isinstance(launch.given.get(param), ast.Name) else ""
    return "size" if param in kernel.lengths else ""


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def _likeness(param: str, text: str) -> float:
    """How much an expression looks like a parameter's name, between 0 and 1."""
    plain = re.sub(r"(_ptr|_pointer|^n_|^num_|stride|[^a-z0-9])", "", param.lower())
    other = re.sub(r"(^n_|^num_|stride|shape|[^a-z0-9])", "", text.lower())
    return difflib.SequenceMatcher(None, plain, other).ratio()


# --- what host code has ---------------------------------------------------------------------------------------------


def _function_of(draft: Draft, node: ast.AST) -> ast.FunctionDef | None:
    """The innermost host function around a node."""
    start = draft.source.span(node)[0]
    around = [f for f in draft.source.host if draft.source.span(f)[0] <= start < draft.source.span(f)[1]]
    return max(around, key=lambda f: f.lineno, default=None)


def _sizes(draft: Draft, function: ast.FunctionDef) -> list[str]:
    """The names of sizes: what is taken from a shape, or counted."""
    found: list[str] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _is_of_sizes(draft, node.value):
            targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
            found += [t.id for t in targets if isinstance(t, ast.Name) and t.id.strip("_")]
    return list(dict.fromkeys(found))


def _is_of_sizes(draft: Draft, value: ast.expr) -> bool:
    """Whether what is assigned are sizes: of shapes and numbers, and no tensor that is made with them."""
    makes = any(called(part).startswith("torch.") for part in ast.walk(value))
    return not makes and re.search(r"\.(shape\b|size\(|numel\()", draft.source.of(value)) is not None


def _tensors(draft: Draft, function: ast.FunctionDef, launch: LaunchCall) -> list[str]:
    """The names of tensors that there are before a launch: parameters that are used as such, and what is made."""
    text, line = draft.source.of(function), launch.call.lineno
    pairs = [(p, v, other.kernel) for other in draft.launches for p, v in other.given.items()]
    given = {draft.source.of(v) for p, v, kernel in pairs if p in kernel.pointers}
    params = [a.arg for a in function.args.args if a.arg in given or _is_tensor_or_idle(text, a.arg)]
    made = [
        target_of(node) for node in ast.walk(function)
        if isinstance(node, ast.Assign) and node.lineno < line and target_of(node)
        and (target_of(node) in given or called(node.value).startswith("torch."))
    ]  # fmt: skip
    return list(dict.fromkeys([*params, *made]))


def _is_tensor_or_idle(text: str, param: str) -> bool:
    """Whether a parameter of a function with this text is asked what tensors are asked, or nothing uses it."""
    asked = re.search(rf"\b{param}\.(shape|stride|size|numel|dim|dtype|element_size)\b", text)
    return asked is not None or len(re.findall(rf"\b{param}\b", text)) == 1


def _dimensions(draft: Draft, function: ast.FunctionDef) -> int:
    """How many dimensions its tensors have, as far as it shows: at least 2, at most 4."""
    text = draft.source.of(function)
    shown = [int(number) + 1 for number in re.findall(r"\.(?:stride\(|size\(|shape\[)(\d)", text)]
    unpacked = [line.count(",") + 1 for line in re.findall(r"^\s*([\w, ]+) = \w+\.shape\s*$", text, re.MULTILINE)]
    return min(4, max([2, *shown, *unpacked]))


# --- sizes in formulas ------------------------------------------------------------------------------------------------


# --- order and results ------------------------------------------------------------------------------------------------


def taken_too_early(draft: Draft) -> Iterator[Mend]:
    """Strides or sizes that are taken from tensors, just before their names are given to others."""
    for function in draft.source.host:
        for first, second in _near(function):
            taken = re.search(r"\.(stride|shape|size|numel)\b", draft.source.of(first.value))
            renewed = _assigned(second) & _read(second) & _read(first)
            if taken and renewed and not _assigned(first) & (_read(second) | _assigned(second)):
                names = " and ".join(sorted(renewed))
                yield Mend(
                    Family.STRIDES, 3, first.lineno, draft.source.exchanged(first, second),
                    f"Line {first.lineno} takes `{taken[1]}` of {names} before line {second.lineno} gives other "
                    "tensors those names: what is passed on is the old one's.",
                    f"take it after line {second.lineno}",
                )  # fmt: skip


def _near(function: ast.FunctionDef) -> Iterator[tuple[ast.Assign, ast.Assign]]:
    """Two assignments of one block, the second of which stands at most three statements after the first."""
    for place, first in enumerate(function.body):
        for second in function.body[place + 1 : place + 4]:
            if isinstance(first, ast.Assign) and isinstance(second, ast.Assign):
                yield first, second


def _assigned(statement: ast.Assign) -> set[str]:
    targets = [part for target in statement.targets for part in ast.walk(target)]
    return {part.id for part in targets if isinstance(part, ast.Name)}


def _read(statement: ast.Assign) -> set[str]:
    return {part.id for part in ast.walk(statement.value) if isinstance(part, ast.Name)}


def joined_the_other_way(draft: Draft) -> Iterator[Mend]:
    """A list and its filling that are joined in the wrong order; of several, the last first."""
    joined = [n for n in draft.host_nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add)]
    filled = [n for n in joined if _fills(n.left) or _fills(n.right)]
    for node in filled:
        left, right = draft.source.of(node.left), draft.source.of(node.right)
        unlike = [str(n.lineno) for n in filled if _fills(n.left) is not _fills(node.left)]
        beside = f" Line {unlike[0]} puts it on the other side." if unlike else ""
        yield Mend(
            Family.STRIDES, 8 if node is filled[-1] else 9, node.lineno,
            draft.source.exchanged(node.left, node.right),
            f"Line {node.lineno} fills up `{right if _fills(node.left) else left}` on the wrong side.{beside}",
            "let the filling stand on the other side", None,
        )  # fmt: skip


def _fills(node: ast.expr) -> bool:
    """Whether a node is `[0] * n` or `(1,) * n`."""
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return is_product and isinstance(node.left, (ast.List, ast.Tuple))  # type: ignore[attr-defined]


RULES = (argument_for_argument, taken_too_early, joined_the_other_way)
