"""A scalar that sizes decide is no variable of its own: nothing is refuted, or proved, by calls that nobody promises."""

from dataclasses import replace
from pathlib import Path

import pytest

from gradekit import domain
from gradekit.assignment import get
from gradekit.prove.prover import Proofs
from tests.prove.deciding import decided
from tests.unseen.test_scope import HISTOGRAM

RIGHT = """
import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(out_ptr + x, 1, mask=mask)


def histogram(x, bins):
    x = x.contiguous()
    out = torch.zeros(bins, dtype=torch.int32, device=x.device)
    count_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out
"""


def of_histogram(folder: Path, text: str) -> Proofs:
    """What is proved of a histogram whose values are in the range that `text` has."""
    (folder / "domain.toml").write_text(text)
    return decided(folder, RIGHT, replace(get("vector_add"), entry="histogram"), domain.load(folder / "domain.toml")["histogram"])


WITHIN = HISTOGRAM.replace('["-8", "B + 7"]', '["0", "B - 1"]')


@pytest.mark.parametrize("text", [WITHIN, WITHIN.replace("least = 1, most = 65536, ", "")], ids=["range", "no range"])
def test_values_below_a_number_of_bins_stay_inside_of_them(tmp_path: Path, text: str) -> None:
    found = of_histogram(tmp_path, text)
    assert not found.failures, found.as_data()
    assert found.counts["refuted"] == 0 and found.counts["proved"] >= 3, found.as_data()


def test_values_beyond_the_number_of_bins_are_refuted(tmp_path: Path) -> None:
    found = of_histogram(tmp_path, WITHIN.replace('"B - 1"', '"B"').replace("integers", "chosen:cells:1:{B}"))
    assert found.counts["refuted"] > 0
