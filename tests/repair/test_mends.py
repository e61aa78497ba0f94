"""A mended program names what is wrong: one edit, its line, and a sentence; nothing is said of what no edit mends."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import get
from gradekit.causes import Cause
from gradekit.program import Kernel, Program
from gradekit.repair.idioms.candidates import SPECIFIC, in_order, mends
from gradekit.repair.mend import Clues, Family, Mend
from gradekit.repair.search import Mending, OtherChecks, Tries, compiling, without_experiments
from gradekit.repair.work import Work
from gradekit.subject.subject import Subject
from gradekit.submission import Submission, read
from tests.repair.corpora import ROOT, assignments, corpus

RIGHT = [
    "solutions/softmax/right_one_row.py", "solutions/softmax/right_online.py", "tests/course/right/matmul/tutorial.py",
    "solutions/layer_norm/right_column_sums.py", "solutions/flash_attention/right_tutorial_pointers.py",
    "solutions/spmm/solution.py", "tests/course/right/vector_add/rows_and_columns.py",
]  # fmt: skip
CLUES = Clues(frozenset({Cause.WRONG_VALUES}), ())
BOXES = "solutions/giou_loss/right_by_sample.py"
DECODE = "solutions/decode_attention/right_one_query_a_program.py"
ONLINE = ROOT / "solutions/softmax/right_online.py"


WALK = """\
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load"""


def text(path: str | Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RIGHT)
def test_every_mend_is_another_program_of_as_many_lines(path: str) -> None:
    source = text(path)
    found = mends(source)
    assert found
    for mend in found[::7]:
        changed = mend.applied(source)
        assert changed != source and changed.count("\n") == source.count("\n")
        assert 1 <= mend.line <= source.count("\n") and mend.sentence and mend.hint


SENTENCES = """
import pathlib, sys
from gradekit.repair.idioms.candidates import mends
for path in sys.argv[1:]:
    for mend in mends(pathlib.Path(path).read_text()):
        print(mend.rank, mend.sentence, [(edit.start, edit.new) for edit in mend.edits])
