"""Diagnoses by trying what the result would be if one input had other values: all
zeros, all ones, or the other sign."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from gradekit.findings import Cause
from gradekit.judge import ttir_text
from gradekit.judge.evidence import Diagnosis, Evidence, explained

_OTHERS: tuple[tuple[Callable[[torch.Tensor], torch.Tensor], str], ...] = (
    (torch.zeros_like, "The result is what comes of {} filled with zeros, as if it were left out."),
    (torch.ones_like, "The result is what comes of {} filled with ones, as if it were missing as a factor."),
    (torch.neg, "The result is what comes of -{}, as if its sign were the wrong way round."),
)
"""What an input may have been in the student's formula, and how that is said."""


def one_input_replaced(evidence: Evidence) -> Diagnosis | None:
    """Every element is what comes of one input being left out or negated, and no other input explains it so."""
    comparison = evidence.comparison
    if comparison is None or len(evidence.specs) != len(comparison.reference.inputs) or len(evidence.specs) < 2:
        return None
    found = [(place, sentence) for place, others, sentence in _hypotheses(evidence) if explained(comparison, others)]
    if len(found) > 1 or not comparison.actual.any():
        # As where all inputs are alike, or where zeros come of zeros anyway: an input that no kernel reads is left out.
        unread = _unread(evidence)
        found = [(place, sentence) for place, sentence in found if place in unread]
    if len({place for place, _ in found}) != 1:
        return None
    place, sentence = found[0]
    return Diagnosis(Cause.WRONG_VALUES, sentence, input=place)


def _unread(evidence: Evidence) -> set[int]:
    """The positions of inputs that a kernel is given and none reads."""
    if evidence.program is None:
        return set()
    unread = ttir_text.unread_storages(evidence.program)
    return {place for place, view in enumerate(evidence.program.inputs) if view.storage in unread}


def _hypotheses(evidence: Evidence) -> Iterator[tuple[int, list[torch.Tensor], str]]:
    assert evidence.comparison is not None
    inputs = evidence.comparison.reference.inputs
    for position, tensor in enumerate(inputs):
        if not tensor.is_floating_point():
            continue
        for other, sentence in _OTHERS:
            name = evidence.name(position)
            yield position, [*inputs[:position], other(tensor), *inputs[position + 1 :]], sentence.format(name)
