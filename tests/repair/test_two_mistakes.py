"""Two mistakes at once, and a launch that is missing: what no single mend makes right."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradekit.causes import Cause
from gradekit.repair.mend import Clues, Family, Mend
from gradekit.repair.tutor import as_one, is_one, launch_missing, of_both, without
from gradekit.source.draft import Draft
from gradekit.submission.parsed_source import Edit
from tests.graded import failed_checks, record_of
from tests.repair.corpora import ROOT, corpus


def edit_of(text: str, old: str, new: str) -> Edit:
    start = text.index(old)
    return Edit(start, start + len(old), new, "")


def mend_of(text: str, old: str, new: str, sentence: str = "") -> Mend:
    return Mend(Family.FORMULA, 1, 1, (edit_of(text, old, new),), sentence, "")


TEXT = "a = b + row * c"


def test_the_second_mend_alone_is_made_at_its_place_in_the_text_without_the_first() -> None:
    first = mend_of(TEXT, "b", "bbb")
    changed = first.applied(TEXT)
    second = without(first, mend_of(changed, "c", "d"), TEXT)
    assert second is not None and second.applied(TEXT) == "a = b + row * d"
    assert without(first, mend_of(changed, "bbb", "e"), TEXT) is None, "it changes what the first has put in"


def test_a_second_mend_that_corrects_what_the_first_has_put_in_is_no_second_mistake() -> None:
    first = mend_of(TEXT, "b + row", "b + i * M + row", "Line 1 leaves `i` out.")
    changed = first.applied(TEXT)
    assert is_one(first, mend_of(changed, "M", "N"), TEXT)
    assert not is_one(first, mend_of(changed, "c", "d"), TEXT), "that stood there before"
    assert not is_one(first, mend_of(changed, "row", "d"), TEXT), "the first has kept it"


def test_two_mends_that_say_the_same_of_neighbours_in_a_line_are_one_mistake() -> None:
    first = mend_of(TEXT, "b", "d", "Line 1 uses `b` for `x`.")
    second = mend_of(first.applied(TEXT), "c", "e", "Line 1 uses `c` for `y`.")
    assert is_one(first, second, TEXT)
    assert not is_one(first, replace(second, line=2), TEXT)
    assert "line 1 uses `c` for `y`" in as_one(first, second).sentence


def test_both_mistakes_are_told_in_their_order_at_the_line_of_the_first() -> None:
    one = Mend(Family.MASK, 1, 12, (), "Line 12 has no mask.", "give it one", Cause.MISSING_MASK)
    other = Mend(Family.SUM, 1, 30, (), "Line 30 sums nothing.", "sum it")
    said = of_both(one, other)
    assert said.sentence == (
        "There are two mistakes. Line 12 has no mask. With that put right, there is another: line 30 sums nothing."
    )
    assert (
        said.line == 12 and said.cause is Cause.MISSING_MASK and said.hint.startswith("first: give it one; then: sum")
    )


TWO = tomllib.loads((Path(__file__).parent / "two_mistakes.toml").read_text(encoding="utf-8"))
SAMPLE = {
    "fc_half_strides", "va_no_masks_minus", "dr_rest_and_seed", "sm_size_for_a_pointer",
}  # fmt: skip


def text_with(two: dict[str, Any]) -> str:
    """The text with both mistakes."""
    text = (ROOT / two["base"]).read_text(encoding="utf-8")
    for old, new in two["edits"]:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name",
    [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.slow) for name in TWO if TWO[name]["both"]],
)
def test_a_report_names_two_mistakes_and_says_that_they_are_two(name: str, tmp_path: Path) -> None:
    two = TWO[name]
    failed = failed_checks(two["assignment"], text_with(two), tmp_path, stop=name in SAMPLE)
    said = [f"{one['message']} {one['hint']}" for one in failed]
    named = [any(re.search(words, one, re.IGNORECASE) for one in said) for words in two["words"]]
    assert named == [True, True]
    lines = {one["source"]["line"] for one in failed if one["source"] and one["hint"].endswith("others are right)")}
    assert len(lines) > 1 or any(re.search("two mistakes|another mistake|this is left", one) for one in said)


def test_a_report_says_what_stays_wrong_with_the_mend_that_it_tells(tmp_path: Path) -> None:
    edits = [["row * y_stride1", "row * x_stride1"], ["        return out\n", "        return out.int()\n"]]
    text = text_with({"base": "solutions/vector_add/solution.py", "edits": edits})
    line = 1 + next(at for at, one in enumerate(text.splitlines()) if "row * x_stride1 + column * y_stride2" in one)
    (told,) = [
        one for one in failed_checks("vector_add", text, tmp_path, keyword="any_stride or empty")
        if one["source"] and one["source"]["line"] == line
    ]  # fmt: skip
    assert "With that put right, this is left: " in told["message"] and "int32" in told["message"]
    assert told["hint"].endswith("and others still fail: there is another mistake, or more to this one)")


@pytest.mark.parametrize(
    ("new", "is_said"), [("row * x_stride1 + undefined_name", True), ("row * y_stride1 + 1", False)]
)
def test_a_report_says_where_no_check_came_to_compare_a_result(new: str, is_said: bool, tmp_path: Path) -> None:
    """Another mistake may show behind what Triton or Python refuses"""
    text = text_with({"base": "solutions/vector_add/solution.py", "edits": [["row * y_stride1", new]]})
    notes = record_of("vector_add", text, tmp_path, keyword="contiguous_float32")["notes"]
    assert ("No result was compared yet: more may show once this is put right." in notes) == is_said


def test_a_load_without_a_mask_is_one_mistake_and_told_with_the_mask_that_it_lacks(tmp_path: Path) -> None:
    text = (ROOT / "solutions/softmax/wrong_no_mask.py").read_text(encoding="utf-8")
    (failed,) = failed_checks("softmax", text, tmp_path, keyword="boundary_sizes")
    assert "Line 13 has no mask" in failed["message"] and "two mistakes" not in failed["message"]


@pytest.mark.parametrize(
    ("id", "name"),
    [("softmax", "stores_one_row"), pytest.param("decode_attention", "stores_by_head_alone", marks=pytest.mark.slow)],
)
def test_an_address_that_leaves_a_row_out_is_one_mistake_whatever_it_is_put_right_with(
    id: str, name: str, tmp_path: Path
) -> None:
    text = next(one for one in corpus(id) if one.name == name).text
    (said,) = [one["message"] for one in failed_checks(id, text, tmp_path, stop=True)]
    assert "leaves `" in said and "two mistakes" not in said


LAYER_NORM = (ROOT / "solutions/layer_norm/right_column_sums.py").read_text(encoding="utf-8")
LACKING = Clues(frozenset({Cause.UNWRITTEN_OUTPUT}), ())


def test_a_kernel_that_no_line_mentions_is_named_where_a_result_is_lacking() -> None:
    name = Draft(LAYER_NORM).kernels[-1].name
    launch = next(line for line in LAYER_NORM.splitlines() if f"{name}[" in line)
    wrong = LAYER_NORM.replace(launch, "        pass")
    found = launch_missing(wrong, LACKING)
    assert found is not None and found.sentence.startswith(f"Nothing launches `{name}`")
    assert launch_missing(wrong, Clues(frozenset({Cause.WRONG_VALUES}), ())) is None
    stored = Clues(LACKING.causes | {Cause.WRITE_CONFLICT}, ())
    assert launch_missing(wrong, stored) is None, "what programs compete for is stored"
    assert launch_missing(LAYER_NORM, LACKING) is None


WALK = """\
import torch
import triton
import triton.language as tl


