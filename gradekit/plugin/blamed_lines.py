"""The line to look at where a failed check names none: read off the program that was traced and the submission's text.

Nothing is judged here. A line is given only where what failed says which one it must be: where the result was
allocated for a wrong dtype, where a kernel was launched for what no program writes, where `backward` returns for a
gradient that autograd refuses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from gradekit.causes import Cause
from gradekit.judge.ttir_text import unread_storages
from gradekit.plugin.check_verdict import CheckEvidence, CheckVerdict
from gradekit.program import Allocate, Program, View, every_step
from gradekit.source.draft import draft_of, grid_lines, loads_by_pointer
from gradekit.submission.parsed_source import ParsedSource, called

_REFUSED_GRADIENTS = r"Backward returned an (incorrect number of gradients|invalid gradient)|gives no gradient for"
_BY_CHANCE = "than chance explains"
MOST_CALLS = 5
"""So many functions of the submission may hand on what the next one returns."""

_NOT_CONNECTED = r"is not differentiable|no autograd formula was registered"


@dataclass(frozen=True)
class _Failed:
    """What failed: its `message`, the function that was called, the number of the `result` that is wrong, the position
    of the `input` that the diagnosis speaks of, the traced program where there is one, and the submission's text."""

    message: str
    entry: str
    result: int
    input: int | None
    program: Program | None
    source: ParsedSource


def blamed_line(verdict: CheckVerdict, evidence: CheckEvidence, text: str) -> int | None:
    """The line of a submission to look at; None where nothing says which.

    Args:
        verdict: what a check that failed says, without a line.
        evidence: its last call, and what was diagnosed.
        text: the submission's source.
    """
    source = ParsedSource.parsed(text)
    if source is None:
        return None
    call = evidence.call
    program = call.observation.program if call is not None and call.observation is not None else None
    about = evidence.diagnosis.input if evidence.diagnosis is not None else None
    entry, result = call.entry if call is not None else "", verdict.details.get("result", 0)
    seen = _Failed(verdict.message, entry, result, about, program, source)
    rule = _BY_CAUSE.get(verdict.cause) if verdict.cause is not None else None
    return rule(seen) if rule is not None else None


# --- read off the program ---------------------------------------------------------------------------------------------


def _allocation(seen: _Failed) -> int | None:
    if seen.program is None:
        return None
    results = seen.program.results
    result = results[seen.result] if seen.result < len(results) else next(iter(results), None)
    made = [
        step for step in every_step(seen.program.steps)
        if isinstance(step, Allocate) and isinstance(result, View) and step.storage == result.storage
    ]  # fmt: skip
    return made[-1].source.line if made and made[-1].source else None


def _launch(seen: _Failed) -> int | None:
    """Where the grid of the launch is written, if all of the call's launches stand in one line."""
    launches = seen.program.launches() if seen.program is not None else ()
    lines = {launch.source.line for launch in launches if launch.source is not None}
    return grid_lines(seen.source.text).get(line := lines.pop(), line) if len(lines) == 1 else None


def _storage(seen: _Failed) -> int | None:
    inputs = seen.program.inputs if seen.program is not None else ()
    return inputs[seen.input].storage if seen.input is not None and seen.input < len(inputs) else None


def _first_load(seen: _Failed) -> int | None:
    """Where a kernel first loads the input whose strides it ignores."""
    wanted = _storage(seen)
    if seen.program is None or wanted is None:
        return None
    loads = loads_by_pointer(seen.source.text)
    for launch in seen.program.launches():
        pointers = [argument for argument in launch.args if isinstance(argument, View)]
        lines = loads.get(seen.program.kernels[launch.kernel].name, ())
        if len(lines) == len(pointers):
            for line, view in zip(lines, pointers, strict=True):
                if line and view.storage == wanted:
                    return line
    return None