"""


def test_the_mends_and_their_order_are_the_same_in_every_process() -> None:
    """Sets of strings are walked in another order in each process; which mends fit the budget must not depend on it."""
    paths = ["solutions/matmul/solution.py", "solutions/custom_op/solution.py", "tests/course/right/layer_norm/welford.py"]
    said = [
        subprocess.run(
            [sys.executable, "-c", SENTENCES, *paths], env=os.environ | {"PYTHONHASHSEED": seed}, cwd=ROOT,
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]  # fmt: skip
    assert said[0] and said[0] == said[1] == said[2]


def test_what_is_no_python_has_no_mends() -> None:
    assert mends("def f(:") == [] and mends("") == []


def mended(source: str, old: str, new: str, said: str) -> list[Mend]:
    """The mends that say so of a source with a mistake, and give the right source back, by its meaning."""
    right, wrong = ast.dump(ast.parse(source)), source.replace(old, new)
    assert wrong != source
    saying = [mend for mend in in_order(mends(wrong), CLUES) if said in mend.sentence]
    return [mend for mend in saying if ast.dump(ast.parse(mend.applied(wrong))) == right]


@pytest.mark.parametrize(
    ("path", "old", "new", "said"),
    [
        ("solutions/flash_attention/right_tutorial_pointers.py", "acc = acc * alpha[:, None] + tl.dot(",
         "acc = acc + tl.dot(", "without rescaling"),
        ("solutions/matmul/right_default_precision.py", "tl.cdiv(K, BK)", "K // BK", "rounds `K // BK` down"),
        ("solutions/matmul/right_default_precision.py", "b.stride(0), b.stride(1)", "b.stride(1), b.stride(0)", "swapped"),
        ("solutions/layer_norm/right_column_sums.py", "mean = tl.sum(x, axis=0) / N", "mean = tl.sum(x, axis=0) / BLOCK", "block"),
        ("solutions/layer_norm/right_column_sums.py", "tl.sqrt(var + eps)", "(var + eps)", "square root"),
        ("solutions/flash_attention/right_tutorial_pointers.py", "ds = p * (dp - delta[:, None]) * sm_scale",
         "ds = p * (dp - delta[:, None])", "scale is missing"),
        ("solutions/flash_attention/right_tutorial_pointers.py", "alpha = tl.exp(top - new_top)",
         "alpha = tl.exp(new_top - top)", "wrong way round"),
        ("solutions/fused_chain/right_row_and_block.py", "h * h * h", "h * h", "cube"),
        ("solutions/fused_chain/right_row_and_block.py", "*residual.stride()", "*residual.stride()[::-1]", "reverse order"),
        ("solutions/dropout/right_tutorial.py", "x / (1 - p)", "x", "probability to be kept"),
        ("solutions/dropout/right_tutorial.py", "tl.rand(seed, offsets)", "tl.rand(seed, tl.arange(0, BLOCK))", "counter"),
        ("solutions/dropout/right_tutorial.py", "tl.rand(seed, offsets)", "tl.rand(0, offsets)", "seed"),
        ("solutions/dropout/right_tutorial.py", "tl.rand(seed", "tl.randn(seed", "uniform"),
        ("solutions/layer_norm/right_column_sums.py", "(x - mean) * rstd * w + b", "(x - mean) / rstd * w + b", "where * belongs"),
        ("solutions/custom_op/right_flat.py", "0.5 * h * (1 + tl.erf(h * 0.7071067811865476))", "h * tl.sigmoid(1.702 * h)",
         "another form of gelu than the formula, which has erf"),
        ("tests/course/right/vector_add/tutorial.py", '(triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)',
         '(triton.cdiv(n_elements, meta["BLOCK_SIZE"]) - 1,)', "wrong number of programs"),
        ("solutions/matmul/right_default_precision.py", "c_ptr + rm[:, None] * N + rn[None, :]", "c_ptr + rm[:, None] + rn[None, :] * M",
         "transposed"),
        ("tests/course/right/layer_norm/walks.py", "tl.where(cols < N, x - mean, 0.0)", "x - mean", "past the end of a row take part"),
        ("solutions/dropout/right_tutorial.py", "run(dout, ctx.p, ctx.seed)", "run(dout, 0.5, ctx.seed)", "kept as ctx.p"),
        ("solutions/dropout/right_tutorial.py", "tl.where(keep, x / (1 - p), 0.0)", "tl.where(keep, tl.where(p > 0, x / p, x), 0.0)",
         "the probability to be kept"),
        ("solutions/fused_chain/right_row_and_block.py", "grid = (M, triton.cdiv(N, 256))", "grid = (M,)", "one axis less"),
        ("tests/course/right/softmax/tutorial.py", "1)](y, x, x.stride", "1)](x, y, x.stride", "swapped"),
        ("solutions/softmax/right_online.py", "tl.exp(m - safe)", "tl.exp(safe - m)", "the wrong way round"),
        ("tests/course/right/matmul/persistent.py", "step * BK + tl.arange", "step + tl.arange", "counts steps"),
        ("tests/course/right/matmul/split_k.py", "K, BK * SPLIT)", "K, BK)", "takes every step"),
        ("tests/course/right/matmul/persistent.py", "tile // tiles_n, tile % tiles_n", "tile % tiles_n, tile // tiles_n", "are swapped"),
        ("solutions/layer_norm/right_column_sums.py", "x, weight, mean, rstd = ctx", "x, weight, rstd, mean = ctx", "the order is another"),
        ("solutions/layer_norm/right_column_sums.py", "return dx, dw, db, None", "return dx, db, dw, None", "order of gradients"),
        ("tests/course/right/layer_norm/locks.py", "(parts_b, db", "(parts_w, db", "no launch reads parts_b"),
        ("solutions/softmax/right_one_row.py", "e / total", "e / N", "nothing uses `total`, the sum"),
        ("solutions/softmax/right_one_row.py", "x - tl.max(x, axis=0)", "x / tl.max(x, axis=0)", "has / in"),
        ("solutions/dropout/right_tutorial.py", ">= p", ">= 0.5", "whatever `p` is"),
        ("solutions/custom_op/right_flat.py", "[(triton.cdiv(n, 512),)](x, bias, out, n, x.shape[-1]",
         "[(triton.cdiv(n, 512),)](x, bias, out, n, x.shape[0]", "wrong dimension"),
        (BOXES, "db = area_h + tl.where(pb < gb", "db = area_h + tl.where(pb > gb", "its comparison has > where that has <"),
        (BOXES, "inter_w = tl.where(iw > 0, d_inter * ih, 0.0)", "inter_w = d_inter * ih", "not made like its counterpart"),
        (BOXES, "tl.where(real, dl * scale, 0.0)", "dl * scale", "not made like its counterpart"),
        (BOXES, "dl = -area_w", "dl = area_w", "another sign"),
        (BOXES, "count.clamp(1)", "count", "0 where nothing counts"),
        (BOXES, "count.clamp(1)", "(B * N)", "not by `count`"),
        (DECODE, "b * svb + kv_h * svh + s[:, None] * svs + d[None, :] * svd",
         "b * skb + kv_h * skh + s[:, None] * sks + d[None, :] * skd", "the strides of another tensor"),
        (DECODE, "scores = tl.where(s < length, scores, -float(\"inf\"))", "scores = tl.where(s < length, scores, 0.0)", "is a weight"),
        (DECODE, "new_top = tl.maximum(top, tl.max(scores, axis=0))", "new_top = tl.max(scores, axis=0)", "of this tile alone"),
        (DECODE, "kv_h * svh", "h * svh", "goes by `h` where `kv_h` belongs"),
        (DECODE, "Hq, Hq // Hkv, sm_scale", "Hq, Hkv, sm_scale", "how many groups there are"),
        (DECODE, "length = tl.load(lengths_ptr + b * sl)", "length = 4096", "nothing loads what lengths_ptr holds"),
        ("solutions/fused_chain/solution.py", "mask = (m < rows) & (n < columns)", "mask = (m < rows) | (n < columns)",
         "joins `(m < rows) | (n < columns)` with |"),
        ("solutions/fused_chain/right_row_and_block.py", "tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)", "tl.arange(0, BLOCK)",
         "never asks for tl.program_id(1)"),
        ("solutions/matmul/right_default_precision.py", "cdiv(N, 32))", "cdiv(N, 64))", "divides by 64 along axis 1, and"),
        ("solutions/matmul/right_default_precision.py", "(triton.cdiv(M, 32), triton.cdiv(N, 32))",
         "(triton.cdiv(M, 64), triton.cdiv(N, 16))", "divides by 64 along axis 0, and"),
        ("solutions/dropout/right_strides.py", "n = x.numel()", "n = x.shape[-1]", "the size of one dimension"),
        ("solutions/spmm/right_row_and_tile.py", "k[:, None] * s_bk + n[None, :] * s_bn", "k[:, None] * N + n[None, :]",
         "as if it were contiguous"),
    ],
)  # fmt: skip
def test_a_beginners_mistake_has_a_mend_that_gives_the_right_program_back(
    path: str | Path, old: str, new: str, said: str
) -> None:
    assert mended(text(path), old, new, said)


def test_two_tensors_are_exchanged_early_where_their_strides_are_in_the_right_order() -> None:
    (mend,) = mended(
        text("solutions/layer_norm/right_column_sums.py"), "x, weight, bias, out,", "x, bias, weight, out,", "are swapped"
    )
    assert mend.rank <= SPECIFIC


@pytest.mark.parametrize("path", [*RIGHT, BOXES, DECODE])
def test_lines_of_a_right_program_are_hardly_ever_held_against_counterparts(path: str) -> None:
    """Each such mend costs a try before all others: the program is right, so that none of them would help."""
    assert len([mend.sentence for mend in mends(text(path)) if "its counterpart" in mend.sentence]) <= 1


def test_no_stride_of_an_input_is_advised_for_the_result() -> None:
    """Where x is contiguous, its strides are the result's, and a program with them comes out right."""
    right = text("solutions/softmax/right_one_row.py").replace("row * N + cols", "row * stride_out + cols")
    right = right.replace("out_ptr, N, stride_xm", "out_ptr, N, stride_out, stride_xm")
    for passed in ("M", "x.stride(1)"):
        wrong = right.replace("](x, out, N, x.stride(0)", f"](x, out, N, {passed}, x.stride(0)")
        advised = [mend.hint for mend in mends(wrong) if f"passes {passed} for stride_out" in mend.sentence]
        assert any("out.stride(" in hint for hint in advised)
        assert not any("x.stride(" in hint for hint in advised)


