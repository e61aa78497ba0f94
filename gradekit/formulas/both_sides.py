"""A call's results as formulas, twice: as the submission's kernels compute them, and
as torch computes the reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradekit.compat.torch import without_dtensor, without_symbolic_shapes
from gradekit.engine import Budget, ForbiddenOp, OverBudget, Unsupported
from gradekit.engine.addressing import Suspicion
from gradekit.engine.executor import run_on
from gradekit.engine.memory import Memory, Storage

# It enters torch's operations into the table when it is imported.
from gradekit.formulas import torch_rules  # noqa: F401
from gradekit.formulas.graph import Graph, NoFormula
from gradekit.formulas.torch_rules import FormulaTensor, nodes_of
from gradekit.program import ITEMSIZE, Program, View

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


# --- an engine memory whose floating elements are formulas: each element of an input is a variable --------------------


UNWRITTEN = "unwritten"


@dataclass(eq=False)
class FormulaStorage(Storage):
    """A storage of formulas, of the dtype under which it is first used."""

    symbols: Symbols | None = None
    formulas: FormulaTensor | None = None

    def typed(self, dtype: torch.dtype) -> Tensor:
        """All of it as a 1-D tensor: formulas for a dtype of formulas, numbers for another."""
        assert self.symbols is not None
        if not self.symbols.are_formulas(dtype, counted=not self.is_input):
            if self.formulas is not None:
                raise NoFormula("memory that holds numbers of two kinds")
            return super().typed(dtype)
        if self.formulas is None:
            graph = self.symbols.graph
            unwritten = torch.full([self.count(dtype.itemsize)], graph.variable(UNWRITTEN))
            self.formulas = FormulaTensor(unwritten, graph, dtype)
        if self.formulas.dtype is not dtype:
            if {self.formulas.dtype, dtype} != {torch.int8, torch.bool}:  # kernels see a boolean as a byte
                raise NoFormula("memory that holds numbers of two kinds")
            return FormulaTensor(self.formulas.nodes, self.formulas.graph, dtype)
        return self.formulas

    to_fill = typed

    def held(self, value: Tensor) -> Tensor:
        """Numbers beside which elements of this storage are to stand."""
        assert self.symbols is not None
        if not self.symbols.are_formulas(value.dtype, counted=not self.is_input) or isinstance(value, FormulaTensor):
            return value
        return FormulaTensor(nodes_of(value, self.symbols.graph), self.symbols.graph, value.dtype)


@dataclass
class Symbols:
    """The variables of a call: the formulas of its inputs' storages by number, made when they are first asked for.

    With `counting`, integers that kernels store are formulas too, as where conditions on values are counted.
    """

    program: Program
    counting: bool = False
    graph: Graph = field(init=False)
    floating: bool = field(init=False)
    storages: dict[int, FormulaTensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        dtypes = {getattr(torch, view.dtype) for view in self.program.inputs}
        self.floating = any(dtype.is_floating_point for dtype in dtypes)
        widths = {dtype.itemsize for dtype in dtypes}
        if not self.floating and (len(widths) != 1 or torch.bool in dtypes):
            raise NoFormula("integers of several widths")
        self.graph = Graph(0 if self.floating else 1 << 8 * widths.pop())

    def are_formulas(self, dtype: torch.dtype, counted: bool = False) -> bool:
        """Whether elements of a dtype are formulas, in memory that the submission has `counted` in or in an input."""
        return dtype.is_floating_point or (self.counting and counted) if self.floating else dtype is not torch.bool

    def input(self, view: View, count: int) -> FormulaTensor | None:
        """The variables of the storage of an input with `count` elements; None where its elements are numbers."""
        dtype = getattr(torch, view.dtype)
        if not self.are_formulas(dtype):
            return None
        if view.storage not in self.storages:
            nodes = [self.graph.variable((view.storage, element)) for element in range(count)]
            self.storages[view.storage] = FormulaTensor(torch.tensor(nodes, dtype=torch.int64), self.graph, dtype)
        found = self.storages[view.storage]
        if found.dtype is not dtype:
            raise NoFormula("an input of two dtypes")
        return found

    def argument(self, number: int, count: int) -> FormulaTensor | None:
        """Tensor argument `number` of the call, whose storage has `count` elements."""
        view = self.program.inputs[number]
        flat = self.input(view, count)
        return None if flat is None else flat.as_strided(view.shape, view.stride, view.offset)  # type: ignore[return-value]


class SymbolicMemory(Memory):
    """The storages of a run on formulas."""

    def __init__(self, symbols: Symbols, addresses: Mapping[int, int] | None = None) -> None:
        super().__init__(addresses)
        self._symbols = symbols

    def place_input(self, id: int, data: Tensor, name: str, written: Tensor | None, unit: int) -> Storage:
        """An input: variables in place of its numbers, where they are of a dtype of formulas."""
        storage = FormulaStorage(
            id, data, name, self._address(id), True, unit=unit, written=written, symbolic=True, symbols=self._symbols
        )
        view = next(view for view in self._symbols.program.inputs if view.storage == id)
        found = self._symbols.input(view, data.numel() // ITEMSIZE[view.dtype])
        if found is not None:
            storage.formulas = found.clone()  # type: ignore[assignment]  # a kernel may write to it
            storage.owned = True
        self.storages[id] = storage
        return storage

    def allocate(self, id: int, nbytes: int, name: str, line: int | None) -> Storage:
        """A storage whose elements nobody has written."""
        made = super().allocate(id, nbytes, name, line)
        storage = FormulaStorage(
            id, made.data, name, made.address, line=line, fresh=True, symbolic=True, symbols=self._symbols
        )
        self.storages[id] = storage
        return storage
