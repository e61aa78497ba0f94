"""Mends of an activation that is written in another of its forms: an approximation in place of the exact one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, factors
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import called

_FORMS = {
    "erf": "0.5 * {h} * (1 + tl.erf({h} * 0.7071067811865476))",
    "tanh": "{h} * tl.sigmoid(1.5957691216 * ({h} + 0.044715 * {h} * {h} * {h}))",
}
"""Two of gelu, each with what it is called: the exact one, and the approximation by a tanh, which is a sigmoid."""

_CURVES = ("tl.sigmoid", "tl.erf", "tl.math.erf", "libdevice.erf", "libdevice.tanh", "tl.math.tanh")


def other_gelu(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """One form of gelu where the formula has another: they differ in the third or fourth digit."""
    for call in calls(kernel.nodes, *_CURVES):
        product = _product_around(kernel, call)
        name = _applied_to(kernel, call, product)
        if product is None or not name:
            continue
        for form, new in _FORMS.items():
            if form == _form(kernel, call):
                continue  # a mistake in this form, which other rules look for
            yield Mend(
                Family.FORMULA, 19, product.lineno, (kernel.replaced(product, f"({new.format(h=name)})"),),
                f"Line {product.lineno} computes another form of gelu than the formula, which has {form}: they differ "
                "in the third or fourth digit.",
                f"take the formula of the handout, with {form}, and no approximation of it", None, kernel.name,
            )  # fmt: skip


def _form(kernel: KernelDraft, call: ast.Call) -> str:
    """Which form a curve belongs to; "" for the sigmoid of a multiple, which is neither."""
    if "erf" in called(call):
        return "erf"
    return "tanh" if "0.0447" in kernel.source.of(kernel.node) else ""


def _product_around(kernel: KernelDraft, call: ast.Call) -> ast.BinOp | None:
    """The whole product in which a curve (or 1 + the curve) is a factor."""
    node: ast.AST = call
    found = None
    while isinstance(kernel.parents[node], ast.BinOp):
        node = kernel.parents[node]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            found = node
        elif found is not None or not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
            break
    return found


def _applied_to(kernel: KernelDraft, call: ast.Call, product: ast.BinOp | None) -> str:
    """The one name that a product has as a factor and its curve is a function of; "" where there is none."""
    if product is None or not call.args:
        return ""
    names = [part.id for part in factors(product) if isinstance(part, ast.Name)]
    return next((name for name in names if name in kernel.origins(call.args[0])), "")


RULES = (other_gelu,)
