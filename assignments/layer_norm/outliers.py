"""Rows that have all their outliers where a kernel may look first."""

import torch

from gradekit.inputs.value_kinds import make, value_kind


@value_kind("outliers")
def outliers(shape, dtype, generator):
    """As `normal`, but eight elements at the beginning of a row, in its middle and at its end are around 1024, all of them or
    one eight by turns: neither one of these nor their median is an estimate of the row's mean."""
    values, place = make("normal", shape, dtype, generator).clone(), torch.arange(shape[-1])
    turn = torch.arange(len(values)).view(-1, 1) % 4
    for number, first in enumerate((shape[-1] // 2, 0, max(shape[-1] - 8, 0)), 1):
        here = (place >= first) & (place < first + 8) & ((turn == number) | (turn == 0))
        values[here] += 1024.0
    return values
