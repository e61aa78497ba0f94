"""Ways of kernels that no run has gone, as `KernelInputs` finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradekit.engine import Op
from gradekit.engine.def_use import LOADS
from gradekit.engine.mask_coverage import MASKED
from gradekit.unseen.dtype_groups import nearest
from gradekit.unseen.host_branches import Path
from gradekit.unseen.kernel_branches import KernelBranch, KernelText

COMPARING = frozenset({"arith.cmpf", "arith.minnumf", "arith.maxnumf", "arith.minimumf", "arith.maximumf"})
"""Operations that compare two floats."""

_OF_MANY = ("tt.reduce", "tt.dot")


@dataclass(frozen=True)
class Missing:
    """A way that no run has gone, and an operation, by number in a kernel, that could go it."""

    branch: KernelBranch
    text: KernelText
    number: int

    @property
    def behind(self) -> list[Op]:
        """What the operation depends on."""
        return self.text.behind(tuple(self.text.ops[self.number].operands))

    @property
    def operands(self) -> list[Op]:
        """The operations that make its operands."""
        made = self.text.made
        return [made[name] for name in self.text.ops[self.number].operands if name in made]

    @property
    def is_loaded(self) -> bool:
        """Whether it depends on elements of tensors."""
        return any(op.name in LOADS for op in self.behind)

    @property
    def is_of_sizes(self) -> bool:
        """Whether sizes may decide which way it goes: not what was loaded."""
        return not any(op.name in LOADS for op in self.text.behind(tuple(self._deciding)))

    @property
    def is_of_many(self) -> bool:
        """Whether it depends on many elements together: how many are negative, or their sum."""
        behind = self.text.computed_from(self._deciding)
        return not behind.isdisjoint(_OF_MANY) and not behind.isdisjoint(LOADS)

    @property
    def is_computed(self) -> bool:
        """Whether it depends on elements of tensors, through loops too."""
        return not self.text.computed_from(self._deciding).isdisjoint(LOADS)

    @property
    def _deciding(self) -> Sequence[str]:
        """Those of its operands that decide which way it goes: not what is chosen or stored."""
        op = self.text.ops[self.number]
        if op.name in MASKED:
            return op.operands[1 if op.name == "tt.load" else 2 :][:1]
        return op.operands[:1] if op.name in ("arith.select", "scf.if", "cf.cond_br") else op.operands[:3]

    @property
    def why(self) -> str:
        """The way, as a sentence about a call that goes it."""
        return self.branch.gone


def launching(one: Missing, paths: Sequence[Path]) -> list[Path]:
    """The paths that launch the kernel: where dtypes matter to it, those with dtypes most like its own. Of those on
    which sizes decide the same, the first."""
    found = [path for path in paths if any(launch.kernel == one.branch.kernel for launch in path.explored.launches)]
    if one.branch.dtypes and found:
        found = [found[number] for number in nearest([path.form.views for path in found], one.text.dtypes)]
    return list({(path.decisions, path.launches): path for path in reversed(found)}.values())[::-1]
