"""Diagnoses of a wrong result that rest on what a dtype can hold."""

from __future__ import annotations

import torch

from gradekit.findings import Cause
from gradekit.judge import ttir_text
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis, Evidence


def integers_as_floats(evidence: Evidence) -> Diagnosis | None:
    """Whole numbers that are off by no more than a float32 rounds, and a kernel that converts them to floats."""
    comparison = evidence.comparison
    if comparison is None or evidence.program is None or comparison.actual.is_floating_point():
        return None
    exact, actual = comparison.reference.exact.double(), comparison.actual
    info = torch.iinfo(actual.dtype)
    rounded = (actual.double() - exact).abs() <= 2.0**-23 * exact.abs()
    if not bool((rounded | _at_an_end(comparison, info.min, info.max)).all()):
        return None
    for name, lines in ttir_text.typed_lines(evidence.program, "arith.sitofp", ("f32",)):
        line = min(lines, default=None)
        where = f"line {line}" if line else "the kernel"
        sentence = f"{where} converts whole numbers to {name}, which holds them exactly only up to 2**24."
        return Diagnosis(Cause.WRONG_VALUES, sentence[0].upper() + sentence[1:] + " Compute with integers.", line)
    return None


def _at_an_end(comparison: Comparison, least: int, most: int) -> torch.Tensor:
    """True where a result is the least or the largest integer, and one of the inputs is so large that a sum may leave
    their range: a float stays there, where integers begin again at the other end."""
    large = torch.zeros_like(comparison.wrong)
    for tensor in comparison.reference.inputs:
        if tensor.shape == large.shape:
            large |= tensor.double().abs() >= most / 2
    return large & ((comparison.actual == least) | (comparison.actual == most))


