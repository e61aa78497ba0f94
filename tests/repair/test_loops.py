"""Loops by what their text shows: `while` loops as `for` loops, places that are moved on, comparisons that bound them."""

from __future__ import annotations

import pytest

from gradekit.repair.idioms.candidates import SPECIFIC, mends
from gradekit.source.draft import Draft
from gradekit.source.loops import counter_of, counts_down, counts_steps, names_of_steps, range_of
from tests.repair.corpora import ROOT

WHILE = "tests/course/right/softmax/while_loops.py"
LEFT = "tests/course/right/matmul/what_is_left.py"
PLACES = "tests/course/right/spmm/moving_places.py"
DECODE = "solutions/decode_attention/right_one_query_a_program.py"
STRIDE = "tests/course/right/vector_add/grid_stride.py"
DROPS = "tests/course/right/dropout/grid_stride.py"
SPLIT = "tests/course/right/decode_attention/split_in_four.py"
FLASH = "tests/course/right/flash_attention/delta_on_the_way.py"
GROUPED = "solutions/decode_attention/right_grouped_dot.py"
IN_STEP = "tests/course/right/spmm/rows_in_step.py"


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "changes", "said", "put"),
    [
        (WHILE, {"total = total * tl.exp(top - safe) +": "total = total +"},
         "adds to `total` without rescaling it", "total = total * tl.exp(top - higher) +"),
        (WHILE, {"tl.maximum(top, tl.max(x, axis=1))": "tl.max(x, axis=1)"},
         "takes the maximum of this tile alone", "tl.maximum(top, tl.max(x, axis=1))"),
        (WHILE, {"scale = 1.0 / total\n    done = 0": "scale = 1.0 / total"},
         "where the loop in line 16 has left it", "scale = 1.0 / total; done = 0"),
        (LEFT, {"while left > 0": "while left > BK"}, "goes on only while `left > BK`", "while left > 0:"),
        (LEFT, {"        pb += BK * s_bk\n": ""}, "`pb` is never advanced", "; pb += BK * s_bk"),
        (PLACES, {"        e += E\n": ""}, "`e` is the same in every step of the loop", "; e += E"),
        (PLACES, {"tl.cdiv(hi - lo, E)": "1"}, "ends at 1, and `e` goes up to hi", "range(0, tl.cdiv(hi - lo, E))"),
        (PLACES, {"live = e < hi": "live = e < lo + E"}, "bounds `e` by lo + E", "live = e < hi"),
        (STRIDE, {", tl.num_programs(0), num_stages": ", num_stages"}, "goes on to the very next step",
         "tl.cdiv(n, BLOCK), tl.num_programs(0), num"),
        (STRIDE, {"tl.range(tl.program_id(0),": "tl.range(0,"}, "begins with the same step in every program",
         "tl.range(tl.program_id(0),"),
        (DROPS, {"tl.num_programs(0) * BLOCK": "tl.num_programs(0)"}, "goes on by less", "n, step * BLOCK)"),
        (SPLIT, {"(b * q_heads + h) * 4 + part": "(b * q_heads + h) + part"}, "has `row * 4` and adds `part`",
         "((b * q_heads + h) * 4) + part"),
        (FLASH, {"tl.dot(tl.trans(p).to": "tl.dot(p.to"}, "multiplies `p` as it lies", "tl.dot(tl.trans(p).to"),
        (IN_STEP, {"tl.max(last - first": "tl.min(last - first"}, "as many steps as the smallest of `last - first`",
         "tl.max(last - first"),
        (GROUPED, {"(h * G + g)[:, None]": "(h + g)[:, None]"}, "where line 41 has `h * G` and adds `g`", "(h * G + g)[:"),
    ],
)  # fmt: skip
def test_what_a_loop_or_a_bound_lacks_is_named(path: str, changes: dict[str, str], said: str, put: str) -> None:
    source = text(path)
    wrong = source
    for right, mistaken in changes.items():
        assert right in wrong
        wrong = wrong.replace(right, mistaken, 1)
    found = [mend for mend in mends(wrong) if said in mend.sentence and put in mend.applied(wrong)]
    assert found and found[0].rank <= SPECIFIC + 4
    assert not any(said in mend.sentence and mend.rank <= SPECIFIC for mend in mends(source))


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
    assert [counts_down(loop) for loop in loops] == [False, False, False, True, False]
    assert [len(range_of(loop)) for loop in loops] == [1, 3, 0, 0, 0]
    assert ["BLOCK" in names_of_steps(loop) for loop in loops] == [False, True, True, True, False]


def test_places_that_begin_at_a_loaded_number_are_indices() -> None:
    kernel = Draft(text(PLACES)).kernels[0]
    assert kernel.indices == ["j", "e"] and kernel.bounds["e"] == ["hi"]
