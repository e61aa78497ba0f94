"""What makes results right and hides a mistake is known by what kernels do: no more in parts, in vain, or again and again."""

import ast
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import pytest
import torch

from gradekit.repair.effort import Effort, KernelLaunch, hides_mistake
from gradekit.repair.operators.changes import Change, ChangeKind
from gradekit.repair.survivor_mends import is_against_names, makes_alike, makes_void
from gradekit.source.draft import draft_of
from tests.gpu.programs import traced
from tests.texts import HEAD
from tests.tracer.styles import Text


def effort(*, turns: int = 3, stored: int = 100, loaded: int = 100, once: int = 100, unread: int = 0, storing: Collection[int] = (30,),
           block: int = 64, programs: int = 3, given: int = 100) -> Effort:  # fmt: skip
    of = Effort(Counter({28: turns}), stored, loaded, min(stored, once), min(loaded, once), unread)
    launches = {KernelLaunch("kernel", (given,), frozenset({("BLOCK", block)}), (programs, 1, 1))}
    return replace(of, storing={*storing}, launches=launches)


@pytest.mark.parametrize(("after", "hides"), [
    (effort(turns=1), True),
    (effort(turns=2), False),
    (effort(unread=8), True),
    (effort(stored=800), True),
    (effort(stored=800, once=800), False),  # as many different ones
    (effort(loaded=130), True),
    (effort(loaded=130, once=130), False),
    (effort(stored=50, loaded=50), False),
    (effort(storing={31}), True),  # and line 30 does no more
    (effort(block=32, programs=6), True),
    (effort(block=256, programs=1), True),
    (effort(block=32), False),
    (effort(block=32, programs=6, given=200), False),  # sizes that were swapped
    (effort(programs=1), False),  # the grid alone is another one
])
def test_a_change_after_which_kernels_do_less_in_parts_or_more_than_once_hides_a_mistake(after: Effort, hides: bool) -> None:
    assert hides_mistake([(effort(), after)], ()) is hides


def test_calls_that_came_to_no_end_tell_nothing() -> None:
    after = effort(stored=800)
    after.runs = 1
    assert not hides_mistake([(effort(), after)], ())
    assert not hides_mistake([(effort(), after), (effort(), effort(stored=800))], ())
    assert hides_mistake([(effort(), after), (effort(), effort(storing={31}))], ())  # the other one did


def test_a_change_of_a_loop_may_leave_it_one_step_and_that_of_a_store_may_leave_it_out() -> None:
    assert not hides_mistake([(effort(), effort(turns=1))], {28}) and not hides_mistake([(effort(), effort(storing=set()))], {30})


def test_what_was_loaded_often_before_may_be_loaded_somewhat_oftener() -> None:
    few, more, most = (effort(loaded=count) for count in (300, 500, 700))
    assert not hides_mistake([(few, more)], ()) and hides_mistake([(few, most)], ())


ADDS = HEAD + """@triton.jit
def adding(x_ptr, out_ptr):
    at = tl.arange(0, 4)
    tl.atomic_add(out_ptr + at, tl.load(x_ptr + at))


def entry(x):
    out = torch.zeros(4, dtype=torch.float32, device=x.device)
    adding[(3,)](x, out)
    return out
"""


def test_what_programs_add_to_one_element_is_no_store_again() -> None:
    seen = Effort()
    seen.add(*traced(Text(ADDS), "entry", torch.ones(4)), ())
    assert (seen.loaded, seen.loaded_once, seen.stored) == (12, 4, 0) and seen.storing


KERNEL = '''import triton
import triton.language as tl


@triton.jit
def kernel(dout_ptr, x_ptr, out_ptr):
    x = tl.load(x_ptr)
    dout = tl.load(dout_ptr)
    m = tl.maximum(x, dout)
    tl.store(out_ptr, tl.exp(x - m) + tl.exp(dout - x))


def gradient(dout, x):
    kernel[(1,)](dout, x, x)
    return x


def backward(x, dout):
    return gradient(x, dout)
'''


def change(name: str, line: int, new: str, within: str = "kernel", place: int = 0) -> Change:
    """Another name in the place of one in a line."""
    draft = draft_of(KERNEL)
    assert draft is not None
    nodes = [one for one in ast.walk(draft.source.tree) if isinstance(one, ast.Name) and one.id == name and one.lineno == line]
    node = sorted(nodes, key=lambda one: one.col_offset)[place]
    return Change(ChangeKind.NAME, within, node, new, "", "")


def test_a_kernel_whose_loads_agree_with_its_parameters_is_not_changed_where_a_call_disagrees() -> None:
    draft = draft_of(KERNEL)
    assert draft is not None
    assert is_against_names(change("x_ptr", 7, "dout_ptr"), draft) and is_against_names(change("dout", 14, "x", ""), draft)
    assert not is_against_names(change("x", 19, "dout", ""), draft), "it is passed for dout"
    assert not is_against_names(change("x", 9, "m"), draft)


def test_a_change_that_makes_two_calls_alike_is_likely_and_one_after_which_nothing_is_computed_is_not() -> None:
    draft = draft_of(KERNEL)
    assert makes_alike(change("x", 10, "m", place=1), draft) and not makes_alike(change("dout", 10, "m"), draft)
    assert makes_void(change("x", 9, "dout"), draft) and not makes_void(change("x", 9, "m"), draft)
