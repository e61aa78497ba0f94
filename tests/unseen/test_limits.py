"""Sizes go beyond the limits of a kernel that no comparison of sizes shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.findings import Outcome
from tests.graded import grade

pytestmark = pytest.mark.usefixtures("without_mends")

SOLUTIONS = Path(__file__).parents[2] / "solutions"


@pytest.mark.parametrize(
    ("id", "right", "change", "keyword"),
    [
        ("matmul", "right_default_precision.py", ("range(0, tl.cdiv(K, BK))", "range(0, 140)"), "contiguous_float32"),
        ("spmm", "right_row_and_tile.py", ("    acc = tl.zeros", "    end = tl.minimum(end, start + 3000)\n    acc = tl.zeros"), "one_long_row"),
    ],
)  # fmt: skip
def test_a_kernel_that_is_right_up_to_a_length_alone_fails(
    id: str, right: str, change: tuple[str, str], keyword: str, tmp_path: Path
) -> None:
    text = (SOLUTIONS / id / right).read_text(encoding="utf-8")
    assert change[0] in text
    (tmp_path / "submission.py").write_text(text.replace(*change))
    (check,) = grade(get(id), tmp_path / "submission.py", keyword=keyword, device="cpu").checks
    assert check.outcome is Outcome.FAILED and check.counterexample is not None
    assert check.counterexample["origin"].startswith("K is ")


COUNTED = """
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x, out, N, bins, s, B: tl.constexpr, T: tl.constexpr):
    b = tl.program_id(0) * B + tl.arange(0, B)
    count = tl.zeros((B,), tl.int16)
    for start in range(tl.program_id(1) * T, N, T * tl.num_programs(1)):
        n = start + tl.arange(0, T).to(tl.int64)
        v = tl.load(x + n * s, n < N, -1)
        count += tl.sum((v[None, :] == b[:, None]).to(tl.int32), 1).to(tl.int16)
    tl.atomic_add(out + b, count.to(tl.int32), b < bins)

def histogram(x, bins):
    out = torch.zeros((bins,), dtype=torch.int32, device=x.device)
    kernel[(triton.cdiv(bins, 16), 64)](x, out, len(x), bins, x.stride(0), 16, 256)
    return out
"""


def test_counters_of_16_bits_are_gone_beyond_in_each_of_many_programs(tmp_path: Path) -> None:
    (tmp_path / "submission.py").write_text(COUNTED)
    (check,) = grade(get("histogram"), tmp_path / "submission.py", keyword="test_counts", device="cpu").checks
    assert check.outcome is Outcome.FAILED and "expected 2" in check.message
    (tmp_path / "submission.py").write_text(COUNTED.replace("int16", "int32"))
    (check,) = grade(get("histogram"), tmp_path / "submission.py", keyword="test_counts", device="cpu").checks
    assert check.outcome is Outcome.PASSED, check.message
