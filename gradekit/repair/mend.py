"""A mend: a small edit of a submission that a tutor would try, with what there is to
say if it makes the result right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from gradekit.causes import Cause
from gradekit.submission.parsed_source import Edit


class Family(StrEnum):
    """What a mend is about; evidence speaks for some of them."""

    GRID = "grid"
    INDEX = "index"
    MASK = "mask"
    LOOP = "loop"
    SUM = "sum"
    FORMULA = "formula"
    CAST = "cast"
    MEMORY = "memory"
    STRIDES = "strides"


@dataclass(frozen=True)
class Clues:
    """What is known of a failure: the `causes` that were seen, the `kernels` that wrote the wrong
    result and the `others` that it comes from, whether errors are as `small` as rounding makes them, and whether
    an input is `strided`. `wrong` has "kernel.pointer" for each pointer that the
    wrong result was stored through, where that is known. `lines` are those that a mend of a kernel may be of, where
    Triton refuses it or it does not come to its end; `astray` those of accesses out of bounds, or of all stores where
    something is never written, and `leading` those that decide where these go. `several` is whether several calls were
    compared, of which the example itself may be right."""

    causes: frozenset[Cause]
    kernels: tuple[str, ...]
    others: tuple[str, ...] = ()
    small: bool = False
    strided: bool = False
    wrong: frozenset[str] = frozenset()
    lines: frozenset[int] = frozenset()
    astray: frozenset[int] = frozenset()
    leading: frozenset[int] = frozenset()
    several: bool = False

    @property
    def likeliest(self) -> Cause:
        """The cause that says most of those that were seen."""
        return next(iter(sorted(self.causes, key=list(Cause).index)), Cause.WRONG_VALUES)


@dataclass(frozen=True)
class Mend:
    """`edits` that belong together, none of which moves a line, of a `kernel` or, where that is "", of host code.
    `sentence` tells what is wrong, `hint` the way out; `line` is to blame; `rank` is lower for what is more specific;
    `cause` is None where what was seen says it as well. `others` seem to do as well, each alone.
    """

    family: Family
    rank: int
    line: int
    edits: tuple[Edit, ...]
    sentence: str
    hint: str
    cause: Cause | None = None
    kernel: str = ""
    others: tuple[Mend, ...] = ()

    def applied(self, text: str) -> str:
        """The text after all edits."""
        data = text.encode("utf-8")
        for edit in sorted(self.edits, key=lambda edit: (edit.start, edit.end), reverse=True):
            data = data[: edit.start] + edit.new.encode("utf-8") + data[edit.end :]
        return data.decode("utf-8")

    def or_else(self, is_right: Callable[[Mend], bool]) -> Mend:
        """The same with a hint that names those of the others that are right, too."""
        others = [one for one in self.others if is_right(one)]
        same = " or ".join(f"line {one.line}" for one in others if one.hint == self.hint)
        said = f"or the same in {same}" if same else next((f"or, in line {o.line}, {o.hint}" for o in others), "")
        return replace(self, hint=f"{self.hint}; {said}", others=()) if said else self
