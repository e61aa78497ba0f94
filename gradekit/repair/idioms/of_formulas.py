"""Mends of formulas: functions, operators, operands, names that are taken for another, and how a result is stored."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradekit.repair.idioms.of_sums import EXP
from gradekit.repair.idioms.of_twins import has_twin
from gradekit.repair.idioms.of_unused import is_index_line
from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, is_call, is_stored, target_of, value_of
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import Edit, called


def other_operator(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """- for +, * for /."""
    for node in kernel.nodes:
        if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATORS:
            continue
        if kernel.names(node) <= {*kernel.indices, *kernel.constexprs, *kernel.strides, *kernel.sizes, *kernel.pids}:
            continue
        for old, new in _OPERATORS[type(node.op)]:
            if isinstance(kernel.parents[node], ast.Subscript) or kernel.names(node) & set(kernel.pointers):
                continue
            if isinstance(node.op, ast.Sub) and is_call(kernel.parents[node], *EXP):
                continue
            if isinstance(node.op, (ast.Mult, ast.Div)) and is_call(node.right, *EXP) and new in "*/":
                continue  # the sign of its exponent, which other rules look for
            late = 10 * has_twin(kernel, kernel.statement(node))
            yield Mend(
                Family.FORMULA, _operator_rank(kernel, node) + late, node.lineno,
                (kernel.source.between_replaced(node.left, node.right, old, new),),
                f"The formula in line {node.lineno} has {old} in `{kernel.source.of(node)}` where {new} belongs.",
                "compare the line with the formula in the handout", None, kernel.name,
            )  # fmt: skip
        if isinstance(node.op, (ast.Sub, ast.Div)):
            left, right = kernel.source.operand(node.left), kernel.source.operand(node.right)
            sign = "-" if isinstance(node.op, ast.Sub) else "/"
            yield Mend(
                Family.FORMULA, _turned_rank(kernel, node), node.lineno,
                (kernel.replaced(node, f"{right} {sign} {left}"),),
                f"`{kernel.source.of(node)}` in line {node.lineno} is the wrong way round: its two sides are swapped.",
                f"swap the two sides of the {sign}", None, kernel.name,
            )  # fmt: skip


def _operator_rank(kernel: KernelDraft, node: ast.BinOp) -> int:
    """Of another operator: lower where a number of each row is added to a tile, which is rare."""
    if isinstance(node.op, (ast.Add, ast.Sub)):
        spread = (
            isinstance(node.right, ast.Subscript) and kernel.source.of(node.right.slice).replace(" ", "") == ":,None"
        )
        return 7 if spread and isinstance(node.op, ast.Add) else 20
    if isinstance(node.op, ast.Div) and isinstance(node.right, ast.Name):
        behind = kernel.values.get(node.right.id, [])
        inverse = any(is_call(value, "tl.rsqrt", "tl.math.rsqrt") or _is_one_over(value) for value in behind)
        return 5 if inverse else 22
    return 22


def _is_one_over(value: ast.expr) -> bool:
    one = value.left if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) else None
    return isinstance(one, ast.Constant) and one.value == 1


def _turned_rank(kernel: KernelDraft, node: ast.BinOp) -> int:
    if _is_upside_down(kernel, node):
        return 4
    return 15 if is_call(kernel.parents[node], *EXP) else 40


def _is_upside_down(kernel: KernelDraft, node: ast.BinOp) -> bool:
    """Whether it is exp(new maximum - old maximum)."""
    new, old = node.left, node.right
    if not (is_call(kernel.parents[node], *EXP) and isinstance(new, ast.Name) and isinstance(old, ast.Name)):
        return False
    grown = any(is_call(value, "tl.maximum") for value in kernel.values.get(new.id, ()))
    return grown and old.id in kernel.origins(new)


_OPERATORS = {
    ast.Add: (("+", "-"),), ast.Sub: (("-", "+"),), ast.Mult: (("*", "/"), ("*", "+")),
    ast.Div: (("/", "*"), ("/", "-")),
}  # fmt: skip


def plain_store(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """Several programs that store to one element what they should add to it, or that load, add and store it."""
    for access in kernel.accesses:
        value, edits = access.value, [kernel.replaced(access.call.func, "tl.atomic_add")]
        if access.name != "tl.store" or value is None:
            continue
        added = _read_back(kernel, access.pointer, value)
        if added:
            edits.append(kernel.replaced(value, added))
        zeroed = _zeroed(draft, kernel, access.pointer)
        for given in ([*edits, *zeroed], edits) if zeroed else (edits,):
            yield Mend(
                Family.MEMORY, 3 if added else 7, access.line, tuple(given),
                f"Line {access.line} stores to elements of {access.pointer} that several programs write: one "
                "overwrites the other.",
                "add to it with tl.atomic_add, onto zeros", None, kernel.name,
            )  # fmt: skip


def _read_back(kernel: KernelDraft, pointer: str, value: ast.expr) -> str:
    """What is added to the value that was loaded through the same pointer; "" where nothing is."""
    loaded = {n for n, vs in kernel.values.items() for v in vs
              if is_call(v, "tl.load") and pointer and pointer in kernel.origins(v)}  # fmt: skip
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        for one, other in ((value.left, value.right), (value.right, value.left)):
            reads = is_call(one, "tl.load") and pointer in kernel.origins(one)
            if reads or (isinstance(one, ast.Name) and one.id in loaded):
                return kernel.source.of(other)
    return ""


def _zeroed(draft: Draft, kernel: KernelDraft, pointer: str) -> list[Edit]:
    names = {draft.source.of(launch.given[pointer]) for launch in draft.launches_of(kernel) if pointer in launch.given}
    made = [n for n in draft.host_nodes if isinstance(n, ast.Assign) and draft.source.of(n.targets[0]) in names]
    return [
        draft.source.replaced(n.value.func, called(n.value).replace("empty", "zeros"))
        for n in made if isinstance(n.value, ast.Call) and called(n.value) in ("torch.empty", "torch.empty_like")
    ]  # fmt: skip


def stored_value(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """What is stored before its last step: a sum that was never divided, or another name than the result's."""
    for access in kernel.accesses:
        value = access.value
        if value is None:
            continue
        for name in _sums(kernel):
            if name not in kernel.names(value):
                wide = kernel.rank_of(value) == 2 and not _is_spread(name)
                others = sum(
                    name in kernel.names(n)
                    for n in kernel.statements
                    if target_of(n) != name and not isinstance(n, ast.For)
                )
                bare = isinstance(value, ast.Name) and _are_summed_together(kernel, value.id, name)
                for one in (f"{name}[:, None]", name) if wide else (name,):
                    yield Mend(
                        Family.FORMULA, 5 if not others or bare else 31, access.line,
                        (kernel.replaced(value, f"{kernel.source.operand(value)} / {one}"),),
                        f"Line {access.line} stores `{kernel.source.of(value)}`, which is not divided by `{name}` yet.",
                        f"divide by {name} at the end", None, kernel.name,
                    )  # fmt: skip