def _left_out(seen: _Failed) -> int | None:
    """Where the kernel that is given an input and never reads it loads another, if it does so in one line alone."""
    left_out = _storage(seen)
    if seen.program is None or left_out is None or left_out not in unread_storages(seen.program):
        return None
    for launch in seen.program.launches():
        if any(isinstance(arg, View) and arg.storage == left_out for arg in launch.args):
            lines = loads_by_pointer(seen.source.text).get(seen.program.kernels[launch.kernel].name, ())
            loads = {line for line in lines if line}
            return loads.pop() if len(loads) == 1 else None
    return None


# --- read off the text ------------------------------------------------------------------------------------------------


def _functions(seen: _Failed, name: str) -> list[ast.FunctionDef]:
    return [node for node in seen.source.host if node.name == name]


def _returned_input(seen: _Failed) -> int | None:
    """Where the name that is returned was given its value, or else the `return`: of the entry, or of the function whose
    result it hands on."""
    name, line = seen.entry, None
    for _ in range(MOST_CALLS):
        function = next(iter(_functions(seen, name)[-1:]), None)
        returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)] if function is not None else []
        if function is None or not returns:
            return line
        value = returns[-1].value
        made = [
            node.lineno for node in ast.walk(function)
            if isinstance(node, ast.Assign) and isinstance(value, ast.Name)
            and any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)
        ]  # fmt: skip
        line = max(made) if made else returns[-1].lineno
        to = called(value) if value is not None else ""
        name = "forward" if to.endswith(".apply") else to
    return line


def _choice(seen: _Failed) -> int | None:
    """Where kernels compare something that is no index, where they do so in one line: what chance is to decide."""
    draft = draft_of(seen.source.text) if _BY_CHANCE in seen.message else None
    lines = {
        node.lineno for kernel in (draft.kernels if draft is not None else ()) for node in kernel.nodes
        if isinstance(node, ast.Compare) and not _is_mask(node, kernel.indices)
    }  # fmt: skip
    return lines.pop() if len(lines) == 1 else None


def _is_mask(node: ast.Compare, indices: Collection[str]) -> bool:
    """Whether it holds indices, and nothing that is computed by a function, against something."""
    parts = list(ast.walk(node.left))
    is_index = any(isinstance(part, ast.Name) and part.id in indices for part in parts)
    return is_index and not any(isinstance(part, ast.Call) for part in parts)


def _gradients(seen: _Failed) -> int | None:
    """Where a function that autograd asks for gradients returns, if there is one with one `return`."""
    found = [n for function in seen.source.backwards for n in ast.walk(function) if isinstance(n, ast.Return)]
    return found[0].lineno if len(found) == 1 else None


def _of_an_exception(seen: _Failed) -> int | None:
    if re.search(_REFUSED_GRADIENTS, seen.message):
        return _gradients(seen)
    if re.search(_NOT_CONNECTED, seen.message):
        return next((function.lineno for function in _functions(seen, seen.entry)[-1:]), None)
    return None


def _schema(seen: _Failed) -> int | None:
    keywords = (node for node in ast.walk(seen.source.tree) if isinstance(node, ast.keyword))
    said = [keyword.value for keyword in keywords if keyword.arg == "mutates_args"]
    wrong = [value.lineno for value in said if ast.unparse(value) not in ("{}", "()")]
    return wrong[0] if len(wrong) == 1 and "schema" in seen.message else None


_BY_CAUSE: dict[Cause, Callable[[_Failed], int | None]] = {
    Cause.WRONG_DTYPE: _allocation,
    Cause.WRONG_SHAPE: _allocation,
    Cause.UNWRITTEN_OUTPUT: _launch,
    Cause.WRONG_VALUES: lambda seen: _left_out(seen) or _choice(seen),
    Cause.IGNORES_STRIDES: _first_load,
    Cause.INPUT_MODIFIED: _schema,
    Cause.UNCHANGED_INPUT: _returned_input,
    Cause.WRONG_TYPE: _of_an_exception,
    Cause.EXCEPTION: _of_an_exception,
}
