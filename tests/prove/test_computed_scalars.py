"""A scalar that sizes decide is no variable of its own: nothing is refuted, or proved, by calls that nobody promises."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gradekit import domain
from gradekit.assignment import get
from gradekit.prove.prover import CHECK
from gradekit.sandbox import Tracer
from gradekit.subject.entry_proofs import Proved, proved
from gradekit.subject.subject import Subject
from gradekit.submission import read
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


@pytest.fixture
def decide(tmp_path: Path):
    """What is proved of a histogram whose values are in the range that `text` has."""
    opened: list[Subject] = []

    def decided(text: str) -> Proved:
        (tmp_path / "domain.toml").write_text(text)
        (tmp_path / "submission.py").write_text(RIGHT)
        submission = read(tmp_path / "submission.py")
        subject = Subject(submission, replace(get("vector_add"), entry="histogram"), lambda: Tracer(submission))
        opened.append(subject)
        return proved(subject, domain.load(tmp_path / "domain.toml")["histogram"], CHECK)

    yield decided
    for subject in opened:
        subject.close()


WITHIN = HISTOGRAM.replace('["-8", "B + 7"]', '["0", "B - 1"]')


@pytest.mark.parametrize("text", [WITHIN, WITHIN.replace("least = 1, most = 65536, ", "")], ids=["range", "no range"])
def test_values_below_a_number_of_bins_stay_inside_of_them(decide, text: str) -> None:
    found = decide(text)
    assert not found.failures, found.as_data()
    assert found.proofs.counts["refuted"] == 0 and found.proofs.counts["proved"] >= 3, found.as_data()


def test_values_beyond_the_number_of_bins_are_refuted(decide) -> None:
    found = decide(WITHIN.replace('"B - 1"', '"B"').replace("integers", "chosen:cells:1:{B}"))
    assert found.proofs.counts["refuted"] > 0
