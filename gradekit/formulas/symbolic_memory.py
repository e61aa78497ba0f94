"""An engine memory whose floating elements are formulas: each element of an input is a variable.

Where a call has no floating inputs, its integers are the variables, and arithmetic wraps as theirs does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradekit.engine.memory import Memory, Storage
from gradekit.formulas.arrays import FormulaTensor, nodes_of
from gradekit.formulas.graph import Graph, NoFormula
from gradekit.program import ITEMSIZE, Program, View

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
