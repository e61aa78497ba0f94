"""Diagnoses that rest on the wrong result itself: a hypothesis about the bug must reproduce it element by element."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from gradekit.findings import Cause
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge import ttir_text
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis, Evidence, explained, is_power_of_two, same, varied
from gradekit.program import Allocate, Aten, Copy, Fill, View, every_step


def ignores_strides(evidence: Evidence) -> Diagnosis | None:
    """The result is exactly what comes of reading an input with other strides than its own."""
    comparison = evidence.comparison
    if comparison is None or len(evidence.specs) != len(comparison.reference.inputs):
        return None
    for positions, ignored in _stride_hypotheses(evidence.specs):
        others = list(comparison.reference.inputs)
        for position in positions:
            others[position] = _misread(evidence.specs[position], ignored)
        elements = explained(comparison, others)
        if elements is not None and elements > 1:
            sentence = _stride_sentence(evidence, positions, ignored)
            return Diagnosis(Cause.IGNORES_STRIDES, sentence, input=positions[0])
    return None


def _stride_hypotheses(specs: tuple[Input, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
    strided = tuple(p for p, s in enumerate(specs) if not s.is_contiguous)
    groups = [(p,) for p in strided] + ([strided] if len(strided) > 1 else [])
    yield from ((group, ignored) for ignored in ("last", "all") for group in groups)  # the lesser reproach first


def _misread(spec: Input, ignored: str) -> torch.Tensor:
    """The tensor as a kernel sees it that takes it for contiguous, or only its last stride for 1; NaN past its end."""
    stride = row_major(spec.shape) if ignored == "all" else (*spec.stride[:-1], 1)
    wrong = Input(spec.dtype, spec.shape, stride, spec.offset)
    tensor = spec.tensor()
    storage = torch.full((max(wrong.storage_size, spec.storage_size),), _nothing(tensor.dtype), dtype=tensor.dtype)
    storage[: spec.storage_size] = tensor.as_strided((spec.storage_size,), (1,), 0)
    return storage.as_strided(spec.shape, stride, spec.offset)


def _nothing(dtype: torch.dtype) -> float | int:
    return math.nan if dtype.is_floating_point else -1  # all bits set, as memory that nobody has written


def _stride_sentence(evidence: Evidence, positions: tuple[int, ...], ignored: str) -> str:
    names = " and ".join(evidence.name(p) for p in positions)
    spec = evidence.specs[positions[0]]
    what = "the strides" if ignored == "all" else "the last stride"
    as_if = "as if it were contiguous" if ignored == "all" else "as if neighbours in a row were neighbours in memory"
    return (
        f"The kernel ignores {what} of {names}: the result is what comes of reading it {as_if}, "
        f"but its strides are {spec.stride} for shape {list(spec.shape)}."
    )


# --- the whole result is something else ------------------------------------------------------------------------------


def all_zeros(evidence: Evidence) -> Diagnosis | None:
    """Every element is 0, and two or more must not be."""
    comparison = evidence.comparison
    if comparison is None or comparison.wrong_count < 2 or bool((comparison.value != 0).any()):
        return None
    if _is_set_by_kernels(evidence):
        hint = "the kernel stores zeros: see why what it computes comes out as 0 (is anything added to it?)"
        return Diagnosis(Cause.ALL_ZEROS, "Every element is 0, and that is what the kernel stores.", hint=hint)
    hint = "either nothing is stored to it, or what is stored comes out as 0: see where it gets its values"
    return Diagnosis(Cause.ALL_ZEROS, "Every element is 0.", hint=hint)


def _is_set_by_kernels(evidence: Evidence) -> bool:
    """Whether kernels have written every element of the results: none began as anything, and none is left unwritten."""
    if evidence.program is None or evidence.find(Cause.UNWRITTEN_OUTPUT) is not None:
        return False
    results = {view.storage for view in evidence.program.results if isinstance(view, View)}
    steps = list(every_step(evidence.program.steps))
    begun = {step.target.storage for step in steps if isinstance(step, (Fill, Copy))}
    made = {view.storage for step in steps if isinstance(step, Aten) for view in step.outputs}
    allocated = {step.storage for step in steps if isinstance(step, Allocate)}
    return bool(results) and results <= allocated - begun - made


def unchanged_input(evidence: Evidence) -> Diagnosis | None:
    """The result has the very elements of an input."""
    comparison = evidence.comparison
    if comparison is None or comparison.wrong_count < 2 or not varied(comparison.value):
        return None
    for position, tensor in enumerate(comparison.reference.inputs):
        if tensor.shape == comparison.value.shape and bool(same(comparison.value, tensor.to(comparison.value)).all()):
            name = evidence.name(position) if position < len(evidence.specs) else f"input {position + 1}"
            return Diagnosis(Cause.UNCHANGED_INPUT, f"The result equals {name}: it comes back as it was loaded.")
    return None


def transposed(evidence: Evidence) -> Diagnosis | None:
    """A square result is the right one with rows and columns swapped."""
    comparison = evidence.comparison
    if comparison is None or comparison.wrong.dim() != 2 or comparison.wrong_count < 2:
        return None
    exact = comparison.reference.exact.double().T
    if exact.shape != comparison.wrong.shape or not _right_if(comparison, exact):
        return None
    return Diagnosis(Cause.WRONG_VALUES, "The result is transposed: its rows and columns are swapped.")


def _right_if(comparison: Comparison, exact: torch.Tensor) -> bool:
    allowance = comparison.reference.allowance
    other = allowance.T if allowance.dim() == 2 and allowance.shape == exact.shape else allowance
    return bool(same(comparison.value.double(), exact, torch.maximum(allowance, other)).all())


def one_factor(evidence: Evidence) -> Diagnosis | None:
    """The result, or each row of it, is the right one times a factor."""
    comparison = evidence.comparison
    factors = _row_factors(comparison) if comparison is not None else None
    if factors is None:
        return None
    first = f"{factors[0].item():.4g}"
    if bool(((factors - factors[0]).abs() <= 1e-3 * factors[0].abs()).all()):
        return Diagnosis(Cause.WRONG_VALUES, f"Every element is {first} times what it must be.")
    return Diagnosis(
        Cause.WRONG_VALUES,
        f"Within a row all elements are off by one factor, and each row has its own (the first {first}). "
        "A sum or a scale that is computed once for a row seems to be wrong."
        + (" Do lanes past the end of the row count in it?" if _has_lanes_left(comparison) else ""),
    )


def _has_lanes_left(comparison: Comparison | None) -> bool:
    """Whether rows are so long that a block, which is a power of two, has lanes beyond them."""
    return comparison is not None and not is_power_of_two(comparison.wrong.shape[-1])


def _row_factors(comparison: Comparison) -> torch.Tensor | None:
    """result / exact for each row, where that is one number for all of its three or more different elements."""
    if comparison.wrong.dim() == 0 or comparison.wrong.shape[-1] < 3 or not comparison.actual.is_floating_point():
        return None
    value, exact, allowance = (
        t.double().reshape(-1, t.shape[-1])
        for t in (comparison.value, comparison.reference.exact, comparison.reference.allowance)
    )
    top = exact.abs().argmax(1, keepdim=True)
    factors = value.gather(1, top) / exact.gather(1, top)
    clear = ((exact.abs() > 100 * allowance).sum(1) >= 3) & ((exact - exact[:, :1]).abs() > 100 * allowance).any(1)
    off = (value - exact).abs() > 10 * allowance  # clearly more than any rounding, in each row
    if not bool((clear & off.any(1)).all() & factors.isfinite().all() & (factors != 0).all()):
        return None
    fits = (value - factors * exact).abs() <= 2 * factors.abs().clamp(min=1) * allowance
    return factors.flatten() if bool(fits.all()) else None


def only_the_first(evidence: Evidence) -> Diagnosis | None:
    """Everything up to some row or power of two is right, everything after it wrong."""
    comparison = evidence.comparison
    if comparison is None or comparison.wrong.dim() == 0:
        return None
    if evidence.program is not None and all(math.prod(launch.grid) == 1 for launch in evidence.program.launches()):
        return None
    wrong, columns = comparison.wrong.flatten(), comparison.wrong.shape[-1]
    right = len(wrong) - comparison.wrong_count
    if min(right, comparison.wrong_count) < 4 or bool(wrong[:right].any()):
        return None
    if comparison.wrong.dim() == 2 and right % columns == 0:
        what = f"first {right // columns} of {len(wrong) // columns} rows are" if right > columns else "first row is"
    elif is_power_of_two(right):
        what = f"first {right} of {len(wrong)} elements are"
    else:
        return None
    return Diagnosis(
        Cause.WRONG_VALUES,
        f"Only the {what} right, and all after that wrong: look at what {_goes_on(evidence)} does.",
    )


def _goes_on(evidence: Evidence) -> str:
    """What comes after the first part of a result."""
    program = "a program of the grid after the first"
    looped = evidence.program is not None and ttir_text.uses(evidence.program, "scf.for")
    return f"{program}, or a step of a loop after the first," if looped else program


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
