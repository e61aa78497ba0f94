"""What rounding a result once may take."""

from __future__ import annotations

import torch

from gradekit.judge.tolerance import rounded_once


def test_a_rounding_below_a_power_of_two_takes_half_a_small_step_unless_more_lies_beyond() -> None:
    exact = torch.tensor([1.0 - 2.0**-20, 1.0 - 2.0**-20, 1.0], dtype=torch.float64)
    off = torch.tensor([2.0**-19, 2.0**-8, 0.0], dtype=torch.float64)
    assert rounded_once(exact, off, torch.float16).tolist() == [2.0**-12, 2.0**-11, 2.0**-11]
