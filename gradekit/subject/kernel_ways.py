"""The branch coverage of a check: which ways its calls have gone through the kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradekit.engine.branch_coverage import merged
from gradekit.program import Kernel
from gradekit.subject.runs import Observation


@dataclass
class KernelWays:
    """The branch coverage of the kernels that a check's calls have run: for each kernel, by the number of an operation
    (see gradekit.engine.branch_coverage), beside the arguments that it was launched with first."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    ways: dict[str, dict[int, int]] = field(default_factory=dict)

    def add(self, observation: Observation) -> None:
        """Adds what a call has shown."""
        for name, ways in observation.ways.items():
            self.kernels[name] = observation.program.kernels[name]
            self.ways[name] = merged(self.ways.get(name, {}), ways)
