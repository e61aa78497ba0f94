"""Kinds of values for a cache of which only a part counts: the lengths of its sequences, and what lies past them.

All that the values depend on stands in the kind's name, a seed too, so that a cache and its lengths are made apart and agree.

    lengths:MOST:SEED          whole numbers from 1 to MOST, MOST itself often, or always where SEED is -1
    cut:MOST:SEED:OWN          [B, H, S, D]: seed OWN, and from position `lengths:MOST:SEED` of each b on NaN and
                               infinity by turns: a kernel that takes NaN away after the load still uses the others
"""

import math

import torch

from gradekit.inputs.value_kinds import value_kind


def lengths(count, most, seed):
    """`count` lengths from 1 to `most`, int64; a quarter of them are `most`, one of the first two is; all if seed < 0."""
    if seed < 0:
        return torch.full((count,), most)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(1, most + 1, (count,), generator=generator)
    whole = torch.randint(0, 4, (count,), generator=generator) == 0
    whole[seed % min(count, 2) if count else slice(0)] = True
    return drawn.masked_fill(whole, most)


@value_kind("lengths", parameters=True)
def of_lengths(shape, most, seed):
    return lengths(math.prod(shape), int(most), int(seed)).reshape(shape)


@value_kind("cut", parameters=True)
def of_cut(shape, most, seed, own):
    generator = torch.Generator().manual_seed(int(own))
    values = torch.randint(-4096, 4097, shape, generator=generator).double() / 2048
    ends = lengths(shape[0], int(most), int(seed))[:, None, None, None]
    places = torch.arange(shape[2])[:, None]
    rubbish = torch.where((places + torch.arange(shape[3])) % 2 == 0, math.nan, math.inf).double()
    return torch.where(places >= ends, rubbish, values)
