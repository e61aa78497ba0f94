"""Mends of guards: what must not count, be negative or be divided by; and numbers that are passed and never loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gradekit.repair.idioms.of_unused import is_index_line
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, is_call, is_condition, target_of, value_of
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import called


def _all_at_once(mends: Sequence[Mend]) -> Iterator[Mend]:
    """Each of several like mends, and before them all together: a thought that was missed was missed everywhere."""
    if len(mends) > 1:
        yield replace(mends[0], edits=tuple(edit for mend in mends for edit in mend.edits), rank=mends[0].rank - 1)
    yield from mends


def ruled_out(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A condition on what was loaded (is this box padding?) that something stored or summed up does not heed."""
    for name in _conditions_of_values(kernel):
        yield from _all_at_once([_heeding(kernel, name, node) for node in _unheeding(kernel, name)])
        for node in _masks_in_its_place(kernel, name):
            line, now = node.lineno, kernel.source.of(node)
            yield Mend(
                Family.FORMULA, 6, line, (kernel.replaced(node, name),),
                f"Line {line} goes by `{now}`, which says which lanes exist, and not by `{name}`: padding counts too.",
                f"what counts is what `{name}` says", None, kernel.name,
            )  # fmt: skip


def _conditions_of_values(kernel: KernelDraft) -> list[str]:
    """Names of conditions that compare what was loaded with a constant."""
    found = []
    for name, values in kernel.values.items():
        value = values[0]
        if len(values) == 1 and isinstance(value, ast.Compare) and "tl.load" in kernel.calls_behind(value.left):
            constant = all(isinstance(side, ast.Constant) for side in value.comparators)
            found += [name] * (constant and kernel.rank_of(value) == 1)
    return found


def _unheeding(kernel: KernelDraft, name: str) -> list[ast.expr]:
    """What is stored, or summed up to be stored, without the condition."""
    stored = [a.value for a in kernel.accesses if a.value is not None]
    sums = [call.args[0] for value in stored for call in calls(list(ast.walk(value)), "tl.sum") if call.args]
    found = sums or stored
    return [node for node in found if name not in kernel.origins(node) and not is_call(node, "tl.where")]


