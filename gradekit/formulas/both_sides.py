"""A call's results as formulas, twice: as the submission's kernels compute them, and
as torch computes the reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradekit.compat.torch import without_dtensor, without_symbolic_shapes
from gradekit.engine import Budget, ForbiddenOp, OverBudget, Unsupported
from gradekit.engine.addressing import Suspicion
from gradekit.engine.executor import run_on

# These enter torch's operations into the table when they are imported.
from gradekit.formulas import torch_reductions, torch_rules  # noqa: F401
from gradekit.formulas.arrays import FormulaTensor, nodes_of
from gradekit.formulas.graph import Graph, NoFormula
from gradekit.formulas.symbolic_memory import SymbolicMemory, Symbols
from gradekit.program import ITEMSIZE, Program

MOST_WORK = 50_000_000
"""What a call may cost the engine (its unit of work) for its formulas to be made."""


@dataclass(frozen=True)
class ResultFormulas:
    """One result of a call: the nodes of its elements (1-D), as the submission and as the reference has them."""

    graph: Graph
    found: list[int]
    expected: list[int]


@dataclass(frozen=True)
class FormulaCall:
    """A call whose formulas are wanted: its program, its tensors in order, and what the assignment allows."""

    program: Program
    tensors: Sequence[Tensor]
    allow: Collection[str] = ()

    def found(self, symbols: Symbols) -> list[Any]:
        """The results of the kernels: tensors of formulas.

        Raises:
            NoFormula: something has no formula.
        """
        try:
            ran = run_on(
                lambda addresses: SymbolicMemory(symbols, addresses),
                self.program,
                self.tensors,
                self.allow,
                Budget(work=MOST_WORK),
            )
        except (Unsupported, OverBudget, ForbiddenOp, Suspicion) as error:
            raise NoFormula(str(error)) from None
        except (RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError, RecursionError) as error:
            raise NoFormula(
                f"the engine cannot take formulas here ({type(error).__name__}: {str(error)[:80]})"
            ) from error
        if ran.findings:
            raise NoFormula("memory goes wrong in this call")
        return ran.results

    def argument(self, symbols: Symbols, number: int) -> Tensor | None:
        """Tensor argument `number` as variables; None where it holds numbers."""
        count = self.tensors[number].untyped_storage().nbytes() // ITEMSIZE[self.program.inputs[number].dtype]
        return symbols.argument(number, count)


def result_formulas(
    call: FormulaCall, function: Callable[..., Any], args: Sequence[Any], slots: Sequence[int | None]
) -> list[ResultFormulas]:
    """Both sides of each result of `call`; the reference is function(*args), of which those with a slot are the tensor
    arguments of the call at these positions.

    Raises:
        NoFormula: one of the sides has none.
    """
    with without_dtensor(), without_symbolic_shapes():
        try:
            return _pairs(Symbols(call.program), call, function, args, slots)
        except NoFormula:
            return _pairs(Symbols(call.program, counting=True), call, function, args, slots)


def _pairs(
    symbols: Symbols, call: FormulaCall, function: Callable[..., Any], args: Sequence[Any], slots: Sequence[int | None]
) -> list[ResultFormulas]:
    expected = _expected(symbols, call, function, args, slots)
    found = call.found(symbols)
    if len(found) != len(expected):
        raise NoFormula("another number of results")
    return [_pair(symbols.graph, one, other) for one, other in zip(found, expected, strict=True)]


def _pair(graph: Graph, one: Any, other: Any) -> ResultFormulas:
    if not isinstance(one, Tensor) or one.shape != other.shape:
        raise NoFormula("results of another form")
    return ResultFormulas(graph, *(nodes_of(side, graph).reshape(-1).tolist() for side in (one, other)))


def _expected(
    symbols: Symbols, call: FormulaCall, function: Callable[..., Any], args: Sequence[Any], slots: Sequence[int | None]
) -> list[Tensor]:
    own = [arg if slot is None else call.argument(symbols, slot) for arg, slot in zip(args, slots, strict=True)]
    symbolic = [arg if arg is not None else given for arg, given in zip(own, args, strict=True)]
    wide = [_wide(arg) for arg in symbolic]
    try:
        results = function(*wide)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError, RecursionError) as error:
        raise NoFormula(f"torch cannot take formulas here ({type(error).__name__}: {str(error)[:80]})") from None
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _wide(arg: Any) -> Any:
    """As a reference takes it: float64, over the reals the same."""
    if isinstance(arg, FormulaTensor):
        wide = torch.float64 if arg.dtype.is_floating_point else arg.dtype
        return FormulaTensor(arg.nodes, arg.graph, wide)
    return arg.double() if isinstance(arg, Tensor) and arg.is_floating_point() else arg
