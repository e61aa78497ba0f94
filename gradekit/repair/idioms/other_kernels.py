"""Mends by other kernels of a submission, which compute values of the same names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.kernel import KernelDraft, is_call, target_of, value_of

LONGEST = 90
"""Characters of an expression that a sentence shows."""

FEWEST_OF_A_PART = 3
"""So many names, at least, a line shares with one of the same name that has all of its names and more."""


@dataclass(frozen=True)
class _NamedLine:
    """The only statement of a kernel that computes a name, with its value."""

    kernel: KernelDraft
    statement: ast.stmt
    value: ast.expr

    @property
    def text(self) -> str:
        return self.kernel.source.of(self.value)

    @property
    def shown(self) -> str:
        text = re.sub(r"\s+", " ", self.text)
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def other_than_elsewhere(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A line that computes a name otherwise than the line of another kernel that computes the same name."""
    for other in draft.kernels:
        if other is not kernel:
            yield from (_like(mine, model, name, other) for name, mine, model in _pairs(kernel, other))


def _pairs(kernel: KernelDraft, other: KernelDraft) -> Iterator[tuple[str, _NamedLine, _NamedLine]]:
    for name in kernel.values:
        mine, model = _only_line(kernel, name), _only_line(other, name)
        if mine is None or model is None:
            continue
        strange = kernel.names(model.value) - {*kernel.values, *kernel.all_params}
        if model.text != mine.text and not strange and _looks_alike(mine.value, model.value):
            yield name, mine, model


def _like(mine: _NamedLine, model: _NamedLine, name: str, other: KernelDraft) -> Mend:
    line, beside = mine.statement.lineno, model.statement.lineno
    return Mend(
        _family(mine, model), 4, mine.value.lineno, (mine.kernel.replaced(mine.value, model.text),),
        f"Line {line} computes `{name}` {_how(mine, model)} than line {beside} of {other.name} does"
        f"{_left_out(mine, model)}: it has `{mine.shown}` where that has `{model.shown}`.",
        f"compare line {line} with line {beside}: both compute {name}", None, mine.kernel.name,
    )  # fmt: skip


def _family(mine: _NamedLine, model: _NamedLine) -> Family:
    """Of loads, whether they differ in a stride or else in masks; of anything else, formulas."""
    if not any(is_call(part, "tl.load") for part in ast.walk(mine.value)):
        return Family.FORMULA
    differing = model.kernel.names(model.value) ^ mine.kernel.names(mine.value)
    return Family.STRIDES if differing & {*mine.kernel.strides, *model.kernel.strides} else Family.MASK


def _how(mine: _NamedLine, model: _NamedLine) -> str:
    """ "with other strides", where both have as many names and differ in strides alone."""
    one, other = mine.kernel.names(mine.value), model.kernel.names(model.value)
    are_strides = bool(one - other) and one ^ other <= {*mine.kernel.strides, *model.kernel.strides}
    return "with other strides" if are_strides and len(one) <= len(other) else "otherwise"


def _left_out(mine: _NamedLine, model: _NamedLine) -> str:
    """ ", and leaves out `bh`": the names of the model that a line lacks, where it has none of its own."""
    one, other = (line.kernel.names(line.value) for line in (mine, model))
    gone = " and ".join(f"`{name}`" for name in sorted(other - one))
    what = "the stride " if len(other - one) == 1 and other - one <= {*mine.kernel.strides} else ""
    return f", and leaves out {what}{gone}" if gone and one < other else ""


def _only_line(kernel: KernelDraft, name: str) -> _NamedLine | None:
    made = [s for s in kernel.statements if target_of(s) == name and isinstance(s, ast.Assign)]
    if len(made) != 1 or len(kernel.values[name]) != 1:
        return None
    value = value_of(made[0])
    return _NamedLine(kernel, made[0], value) if value is not None else None


def _looks_alike(mine: ast.expr, model: ast.expr) -> bool:
    """Whether two expressions share most of their names, or the one has all names of the other: what has the same name
    may be another thing altogether."""
    one, other = ({n.id for n in ast.walk(e) if isinstance(n, ast.Name)} - {"tl"} for e in (mine, model))
    if one < other and len(one) >= FEWEST_OF_A_PART:
        return True
    return len(one & other) >= 2 and len(one & other) * 3 >= 2 * max(len(one), len(other)) - 2


RULES = (other_than_elsewhere,)
