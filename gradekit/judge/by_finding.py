"""Diagnoses that rest on what the engine saw in memory."""

import math
import re
from collections.abc import Sequence

import torch

from gradekit.engine.masked_lanes import mask_of
from gradekit.engine.ttir import Op
from gradekit.findings import Cause, Finding
from gradekit.judge.evidence import Diagnosis, Evidence, nouns
from gradekit.source.draft import draft_of
from gradekit.source.kernel import PointerAccess


def wrapped(evidence: Evidence) -> Diagnosis | None:
    """What lies outside of a tensor lies just 2**32 elements in front of some of it."""
    finding = _out_of_bounds(evidence)
    if finding is None or finding.line is None or not all(place < 0 for place, *_ in finding.elements):
        return None
    meant = torch.tensor([place + (1 << 32) for place, *_ in finding.elements])
    if not any(bool(torch.isin(meant, _places(one.shape, one.stride)).all()) for one in evidence.specs):
        return None
    does = "loads" if finding.cause is Cause.OUT_OF_BOUNDS_LOAD else "stores"
    sentence = (
        f"Line {finding.line} {does} just 2**32 elements in front of some that are there: 32 bits do not hold these "
        "offsets."
    )
    hint = "keep what is multiplied by a stride in int64, as in row.to(tl.int64) * stride"
    return Diagnosis(finding.cause, sentence, finding.line, hint)


def unset_memory(evidence: Evidence) -> Diagnosis | None:
    """Values are wrong, and a kernel reads what nothing has written: memory that it adds to, say."""
    finding = evidence.find(Cause.UNINITIALIZED_READ)
    if finding is None or finding.line is None or evidence.comparison is None:
        return None
    sentence = f"Line {finding.line} reads {finding.tensor or 'memory'} before anything is written there."
    return Diagnosis(Cause.UNINITIALIZED_READ, sentence, finding.line)


def other_strides(evidence: Evidence) -> Diagnosis | None:
    """A load reads what lies between a tensor's elements, where no sum of multiples of its strides leads; or it, or a
    store, goes just where a tensor's elements would be with the strides of another one, or one behind the other."""
    finding = _out_of_bounds(evidence)
    if finding is None or finding.line is None or (known := _laid_out(finding, evidence)) is None:
        return None
    (shape, own), fitting = known, list[str]()
    places = torch.tensor([place for place, *_ in finding.elements])
    for name, stride in evidence.strides_of_others(shape, own):
        reached = _places(shape, stride)
        outside = reached[~torch.isin(reached, _places(shape, own))]
        fitting += [name] if len(outside) == finding.count > 1 and bool(torch.isin(places, outside).all()) else []
    does = "loads from" if finding.cause is Cause.OUT_OF_BOUNDS_LOAD else "stores to"
    if fitting:
        sentence = (
            f"Line {finding.line} {does} {finding.tensor} as if it had the strides of {' or '.join(fitting)}, but its "
            f"own are {own}."
        )
    elif does == "loads from" and math.gcd(*own) > 1 and bool((places % math.gcd(*own)).any()):
        sentence = (
            f"Line {finding.line} loads what lies between the elements of {finding.tensor}, whose strides are "
            f"{own}: the address is not made of these strides."
        )
    else:
        return None
    return Diagnosis(Cause.IGNORES_STRIDES, sentence, finding.line)