@pytest.mark.parametrize(
    ("path", "line", "said"),
    [
        ("tests/course/right/matmul/row_sums.py", "        acc = tl.zeros((BN,), tl.float32)\n", "goes on from what it held"),
        ("tests/course/right/layer_norm/walks.py", WALK, "goes on from what it held"),
    ],
)  # fmt: skip
def test_an_accumulator_that_is_not_begun_anew_is_named(path: str, line: str, said: str) -> None:
    right = text(path)
    first = line.split("\n", 1)[0] + "\n"
    wrong = right.replace(line, line.removeprefix(first))
    if "row_sums" in path:  # begun once, before all columns
        wrong = wrong.replace("    for j0 in range", f"{first[4:]}    for j0 in range")
    assert wrong != right and any(said in mend.sentence for mend in mends(wrong))
    assert not any(said in mend.sentence for mend in mends(right))




def test_exp_with_the_other_sign_and_erf_with_another_factor_are_named() -> None:
    right = text("solutions/custom_op/right_flat.py")
    turned = right.replace("tl.exp(-0.5 * h * h)", "tl.exp(0.5 * h * h)")
    assert any("wrong sign" in mend.sentence and "tl.exp(-(0.5 * h * h))" in mend.applied(turned) for mend in mends(turned))
    assert not any("/ tl.exp(" in mend.applied(turned) for mend in mends(turned))
    halved = right.replace("tl.erf(h * 0.7071067811865476)), mask", "tl.erf(h / 2.0)), mask")
    assert any("another factor than 1 / sqrt(2)" in mend.sentence and mend.applied(halved) == right for mend in mends(halved))


