"""How much of Triton's front end one submission may use: the nodes of syntax that it visits, which are the same on a
busy machine as on an idle one. About 50 microseconds each; a usual kernel has 300 to 900, with all that it unrolls.

A submission can change what is counted in its own process; then the seconds that the process may use limit it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gradekit.tracer.errors import BeyondBudget

MOST = 1_500_000
"""Nodes that lowering may visit for all calls of a submission: some two thousand kernels."""


class LoweringBudget:
    """Counts the `nodes` that are visited, and the `kernels` that are lowered, since the submission was loaded. Each
    visit is told to `visited`, with its node and result."""

    def __init__(self) -> None:
        self.nodes = self.kernels = 0
        self.visited: Callable[[Any, ast.AST, Any], None] = lambda visitor, node, result: None

    def renew(self) -> None:
        """Another text is loaded, which has a budget of its own."""
        self.nodes = self.kernels = 0

    def install(self) -> None:
        """Counts from now on, in place of NodeVisitor.visit: a wrapper around it would add a stack frame for each level
        of nesting, and deep expressions would no longer compile."""

        def visit(visitor: ast.NodeVisitor, node: ast.AST) -> Any:
            self.nodes += 1
            result = getattr(visitor, "visit_" + node.__class__.__name__, visitor.generic_visit)(node)
            self.visited(visitor, node, result)
            return result

        ast.NodeVisitor.visit = visit  # type: ignore[assignment,method-assign]

    def spend(self) -> None:
        """Another kernel is to be lowered.

        Raises:
            BeyondBudget: those before have used up the budget.
        """
        if self.nodes > MOST:
            raise BeyondBudget(
                f"Compiling {self.kernels:,} kernels has used up what grading allows. A kernel is compiled anew for "
                "each configuration and dtype: use fewer configurations, or unroll less."
            )
        self.kernels += 1