def _laid_out(finding: Finding, evidence: Evidence) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The shape and the strides of the input, or the result, that a finding is about."""
    if finding.cause is Cause.OUT_OF_BOUNDS_LOAD:
        spec = next((one for one in evidence.specs if one.name == finding.tensor), None)
        return (spec.shape, spec.stride) if spec is not None else None
    number = re.match(r"the result$|result (\d+)", finding.tensor or "")
    result = evidence.results[int(number[1] or 0)] if number and evidence.results else None
    return (tuple(result.shape), result.stride()) if isinstance(result, torch.Tensor) else None


def _places(shape: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
    """Where the elements of a tensor lie, each place once."""
    found = torch.zeros(1, dtype=torch.int64)
    for size, step in zip(shape, stride, strict=True):
        found = (found.unsqueeze(1) + step * torch.arange(size)).flatten()
    return found.unique()


def missing_mask(evidence: Evidence) -> Diagnosis | None:
    """An access runs past the end of a tensor, from the first element after it on: no mask, or one that leaks."""
    finding = _out_of_bounds(evidence)
    if finding is None or finding.line is None or not _starts_at_the_end(finding, evidence):
        return None
    kind = "load" if finding.cause is Cause.OUT_OF_BOUNDS_LOAD else "store"
    written = _written(finding, kind, evidence.text)
    if not _has_no_mask(finding, kind, evidence, written):
        return None
    atomic = next((one.name for one in written if one.name.startswith("tl.atomic")), None)
    does = f"calls {atomic}" if atomic else f"{kind}s"
    if not (_is_a_row(finding, evidence) or _is_a_flat_tail(finding, evidence)):
        sentence = f"Line {finding.line} {does} without a mask, and goes past the end of {finding.tensor}."
        return Diagnosis(finding.cause, sentence, finding.line)
    sentence = f"The last, partial block is not masked: line {finding.line} {does} without a mask."
    hint = f"compute mask = offsets < n, and pass it to {atomic}" if atomic else ""
    return Diagnosis(Cause.MISSING_MASK, sentence, finding.line, hint)


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


def _has_no_mask(finding: Finding, kind: str, evidence: Evidence, written: Sequence[PointerAccess]) -> bool:
    """Whether each access at the finding's line has lanes and no mask; Triton folds one away that is always true, and
    gives each atomic one: whether it was written, only the text tells."""
    mine = [op for op in evidence.operations if op.name in _ACCESSES[kind] and finding.line in evidence.lines_of(op)]
    is_folded = bool(written) and all(one.mask is not None for one in written)
    return bool(mine) and not is_folded and all(_is_tile(op) and (op.name == _ATOMIC or not mask_of(op)) for op in mine)


_ATOMIC = "tt.atomic_rmw"
_ACCESSES = {"load": ("tt.load",), "store": ("tt.store", _ATOMIC)}


def _is_tile(op: Op) -> bool:
    """Whether an access is to more than one element."""
    pointer = op.operand_types[0]
    return bool(pointer.shape or pointer.pointee is not None and pointer.pointee.shape)


def _written(finding: Finding, kind: str, text: str) -> Sequence[PointerAccess]:
    """The loads (or the stores and atomics) that the finding's line of the source has a part in."""
    draft = draft_of(text)
    every = [access for kernel in draft.kernels for access in kernel.accesses] if draft is not None else []
    return [one for one in every if one.is_load == (kind == "load") and finding.line in one.lines]


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
    if len(launches) != 1:
        return False
    ranges = (op.attributes["end"] for op in evidence.operations if op.name == "tt.make_range")
    reach = math.prod(launches[0].grid) * max(ranges, default=0)
    return finding.count in {reach - end for end in _ends(finding, evidence)}


def unwritten(evidence: Evidence) -> Diagnosis | None:
    """The elements that are never written are all those from some place, row or column on: what the grid leaves out; or
    just those that are NaN."""
    finding = evidence.find(Cause.UNWRITTEN_OUTPUT)
    tensors = [r for r in evidence.results if isinstance(r, torch.Tensor)]
    if finding is None or not finding.elements or len(tensors) != 1:
        return None
    shape, sentence = tuple(tensors[0].shape), ""
    for along, noun in enumerate(nouns(len(shape)) if {len(one) for one in finding.elements} == {len(shape)} else ()):
        first = min(one[along] for one in finding.elements)
        if finding.count * shape[along] == math.prod(shape) * (shape[along] - first):
            sentence = sentence or f"Only the first {first} of {shape[along]} {noun} of the result are ever written."
    if finding.count == math.prod(shape):
        sentence = "No element of the result is ever written."
    elif not sentence and evidence.comparison is not None and finding.count == int(evidence.comparison.nan.sum()):
        sentence = "Just those elements are NaN that nothing is ever written to."
    return Diagnosis(Cause.UNWRITTEN_OUTPUT, sentence, finding.line) if sentence else None
