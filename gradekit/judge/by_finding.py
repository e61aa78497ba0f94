"""Diagnoses that rest on what the engine saw in memory."""

import math

import torch

from gradekit.findings import Cause, Finding
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis, Evidence
from gradekit.judge.ttir_text import accesses, operations_of
from gradekit.source.draft import draft_of


def unset_memory(evidence: Evidence) -> Diagnosis | None:
    """Values are wrong, and a kernel reads what nothing has written: memory that it adds to, say."""
    finding = evidence.find(Cause.UNINITIALIZED_READ)
    if finding is None or finding.line is None or evidence.comparison is None:
        return None
    sentence = f"Line {finding.line} reads {finding.tensor or 'memory'} before anything is written there."
    return Diagnosis(Cause.UNINITIALIZED_READ, sentence, finding.line)


def between_elements(evidence: Evidence) -> Diagnosis | None:
    """A load reads what lies between a tensor's elements, where no sum of multiples of its strides leads."""
    finding = evidence.find(Cause.OUT_OF_BOUNDS_LOAD)
    spec = next((s for s in evidence.specs if finding is not None and s.name == finding.tensor), None)
    if finding is None or finding.line is None or spec is None:
        return None
    apart = math.gcd(*spec.stride)
    if apart < 2 or all(place % apart == 0 for place, *_ in finding.elements):
        return None
    sentence = (
        f"Line {finding.line} loads what lies between the elements of {spec.name}, whose strides are {spec.stride}: "
        "the address is not made of these strides."
    )
    return Diagnosis(Cause.IGNORES_STRIDES, sentence, finding.line)


def loads_outside(evidence: Evidence) -> Diagnosis | None:
    """Some of the wrong elements are NaN, and a load outside of a tensor brings it in; nothing more is known."""
    finding, comparison = evidence.find(Cause.OUT_OF_BOUNDS_LOAD), evidence.comparison
    if finding is None or finding.line is None or comparison is None:
        return None
    if not comparison.actual.is_floating_point() or not bool(comparison.value[comparison.wrong].isnan().any()):
        return None
    tensor = finding.tensor or "a tensor"
    sentence = f"Line {finding.line} loads elements outside of {tensor}, and some results are NaN."
    return Diagnosis(Cause.OUT_OF_BOUNDS_LOAD, sentence, finding.line)


def missing_mask(evidence: Evidence) -> Diagnosis | None:
    """An access runs past the end of a tensor, from the first element after it on: no mask, or one that leaks."""
    finding = _out_of_bounds(evidence)
    if finding is None or finding.line is None or not _starts_at_the_end(finding, evidence):
        return None
    kind = "load" if finding.cause is Cause.OUT_OF_BOUNDS_LOAD else "store"
    masked = _masked(finding, kind, evidence)
    if masked is None:
        return None
    if masked and not _is_a_row(finding, evidence):
        return None
    if masked:
        sentence = (
            f"Line {finding.line} has a mask and still goes past the end of {finding.tensor}: either the mask "
            "does not bound every dimension, with < and not <=, or the address is too large."
        )
        hint = "look at what the mask bounds, and at how the address is computed"
        return Diagnosis(finding.cause, sentence, finding.line, hint)
    if not (_is_a_row(finding, evidence) or _is_a_flat_tail(finding, evidence)):
        sentence = f"Line {finding.line} {kind}s without a mask, and goes past the end of {finding.tensor}."
        hint = "see whether a mask is missing, or the address is too large"
        return Diagnosis(finding.cause, sentence, finding.line, hint)
    wrong = _tail_sentence(evidence.comparison) if evidence.comparison else ""
    sentence = f"The last, partial block is not masked: {wrong}line {finding.line} {kind}s without a mask."
    return Diagnosis(Cause.MISSING_MASK, sentence, finding.line)


def _out_of_bounds(evidence: Evidence) -> Finding | None:
    """The finding that the failure is about, or else the first of its kind."""
    causes = (Cause.OUT_OF_BOUNDS_LOAD, Cause.OUT_OF_BOUNDS_STORE)
    cause = evidence.failure.cause
    return evidence.find(cause) if cause in causes else evidence.find(*causes)


def _starts_at_the_end(finding: Finding, evidence: Evidence) -> bool:
    """Whether the first element touched is the one after the last; only a contiguous tensor has such an end."""
    if not finding.elements or any(len(e) != 1 for e in finding.elements):
        return False
    return min(e[0] for e in finding.elements) in _ends(finding, evidence)


def _ends(finding: Finding, evidence: Evidence) -> set[int]:
    named = [s for s in evidence.specs if s.name == finding.tensor] or list(evidence.specs)
    if finding.cause is Cause.OUT_OF_BOUNDS_STORE:
        return {r.numel() for r in evidence.results if isinstance(r, torch.Tensor)}
    return {end for s in named if s.is_contiguous for end in (s.numel, s.storage_size)}


