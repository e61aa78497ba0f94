"""Reports of mistaken submissions name what a mended program shows; a right submission has none."""

from pathlib import Path

import pytest

from benchmarks import tutoring_table
from gradekit.assignment import get
from gradekit.plugin import tutoring
from tests.graded import failed_checks, grade
from tests.repair.corpora import ROOT, Verdict, corpus
from tests.repair.graded_mistake import tutored

SAMPLE = [
    ("matmul", "steps_rounded_down"), ("layer_norm", "mean_over_block"), ("matmul", "mask_with_K"),
    pytest.param("spmm", "one_tile_of_elements_again", marks=pytest.mark.slow),
    pytest.param("decode_attention", "totals_without_weight", marks=pytest.mark.slow),
]  # fmt: skip
"""The next test has softmax."""


@pytest.mark.parametrize(("id", "name"), SAMPLE)
def test_a_report_says_of_a_mistake_what_the_table_has(id: str, name: str, tmp_path: Path) -> None:
    """A sample: `make tutoring` holds every mistake against the table."""
    found, row = tutored(id, name, tmp_path), tutoring_table.read()[id, name]
    assert (found.verdict, found.line) == (row.verdict, row.line) == (Verdict.NAMED, True)


@pytest.mark.parametrize(
    ("id", "name", "hint"),
    [
        ("vector_add", "row_without_remainder", "modulo `size1`"),
        pytest.param("dropout", "index_without_remainder", "modulo `n1`", marks=pytest.mark.slow),
    ],
)
def test_an_edit_that_is_right_for_contiguous_tensors_alone_is_refuted_by_a_view(
    id: str, name: str, hint: str, tmp_path: Path
) -> None:
    """Another divisor makes the first index 0, and the second one counts on over it: right where no gap is between."""
    mistake = next(one for one in corpus(id) if one.name == name)
    (failed,) = failed_checks(id, mistake.text, tmp_path, stop=True)
    assert f"it must be taken {hint} (" in failed["hint"]


