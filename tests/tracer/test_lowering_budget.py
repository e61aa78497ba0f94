"""What Triton's front end may do for one submission, counted in nodes of syntax."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import pytest

from gradekit.tracer.errors import BeyondBudget, refusal
from gradekit.tracer.kernels import MOST, Compiler, LoweringBudget


class Names(ast.NodeVisitor):
    """Gathers names."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Name(self, node: ast.Name) -> None:
        self.found.append(node.id)


def test_every_node_counts_and_is_visited_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor finds what it found, and each of its visits counts"""
    monkeypatch.setattr(ast.NodeVisitor, "visit", ast.NodeVisitor.visit)
    budget, names = LoweringBudget(), Names()
    budget.install()
    names.visit(ast.parse("a + b * c"))
    assert names.found == ["a", "b", "c"]
    # Module, Expr, BinOp, a, Add, BinOp, b, Mult, c
    assert budget.nodes == 9


def test_a_used_up_budget_refuses_the_next_kernel_by_name() -> None:
    """The refusal says how many kernels there were; another text begins anew"""
    budget = LoweringBudget()
    budget.spend()
    budget.nodes = MOST + 1
    with pytest.raises(BeyondBudget) as caught:
        budget.spend()
    told = refusal(caught.value, "submission.py")
    assert told.cause == "budget-exceeded" and "Compiling 1 kernels" in told.message
    budget.renew()
    budget.spend()


def test_the_compiler_keeps_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowering asks it first"""
    source: Any = SimpleNamespace(fn=SimpleNamespace(src=""), signature={}, constants={})
    compiler = Compiler(SimpleNamespace())  # type: ignore[arg-type]
    lowered = ("text", [], None)
    monkeypatch.setattr("gradekit.tracer.kernels._lower", lambda source, options: lowered)
    assert compiler._lower(source, {}) == lowered
    compiler.budget.nodes = MOST + 1
    with pytest.raises(BeyondBudget):
        compiler._lower(source, {})
