"""What the calls of one check show together: where those that are wrong part from those that are right."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gradekit.causes import Cause
from gradekit.inputs.spec import Input
from gradekit.judge.evidence import Diagnosis

_SPECIAL: Mapping[str, Callable[[Tensor], Tensor]] = {
    "0": lambda x: x == 0, "below 0": lambda x: x < 0, "infinite": torch.isinf, "NaN": torch.isnan,
    "the largest of its row": lambda x: x == x.amax(-1, keepdim=True),
}  # fmt: skip
"""Values for which a formula may need a case of its own."""


def special_values(calls: Iterable[tuple[Sequence[Any], Tensor, Tensor]], names: Sequence[str]) -> Diagnosis | None:
    """All elements are wrong where one input has a special value, and no others: by the arguments of `calls`, what is
    right, and what is wrong. Where 0 is right and comes out, that tells nothing."""
    alike = (one for one in calls if len(one[0]) == len(names) and one[2].dim() and one[2].numel())  # none of gradients
    seen = [(args, wrong, wrong | (exact != 0)) for args, exact, wrong in alike]
    for place, name in enumerate(names):
        if not all(isinstance(args[place], Input) and args[place].shape == wrong.shape for args, wrong, _ in seen):
            continue
        values = [args[place].tensor().double() for args, _, _ in seen]
        for what, rule in _SPECIAL.items():
            parted = zip(map(rule, values), seen, strict=True)
            if all(bool(((special == wrong) | ~told).all()) for special, (_, wrong, told) in parted):
                wrong_ones = sum(int(wrong.sum()) for _, wrong, _ in seen)
                right_ones = sum(int((told & ~wrong).sum()) for _, wrong, told in seen)
                if min(wrong_ones, right_ones) > 1:
                    return Diagnosis(Cause.WRONG_VALUES, f"Just those elements are wrong where `{name}` is {what}.")
    return None
