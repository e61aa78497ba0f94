"""Diagnoses that rest on what the engine saw in memory."""

from __future__ import annotations

import math

import torch

from gradekit.findings import Cause, Finding
from gradekit.judge import ttir_text
from gradekit.judge.compare import Comparison
from gradekit.judge.evidence import Diagnosis, Evidence


def missing_mask(evidence: Evidence) -> Diagnosis | None:
    """An access without a mask runs past the end of a tensor, beginning with the first element after it."""
    finding = evidence.find(Cause.OUT_OF_BOUNDS_LOAD, Cause.OUT_OF_BOUNDS_STORE)
    if finding is None or finding.line is None or not _starts_at_the_end(finding, evidence):
        return None
    kind = "load" if finding.cause is Cause.OUT_OF_BOUNDS_LOAD else "store"
    if not _unmasked(finding, kind, evidence):
        return None
    wrong = _tail_sentence(evidence.comparison) if evidence.comparison else ""
    return Diagnosis(
        Cause.MISSING_MASK,
        f"The last, partial block is not masked: {wrong}line {finding.line} {kind}s without a mask.",
        finding.line,
    )


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


def _unmasked(finding: Finding, kind: str, evidence: Evidence) -> bool:
    if "masked" in finding.facts:
        return not finding.facts["masked"]
    found = ttir_text.accesses(evidence.program) if evidence.program else []
    here = [a for a in found if a.kind == kind and finding.line in a.lines]
    return bool(here) and not any(a.masked for a in here)


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
    """The elements that are never written are all those from some place on: what the grid does not reach."""
    finding = evidence.find(Cause.UNWRITTEN_OUTPUT)
    shape = _result_shape(evidence)
    if finding is None or not finding.elements or shape is None:
        return None
    first = min(_flat(e, shape) for e in finding.elements)
    if first < 0 or not 0 < finding.count == math.prod(shape) - first:
        return None
    return Diagnosis(Cause.UNWRITTEN_OUTPUT, _missing_part(first, shape) + _reach(first, shape, evidence), finding.line)


def _result_shape(evidence: Evidence) -> tuple[int, ...] | None:
    tensors = [r for r in evidence.results if isinstance(r, torch.Tensor)]
    return tuple(tensors[0].shape) if len(tensors) == 1 else None


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
        row = first // columns
        return f"Rows {row} to {shape[0] - 1} of the result are never written, only the first {row} of {shape[0]} are."
    return f"Only the first {first} of {math.prod(shape)} elements of the result are ever written."


def _reach(first: int, shape: tuple[int, ...], evidence: Evidence) -> str:
    """What the grid has to do with it, where the numbers say so."""
    grids = [math.prod(launch.grid) for launch in evidence.program.launches()] if evidence.program else []
    if len(grids) != 1 or first == 0:
        return ""
    programs, rest = grids[0], math.prod(shape) - first
    if programs == 1:
        return " The grid has one program."
    if first % programs == 0 and rest < first // programs:
        return f" The grid's {programs} programs cover just that: round their number up, with triton.cdiv."
    if rest >= first and programs * first >= math.prod(shape):
        return f" The grid has {programs} programs: does each of them use tl.program_id?"
    return ""
