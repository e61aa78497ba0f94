"""What the calls of one check show together: where those that are wrong part from those that are right."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gradekit.causes import Cause
from gradekit.inputs.spec import Input
from gradekit.judge.evidence import Diagnosis
from gradekit.program import Program

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


_RULES: Mapping[str, Callable[[int, int], bool]] = {
    "above {} = {}": lambda size, tile: size > tile,
    "no multiple of {} = {}": lambda size, tile: size % tile > 0,
    "above {} = {} and no multiple of it": lambda size, tile: size > tile and size % tile > 0,
}


def sizes_at_tiles(calls: Sequence[tuple[Mapping[str, int], bool]], program: Program) -> Diagnosis | None:
    """Calls are wrong just where one size goes beyond a constant of a kernel, or is no multiple of it: by the sizes of
    the `calls`, and whether each is right. None where several sizes or constants would do, or have one value, or where
    the constant itself and what comes behind it were not tried."""
    named = {one for kernel in program.kernels.values() for one in kernel.constants.items() if type(one[1]) is int}
    alone = lambda place, it: sum(one[place] == it for one in named) == 1
    constants, found = {n: name for name, n in named if n > 1 and alone(0, name) and alone(1, n)}, list[Diagnosis]()
    for size, (tile, name) in itertools.product(set[str]().union(*(one for one, _ in calls)), constants.items()):
        right, wrong = ({one.get(size, 0) for one, is_right in calls if is_right is it} for it in (True, False))
        for what, rule in _RULES.items() if len(right) > 1 and tile in right and tile + 1 in wrong else ():
            if {rule(one, tile) for one in wrong} == {True} and {rule(one, tile) for one in right} == {False}:
                sentence = f"Just those calls are wrong in which `{size}` is {what.format(name, tile)}."
                found.append(Diagnosis(Cause.WRONG_VALUES, sentence))
                break
    return found[0] if len(found) == 1 else None
