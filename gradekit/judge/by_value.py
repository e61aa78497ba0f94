"""Diagnoses that rest on the wrong result itself: a hypothesis about the bug must reproduce it element by element."""

import math
from collections.abc import Iterator

import torch

from gradekit.findings import Cause
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis, Evidence, explained, factors_of, same
from gradekit.judge.ttir_text import lines_of, operations_of
from gradekit.program import Aten, Copy, Fill, View, every_step


def ignores_strides(evidence: Evidence) -> Diagnosis | None:
    """The result is exactly what comes of reading one input, or several, with other strides than their own."""
    comparison = evidence.comparison
    if comparison is None or len(evidence.specs) != len(comparison.reference.inputs):
        return None
    for strides, what, as_if in _stride_hypotheses(evidence):
        others = list(comparison.reference.inputs)
        for position, stride in strides.items():
            others[position] = _misread(evidence.specs[position], stride)
        elements = explained(comparison, others)
        if elements is not None and elements > 1:
            names = " and ".join(map(evidence.name, strides))
            spec = evidence.specs[first := min(strides)]
            sentence = (
                f"The kernel ignores {what} of {names}: the result is what comes of reading it {as_if}, "
                f"but its strides are {spec.stride} for shape {list(spec.shape)}."
            )
            return Diagnosis(Cause.IGNORES_STRIDES, sentence, input=first)
    return None


def _stride_hypotheses(evidence: Evidence) -> Iterator[tuple[dict[int, tuple[int, ...]], str, str]]:
    """The strides that inputs may have been read with, the lesser reproach first: one that is ignored of one input, all
    of one, of several, and those of another input in their place."""
    specs = dict(enumerate(evidence.specs))
    strided = [p for p, s in specs.items() if not s.is_contiguous]
    groups = [[p] for p in strided] + ([strided] if len(strided) > 1 else [])
    last, every = "as if neighbours in a row were neighbours in memory", "as if it were contiguous"
    yield from (({p: (*specs[p].stride[:-1], 1) for p in group}, "the last stride", last) for group in groups)
    yield from (({p: row_major(specs[p].shape) for p in group}, "the strides", every) for group in groups)
    for position, one in specs.items():
        alike = [p for p, s in specs.items() if len(s.stride) == len(one.stride) and s.stride != one.stride]
        for group in [[p] for p in alike] + ([alike] if len(alike) > 1 else []):
            yield dict.fromkeys(group, one.stride), "the strides", f"with those of {evidence.name(position)}"


def _misread(spec: Input, stride: tuple[int, ...]) -> torch.Tensor:
    """The tensor as a kernel sees it that reads it with other strides; NaN past its end."""
    wrong = Input(spec.dtype, spec.shape, stride, spec.offset)
    tensor = spec.tensor()
    nothing = math.nan if tensor.is_floating_point() else -1  # all bits set, as memory that nobody has written
    storage = torch.full((max(wrong.storage_size, spec.storage_size),), nothing, dtype=tensor.dtype)
    storage[: spec.storage_size] = tensor.as_strided((spec.storage_size,), (1,), 0)
    return storage.as_strided(spec.shape, stride, spec.offset)


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
    return Diagnosis(
        Cause.IGNORES_STRIDES,
        f"The kernel stores the result as if it were contiguous, but its strides are {actual.stride()}: "
        "torch.empty_like keeps the strides of its argument. Use torch.empty, or the strides of the result.",
        hint="allocate the result with torch.empty(x.shape, ...), or store to it with its own strides",
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
    return bool(results) and results <= evidence.program.allocated.keys() - begun - made


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
    for op in operations_of(evidence.program):
        if op.name == "arith.sitofp" and op.result_types[0].element == "f32":
            line = min(lines_of(op, evidence.program.path), default=None)
            where = f"Line {line}" if line else "The kernel"
            sentence = f"{where} converts whole numbers to float32, which holds them exactly only up to 2**24."
            return Diagnosis(Cause.WRONG_VALUES, f"{sentence} Compute with integers.", line)
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
    """All elements of a result, or all of each row, are so many times what they must be."""
    comparison = evidence.comparison
    every = factors_of(comparison) if comparison is not None else None
    if every is not None:
        factor = float(every)
        known = [name for name, value in _quantities(evidence).items() if math.isclose(factor, value, rel_tol=2e-3)]
        named = f" That is {known[0]}." if len(known) == 1 else ""
        sentence = f"Every element is {factor:.4g} times what it must be.{named}"
        hint = "look for a factor, or a minus, that is missing or one too many"
        return Diagnosis(Cause.WRONG_VALUES, sentence, hint=hint)
    for along, name in ((-1, "row"), (-2, "column")):
        if comparison is not None and comparison.actual.dim() > 1 and factors_of(comparison, along) is not None:
            sentence = f"Within a {name} all elements are off by one factor, and each {name} has its own."
            hint = f"look at what is computed once for a {name}: a sum, a maximum, a scale"
            return Diagnosis(Cause.WRONG_VALUES, sentence, hint=hint)
    return None


def _quantities(evidence: Evidence) -> dict[str, float]:
    """What a kernel may forget to multiply or divide by: log2(e), and sizes of the inputs that are no small numbers."""
    known = {str(size): float(size) for spec in evidence.specs for size in spec.shape if size > 4}
    forms = (("{}", 1), ("1 / {}", -1), ("sqrt({})", 0.5), ("1 / sqrt({})", -0.5))
    every = {"log2(e)": 1 / math.log(2), **known}.items()
    return {form.format(name): value**power for name, value in every for form, power in forms} | _shares(evidence)


def _shares(evidence: Evidence) -> dict[str, float]:
    """Which share of an input's rows is not all 0, or of its whole numbers not below 0, and its inverse, in words: what
    is not counted may be divided by."""
    found = dict[str, float]()
    for place, spec in enumerate(evidence.specs):
        values, name = spec.tensor(), evidence.name(place)
        is_whole = not values.is_floating_point()
        counted = values >= 0 if is_whole else (values if len(spec.shape) > 1 else values.unsqueeze(-1)).any(-1)
        some, every = int(counted.sum()), counted.numel()
        if 0 < some < every:
            noun, what = ("numbers", "not below 0") if is_whole else ("rows", "not all 0")
            said = f"`{name}` has {every} {noun}, and {some} of them are {what}"
            found |= {f"{some} / {every}: {said}": some / every, f"{every} / {some}: {said}": every / some}
    return found
