"""Diagnoses that rest on which places of a strided tensor's storage were touched that belong to no element of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from gradekit.findings import Cause
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge.evidence import Diagnosis, Evidence

MOST = 1 << 16
"""The most elements of a tensor whose places are listed."""


def touches_what_strides_leave_out(evidence: Evidence) -> Diagnosis | None:
    """Loads outside of a strided tensor hit exactly those places that reading it as contiguous would hit."""
    finding = evidence.find(Cause.OUT_OF_BOUNDS_LOAD)
    if finding is None or evidence.failure.cause is not Cause.OUT_OF_BOUNDS_LOAD or not finding.elements:
        return None
    spec = next((s for s in evidence.specs if s.name == finding.tensor and not s.is_contiguous), None)
    if spec is None or spec.numel > MOST or any(len(element) != 1 for element in finding.elements):
        return None
    touched = {element[0] for element in finding.elements}
    for outside in _outside(spec):
        begins = touched <= outside and min(touched) == min(outside, default=-1)
        if begins and len(outside) > 1 and finding.count % len(outside) == 0:
            return Diagnosis(
                Cause.IGNORES_STRIDES,
                f"These are the places that come of reading {finding.tensor} as if it were contiguous, but its "
                "strides are "
                f"{spec.stride} for shape {list(spec.shape)}: the mask is not at fault.",
                finding.line,
            )
    return None


def _outside(spec: Input) -> Iterator[frozenset[int]]:
    """For each way of ignoring strides, the places that are touched and hold no element."""
    own = _places(spec.shape, spec.stride)
    for stride in (row_major(spec.shape), (*spec.stride[:-1], 1)):
        yield _places(spec.shape, stride) - own


def _places(shape: tuple[int, ...], stride: tuple[int, ...]) -> frozenset[int]:
    """The places of all elements, from the first on."""
    ranges = (range(0, n * s, s) if s else (0,) for n, s in zip(shape, stride, strict=True))
    return frozenset(map(sum, itertools.product(*ranges)))