def test_a_form_of_gelu_is_not_blamed_for_a_mistake_in_its_own_formula() -> None:
    wrong = text("solutions/custom_op/right_flat.py").replace("h * 0.7071067811865476", "h")
    assert not [mend for mend in mends(wrong) if "which has erf" in mend.sentence]


def test_a_mask_that_forgets_a_dimension_is_blamed_where_it_is_made() -> None:
    rows_and_columns = text("tests/course/right/vector_add/rows_and_columns.py")
    wrong = rows_and_columns.replace("(cols < N)[None, :]", "(cols >= 0)[None, :]")
    saying = [mend for mend in mends(wrong) if "does not bound `cols`" in mend.sentence]
    assert saying and {wrong.splitlines()[mend.line - 1].split()[0] for mend in saying} == {"mask"}


def test_a_mask_that_is_right_for_another_tensor_is_blamed_where_it_is_used() -> None:
    kernel = (
        "@triton.jit\ndef k(x_ptr, y_ptr, M, N, B: tl.constexpr):\n    m = tl.arange(0, B)\n    n = tl.arange(0, B)\n"
        "    mask = m < M\n    x = tl.load(x_ptr + m, mask=mask)\n"
        "    tl.store(y_ptr + m[:, None] * N + n[None, :], x[:, None], mask=mask)\n"
    )
    saying = [mend for mend in mends(kernel) if "does not bound `n`" in mend.sentence]
    assert {mend.line for mend in saying} == {7}


