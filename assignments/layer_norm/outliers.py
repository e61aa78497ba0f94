"""Rows that have all their outliers where a kernel may look first."""

import torch

from gradekit.inputs.value_kinds import make, value_kind


@value_kind("outliers")
def outliers(shape, dtype, generator):
    """As `normal`, but by turns the eight elements in the middle of a row, at its beginning and at its end are around 1024: one
    of these is no estimate of the row's mean."""
    values = make("normal", shape, dtype, generator).clone()
    first = torch.tensor([shape[-1] // 2, 0, max(shape[-1] - 8, 0)])[torch.arange(len(values)) % 3].view(-1, 1)
    place = torch.arange(shape[-1])
    return values + 1024.0 * ((place >= first) & (place < first + 8))
