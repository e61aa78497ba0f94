"""A call that is to be traced."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from gradekit.program import Argument, View, encode


@dataclass(frozen=True)
class Form:
    """`entry(*args)`, and its backward pass where gradients are `wanted`, as `Tracer.trace_gradient` describes it."""

    entry: str
    args: tuple[Argument, ...]
    wanted: tuple[int, ...] = ()
    upstream: View | None = None

    @functools.cached_property
    def name(self) -> str:
        """What tells it from other calls, also from equal ones: 1 is True, and 0.0 is -0.0."""
        return repr(self)

    @functools.cached_property
    def request(self) -> dict[str, Any]:
        """What the tracer is asked: worked out once, for a class makes the same calls. Not to be changed."""
        request = {"do": "trace", "entry": self.entry, "args": [encode(arg) for arg in self.args]}
        if not self.wanted:
            return request
        layout = None if self.upstream is None else encode(self.upstream)
        return request | {"do": "gradient", "wanted": list(self.wanted), "upstream": layout}