def test_a_mask_that_forgets_a_step_is_given_the_bound_of_the_other_tensors_step() -> None:
    kernel = (
        "@triton.jit\ndef k(a_ptr, b_ptr, out_ptr, M, K, B: tl.constexpr):\n    i = tl.arange(0, B)[:, None]\n"
        "    for s in range(0, K, B):\n        ka = s + tl.arange(0, B)[None, :]\n        kb = s + tl.arange(0, B)[:, None]\n"
        "        a = tl.load(a_ptr + i * K + ka, mask=i < M, other=0.0)\n        b = tl.load(b_ptr + kb, mask=kb < K, other=0.0)\n"
        "        tl.store(out_ptr + i, tl.dot(a, b), mask=i < M)\n"
    )
    saying = [mend for mend in mends(kernel) if "does not bound `ka`" in mend.sentence]
    assert any("mask=(i < M) & (ka < K)" in mend.applied(kernel) for mend in saying)
    assert not any("ka < M" in mend.applied(kernel) for mend in saying)


def test_a_mend_that_leaves_copies_of_its_line_wrong_is_made_in_all_of_them() -> None:
    right = text("solutions/dropout/right_tutorial.py")
    kernel = right[right.index("@triton.jit") :].partition("\n\n\n")[0]
    twice = f"{right}\n\n{kernel.replace('def ', 'def other_')}\n"
    wrong = twice.replace("tl.rand(seed, offsets)", "tl.rand(seed, 7)")
    holds = lambda mend: OtherChecks.ALL if mend.applied(wrong) == twice else OtherChecks.NOT
    found = Mending(wrong).found(CLUES, Tries(lambda changed: "rand(seed, offsets)" in changed, holds=holds))
    lines = [number for number, line in enumerate(wrong.splitlines(), 1) if "tl.rand(seed, 7)" in line]
    assert found is not None and len(lines) == 2 and found.line in lines
    assert found.sentence.endswith(f"Line {sum(lines) - found.line} is the same.")


def test_a_mask_that_holds_an_index_above_zero_alone_does_not_bound_it() -> None:
    source = text("solutions/layer_norm/right_column_sums.py")
    wrong = source.replace("mask = (rows < M) & (cols < N)", "mask = (rows >= 0) & (cols < N)")
    said = "does not bound `rows`"
    assert not any(said in mend.sentence and len(mend.edits) > 1 for mend in mends(source))
    assert any(said in mend.sentence and len(mend.edits) > 1 for mend in mends(wrong))


def test_steps_that_are_rounded_down_are_mended_together_with_the_masks_that_they_need() -> None:
    source = text("solutions/matmul/right_default_precision.py")
    wrong = source.replace("tl.cdiv(K, BK)", "K // BK").replace(" & (rk[None, :] < K)", "")
    wrong = wrong.replace("(rk[:, None] < K) & ", "")
    both = [mend for mend in mends(wrong) if "rounds `K // BK` down" in mend.sentence and "does not bound" in mend.sentence]
    assert both and all(len(mend.edits) >= 3 for mend in both)


def test_the_first_mend_that_makes_all_right_is_named_with_its_line_and_the_way_out() -> None:
    mending = Mending(text(ONLINE).replace("s = s * tl.exp(m - safe) +", "s = s +"))
    found = mending.diagnosis(CLUES, Tries(lambda changed: "s * tl.exp(m - new_m) +" in changed))
    assert found is not None and found.line == 20 and "without rescaling" in found.sentence
    assert "multiply s by exp" in found.hint and "this example and others are right" in found.hint


