"""What the judge needs to know of one run of a submission, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from gradekit.findings import Finding
from gradekit.observations import Counters
from gradekit.program import Program


class Observed(Protocol):
    """One run: `inputs` as the test passed them (specs, tensors, numbers), `results` in order, and what was seen.

    An observation may also have `substitute`, a function from the expected results to those that are to be judged in
    place of `results`: so a trivial result (see trivial.py) goes through the same test as a submission.
    """

    @property
    def inputs(self) -> Sequence[Any]:
        """The arguments as the test passed them."""

    @property
    def results(self) -> Sequence[Any]:
        """What the call returned, in order."""

    @property
    def findings(self) -> Sequence[Finding]:
        """What was seen in memory."""

    @property
    def counters(self) -> Counters:
        """Bytes moved and allocated, and launches."""

    @property
    def program(self) -> Program | None:
        """The traced call, where there is one."""
