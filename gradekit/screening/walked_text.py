"""Whether a call is wrong with other texts of its kernels: what is refuted by a walk need not be traced and run."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from gradekit.screening.screen import ShownCall, is_like
from gradekit.screening.walked_call import WRONG, WalkedCall, code_of
from gradekit.submission.parsed_source import ParsedSource

MOST_WORK = 5_000_000
"""Of a call as it is: a larger one costs as much to walk as to run."""

MORE_WORK = 4
"""So many times as much may a call take with another text."""


@dataclass(frozen=True)
class WalkedText:
    """A call that was walked with a text: its host code, the work, and whether it touched what is outside."""

    call: ShownCall
    allow: Collection[str]
    host: str
    work: int
    strays: bool

    def is_wrong_with(self, text: str) -> bool:
        """Whether the call is wrong with a text that differs in kernels alone; False where that is not known."""
        try:
            source = ParsedSource(text)
        except (SyntaxError, ValueError, RecursionError):
            return False
        if _host_of(source) != self.host:
            return False
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
    return WalkedText(call, allow, _host_of(source), walk.work, walk.strays)


def _host_of(source: ParsedSource) -> str:
    """Equal for texts that differ in kernels alone, but for the kernels' parameters."""
    kernels = {node.name for node in source.kernels}
    heads = [ast.dump(node.args) for node in source.kernels]
    host = [ast.dump(node) for node in source.tree.body if getattr(node, "name", None) not in kernels]
    return " ".join([*heads, *host])
