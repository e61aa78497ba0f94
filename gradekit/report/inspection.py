"""What the inspector found, as text for a terminal: pure functions of its record."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from gradekit.report.terminal import PLAIN, Look, filled, labelled
from gradekit.report.text import clean, columns, counted, described, located, one_line, shortened
from gradekit.report.translation import say
from gradekit.submission import line_of

_INDENT = 2
_LABEL = 12


def render(record: Mapping[str, Any], look: Look = PLAIN) -> str:
    """The whole record, ending in a newline."""
    return look.text([_heading(record, look), *(_kernel(kernel, record, look) for kernel in record["kernels"])])


def _heading(record: Mapping[str, Any], look: Look) -> list[str]:
    title = look.paint(one_line(record["submission"]["path"]), bold=True)
    call = f"{one_line(record['entry'])}({', '.join(_argument(arg) for arg in record['inputs'])})"
    target = f"compiled for {record['target']} ({record['card']}), without a card"
    return [title, *filled(f"{call}, {say(target)}", look, 0)]


def _argument(arg: Any) -> str:
    return described({**arg, "name": "", "seed": 0}).removeprefix(": ") if isinstance(arg, Mapping) else str(arg)


# --- one kernel -------------------------------------------------------------------------------------------------------


def _kernel(kernel: Mapping[str, Any], record: Mapping[str, Any], look: Look) -> list[str]:
    lines = [_title(kernel, look), *_figures(kernel, record, look), *_table(kernel, record, look)]
    for sentence in kernel["sentences"]:
        lines += _sentence(sentence["text"], record, look)
    return lines


def _title(kernel: Mapping[str, Any], look: Look) -> str:
    label = f"  {one_line(kernel['label'])}" if kernel["label"] else ""
    return look.paint(one_line(kernel["kernel"]), bold=True) + look.paint(label, dim=True)


def _figures(kernel: Mapping[str, Any], record: Mapping[str, Any], look: Look) -> Iterator[str]:
    if kernel["registers"] is None:
        return
    local = f", {kernel['stack']} bytes spilled" if kernel["stack"] else ", nothing spilled"
    yield _figure("a thread", f"{counted(kernel['registers'], 'register')}{local}", look)
    shared = f"{kernel['shared']} bytes of shared memory"
    yield _figure("a block", f"{counted(kernel['warps'], 'warp')}, {shared}", look)
    yield _figure({"SM": "an SM"}.get(record["unit"], f"a {record['unit']}"), _occupancy(kernel["occupancy"]), look)


def _figure(label: str, text: str, look: Look) -> str:
    return labelled(label, say(text), look, _INDENT, _LABEL)


def _occupancy(occupancy: Mapping[str, Any] | None) -> str:
    if not occupancy or not occupancy["blocks"]:
        return "holds no block of it"
    share, limit = f"{occupancy['warps']} of {occupancy['most']} warps", occupancy["limit"]
    missing = f"{limit} for more {'are' if limit == 'registers' else 'is'} missing"
    why = {"blocks": "it takes no more blocks", "warps": "it is full"}.get(limit, missing)
    return f"holds {counted(occupancy['blocks'], 'block')} at once, {share}: {why}"


def _table(kernel: Mapping[str, Any], record: Mapping[str, Any], look: Look) -> Iterator[str]:
    found = [(use["dot"]["line"], _dot(use, record["matrix_units"])) for use in kernel["dots"]]
    found += [(use["access"]["line"], _access(use)) for use in kernel["accesses"]]
    for line, operations in groupby(sorted(found, key=lambda row: row[0] or 0), key=lambda row: row[0]):
        yield _source(line, record, look)
        for _, text in operations:
            yield " " * (_INDENT + _LABEL) + look.paint(shortened(text, look.width - _INDENT - _LABEL), "cyan")


def _source(line: int | None, record: Mapping[str, Any], look: Look) -> str:
    where = say(line_of(record["submission"], line)) if line is not None else "a line"
    text = one_line(record["lines"].get(str(line), ""))
    room = max(20, look.width - _INDENT - max(_LABEL, columns(where) + 1) - 2)
    return f"{' ' * _INDENT}{look.paint(f'{where:<{_LABEL - 1}} {look.bar}', dim=True)} {shortened(text, room)}"


def _dot(use: Mapping[str, Any], units: str) -> str:
    dot = use["dot"]
    kind = dot["left"] if dot["left"] == dot["right"] else f"{dot['left']} by {dot['right']}"
    precision = f" ({dot['precision']})" if dot["left"] == "float32" else ""
    shape = f"[{dot['m']}, {dot['k']}] @ [{dot['k']}, {dot['n']}] {kind}{precision}"
    how = {True: units, False: f"no {units}", None: f"{units}: unclear"}[use["uses"]]
    return f"dot    {say(how)}{_opcodes(use['instructions'])}; {shape}"


def _access(use: Mapping[str, Any]) -> str:
    access = use["access"]
    width = (
        "whole tiles" if use["width"] == 0 else f"{use['width']} bytes at a time" if use["width"] else "several widths"
    )
    copy = ", asynchronous" if use["is_asynchronous"] else ""
    return f"{access['kind']:<6} {say(width + copy)}{_opcodes(use['instructions'])}; {access['dtype']}"


def _opcodes(instructions: Mapping[str, int]) -> str:
    return "".join(f", {count} x {one_line(opcode)}" for opcode, count in instructions.items())


def _sentence(text: str, record: Mapping[str, Any], look: Look) -> Iterable[str]:
    lines = filled(located(text, record["submission"]), look, _INDENT + 2)
    return [f"{' ' * _INDENT}{look.paint('!', 'yellow', bold=True)} {lines[0].strip()}", *lines[1:]]


# --- a stage ----------------------------------------------------------------------------------------------------------


def render_stage(
    stages: Sequence[Mapping[str, Any]], source: Sequence[str], submission: Mapping[str, Any], look: Look = PLAIN
) -> str:
    """The rows of a stage of each kernel, as `stages` have them ([line or None, text]), below lines of `source`."""
    record = {"submission": submission, "lines": {str(n): text for n, text in enumerate(source, start=1)}}
    return look.text([_title(stage, look), *_stage(stage["rows"], record, look)] for stage in stages)


def _stage(rows: Sequence[Any], record: Mapping[str, Any], look: Look) -> Iterator[str]:
    for line, group in groupby(rows, key=lambda row: row[0]):
        if line is not None:
            yield look.paint(_source(line, record, Look(look.width, False, look.unicode)), "green")
        yield from (f"    {clean(text)}" for _, text in group)