def other_load_in_condition(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A condition on one number of a row that goes by another number of it: a box's top for its bottom."""
    loaded: dict[str, list[str]] = {}
    for access in kernel.accesses:
        name = target_of(kernel.statement(access.call)) if access.is_load else ""
        if name and access.pointer:
            loaded.setdefault(access.pointer, []).append(name)
    for name in _conditions_of_values(kernel):
        compared = kernel.values[name][0]
        node = compared.left if isinstance(compared, ast.Compare) else compared
        for other in (n for names in loaded.values() if isinstance(node, ast.Name) and node.id in names for n in names):
            if isinstance(node, ast.Name) and other != node.id:
                yield Mend(
                    Family.FORMULA, 7, node.lineno, (kernel.replaced(node, other),),
                    f"`{name}` goes by `{node.id}` in line {node.lineno}: what tells padding is `{other}`.",
                    f"compare {other}: see in the handout what tells padding", None, kernel.name,
                )  # fmt: skip


def _heeding(kernel: KernelDraft, name: str, node: ast.expr) -> Mend:
    line = node.lineno
    return Mend(
        Family.FORMULA, 6, line, (kernel.replaced(node, f"tl.where({name}, {kernel.source.of(node)}, 0.0)"),),
        f"Line {line} does not heed `{name}`: padding takes part in `{kernel.source.of(node)}`.",
        f"take 0 where `{name}` is not true, with tl.where", None, kernel.name,
    )  # fmt: skip


def _masks_in_its_place(kernel: KernelDraft, name: str) -> Iterator[ast.expr]:
    """Masks of lanes in tl.where or in a sum, where the condition could stand."""
    for node in kernel.nodes:
        if isinstance(node, ast.Name) and node.id != name and any(map(is_condition, kernel.values.get(node.id, ()))):
            parent = kernel.parents[node]
            in_where = is_call(parent, "tl.where") and isinstance(parent, ast.Call) and parent.args[0] is node
            if in_where or isinstance(parent, ast.Attribute) or is_call(parent, "tl.sum"):
                yield node


def not_clamped(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """The length of an overlap, min - max, that may be negative."""
    found = []
    for node in kernel.nodes:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
            continue
        is_overlap = is_call(node.left, "tl.minimum") and is_call(node.right, "tl.maximum")
        if is_overlap and not is_call(kernel.parents[node], "tl.maximum"):
            found.append(_clamped(kernel, node))
    yield from _all_at_once(found)


def _clamped(kernel: KernelDraft, node: ast.BinOp) -> Mend:
    line = node.lineno
    return Mend(
        Family.FORMULA, 5, line, (kernel.replaced(node, f"tl.maximum({kernel.source.of(node)}, 0.0)"),),
        f"The length in line {line} is negative where the two do not meet: nothing clamps it at 0.",
        "take the maximum of the length and 0", None, kernel.name,
    )  # fmt: skip


def divided_by_nothing(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Divisors that the handout holds away from 0, and the kernel does not."""
    least = [number for number in draft.numbers if "e-" in number][:1]
    found = [
        Mend(
            Family.FORMULA, 10, node.lineno,
            (kernel.replaced(node.right, f"tl.maximum({kernel.source.of(node.right)}, {number})"),),
            f"Line {node.lineno} divides by `{kernel.source.of(node.right)}`, which may be 0: then the result is NaN "
            "or infinite.",
            f"divide by at least {number}, as the handout does", None, kernel.name,
        )
        for number in least
        for node in kernel.nodes
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Name)
        and "tl.maximum" not in {called(value) for value in kernel.values.get(node.right.id, ())}
    ]  # fmt: skip
    yield from _all_at_once(found)


def pointer_not_loaded(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A pointer to one number that the kernel takes and never loads: a factor or a divisor is missing."""
    idle = [p for p in kernel.params if "ptr" in p.lower() and kernel.uses.get(p, 0) == 0]
    for pointer in idle:
        for statement in kernel.statements:
            value = value_of(statement)
            if value is None or is_index_line(kernel, statement) or not target_of(statement):
                continue
            for node, new in _with_loaded(kernel, value, pointer):
                yield Mend(
                    Family.FORMULA, 5, statement.lineno, (kernel.replaced(node, new),),
                    f"The kernel takes {pointer} and never loads it: it is missing as a factor or a divisor in line "
                    f"{statement.lineno}.",
                    f"load {pointer}, and see in the formula where its value belongs", None, kernel.name,
                )  # fmt: skip


def _with_loaded(kernel: KernelDraft, value: ast.expr, pointer: str) -> Iterator[tuple[ast.expr, str]]:
    loads = [c for c in calls(list(ast.walk(value)), "tl.load") if len(c.args) == 1 and isinstance(c.args[0], ast.Name)]
    number = f"tl.load({pointer})"
    if loads:
        text = kernel.source.operand(value)
        yield value, f"{text} / tl.maximum({number}.to(tl.float32), 1.0)"
        yield value, f"{text} * {number}"
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) and isinstance(value.left, ast.Constant):
            yield value.left, number


def taken_unloaded(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A place taken for the number that stands there, or a constant for it: `k = e` for what `col_ptr` holds at e."""
    idle = [p for p in kernel.params if "ptr" in p.lower() and kernel.uses.get(p, 0) == 0]
    unused = [s for s in kernel.strides if kernel.uses.get(s, 0) == 0]
    for pointer, stride in ((p, s) for p in idle for s in unused or ["1"]):
        for statement in kernel.statements:
            value, name = value_of(statement), target_of(statement)
            if value is None or not name or any(isinstance(part, ast.Call) for part in ast.walk(value)):
                continue
            for new in _loaded_by(kernel, value, pointer, stride):
                yield Mend(
                    Family.INDEX, 4, statement.lineno, (kernel.replaced(value, new),),
                    f"Line {statement.lineno} takes `{kernel.source.of(value)}` for `{name}`, and nothing loads what "
                    f"{pointer} holds.",
                    f"load {name} through {pointer}", None, kernel.name,
                )  # fmt: skip


def _loaded_by(kernel: KernelDraft, value: ast.expr, pointer: str, stride: str) -> Iterator[str]:
    """Loads that a number could come from: at the index in it, with the mask of another load there; by program."""
    if isinstance(value, ast.Constant):
        yield from (f"tl.load({pointer} + {pid} * {stride})" for pid in kernel.pids[:3])
    for index in sorted(kernel.names(value) & set(kernel.indices)):
        near = [a for a in kernel.accesses if a.is_load and a.mask is not None and index in kernel.names(a.address)]
        mask = next((f", mask={kernel.source.of(a.mask)}, other=0" for a in near if a.mask is not None), "")
        yield f"tl.load({pointer} + {index} * {stride}{mask})"


def other_count(draft: Draft) -> Iterator[Mend]:
    """A host's mean that divides by how many there are, and not by those that count; one that may divide by 0."""
    counts = [t for n in draft.host_nodes if (t := target_of(n)) and _counts(draft, n)]
    shaped = [n for n in draft.host_nodes if isinstance(n, ast.Assign) and "shape" in draft.source.of(n.value)]
    sizes = {part.id for n in shaped for part in ast.walk(n.targets[0]) if isinstance(part, ast.Name)}
    for node in draft.host_nodes:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            continue
        text, names = draft.source.of(node.right), {n.id for n in ast.walk(node.right) if isinstance(n, ast.Name)}
        if isinstance(node.right, ast.Name) and text in counts:
            yield Mend(
                Family.FORMULA, 6, node.lineno, (draft.source.replaced(node.right, f"{text}.clamp(1)"),),
                f"Line {node.lineno} divides by `{text}`, which is 0 where nothing counts: 0 / 0 is NaN.",
                f"divide by at least 1: {text}.clamp(1)",
            )  # fmt: skip
        for count in counts if names and (names <= sizes or "numel" in text or "shape" in text) else ():
            yield Mend(
                Family.FORMULA, 6, node.lineno, (draft.source.replaced(node.right, f"{count}.clamp(1)"),),
                f"Line {node.lineno} divides by `{text}`, the number of all, and not by `{count}`, the number of those "
                "that count: padding takes part in the mean.",
                f"divide by {count}, but by at least 1",
            )  # fmt: skip


def _counts(draft: Draft, node: ast.AST) -> bool:
    """Whether a statement makes a tensor of one number: a sum, or memory that kernels add to."""
    value = value_of(node)
    if not isinstance(value, ast.Call):
        return False
    summed = isinstance(value.func, ast.Attribute) and value.func.attr == "sum"
    made = called(value) in ("torch.zeros", "torch.empty") and bool(value.args)
    return summed or (made and draft.source.of(value.args[0]) == "()")


RULES = (ruled_out, other_load_in_condition, not_clamped, divided_by_nothing, pointer_not_loaded, taken_unloaded)
HOST_RULES = (other_count,)