def _are_summed_together(kernel: KernelDraft, one: str, other: str) -> bool:
    """Whether two names are added to in one loop and scaled by the same: a weighted sum and the sum of its weights."""
    for loop in kernel.loops:
        inside = [part for part in ast.walk(loop) if isinstance(part, (ast.Assign, ast.AugAssign))]
        added = {target_of(p): kernel.names(p.value) for p in inside if target_of(p) in (one, other)}
        if len(added) == 2 and {one, other} & set(kernel.values) and added[one] & added[other] - {one, other}:
            return True
    return False


def _is_spread(name: str) -> bool:
    return "None" in name


def _sums(kernel: KernelDraft) -> list[str]:
    return [n for n, vs in kernel.values.items() if any("tl.sum" in {called(p) for p in ast.walk(v)} for v in vs)][:3]


def scale_left_out(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """A product of queries and keys (or its gradient) without the scale."""
    scale = next((p for p in kernel.params if "scale" in p.lower()), "")
    if not scale:
        return
    for statement in kernel.statements:
        value = value_of(statement)
        if value is None or scale in kernel.names(value) or is_index_line(kernel, statement):
            continue
        uses_product = (
            any(is_call(n, "tl.dot") for n in ast.walk(value)) or isinstance(value, ast.BinOp) or is_stored(statement)
        )
        if uses_product:
            dots = [n for n in ast.walk(value) if is_call(n, "tl.dot")]
            inside_exp = bool(dots) and any(is_call(n, *EXP) for n in ast.walk(value))
            node = dots[0] if inside_exp and isinstance(dots[0], ast.Call) else value
            yield Mend(
                Family.FORMULA, _scale_rank(kernel, statement, scale), node.lineno,
                (kernel.replaced(node, f"{kernel.source.operand(node)} * {scale}"),),
                f"The scale is missing in line {node.lineno}: {scale} takes no part in "
                f"`{kernel.source.of(node)[:60]}`.",
                f"multiply by {scale}", None, kernel.name,
            )  # fmt: skip
    for product in kernel.nodes:
        right = product.right if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult) else None
        if isinstance(product, ast.BinOp) and isinstance(right, ast.Name) and right.id == scale:
            line = product.lineno
            yield Mend(
                Family.FORMULA, _rank_of_a_scale_more(kernel, scale), line,
                (kernel.replaced(product, kernel.source.operand(product.left)),),
                f"Line {line} multiplies by {scale} once more than the formula does: the scale is applied twice.",
                f"multiply by {scale} once", None, kernel.name,
            )  # fmt: skip


