"""Whether a call is wrong with another text: where a walk refutes that text, it need not be traced and run."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from gradekit.interpreter.host_call import FAILS, HostReplay
from gradekit.interpreter.shown_call import ShownCall, is_like
from gradekit.interpreter.walked_call import WRONG, WalkedCall, code_of
from gradekit.submission.parsed_source import ParsedSource

MOST_WORK = 5_000_000
"""Of a call as it is: a larger one costs as much to walk as to run."""

MORE_WORK = 4
"""So many times as much may a call take with another text."""


@dataclass(frozen=True)
class WalkedText:
    """A call that was walked with the text of `source`, with the work of its kernels, and whether it went out of
    bounds."""

    call: ShownCall
    allow: Collection[str]
    source: ParsedSource
    work: int
    strays: bool

    @cached_property
    def _host(self) -> str:
        return _host_of(self.source)

    @cached_property
    def _on_host(self) -> tuple[int, bool]:
        """The work of a walk of the host code too, which finds what the call gave, and whether that is wrong; 0 where
        it does not."""
        if self.call.host is None or self.strays:
            return 0, False
        replay = HostReplay(self.call.host, self.call.program, self.source, code_of(self.source))
        try:
            results = replay.run(MOST_WORK)
        except FAILS:
            return 0, False
        is_known = not replay.strays and len(results) == len(self.call.results) and is_like(results, self.call.results)
        return (replay.work, not self.call.is_right(results)) if is_known else (0, False)

    @property
    def is_wrong_alone(self) -> bool:
        """Whether the call is known to be wrong without any call before it."""
        return self._on_host[1]

    def is_wrong_with(self, text: str) -> bool:
        """Whether the call is wrong with another text; False where that is not known."""
        source = ParsedSource.parsed(text)
        if source is None:
            return False
        return self._with_kernels(source) if _host_of(source) == self._host else self._with_host_code(source)

    def _with_host_code(self, source: ParsedSource) -> bool:
        if self.call.host is None or not self._on_host[0]:
            return False
        again = HostReplay(self.call.host, self.call.program, source, code_of(source))
        try:
            results = again.run(MORE_WORK * self._on_host[0])
        except FAILS:
            return False
        return not again.strays and len(results) == len(self.call.results) and not self.call.is_right(results)

    def _with_kernels(self, source: ParsedSource) -> bool:
        """Where kernels alone differ."""
        again = WalkedCall(self.call.program, self.call.inputs, code_of(source), self.allow)
        try:
            results = again.run(MORE_WORK * self.work)
        except WRONG:
            return False
        if again.strays:
            return self.strays
        return not self.call.is_right(results)


def walked_text(call: ShownCall, source: ParsedSource, allow: Collection[str]) -> WalkedText | None:
    """A call with the text that it was made of; None where a walk does not give what the call gave, or costs much."""
    walk = WalkedCall(call.program, call.inputs, code_of(source), allow)
    try:
        results = walk.run(MOST_WORK)
    except WRONG:
        return None
    if not walk.strays and not is_like(results, call.results):
        return None
    return WalkedText(call, allow, source, walk.work, walk.strays)


def _host_of(source: ParsedSource) -> str:
    """Equal for texts that differ in kernels alone, but for the kernels' parameters."""
    kernels = {node.name for node in source.kernels}
    heads = [ast.dump(node.args) for node in source.kernels]
    host = [ast.dump(node) for node in source.tree.body if getattr(node, "name", None) not in kernels]
    return " ".join([*heads, *host])
