"""A call that is to be traced."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gradekit.program import Argument, View, encode

MANY, FEW = 132, (1, 3)
"""Multiprocessors of the GPU that a call is traced for: those of an H100, or so few
that each has several tiles to do."""

MOST_ELEMENTS = 1 << 16
"""The most elements of all arguments together with which a call is traced for few: they
do everything one after another."""


def multiprocessors_for(args: Sequence[Argument], key: str) -> int:
    """How many multiprocessors a call with these arguments is traced for, where nothing is timed: for
    two in three small calls few, so that loops over tiles run more than once. It depends on `key` alone,
    and so is the same for everybody."""
    elements = sum(arg.numel for arg in args if isinstance(arg, View))
    choices = (MANY, *FEW) if elements <= MOST_ELEMENTS else (MANY,)
    return choices[zlib.crc32(key.encode()) % len(choices)]


@dataclass(frozen=True)
class Form:
    """`entry(*args)`, and its backward pass where gradients are `wanted`, as `Tracer.trace` describes it; host
    code that asks is told that the GPU has so many `multiprocessors`. With `between`, `entry(*between)` is called
    before the backward pass: its tensors are inputs of the program too, after those of `args`. Of many configurations
    of an autotuned launch some are recorded, which the form decides; all of them where it `is_timed`. It is called in
    the usual `way`, "", or in one of `gradekit.tracer.trace`. Its kernels are specialized as Triton would where it
    `is_exact`: of two forms that differ in no more, a submission is asked for one."""

    entry: str
    args: tuple[Argument, ...]
    wanted: tuple[int, ...] = ()
    upstream: View | None = None
    multiprocessors: int = MANY
    between: tuple[Argument, ...] = ()
    is_timed: bool = False
    way: str = ""
    is_exact: bool = field(default=True, repr=False)

    @functools.cached_property
    def name(self) -> str:
        """A key that tells apart calls which compare equal: 1 and True, 0.0 and -0.0."""
        return repr(self)

    @property
    def turn(self) -> int | None:
        """Which of many configurations the call records: see `gradekit.tracer.autotune`."""
        return None if self.is_timed else zlib.crc32(self.name.encode())

    @functools.cached_property
    def request(self) -> dict[str, Any]:
        """What the tracer is asked: worked out once, for a class makes the same calls. Not to be changed."""
        request = {
            "do": "trace", "entry": self.entry, "args": [encode(arg) for arg in self.args],
            "multiprocessors": self.multiprocessors, "turn": self.turn, "way": self.way,
            "exact": self.is_exact,
        }  # fmt: skip
        if not self.wanted:
            return request
        layout = None if self.upstream is None else encode(self.upstream)
        between = [encode(arg) for arg in self.between]
        return request | {"do": "gradient", "wanted": list(self.wanted), "upstream": layout, "between": between}

    @property
    def following(self) -> dict[str, Any]:
        """What the tracer is asked for the origins of the call's numbers; a gradient of the result is contiguous."""
        args = [encode(arg) for arg in self.args]
        return {"do": "follow", "entry": self.entry, "args": args, "wanted": list(self.wanted)}

    @property
    def exploring(self) -> dict[str, Any]:
        """What the tracer is asked for what host code compares in the call."""
        return self.following | {"do": "explore"}
