"""Diagnoses of a wrong result that rest on what a dtype can hold: numbers rounded on the way, or at the end."""

from __future__ import annotations

import torch

from gradekit.findings import Cause
from gradekit.judge import ttir_text
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis, Evidence, explained, varied


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


def rounded_result(evidence: Evidence) -> Diagnosis | None:
    """Every element of a float32 result is a number that a narrower dtype holds, and close to the right one."""
    comparison = evidence.comparison
    if comparison is None or comparison.actual.dtype != torch.float32 or comparison.wrong_count < 4:
        return None
    for narrow in (torch.bfloat16, torch.float16):
        if _held_by(comparison, narrow):
            name = str(narrow).removeprefix("torch.")
            return Diagnosis(
                Cause.LOW_PRECISION,
                f"Every element of the result is rounded to {name}: it has only the digits that {name} holds. "
                "Keep float32 all the way.",
            )
    return None


def _held_by(comparison: Comparison, narrow: torch.dtype) -> bool:
    value, exact = comparison.actual, comparison.reference.exact
    info = torch.finfo(narrow)
    close = (value.double() - exact).abs() <= 2 * info.eps * exact.abs() + info.tiny + comparison.reference.allowance
    held = value.to(narrow).float() == value
    return bool(held.all() and close.all()) and varied(value)


def rounded_inputs(evidence: Evidence) -> Diagnosis | None:
    """The result is exactly what comes of rounding the float32 inputs to a narrower dtype first."""
    comparison = evidence.comparison
    if comparison is None or comparison.wrong_count < 3:
        return None
    for narrow in (torch.bfloat16, torch.float16):
        others = [t.to(narrow).to(t.dtype) if t.dtype == torch.float32 else t for t in comparison.reference.inputs]
        elements = explained(comparison, others)
        if elements is not None and elements >= 3:
            name = str(narrow).removeprefix("torch.")
            return Diagnosis(
                Cause.LOW_PRECISION,
                f"The result is what comes of rounding the float32 inputs to {name} first. Compute in float32.",
            )
    return None
