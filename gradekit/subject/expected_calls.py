"""Which calls a check is going to make, told from the first that it made: so that they can be traced while others run.

A check does the same with every row of its design: it calls the entry with all arguments or the first of them, asks for
the same gradients, and may give all tensors another dtype. A guess that is wrong costs time, and nothing else.

Runs in the grader's process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradekit.inputs.spec import Input
from gradekit.program import View
from gradekit.sandbox import Form
from gradekit.subject.call_spec import call_spec

Call = tuple[Any, ...]


@dataclass(frozen=True)
class _Pattern:
    """How a form came from a call: from its first `count` arguments, the floating
    tensors among them cast to `dtype`."""

    entry: str
    wanted: tuple[int, ...]
    count: int
    dtype: str | None

    def spec(self, call: Call) -> Any:
        args = [_cast(arg, self.dtype) for arg in call[: self.count]]
        return call_spec(self.entry, args, self.wanted)


def expected_forms(seen: Mapping[str, Form], first: Call, others: Sequence[Call]) -> dict[str, Form]:
    """The forms of calls that a check is going to make with `others`, by their signatures, where it made those of
    `seen` with the `first`; in the order in which they will be wanted."""
    patterns = [pattern for signature, form in seen.items() if (pattern := _pattern(signature, form, first))]
    specs = [pattern.spec(call) for call in others for pattern in patterns]
    return {spec.signature: spec.form for spec in specs}


def _pattern(signature: str, form: Form, first: Call) -> _Pattern | None:
    return next((one for one in _patterns(form, first) if one.spec(first).signature == signature), None)


def _patterns(form: Form, first: Call) -> Iterator[_Pattern]:
    dtypes = [arg.dtype for arg in form.args if isinstance(arg, View) and "float" in arg.dtype]
    for dtype in (None, *dtypes[:1]):
        for count in range(len(first), 0, -1):
            if not form.wanted or isinstance(first[count - 1], Input):
                yield _Pattern(form.entry, form.wanted, count, dtype)


def _cast(arg: Any, dtype: str | None) -> Any:
    return replace(arg, dtype=dtype) if dtype and isinstance(arg, Input) and "float" in arg.dtype else arg
