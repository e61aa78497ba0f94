"""The steps of a traced call that are no launches, done at once in all copies of its memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from gradekit.engine.host import DTYPES, operation
from gradekit.engine.memory import Memory
from gradekit.interpreter.tile_values import NotWalked, spread
from gradekit.program import Allocate, Aten, Copy, Fill, Launch, Literal, Step, View


def view_of_all(memory: Memory, view: View, copies: int) -> Tensor:
    """A view in each of the copies, which are its first dimension; an input is the same in all of them.

    Raises:
        NotWalked: a storage does not hold a whole number of elements.
    """
    storage = memory.storages[view.storage]
    flat = storage.typed(DTYPES[view.dtype])
    each, rest = (0, 0) if storage.is_input else divmod(storage.data.numel() // copies, flat.dtype.itemsize)
    if rest and copies > 1:
        raise NotWalked("a storage of broken elements")
    return flat.as_strided((copies, *view.shape), (each, *view.stride), flat.storage_offset() + view.offset)


def run_step(step: Step, memory: Memory, copies: int, allow: Collection[str]) -> None:
    """Does a step that is no launch in all copies.

    Raises:
        NotWalked: it changes an input, which the copies share.
    """
    match step:
        case Allocate(storage=storage, nbytes=nbytes):
            memory.allocate(storage, nbytes * copies, "", None)
        case Fill(target=target, value=value):
            _to(memory, target, copies).copy_(torch.tensor(value))
        case Copy(target=target, origin=origin):
            _to(memory, target, copies).copy_(spread(view_of_all(memory, origin, copies), 1 + len(target.shape)))
        case Literal(target=target, values=values):
            _to(memory, target, copies).copy_(torch.tensor(values).view(target.shape))
        case Aten():
            _to(memory, step.outputs[0], copies).copy_(_computed(step, memory, copies, allow))


def _to(memory: Memory, target: View, copies: int) -> Tensor:
    if memory.storages[target.storage].is_input:
        raise NotWalked("a step that changes an input")
    return view_of_all(memory, target, copies)


def _computed(step: Aten, memory: Memory, copies: int, allow: Collection[str]) -> Tensor:
    views: dict[View, Tensor] = {}

    def first(view: View) -> Tensor:
        views[view] = view_of_all(memory, view, copies)
        return views[view][0]

    alone = operation(step, allow, first)
    if not views:
        return alone()

    def of_one_copy(*tensors: Tensor) -> Tensor:
        return operation(step, allow, dict(zip(views, tensors, strict=True)).__getitem__)()

    return torch.vmap(of_one_copy)(*views.values())


def leading_to(wanted: set[int], steps: Sequence[Step], stored: Sequence[set[int]]) -> list[bool]:
    """For each step whether what the `wanted` storages hold at the end may depend on it; `stored` has the storages that
    each launch has written."""
    needed, found = set(wanted), list[bool]()
    for step, mine in zip(reversed(steps), reversed(stored), strict=True):
        written, taken = _flow(step, mine)
        found.append(bool(written & needed))
        if found[-1]:
            needed |= {view.storage for view in _views(taken)}
    return found[::-1]


def _flow(step: Step, stored: set[int]) -> tuple[set[int], tuple[Any, ...]]:
    """The storages that a step writes, a launch those that it has `stored` to, and what it takes."""
    match step:
        case Launch(args=args):
            return stored, args
        case Allocate(storage=storage):
            return {storage}, ()
        case Copy(target=target, origin=origin):
            return {target.storage}, (origin,)
        case Aten(args=args, kwargs=kwargs, outputs=outputs):
            return {view.storage for view in outputs}, (args, kwargs)
        case Fill(target=target) | Literal(target=target):
            return {target.storage}, ()
    return set(), ()


def _views(taken: Any) -> Iterator[View]:
    """The tensors among what a step takes."""
    if isinstance(taken, View):
        yield taken
    elif isinstance(taken, (tuple, dict)):
        for one in taken.values() if isinstance(taken, dict) else taken:
            yield from _views(one)
