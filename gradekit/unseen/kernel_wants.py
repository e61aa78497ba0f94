"""What kernels decide by sizes, and no coverage of their branches shows: comparisons of compile-time constants, and
indices that are taken modulo a number. Calls are looked for that go each way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradekit.inputs.draws import Draws
from gradekit.unseen.candidates import ROUGH
from gradekit.unseen.further import FurtherCall, made, rank_of
from gradekit.unseen.host_branches import Path, TracedForm
from gradekit.unseen.kernel_branches import KernelText
from gradekit.unseen.scope import FAR, CallScope, sizes_alone
from gradekit.unseen.search import Calls, Search
from gradekit.unseen.wants import ConstantWay, Wrapped, wrapped_indices


@dataclass
class KernelWants:
    """Those of a submission, `constants` as its text has them, and which of them the calls of a check have met."""

    constants: Sequence[ConstantWay]
    _met: dict[ConstantWay | Wrapped, bool] = field(default_factory=dict)
    _search: Search = field(default_factory=Search)

    def begin_check(self) -> None:
        """Another check begins, which has seen nothing yet."""
        self._met.clear()

    def further(
        self, draws: Draws, forms: Sequence[TracedForm], paths: Sequence[Path], texts: Sequence[KernelText]
    ) -> Iterator[FurtherCall]:
        """Calls for what none of the check's `forms` has met; `texts` are those of the kernels that it has run."""
        made_so_far = [Calls.of(path, forms) for path in paths]
        wants: list[ConstantWay | Wrapped] = [*self.constants, *wrapped_indices(texts)]
        for want in wants:
            known = [met for one in made_so_far if one.count and (met := want.met(one)) is not None]
            if known:
                self._met[want] = any(bool(met.any()) for met in known)
                if not self._met[want]:
                    yield from self._calls(draws, want, paths)

    def _calls(self, draws: Draws, want: ConstantWay | Wrapped, paths: Sequence[Path]) -> Iterator[FurtherCall]:
        for path in paths:
            scope = CallScope(sizes_alone(draws), rank_of(draws, path.form), True, FAR)
            sizes = self._search.solutions(want, path, scope, want.numbers, ROUGH).sizes
            for one in sizes:
                yield FurtherCall(made(draws, path.form, one, 0, {}), want.says(), want.line)
            if sizes:
                return

    def unseen(self) -> list[dict[str, Any]]:
        """What no call has met, as the report record holds it."""
        return [{"line": want.line, "what": want.says("never ")} for want, met in self._met.items() if not met]
