"""Calls for which a kernel's loop runs several times where no example of the check made it, with each kind of values.

A program that takes a second row, or a second tile, may still hold something of the first: that shows only where the
values of both are far enough apart, and which kinds of values do that depends on what the kernel computes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradekit.engine.branch_coverage import SEVERAL
from gradekit.inputs.draws import Draws
from gradekit.unseen.further import FurtherCall, Purpose, made
from gradekit.unseen.host_branches import Path
from gradekit.unseen.kernel_inputs import KernelInputs
from gradekit.unseen.missing_ways import Missing, launching

MOST_LOOPS = 2
"""Loops that one check tries with each kind of values, and with each group of dtypes that the kernel treats alike."""


def repeats(draws: Draws, kernels: KernelInputs, paths: Sequence[Path]) -> Iterator[FurtherCall]:
    """Calls for those missing ways of `kernels` that are loops running several times. Sizes may be all that the entry
    promises, also where the check lists its own."""
    loops = [one for one in kernels.missing() if one.branch.name == "scf.for" and one.branch.way == SEVERAL]
    loops = [one for one in loops if one.is_of_sizes]
    first = {replace(one.branch, dtypes=()): None for one in loops}
    wanted = [one for one in loops if replace(one.branch, dtypes=()) in list(first)[:MOST_LOOPS]]
    for turn in itertools.zip_longest(*(list(_calls(draws, kernels, one, paths)) for one in wanted)):
        yield from (call for call in turn if call is not None)


def _calls(draws: Draws, kernels: KernelInputs, one: Missing, paths: Sequence[Path]) -> Iterator[FurtherCall]:
    found = _sizes(draws, kernels, one, paths)
    if found is not None:
        path, sizes = found
        for turn, kinds in enumerate(_each_kind(draws)):
            yield FurtherCall(made(draws, path.form, sizes, turn, kinds), one.why, one.branch.line, Purpose.BESIDE)


def _sizes(
    draws: Draws, kernels: KernelInputs, one: Missing, paths: Sequence[Path]
) -> tuple[Path, dict[str, int]] | None:
    """The smallest of at least two in each dimension for which the loop runs several times in every program."""
    for path in launching(one, paths):
        sweep = kernels.sweep(draws, path, far=True)
        sizes = sweep.solved_everywhere(one) if sweep is not None else None
        if sizes is not None:
            return path, sizes
    return None


def _each_kind(draws: Draws) -> Iterator[Mapping[str, Any]]:
    """Kinds for all tensors, until each has had all of its own."""
    for turn in range(max((len(options) for _, options in draws.values), default=1)):
        yield {f"values {names}": options[turn % len(options)] for names, options in draws.values}