def _masked(finding: Finding, kind: str, evidence: Evidence) -> bool | None:
    """Whether what stands at the finding's line has a mask; None where that is unknown, or some have none."""
    found = accesses(evidence.program) if evidence.program else []
    mine = [a for a in found if a.kind == kind and finding.line in a.lines]
    if any(access.is_scalar for access in mine):
        return None  # a single element has no lanes past the end: its address is wrong
    masks = {access.masked for access in mine}
    if len(masks) == 1 and _has_mask(evidence.text, finding.line or 0, kind):
        return True  # Triton has folded one away that is always true
    return masks.pop() if len(masks) == 1 else None


def _has_mask(text: str, line: int, kind: str) -> bool:
    """Whether every load (or store) that a line of the source has a part in is given a mask."""
    draft = draft_of(text)
    written = [access for kernel in draft.kernels for access in kernel.accesses] if draft is not None else []
    mine = [one for one in written if one.name == f"tl.{kind}" and line in one.lines]
    return bool(mine) and all(one.mask is not None for one in mine)


def _is_a_row(finding: Finding, evidence: Evidence) -> bool:
    """Whether one dimension of the tensor is longer than 1: else its strides may be wrong, and not the mask."""
    if finding.cause is Cause.OUT_OF_BOUNDS_STORE:
        shapes = [tuple(r.shape) for r in evidence.results if isinstance(r, torch.Tensor)]
    else:
        shapes = [s.shape for s in evidence.specs if s.name == finding.tensor] or [s.shape for s in evidence.specs]
    return all(sum(size > 1 for size in shape) <= 1 for shape in shapes)


def _is_a_flat_tail(finding: Finding, evidence: Evidence) -> bool:
    """Whether what lies outside is just what the programs' blocks, one behind the other, have too much."""
    launches = list(evidence.program.launches()) if evidence.program is not None else []
    if evidence.program is None or len(launches) != 1:
        return False
    ranges = (op.attributes["end"] for op in operations_of(evidence.program) if op.name == "tt.make_range")
    reach = math.prod(launches[0].grid) * max(ranges, default=0)
    return finding.count in {reach - end for end in _ends(finding, evidence)}


def _tail_sentence(comparison: Comparison) -> str:
    """ "1 of 33 columns is wrong, always the last; " where the wrong elements are the last of the last dimension."""
    along = comparison.wrong.flatten(0, -2).any(0) if comparison.wrong.dim() > 1 else comparison.wrong
    if along.dim() == 0:
        return ""
    count, total = int(along.sum()), len(along)
    if count == total or not bool(along[total - count :].all()):
        return ""
    noun = "columns" if comparison.wrong.dim() > 1 else "elements"
    last = "the last" if count == 1 else "the last ones"
    return f"{count} of {total} {noun} {'is' if count == 1 else 'are'} wrong, always {last}; "


def unwritten(evidence: Evidence) -> Diagnosis | None:
    """The elements that are never written are all those from some place, row or column on: what the grid leaves out."""
    finding = evidence.find(Cause.UNWRITTEN_OUTPUT)
    tensors = [r for r in evidence.results if isinstance(r, torch.Tensor)]
    if finding is None or not finding.elements or len(tensors) != 1:
        return None
    shape = tuple(tensors[0].shape)
    first = min(_flat(e, shape) for e in finding.elements)
    if first >= 0 and 0 < finding.count == math.prod(shape) - first:
        sentence = _missing_part(first, shape)
    else:
        sentence = _missing_columns(finding, shape)
    return Diagnosis(Cause.UNWRITTEN_OUTPUT, sentence, finding.line) if sentence else None


def _flat(element: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """The row-major position of an element given by its index, or by its position already; -1 if it is neither."""
    if len(element) == 1:
        return element[0]
    if len(element) != len(shape):
        return -1
    position = 0
    for index, size in zip(element, shape, strict=True):
        position = position * size + index
    return position


def _missing_part(first: int, shape: tuple[int, ...]) -> str:
    columns = shape[-1]
    if first == 0:
        return "No element of the result is ever written."
    if len(shape) == 2 and first % columns == 0:
        row, last = first // columns, shape[0] - 1
        rows = f"Row {row} of the result is" if row == last else f"Rows {row} to {last} of the result are"
        return f"{rows} never written, only the first {row} of {shape[0]} {'is' if row == 1 else 'are'}."
    verb = "is" if first == 1 else "are"
    return f"Only the first {first} of {math.prod(shape)} elements of the result {verb} ever written."


def _missing_columns(finding: Finding, shape: tuple[int, ...]) -> str:
    """ "Columns 32 to 40 ..." where as many elements are missing as the columns from the first missing one on have."""
    if len(shape) != 2 or any(len(e) != 2 for e in finding.elements):
        return ""
    first, last = min(e[1] for e in finding.elements), shape[1] - 1
    if finding.count != shape[0] * (shape[1] - first):
        return ""
    columns = f"Column {last} of the result is" if first == last else f"Columns {first} to {last} of the result are"
    return f"{columns} never written, only the first {first} of {shape[1]} {'is' if first == 1 else 'are'}."