@triton.jit
def walk(x, xm, xn, b, bn, r, rm, rn, y, M, N, H: tl.constexpr, W: tl.constexpr):
    cols = tl.program_id(1) * W + tl.arange(0, W).to(tl.int64)
    rows = tl.program_id(0) * H + tl.arange(0, H).to(tl.int64)
    bias = tl.load(b + cols * bn, mask=cols < N, other=0.0).to(tl.float32)
    x_at = x + rows[:, None] * xm + cols[None, :] * xn
    r_at = r + rows[:, None] * rm + cols[None, :] * rn
    y_at = y + rows[:, None] * N + cols[None, :]
    step = tl.cast(tl.num_programs(0) * H, tl.int64)
    left = M - tl.program_id(0) * H
    while left > H:
        mask = (tl.arange(0, H)[:, None] < left) & (cols[None, :] < N)
        h = tl.load(x_at, mask=mask, other=0.0).to(tl.float32) + bias[None, :]
        gelu = h * tl.sigmoid(1.5957691216 * (h + 0.044715 * h * h * h))
        tl.store(y_at, gelu + tl.load(r_at, mask=mask, other=0.0).to(tl.float32), mask=mask)
        x_at += step * xm
        r_at += step * xm
        y_at += step * N
        left -= tl.num_programs(0) * H


def fused_chain(x, bias, residual):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = min(4, triton.cdiv(M, 8)), triton.cdiv(N, 128)
    walk[grid](x, *x.stride(), bias, bias.stride(0), residual, *residual.stride(), y, M, N, H=8, W=128)
    return y
"""


def test_a_mistake_that_only_a_loop_put_right_reaches_is_named_with_the_one_that_stops_the_loop(tmp_path: Path) -> None:
    """No example that was planned has rows enough, and other strides: what is mended is run in full"""
    keyword = "contiguous_float32 or any_stride"
    failed = failed_checks("fused_chain", WALK, tmp_path, profile="default", keyword=keyword)
    assert len(failed) == 2
    for one in failed:
        assert "There are two mistakes. The loop in line 16 goes on only while" in one["message"]
        assert "line 22 as `r_at += step * rm`" in one["hint"]
