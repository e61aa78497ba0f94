"""Mends by other kernels of a submission, which compute values of the same names."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gradekit.causes import Cause
from gradekit.repair.mend import Family, Mend
from gradekit.repair.work import Limit
from gradekit.source.draft import Draft
from gradekit.source.kernel import KernelDraft, is_call, target_of


@dataclass(frozen=True)
class _NamedLine:
    """The only value that a kernel computes for a name."""

    kernel: KernelDraft
    value: ast.expr

    @property
    def text(self) -> str:
        return self.kernel.source.of(self.value)

    @property
    def shown(self) -> str:
        text = re.sub(r"\s+", " ", self.text)
        return text if len(text) <= Limit.SENTENCE_TEXT else f"{text[: Limit.SENTENCE_TEXT - 3]}..."


def other_than_elsewhere(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A line that computes a name differently from the line of another kernel that computes the same name; then all
    such lines at once."""
    for other in draft.kernels:
        if other is not kernel:
            pairs = list(_pairs(kernel, other))
            alone = [_like(mine, model, name, other) for name, mine, model in pairs]
            yield from alone
            if len(alone) > 1:
                mine, models = [one for _, one, _ in pairs], [one for _, _, one in pairs]
                yield _all_like(mine, models, alone, other.name)


def _pairs(kernel: KernelDraft, other: KernelDraft) -> Iterator[tuple[str, _NamedLine, _NamedLine]]:
    for name in kernel.values:
        mine, model = _only_line(kernel, name), _only_line(other, name)
        if mine is None or model is None:
            continue
        strange = kernel.names(model.value) - {*kernel.values, *kernel.all_params}
        if model.text != mine.text and not strange and _looks_alike(mine.value, model.value):
            yield name, mine, model


def _like(mine: _NamedLine, model: _NamedLine, name: str, other: KernelDraft) -> Mend:
    line, beside, family = mine.value.lineno, model.value.lineno, _family(mine, model)
    hint = f"compare line {line} with line {beside}: both compute {name}"
    if family is Family.STRIDES:
        hint = f"compare the strides in line {line} with those in line {beside}: both compute {name}"
    return Mend(
        family, 4, line, (mine.kernel.source.replaced(mine.value, model.text),),
        f"Line {line} computes `{name}` differently from line {beside} of {other.name}"
        f"{_left_out([mine], [model])}: it has `{mine.shown}` where that has `{model.shown}`.",
        hint, Cause.LOW_PRECISION if mine.text.count("float32") < model.text.count("float32") else None,
        mine.kernel.name,
    )  # fmt: skip


def _family(mine: _NamedLine, model: _NamedLine) -> Family:
    """Of loads, whether they differ in a stride or else in masks; of anything else, formulas."""
    if not any(is_call(part, "tl.load") for part in ast.walk(mine.value)):
        return Family.FORMULA
    differing = model.kernel.names(model.value) ^ mine.kernel.names(mine.value)
    return Family.STRIDES if differing & {*mine.kernel.strides, *model.kernel.strides} else Family.MASK


def _all_like(mine: Sequence[_NamedLine], models: Sequence[_NamedLine], alone: Sequence[Mend], other: str) -> Mend:
    """All lines that are made otherwise, together: the same may be forgotten in each of them."""
    first = alone[0]
    lines, beside = (_numbered(lines) for lines in (mine, models))
    says = f"{lines} do not compute what {beside[:1].lower()}{beside[1:]} of {other} do, under the same names"
    return replace(
        first, rank=5, edits=tuple(edit for one in alone for edit in one.edits),
        sentence=f"{says}{_left_out(mine, models)}: line {first.line} has `{mine[0].shown}` where that has "
        f"`{models[0].shown}`.",
        hint=f"compare the two kernels line by line: {lines[:1].lower()}{lines[1:]} differ",
    )  # fmt: skip


def _numbered(lines: Sequence[_NamedLine]) -> str:
    *first, last = [str(line.value.lineno) for line in lines]
    return f"Lines {', '.join(first)} and {last}"


def _left_out(mine: Sequence[_NamedLine], models: Sequence[_NamedLine]) -> str:
    """ ", and leaves out `bh`": the names of the models that lines lack, where they have none of their own."""
    one, other = ({name for line in lines for name in line.kernel.names(line.value)} for lines in (mine, models))
    gone = " and ".join(f"`{name}`" for name in sorted(other - one))
    verb = "leave" if len(mine) > 1 else "leaves"
    strides = {name for line in mine for name in line.kernel.strides}
    what = "the stride " if len(other - one) == 1 and other - one <= strides else ""
    return f", and {verb} out {what}{gone}" if gone and one < other else ""


def _only_line(kernel: KernelDraft, name: str) -> _NamedLine | None:
    made = [s for s in kernel.statements if target_of(s) == name and isinstance(s, ast.Assign)]
    is_only = len(made) == 1 and len(kernel.values[name]) == 1
    return _NamedLine(kernel, kernel.values[name][0]) if is_only else None


def _looks_alike(mine: ast.expr, model: ast.expr) -> bool:
    """Whether two expressions share most of their names, or the one has all names of the other: what has the same name
    may be another thing altogether."""
    one, other = ({n.id for n in ast.walk(e) if isinstance(n, ast.Name)} - {"tl"} for e in (mine, model))
    if one < other and len(one) >= Limit.NAMES_OF_A_PART:
        return True
    return len(one & other) >= 2 and len(one & other) * 3 >= 2 * max(len(one), len(other)) - 2


RULES = (other_than_elsewhere,)
