"""Mends of attention's scores and weights: what a query may not see, and keys past the end."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, is_call
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import called


def hidden_scores(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Scores of keys past the end that are not -inf before the maximum and exp."""
    for statement in kernel.statements:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
            continue
        loop, name = kernel.in_loop(statement), statement.targets[0].id
        fed = any(name in kernel.names(n) for n in kernel.calls_of("tl.max", "tl.exp", "tl.exp2"))
        if loop is None or not fed or "tl.dot" not in kernel.calls_behind(statement.value):
            continue
        for index, bounds in kernel.bounds.items():
            inner = any(index in kernel.names(t) for s in loop.body if isinstance(s, ast.Assign) for t in s.targets)
            if inner and bounds:
                new = f'{name} = tl.where({index}[None, :] < {bounds[0]}, {name}, -float("inf"))'
                yield Mend(
                    Family.MASK, 40 if _is_hidden(kernel, index) else 5, statement.lineno,
                    (kernel.after(statement, new),),
                    f"The scores `{name}` of line {statement.lineno} are not masked: keys past the end are loaded as "
                    "0, score "
                    "0, and get a weight.",
                    f"with tl.where, make the scores beyond the bound of `{index}` -inf before the maximum", None,
                    kernel.name,
                )  # fmt: skip


def _is_hidden(kernel: KernelDraft, index: str) -> bool:
    """Whether a tl.where has a condition on this index and a bound."""
    where = [c.args[0] for c in calls(kernel.nodes, "tl.where") if c.args]
    return any(
        index in kernel.origins(condition) and kernel.names(condition) & set(kernel.lengths) for condition in where
    )


def hidden_weights(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Causal weights that a backward pass makes again without hiding what the forward pass hid."""
    flag = next((n for n in kernel.constexprs if "causal" in n.lower()), "")
    if not flag:
        return
    for statement in kernel.statements:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
            continue
        name = statement.targets[0].id
        made = is_call(statement.value, "tl.exp", "tl.exp2", "tl.math.exp") or _is_score(kernel, statement, name)
        if not made:
            continue
        rank = 40 if _compares_indices(kernel) else 5
        for first, second in _pairs(kernel):
            hidden = "0.0" if "exp" in called(statement.value) else '-float("inf")'
            new = f"{name} = tl.where({first}[:, None] >= {second}[None, :], {name}, {hidden}) if {flag} else {name}"
            yield Mend(
                Family.MASK, rank, statement.lineno, (kernel.after(statement, new),),
                f"Line {statement.lineno} does not hide what a causal query may not see: keys after the query count "
                "too.",
                f"where {flag} is set, hide the keys after the query, in the backward pass as in the forward pass",
                None,
                kernel.name,
            )  # fmt: skip


def _compares_indices(kernel: KernelDraft) -> bool:
    sides = [(n.left, n.comparators[0]) for n in kernel.nodes if isinstance(n, ast.Compare)]
    return any(all(kernel.names(side) & set(kernel.indices) for side in both) for both in sides)


def _is_score(kernel: KernelDraft, statement: ast.Assign, name: str) -> bool:
    fed = any(name in kernel.names(n) for n in kernel.calls_of("tl.max", "tl.exp", "tl.exp2"))
    return fed and any(is_call(n, "tl.dot") for n in ast.walk(statement.value))


def _pairs(kernel: KernelDraft) -> list[tuple[str, str]]:
    """Indices of queries and of keys: those that a loop moves on and one that stays, both ways."""
    names = [n for n in kernel.bounds]
    found = [(a, b) for a in names for b in names if a != b and len(a) <= 8]
    return sorted(found, key=lambda pair: (pair[0] > pair[1],))[:2]


RULES = (hidden_scores, hidden_weights)
