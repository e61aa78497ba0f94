"""A loop that a kernel does not come out of, where it reads from memory how often it is to run."""

from __future__ import annotations

import ast

from gradekit.causes import Cause
from gradekit.judge.evidence import Diagnosis
from gradekit.source.draft import draft_of
from gradekit.source.kernel import KernelDraft


def bounds_from_memory(text: str, line: int | None) -> Diagnosis | None:
    """What is said of the innermost loop around a line where a run was cut off; None where nothing loads its bounds."""
    draft = draft_of(text)
    for kernel in draft.kernels if draft is not None else ():
        every = (node for node in kernel.nodes if isinstance(node, (ast.For, ast.While)))
        loops = [loop for loop in every if loop.lineno <= (line or 0) <= (loop.end_lineno or 0)]
        loaded = _loaded(kernel, loops[-1]) if loops else {}
        if loaded:
            where = " and ".join(f"`{name}` in line {number}" for name, number in loaded.items())
            sentence = f"How often the loop in line {loops[-1].lineno} runs is read from memory: {where}."
            hint = "see whether these addresses are right, each index times its stride: a wrong one reads any number"
            return Diagnosis(Cause.BUDGET_EXCEEDED, sentence, max(loaded.values()), hint)
    return None


def _loaded(kernel: KernelDraft, loop: ast.For | ast.While) -> dict[str, int]:
    """The names in a loop's head that are loaded, and the lines of their loads."""
    head = loop.iter if isinstance(loop, ast.For) else loop.test
    loads = {access.call: access.line for access in kernel.accesses if access.is_load}
    found = {}
    for name in dict.fromkeys(node.id for node in ast.walk(head) if isinstance(node, ast.Name)):
        lines = [loads[n] for value in kernel.values.get(name, ()) for n in ast.walk(value) if n in loads]
        if lines:
            found[name] = lines[0]
    return found
