"""Whether a mend is right by chance where it was tried: with other values of what it puts in, or of the inputs, it goes
wrong, and the text as it is does not."""

import ast
import contextlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradekit.interpreter.walked_call import WRONG
from gradekit.program import Program
from gradekit.repair.mend import Mend
from gradekit.repair.shown_calls import as_called
from gradekit.repair.walked_submission import WalkedSubmission
from gradekit.source.draft import draft_of
from gradekit.source.kernel import target_of
from gradekit.subject.subject import Call
from gradekit.submission.parsed_source import ParsedSource

_LARGE = 2 * math.log(torch.finfo(torch.float32).max)
"""A number whose powers are beyond float32."""


def chosen_by(mend: Mend, text: str) -> set[int]:
    """The numbers that host code gives those constants of a kernel which a mend puts in: the width of a tile, say, that
    may as well be another."""
    draft, (new, _) = draft_of(text), _words(mend, text)
    launches = [one for one in draft.launches if one.kernel.name == mend.kernel] if draft is not None else []
    given = [one.given.get(name) for one in launches for name in new & {*one.kernel.constexprs}]
    names = {one.id for one in given if isinstance(one, ast.Name)}
    every = ast.walk(draft.source.tree) if draft is not None else ()
    given += [one.value for one in every if isinstance(one, ast.Assign) and target_of(one) in names]
    return {one.value for one in given if isinstance(one, ast.Constant) and type(one.value) is int and one.value > 2}


def _words(mend: Mend, text: str) -> tuple[set[str], set[str]]:
    """The words that a mend puts in, and those that it takes out."""
    data, words = text.encode("utf-8"), lambda parts: Counter(re.findall(r"\w+", " ".join(parts)))
    new, old = (one.new for one in mend.edits), (data[one.start : one.end].decode("utf-8") for one in mend.edits)
    put, gone = words(new), words(old)
    return {*put - gone}, {*gone - put}


def with_one(mend: Mend, text: str) -> list[str]:
    """The texts after a mend with 1 in the place of a name of the kernel that it puts in, but of a stride for another,
    as many are 1, and of a factor of what it puts in: the rest of that is right then."""
    draft, (put, gone) = draft_of(text), _words(mend, text)
    kernels = [one for one in draft.kernels if one.name == mend.kernel] if draft is not None else []
    strides = {name for one in kernels for name in one.strides}
    names = put & {name for one in kernels for name in one.params} - (strides if strides & gone else set())
    as_one = lambda name, new: re.sub(rf"(?<![\w.*])(?<!\* ){name}\b(?! *\*)", "1", new)
    changed = lambda name: tuple(replace(one, new=as_one(name, one.new)) for one in mend.edits)
    return [replace(mend, edits=new).applied(text) for new in map(changed, names) if new != mend.edits]


def with_another(text: str, number: int) -> str:
    """A text with about the root of a number, a power of 2, in its place in host code."""
    source, data = ParsedSource(text), text.encode("utf-8")
    inside = {node for kernel in source.kernels for node in ast.walk(kernel)}
    numbers = (one for one in ast.walk(source.tree) if isinstance(one, ast.Constant) and type(one.value) is int)
    places = {source.span(one) for one in numbers if one not in inside and one.value == number}
    for start, end in sorted(places, reverse=True):
        data = data[:start] + str(1 << number.bit_length() // 2).encode() + data[end:]
    return data.decode("utf-8")


def breaks(call: Call, program: Program, before: str, after: str) -> bool:
    """Whether a call gives NaN with a text `after` a mend, where inputs are so large that their powers are infinite,
    as they stand or from the smallest to the largest, in places that have none with the text `before`."""
    large = _large(as_called(call).args)
    rising = [_rising(one) if one is not given else one for one, given in zip(large, as_called(call).args, strict=True)]

    def nan(text: str, args: Sequence[Any]) -> list[Tensor]:
        entry = getattr(WalkedSubmission(ParsedSource(text), program), call.entry)
        found = entry.gradient(*args[:-1], upstream=args[-1], wanted=call.wanted) if call.wanted else entry(*args)
        return [one.isnan() for one in found]

    with contextlib.suppress(*WRONG):
        pairs = (pair for args in (large, rising) for pair in zip(nan(before, args), nan(after, args), strict=True))
        return any(bool((now & ~seen).any()) for seen, now in pairs)
    return False


def _rising(tensor: Tensor) -> Tensor:
    return tensor.flatten().sort().values.view(tensor.shape)


def _large(args: Sequence[Any]) -> list[Any]:
    floats = [one for one in args if isinstance(one, Tensor) and one.is_floating_point() and one.numel()]
    most = max((float(one.abs().nan_to_num(0.0, 0.0, 0.0).max()) for one in floats), default=0.0)
    scaled = lambda one: one.nan_to_num() * (_LARGE / most)  # a NaN that is given may be stored where nothing was
    return [scaled(one) if most and any(one is each for each in floats) else one for one in args]