def test_a_sum_is_rescaled_by_a_factor_that_the_next_line_computes() -> None:
    """There, its name has no value yet"""
    source = text("solutions/flash_attention/right_tutorial_pointers.py")
    total = next(line for line in source.splitlines() if "* alpha + " in line)
    factor = next(line for line in source.splitlines() if line.strip().startswith("alpha = "))
    before = f"{factor}\n" + source.partition(f"{factor}\n")[2].partition(f"{total}\n")[0] + f"{total}\n"
    assert before in source
    wrong = source.replace(before, f"{total.replace(' * alpha', '')}\n" + before.removesuffix(f"{total}\n"))
    line = wrong[: wrong.index("alpha = ")].count("\n")
    here = [one for one in mends(wrong) if "without rescaling" in one.sentence and one.line == line]
    assert any(f"* {factor.partition(' = ')[2]} + " in one.applied(wrong) for one in here)




def test_no_mend_is_believed_where_the_text_as_it_is_has_become_right() -> None:
    mending = Mending(text(ONLINE).replace("s = s * tl.exp(m - safe) +", "s = s +"))
    found = mending.diagnosis(CLUES, Tries(lambda changed: True))
    assert found is not None and found.cause is Cause.DEPENDS_ON_EARLIER_CALLS and found.line is None
    raced = Clues(frozenset({Cause.RACE}), ("softmax_kernel",))
    assert mending.diagnosis(raced, Tries(lambda changed: True)) is None
    alone = mending.diagnosis(CLUES, Tries(lambda changed: True, fails_alone=lambda: True))
    assert alone is not None and alone.line is not None, "where a walk has found it wrong alone, that is not tried"


def test_nothing_is_said_where_no_mend_helps_and_the_budget_of_a_submission_ends() -> None:
    mending = Mending(text("solutions/flash_attention/right_tutorial_pointers.py"))
    calls = []
    for _ in range(8):
        assert mending.diagnosis(CLUES, Tries(lambda changed: bool(calls.append(changed)))) is None
    assert len(calls) == mending.tried and mending.work.tried.used <= 1.1 * mending.work.tried.most
    assert mending.work.used == mending.work.tried.used


def test_tries_that_compile_and_run_much_are_fewer() -> None:
    cheap, dear = Mending(text(ONLINE)), Mending(text(ONLINE))
    assert cheap.diagnosis(CLUES, Tries(lambda _: False)) is None
    assert dear.diagnosis(CLUES, Tries(lambda _: False, lambda: 300_000_000)) is None
    assert 2 <= dear.tried < cheap.tried / 3
    assert dear.tried * 300_000_000 <= dear.work.tried.most + 300_000_000


def test_what_a_second_mistake_takes_counts_for_the_submission_and_is_bounded_by_itself() -> None:
    work = Work(1000)
    second = work.of_a_second()
    second.tried.spend(100)
    work.in_kernels.spend(7)
    assert (second.used, work.used, second.most) == (100, 107, 250)
    assert work.tried.most + work.in_kernels.most + work.on_host.most == 1000 and second.tried.left == 105
    work.tried.spend(820)
    assert (work.used, work.of_a_second().most) == (927, 100), "where little is left, there is less"


def test_more_programs_that_store_everything_several_times_are_no_mend_of_a_grid() -> None:
    """They hide that each program begins where it should not."""
    wrong = text("solutions/vector_add/solution.py").replace("numel(), BLOCK)", "numel(), 4 * BLOCK)")
    assert "4 * BLOCK" in wrong
    right = lambda changed: "4 * BLOCK" not in changed
    found = Mending(wrong).found(CLUES, Tries(right))
    assert found is not None and found.family is Family.GRID
    assert Mending(wrong).found(CLUES, Tries(right, repeats=lambda: True)) is None


def test_work_grows_with_what_triton_compiles() -> None:
    program = Program((), {}, (), (), "tensor", {"a": Kernel("k", "x" * 9000)})
    assert compiling([program]) == 3300 * 9000 and compiling([]) == 0


