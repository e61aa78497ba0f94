"""Which operation makes a value of TTIR, and what values are made of: through loops, branches and conditions.

Runs nothing. Regions beside each other may use one name twice: it stands for all that it names.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from gradekit.engine.kernel_facts import operations
from gradekit.engine.ttir import Function, Op, Region

LOADS = frozenset({"tt.load", "tt.descriptor_load", "tt.descriptor_gather"})
STORES = frozenset({"tt.store", "tt.descriptor_store", "tt.descriptor_reduce", "tt.descriptor_scatter"})
ATOMICS = frozenset({"tt.atomic_rmw", "tt.atomic_cas"})

MOVED = (
    "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.unsplat", "ttg.convert_layout",
)  # fmt: skip
"""Operations that move elements and change none."""

POINTED = frozenset({*MOVED, "tt.addptr", "tt.bitcast", "tt.make_tensor_descriptor"})
"""Operations whose pointer is one into what their first operand points into."""

CONTROL = frozenset({"scf.for", "scf.while", "scf.if"})
_FIRST_CARRIED = {"scf.for": 3, "scf.if": 1}
"""The operand with which what a loop carries, or the values of an if, begin."""


class DefUse:
    """Of functions: `made` has the operation that makes each value, `carried` the other places in which a value that a
    loop, an if or a branch hands on stands, `begun` what a loop's values begin as."""

    def __init__(self, functions: Iterable[Function]) -> None:
        functions = [*functions]
        self.ops = [op for function in functions for op in operations(function.body)]
        self.made = {result: op for op in self.ops for result in op.results}
        self._makers: dict[str, list[Op]] = {}
        for op in self.ops:
            for result in op.results:
                self._makers.setdefault(result, []).append(op)
        self.carried: dict[str, tuple[str, ...]] = {}
        self.begun: dict[str, str] = {}
        for op in self.ops:
            for column in _columns(op):
                self.carried |= {name: (*self.carried.get(name, ()), *column) for name in column}
            if op.name == "scf.for" and op.regions and op.regions[0].blocks:
                self.begun |= dict(zip(op.regions[0].blocks[0].arguments[1:], op.operands[3:], strict=False))
        for function in functions:
            for name, operand in _handed(function.body):
                self.carried[name] = (*self.carried.get(name, ()), operand)

    def sources(self, name: str) -> Sequence[str]:
        """The values that one is made of at once."""
        found = [*self.carried.get(name, ())]
        for op in self._makers.get(name, ()):
            if op.name in CONTROL:
                found += op.operands[: _FIRST_CARRIED.get(op.name, 0)]
            else:
                found += op.operands
                found += [name for region in op.regions for one in operations(region) for name in one.operands]
        return found

    def entering(self, name: str) -> Sequence[str]:
        """The same, but of what a loop carries only what it begins as, and of what one gives what it is given."""
        operands = [operand for op in self._makers.get(name, ()) for operand in op.operands]
        return operands or ([self.begun[name]] if name in self.begun else ())

    def behind(
        self, names: Iterable[str], stop: Collection[str] = (), sources: Callable[[str], Sequence[str]] | None = None
    ) -> frozenset[str]:
        """These values and all that they are made of, but for what is behind those of `stop`."""
        of = sources or self.sources
        found, left = set[str](), list(names)
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += of(name) if name not in stop else ()
        return frozenset(found)

    def makers(self, names: Iterable[str]) -> list[Op]:
        """The operations that make these values, in the order of the text."""
        ops = {op.number: op for name in names for op in self._makers.get(name, ())}
        return [ops[number] for number in sorted(ops)]

    def pointed(self, name: str) -> Sequence[str]:
        """Of what a pointer is made, the pointers."""
        op = self.made.get(name)
        if op is None:
            return [self.begun[name]] if name in self.begun else ()
        return op.operands[:1] if op.name in POINTED else op.operands[1:3] if op.name == "arith.select" else ()


def _columns(op: Op) -> Iterator[tuple[str, ...]]:
    """For each value that a loop carries, or that an if gives, all places in which it stands."""
    if op.name not in CONTROL:
        return
    columns: list[Sequence[str]] = [op.results, op.operands[_FIRST_CARRIED.get(op.name, 0) :]]
    for block in (block for region in op.regions for block in region.blocks[:1]):
        columns.append(block.arguments[1 if op.name == "scf.for" else 0 :])
        if block.ops:
            columns.append(block.ops[-1].operands[1 if block.ops[-1].name == "scf.condition" else 0 :])
    if op.name == "scf.while":
        yield tuple(name for column in columns for name in column)
        return
    for place in range(max(map(len, columns))):
        yield tuple(column[place] for column in columns if place < len(column))


def _handed(region: Region) -> Iterator[tuple[str, str]]:
    """The arguments of blocks with what branches hand them."""
    arguments = {block.label: block.arguments for block in region.blocks}
    for op in (op for block in region.blocks for op in block.ops):
        for label, operands in op.successors:
            yield from zip(arguments.get(label, ()), operands, strict=False)
