"""Comparisons of a kernel's compile-time constants: the compiler decides them, and nothing of the way that it does not
take is in the TTIR. Where a constant is computed from sizes, calls are looked for that go each way."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gradekit.domain import evaluate
from gradekit.domain.expressions import names_in
from gradekit.inputs.draws import Draws
from gradekit.size_terms import evaluated, leaves_in
from gradekit.unseen.candidates import ROUGH
from gradekit.unseen.columns import COLUMNS
from gradekit.unseen.further import FurtherCall, made, rank_of
from gradekit.unseen.host_branches import Path, TracedForm
from gradekit.unseen.scope import FAR, CallScope, sizes_alone
from gradekit.unseen.search import Candidates, Search


@dataclass(frozen=True)
class ConstantTest:
    """A comparison of a kernel: its line, and what is compared, as text."""

    kernel: str
    line: int
    text: str

    def values(self, launches: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Any]:
        """What it gives in launches of the kernel, as far as that is known."""
        mine = (names for kernel, names in launches if kernel == self.kernel)
        known = [names for names in mine if all(names.get(name) is not None for name in names_in(self.text))]
        return [value for names in known if (value := _value(self.text, names)) is not None]


def _value(text: str, names: Mapping[str, Any]) -> Any:
    """What an expression gives; None where that is nothing, as of a division by 0."""
    try:
        return evaluate(text, names)
    except (ValueError, ArithmeticError, RuntimeError):
        return None


def constant_tests(tree: ast.Module) -> list[ConstantTest]:
    """Those of the kernels of a submission."""
    kernels = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    return list(dict.fromkeys(one for kernel in kernels for one in _of_kernel(kernel)))


def _of_kernel(kernel: ast.FunctionDef) -> Iterator[ConstantTest]:
    arguments = [*kernel.args.args, *kernel.args.kwonlyargs]
    constants = {one.arg for one in arguments if one.annotation and "constexpr" in ast.unparse(one.annotation)}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            cheap = not any(isinstance(one, (ast.Pow, ast.LShift)) for one in ast.walk(node))
            text = ast.unparse(node)
            if names and names <= constants and cheap and _value(text, dict.fromkeys(names, 7)) is not None:
                yield ConstantTest(kernel.name, node.lineno, text)


@dataclass(frozen=True)
class ConstantWay:
    """A way that a comparison is to go."""

    test: ConstantTest
    way: bool

    def met(self, among: Candidates) -> Tensor | None:
        """See `gradekit.unseen.search.Want`."""
        found = self.test.values((kernel, names) for kernel, _, names in among.launches)
        each = [torch.as_tensor(one).bool().expand_as(among.elements) == self.way for one in found]
        return torch.stack(each).any(dim=0) & among.taking if each else None

    def level(self, among: Candidates) -> None:
        """See `Want`."""


@dataclass
class ConstantBranches:
    """The comparisons of a submission, and which ways the calls of a check have gone."""

    tests: Sequence[ConstantTest]
    _seen: dict[ConstantTest, set[bool]] = field(default_factory=dict)
    _search: Search = field(default_factory=Search)

    def begin_check(self) -> None:
        """Another check begins, which has seen nothing yet."""
        self._seen.clear()

    def further(self, draws: Draws, forms: Sequence[TracedForm], paths: Sequence[Path]) -> Iterator[FurtherCall]:
        """Calls for the ways that none of the check's `forms` has gone."""
        for path in paths:
            for form in (one for one in forms if one.kind == path.form.kind and path.taken_by(one)):
                self._see(path, form)
        for test, seen in self._seen.items():
            for way in {True, False} - seen:
                yield from self._calls(draws, ConstantWay(test, way), paths)

    def _see(self, path: Path, form: TracedForm) -> None:
        values = evaluated(path.origins.terms, form.leaves, COLUMNS)
        for launch in path.explored.launches:
            names = {name: values[term] for name, term in launch.names if 0 <= term < len(values)}
            sized = {name for name, term in launch.names if leaves_in(path.origins.terms, term)}
            for test in self.tests:
                if sized & names_in(test.text):
                    self._seen.setdefault(test, set()).update(map(bool, test.values([(launch.kernel, names)])))

    def _calls(self, draws: Draws, want: ConstantWay, paths: Sequence[Path]) -> Iterator[FurtherCall]:
        told = f"`{want.test.text}` is {want.way}"
        for path in paths:
            scope = CallScope(sizes_alone(draws), rank_of(draws, path.form), True, FAR)
            among = self._search.among(path, scope, (), ROUGH)
            sizes = among.solutions(want).sizes if among is not None else ()
            for one in sizes:
                yield FurtherCall(made(draws, path.form, one, 0, {}), told, want.test.line)
            if sizes:
                return

    def unseen(self) -> list[dict[str, Any]]:
        """The ways that no call has gone, as the report record holds them."""
        return [{"line": test.line, "what": f"`{test.text}` is never {way}"}
                for test, seen in self._seen.items() for way in (True, False) if way not in seen]  # fmt: skip