def test_experiments_outside_of_functions_are_not_run_for_each_try() -> None:
    """Triton's tutorials end with them; what a function needs stays, and no line moves."""
    tutorial = text("tests/course/right/softmax/tutorial.py")
    bare = without_experiments(tutorial)
    assert "y_triton = softmax(x)" not in bare and "properties = driver" in bare and "return y\n" in bare
    assert bare.count("\n") == tutorial.count("\n")
    over_lines = "def f(a):\n    return a\n\nx = f(\n    1,\n)\ny = 2\n"
    assert ast.dump(ast.parse(without_experiments(over_lines)).body[-1]) == ast.dump(ast.parse("y = 2").body[0])
    assert without_experiments(over_lines).splitlines()[6] == "y = 2"
    assert without_experiments(text(ONLINE)) == text(ONLINE) and without_experiments("def f(:") == "def f(:"


def test_what_mended_one_check_is_the_first_to_be_tried_at_the_next() -> None:
    mending = Mending(text(ONLINE).replace("s = s * tl.exp(m - safe) +", "s = s +"))
    right = lambda changed: "s * tl.exp(m - new_m) +" in changed
    mending.diagnosis(CLUES, Tries(right))
    before = mending.tried
    mending.diagnosis(CLUES, Tries(right))
    assert mending.tried == before + 2  # the mend, and the text as it is




def test_lines_that_the_wrong_result_does_not_depend_on_are_left_alone() -> None:
    source = text("solutions/flash_attention/right_tutorial_pointers.py").replace("tl.trans(p).to(do", "tl.trans(ds).to(do")
    clues = replace(CLUES, kernels=("dkdv_kernel",), wrong=frozenset({"dkdv_kernel.dk_ptr"}))
    lines = {mend.line for mend in in_order(mends(source), clues) if mend.kernel == "dkdv_kernel"}
    every = {mend.line for mend in in_order(mends(source), replace(clues, wrong=frozenset())) if mend.kernel == "dkdv_kernel"}
    dv = next(number for number, line in enumerate(source.splitlines(), 1) if line.strip().startswith("dv +="))
    dk = next(number for number, line in enumerate(source.splitlines(), 1) if line.strip().startswith("dk +="))
    assert dk in lines and dv in every and dv not in lines and lines < every


def test_kernels_that_the_call_did_not_launch_are_left_alone() -> None:
    found = mends(text("solutions/flash_attention/right_tutorial_pointers.py"))
    assert {mend.kernel for mend in in_order(found, Clues(frozenset(), ("fwd_kernel",)))} == {"", "fwd_kernel"}


FAST = ("softmax",)
CORPORA = [id if id in FAST else pytest.param(id, marks=pytest.mark.slow) for id in assignments()]


@pytest.mark.parametrize("id", CORPORA)
def test_most_mistakes_of_a_corpus_have_a_mend_on_a_right_line(id: str) -> None:
    """A cheap look at the rules without running anything; benchmarks/tutoring.py runs it all."""
    mistakes = [mistake for mistake in corpus(id)]
    placed = [any(mend.line in mistake.lines for mend in mends(mistake.text)) for mistake in mistakes]
    assert sum(placed) >= 0.8 * len(placed)


def test_a_process_that_was_given_another_text_is_ended_though_nothing_was_asked_of_it() -> None:
    class Process:
        ended = 0

        def replace(self, submission: Submission) -> None:
            """Takes another text."""

        def close(self) -> None:
            self.ended += 1

    process = Process()
    submission = read(ROOT / "solutions/vector_add/solution.py")
    start: Any = lambda: process
    Subject(submission, get("vector_add"), start, is_brief=True).of_another_text(submission).close()
    assert process.ended == 1


def test_evidence_of_a_race_brings_atomics_to_the_front() -> None:
    found = mends(text("solutions/layer_norm/right_column_sums.py"))
    raced = in_order(found, Clues(frozenset({Cause.RACE}), ("forward_kernel",)))
    assert raced[0].family in (Family.MEMORY, Family.INDEX, Family.GRID)
    assert not any(mend.family is Family.LAYOUT for mend in raced)
