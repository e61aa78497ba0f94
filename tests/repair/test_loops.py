"""Loops by what their text shows: `while` loops as `for` loops, places that are moved on, comparisons that bound them."""

from __future__ import annotations

from gradekit.source.draft import Draft
from gradekit.source.kernel import counter_of, counts_steps, names_of_steps, range_of
from tests.right import text

LEFT = "tests/course/right/matmul/what_is_left.py"
PLACES = "tests/course/right/spmm/moving_places.py"
SPLIT = "tests/course/right/decode_attention/split_in_four.py"


HEADS = """
@triton.jit
def kernel(p, n, BLOCK: tl.constexpr):
    for i in range(n):
        tl.store(p + i, 0)
    for i in range(0, n, BLOCK):
        tl.store(p + i, 0)
    done = 0
    while done < n:
        done += BLOCK
    while n > 0:
        n -= BLOCK
    while tl.atomic_cas(p, 0, 1) == 1:
        pass
"""


def test_the_heads_of_loops_show_what_they_count_with() -> None:
    loops = Draft(HEADS).kernels[0].loops
    assert [counter_of(loop) for loop in loops] == ["i", "i", "done", "n", ""]
    assert [counts_steps(loop) for loop in loops] == [True, False, False, False, False]
    assert [len(range_of(loop)) for loop in loops] == [1, 3, 0, 0, 0]
    assert ["BLOCK" in names_of_steps(loop) for loop in loops] == [False, True, True, True, False]


def test_places_that_begin_at_a_loaded_number_are_indices() -> None:
    kernel = Draft(text(PLACES)).kernels[0]
    assert kernel.indices == ["j", "e"] and kernel.bounds["e"] == ["hi"]
