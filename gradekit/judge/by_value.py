"""Diagnoses that rest on the wrong result itself: a hypothesis about the bug must reproduce it element by element."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch

from gradekit.findings import Cause
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis, Evidence, factors_of, same


def result_strides(evidence: Evidence) -> Diagnosis | None:
    """The result is not contiguous, and right if it is read as if it were: the kernel stored it so."""
    comparison = evidence.comparison
    if comparison is None or comparison.actual.is_contiguous() or comparison.wrong_count < 2:
        return None
    actual, shape = comparison.actual, comparison.actual.shape
    if actual.untyped_storage().nbytes() < (actual.storage_offset() + actual.numel()) * actual.element_size():
        return None
    stored = actual.as_strided(shape, row_major(shape), actual.storage_offset()).double()
    if not bool(same(stored, comparison.reference.exact.double(), comparison.reference.allowance).all()):
        return None
    sentence = (
        f"The kernel stores the result as if it were contiguous, but its strides are {actual.stride()}: "
        "torch.empty_like keeps the strides of its argument."
    )
    hint = "allocate the result with torch.empty(x.shape, ...), or store to it with its own strides"
    return Diagnosis(Cause.IGNORES_STRIDES, sentence, hint=hint)


# --- the whole result is something else ------------------------------------------------------------------------------


def all_zeros(evidence: Evidence) -> Diagnosis | None:
    """Every element is 0 in every call that is wrong, and two or more of one call must not be."""
    every = [one for _, one in evidence.wrong]
    if max((one.wrong_count for one in every), default=0) < 2 or any(bool((one.value != 0).any()) for one in every):
        return None
    return Diagnosis(Cause.ALL_ZEROS, "Every element is 0.")


TO_FLOAT32 = "converts whole numbers to float32, which holds them exactly only up to 2**24."


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
    for op in evidence.operations:
        if op.name in ("arith.sitofp", "arith.uitofp") and op.result_types[0].element == "f32":
            line = min(evidence.lines_of(op), default=None)
            where = f"Line {line}" if line else "The kernel"
            return Diagnosis(Cause.WRONG_VALUES, f"{where} {TO_FLOAT32} Compute with integers.", line)
    return None


def _at_an_end(comparison: Comparison, least: int, most: int) -> torch.Tensor:
    """True where a result is the least or the largest integer, and one of the inputs is so large that a sum may leave
    their range: a float stays there, where integers begin again at the other end."""
    large = torch.zeros_like(comparison.wrong)
    for tensor in comparison.reference.inputs:
        if tensor.shape == large.shape:
            large |= tensor.double().abs() >= most / 2
    return large & ((comparison.actual == least) | (comparison.actual == most))


def off_by_a_factor(evidence: Evidence) -> Diagnosis | None:
    """All elements of a result, or all of each row, are so many times what they must be; in other calls that are wrong
    just as many times, or what has the same name there."""
    factors = [factor for _, one in evidence.wrong if (factor := _factor(one)) is not None]
    if len(factors) == len(evidence.wrong) and _tells_a_factor([one for _, one in evidence.wrong]):
        known = [_quantities(args) for args, _ in evidence.wrong]
        alike = lambda key: all(_near(one, of.get(key, ("", 0.0))[1]) for one, of in zip(factors, known, strict=True))
        names = [said for key, (said, _) in known[0].items() if alike(key)]
        if len(names) == 1 or all(_near(one, factors[0]) for one in factors):
            named = f" That is {names[0]}." if len(names) == 1 else ""
            sentence = f"Every element is {factors[0]:.4g} times what it must be.{named}"
            return Diagnosis(Cause.WRONG_VALUES, sentence)
    several = [one for _, one in evidence.wrong if one.actual.dim() > 1] if len(factors) < len(evidence.wrong) else []
    for along, name in ((-1, "row"), (-2, "column")):
        if several and all(factors_of(one, along) is not None for one in several):
            sentence = f"Within a {name} all elements are off by one factor, and each {name} has its own."
            return Diagnosis(Cause.WRONG_VALUES, sentence)
    return None


def _near(factor: float, value: float) -> bool:
    return math.isclose(factor, value, rel_tol=2e-3)


def _factor(comparison: Comparison) -> float | None:
    """How many times as large as it must be all of a result is; None where that is not one number, or 0."""
    every = comparison.value, comparison.reference.exact, comparison.reference.allowance
    value, exact, allowance = (one.double().expand(comparison.actual.shape) for one in every)
    factor = float((value * exact).sum() / exact.square().sum())
    fits = bool(((value - factor * exact).abs() <= 2 * max(1, abs(factor)) * allowance).all())
    is_clear = comparison.actual.is_floating_point() and bool((exact.abs() > 10 * allowance).any())
    return factor if factor and fits and is_clear else None


def _tells_a_factor(wrong: Sequence[Comparison]) -> bool:
    """Whether two clearly different numbers are expected where results are wrong by more than rounding may be."""
    clear = [one.reference.exact.double().expand(one.actual.shape)[one.wrong & (one.error > 10)] for one in wrong]
    numbers = torch.cat(clear).abs() if clear else torch.zeros(0)
    return bool(numbers.numel() > 1 and numbers.max() > 1.01 * numbers.min())


def _quantities(args: Mapping[str, Any]) -> dict[Hashable, tuple[str, float]]:
    """What a kernel may forget to multiply or divide by, in words and as a number: log2(e), sizes of the inputs that
    are no small numbers, and what an argument between 0 and 1 leaves to 1."""
    known: dict[Hashable, tuple[str, float]] = {"log2": ("log2(e)", 1 / math.log(2))}
    for name, arg in args.items():
        sizes = arg.shape if isinstance(arg, Input) else ()
        known |= {(name, dim): (str(size), float(size)) for dim, size in enumerate(sizes) if size > 4}
        known |= {name: (f"(1 - `{name}`)", 1 - arg)} if isinstance(arg, float) and 0 < arg < 1 else {}
    forms = (("{}", 1), ("1 / {}", -1), ("sqrt({})", 0.5), ("1 / sqrt({})", -0.5))
    return {(key, form): (form.format(of), value**power) for key, (of, value) in known.items() for form, power in forms}
