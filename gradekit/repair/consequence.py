"""What follows from a mistake at one place of a kernel, in a sentence: the reason that goes with a repair."""

import ast
from collections.abc import Sequence

from gradekit.source.draft import draft_of
from gradekit.source.kernel import KernelDraft, PointerAccess, target_of
from gradekit.submission.parsed_source import ParsedSource


def consequence(kernel_name: str, node: ast.AST, source: ParsedSource) -> str:
    """Which accesses go to the wrong elements, or have a wrong mask, or which loop takes the wrong steps, because of an
    expression or statement in a kernel; "" where it goes into values alone."""
    draft = draft_of(source.text)
    kernel = next((one for one in draft.kernels if one.name == kernel_name), None) if draft is not None else None
    if kernel is None or not isinstance(node, (ast.expr, ast.stmt)):
        return ""
    start, end = source.span(node)
    statement = next((one for one in reversed(kernel.statements) if _holds(source, one, start, end)), None)
    if statement is None:
        return ""
    for access in kernel.accesses:
        for part, said in ((access.address, _astray), (access.mask, _masked)):
            if part is not None and _holds(source, part, start, end):
                return said([access], here=access.line == node.lineno)
        if _holds(source, access.call, start, end):  # what it stores, or has in place of what its mask leaves out
            return ""
    if isinstance(statement, (ast.For, ast.While)):
        return " So the loop takes the wrong steps."
    return _by_name(kernel, target_of(statement))


def _by_name(kernel: KernelDraft, name: str) -> str:
    """What follows where a statement gives a name the wrong value."""
    for part, said in (("address", _astray), ("mask", _masked)):
        reached = [access for access in kernel.accesses if _comes_from(kernel, getattr(access, part), name)]
        if name and reached:
            return said(reached)
    heads = ((loop, loop.iter if isinstance(loop, ast.For) else loop.test) for loop in kernel.loops)
    loop = next((loop for loop, head in heads if name and _comes_from(kernel, head, name)), None)
    return f" So the loop in line {loop.lineno} takes the wrong steps." if loop is not None else ""


def _comes_from(kernel: KernelDraft, part: ast.expr | None, name: str) -> bool:
    return part is not None and name in kernel.origins(part)


def _holds(source: ParsedSource, around: ast.AST, start: int, end: int) -> bool:
    first, last = source.span(around)
    return first <= start and end <= last


def _astray(found: Sequence[PointerAccess], here: bool = False) -> str:
    first = found[0]
    if len({access.line for access in found}) > 1:
        return f" So {_lines(found)} go to other elements than they should."
    verb, tensor = "loads" if first.is_load else "stores to", first.pointer or "its tensor"
    return f" So {'it' if here else f'line {first.line}'} {verb} other elements of {tensor} than it should."


def _masked(found: Sequence[PointerAccess], here: bool = False) -> str:
    if len({access.line for access in found}) > 1:
        return f" So the masks in {_lines(found)} are true for other lanes than they should be."
    mask = "its mask" if here else f"the mask in line {found[0].line}"
    return f" So {mask} is true for other lanes than it should be."


def _lines(found: Sequence[PointerAccess]) -> str:
    *most, last = map(str, sorted({access.line for access in found}))
    return f"lines {', '.join(most)} and {last}"