def _rank_of_a_scale_more(kernel: KernelDraft, scale: str) -> int:
    """A forward pass, of two products or none, scales once."""
    if kernel.uses[scale] == 1:
        return 36
    return 12 if len(list(calls(kernel.nodes, "tl.dot"))) > 2 else 5


def _scale_rank(kernel: KernelDraft, statement: ast.stmt, scale: str) -> int:
    """By how often the kernel uses the scale: a forward pass once, a backward pass twice."""
    uses, products = kernel.uses.get(scale, 0), len(list(calls(kernel.nodes, "tl.dot")))
    gradient = target_of(statement).startswith("d") or is_stored(statement)
    if uses == 0:
        return 6 if not gradient else 8
    return (7 if gradient else 9) if uses == 1 and products > 2 else 33


def stored_for_another(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """What is stored through `rstd_ptr` is not `rstd`, though there is one; a factor that was
    loaded and left out at the end."""
    for access in kernel.accesses:
        value = access.value
        name = re.sub(r"_?(ptr|pointer)s?$", "", access.pointer)
        if isinstance(value, ast.Name) and name in kernel.values and name != value.id:
            yield Mend(
                Family.FORMULA, 4, access.line, (kernel.replaced(value, name),),
                f"Line {access.line} stores `{value.id}` through {access.pointer}, where `{name}` belongs.",
                f"store {name} there", None, kernel.name,
            )  # fmt: skip
        yield from _statistic_left_out(kernel, access.line, value)
        loaded = [n for n, vs in kernel.values.items() if any(is_call(v, "tl.load") for v in vs)]
        for factor in loaded if isinstance(value, ast.BinOp) else ():
            if value is not None and factor not in kernel.names(value) and not kernel.multiplies:
                yield Mend(
                    Family.FORMULA, 23, access.line,
                    (kernel.replaced(value, f"({kernel.source.of(value)}) * {factor}"),),
                    f"`{factor}` is missing as a factor of what line {access.line} stores.",
                    f"`{factor}` belongs into this line: see the formula in the handout", None, kernel.name,
                )  # fmt: skip


def _statistic_left_out(kernel: KernelDraft, line: int, value: ast.expr | None) -> Iterator[Mend]:
    """A tile that is stored without the mean (or another sum of it) being taken away, though there is one."""
    for name in _sums(kernel) if isinstance(value, ast.BinOp) and value is not None else ():
        made_of = {n for v in kernel.values[name] for n in kernel.names(v)}
        for leaf in ast.walk(value):  # type: ignore[arg-type]
            if isinstance(leaf, ast.Name) and leaf.id in made_of and name not in kernel.names(value):  # type: ignore[arg-type]
                yield Mend(
                    Family.FORMULA, 9, line, (kernel.replaced(leaf, f"({leaf.id} - {name})"),),
                    f"`{name}` is missing from line {line}: it is not taken away from `{leaf.id}`.",
                    f"subtract {name} there: see the formula in the handout", None, kernel.name,
                )  # fmt: skip


def logarithm_left_out(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """The logarithm of the sum of the weights, without the maximum, or without the logarithm."""
    tops = [
        n for n, vs in kernel.values.items() if any(isinstance(v, ast.Name) or is_call(v, "tl.maximum") for v in vs)
    ]
    for access in kernel.accesses:
        value = access.value
        if value is None or kernel.multiplies is False or kernel.rank_of(access.address) == 2:
            continue
        text = kernel.source.operand(value)
        for top in tops if "tl.log" in kernel.calls_behind(value) else ():
            if top not in kernel.names(value):
                yield _completed(kernel, access.line, kernel.replaced(value, f"{top} + {text}"), top)
        for name in sorted(kernel.names(value) & set(_sums(kernel))):
            named = next(n for n in ast.walk(value) if isinstance(n, ast.Name) and n.id == name)
            if not is_call(kernel.parents[named], "tl.log", "tl.log2"):
                edit, beside = kernel.replaced(named, f"tl.log({name})"), kernel.names(value) & set(tops)
                rank = 1 if beside else 6  # a maximum plus a sum is nothing
                yield _completed(kernel, access.line, edit, "tl.log", rank)


def _completed(kernel: KernelDraft, line: int, edit: Edit, what: str, rank: int = 6) -> Mend:
    return Mend(
        Family.FORMULA, rank, line, (edit,),
        f"What line {line} stores for the backward pass lacks {what}: it needs the maximum plus the logarithm of the "
        "sum.",
        "store maximum + log(sum) of each row", None, kernel.name,
    )  # fmt: skip


RULES = (logarithm_left_out, stored_for_another, other_operator, plain_store, stored_value, scale_left_out)