def test_an_example_that_takes_more_than_a_try_may_is_no_reason_against_a_mend(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("gradekit.subject.Limit.BRIEF_WORK", 2_000_000)
    found = tutored("softmax", "zeros_beyond_the_end", tmp_path)
    assert (found.verdict, found.line) == (Verdict.NAMED, True)


COUNTS = (ROOT / "solutions/histogram/right_atomics.py").read_text(encoding="utf-8")
READ_AND_WRITTEN = "seen = tl.load(out_ptr + x, mask=n < N)\n    tl.store(out_ptr + x, seen + 1, mask=n < N)"


@pytest.mark.parametrize(
    "wrong, says, hint",
    [
        ("tl.atomic_add(out_ptr + x, 1)", "Line 12 has no mask", "mask=n < N"),
        (READ_AND_WRITTEN, "Line 13 stores what was read there before, and `1` more", "tl.atomic_add with `1`"),
    ],
)
def test_what_is_counted_without_a_mask_or_in_two_steps_is_told_as_one_mistake(
    wrong: str, says: str, hint: str, tmp_path: Path
) -> None:
    text = COUNTS.replace("tl.atomic_add(out_ptr + x, 1, mask=n < N)", wrong)
    (failed,) = failed_checks("histogram", text, tmp_path, stop=True)
    assert says in failed["message"] and hint in failed["hint"] and "two mistakes" not in failed["message"]


def test_a_result_that_depends_on_earlier_calls_is_not_blamed_on_a_mask(tmp_path: Path) -> None:
    right = (ROOT / "solutions/vector_add/solution.py").read_text(encoding="utf-8")
    counting = right.replace("    out =", "    _calls.append(x)\n    if len(_calls) > 9:\n        x = y\n    out =", 1)
    assert counting != right
    failed = failed_checks("vector_add", counting + "\n\n_calls = []\n", tmp_path, shrink=False, stop=True)
    assert failed and {check["cause"] for check in failed} == {"depends-on-earlier-calls"}


READ_BACK = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, tmp, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(tmp + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
    back = tl.program_id(0) * BLOCK + BLOCK - 1 - tl.arange(0, BLOCK)
    tl.store(out + back, tl.load(tmp + back, mask=back < n), mask=back < n)


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    tmp, out = torch.empty_like(x), torch.empty_like(x)
    if out.numel():
        add_kernel[(triton.cdiv(out.numel(), 64),)](x, y, tmp, out, out.numel(), BLOCK=64)
    return out
"""


STRIDES_OF_THE_FIRST = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, x0, x1, x2, y0, y1, y2, d1, d2, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    plane, row, col = i // d2 // d1, i // d2 % d1, i % d2
    one = tl.load(x + plane * x0 + row * x1 + col * x2, mask=i < n)
    other = tl.load(y + plane * x0 + row * x1 + col * x2, mask=i < n)
    tl.store(out + i, one + other, mask=i < n)


def add(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    while x.dim() < 3:
        x, y = x[None], y[None]
    if out.numel():
        add_kernel[(triton.cdiv(out.numel(), 256),)](
            x, y, out, out.numel(), *x.stride(), *y.stride(), x.shape[1], x.shape[2], BLOCK=256
        )
    return out
"""


def test_strides_that_nobody_uses_belong_to_the_tensor_that_stands_where_they_do(tmp_path: Path) -> None:
    """Where x and y share their memory, a sum is right whichever of them is read with the other's strides."""
    (check,) = failed_checks("vector_add", STRIDES_OF_THE_FIRST, tmp_path, shrink=False, stop=True)
    assert "other elements of y than it should" in check["message"]
    assert check["source"]["text"].strip().startswith("other = tl.load(y")


def test_lanes_that_lack_a_barrier_are_told_so_and_nothing_else(tmp_path: Path) -> None:
    (check,) = failed_checks("vector_add", READ_BACK, tmp_path, shrink=False, stop=True)
    assert check["cause"] == "missing-barrier"
    assert check["message"].endswith("on a GPU it may differ.")
    assert "tl.debug_barrier()" in check["hint"]


def test_no_program_is_mended_for_a_right_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tutoring, "mended_diagnosis", lambda *_: pytest.fail("mended"))
    report = grade(get("softmax"), ROOT / "solutions/softmax/right_one_row.py", device="cpu", profile="quick")
    assert report.score.earned == 80


def test_without_a_diagnosis_no_program_is_mended_and_the_verdict_is_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "submission.py"
    path.write_text(next(m for m in corpus("softmax") if m.name == "zeros_beyond_the_end").text, encoding="utf-8")
    options = {"device": "cpu", "profile": "quick", "shrink": False, "stop": True}
    explained = grade(get("softmax"), path, **options)
    monkeypatch.setattr(tutoring, "mended_diagnosis", lambda *_: pytest.fail("mended"))
    unexplained = grade(get("softmax"), path, diagnose=False, **options)
    outcomes = [[(check.id, check.outcome) for check in report.checks] for report in (explained, unexplained)]
    assert outcomes[0] == outcomes[1] and unexplained.score.earned == explained.score.earned < 80


HALVES = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, half, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    low, high = i < half, half + i < n
    tl.store(out + i, tl.load(x + i, mask=low) + tl.load(y + i, mask=low))
    tl.store(out + half + i, tl.load(x + half + i, mask=high) + tl.load(y + half + i, mask=high), mask=high)


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    half = triton.cdiv(out.numel(), 2)
    if half:
        add_kernel[(1,)](x, y, out, out.numel(), half, BLOCK=triton.next_power_of_2(half))
    return out
"""


def test_lanes_without_a_mask_that_meet_a_later_store_lack_the_mask_and_no_barrier(tmp_path: Path) -> None:
    (check,) = failed_checks("vector_add", HALVES, tmp_path, shrink=False, stop=True)
    assert check["cause"] == "missing-mask" and "Line 11 has no mask" in check["message"]
    assert "mask=i < half" in check["hint"]
