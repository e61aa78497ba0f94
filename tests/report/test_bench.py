"""A sweep over sizes as table and plot: pure functions of a record."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from gradekit.report.bench_table import curves, render, rounded_up
from gradekit.report.terminal import Look


def row(size: int, student: float, eager: float, compiled: float, binds: str = "memory") -> dict[str, Any]:
    """A size at which `size` kilobytes move and twice as many thousand operations are done; times in microseconds."""
    return {
        "size": size,
        "error": "",
        "microseconds": {"student": student, "eager": eager, "compiled": compiled},
        "ratios": {"eager": {"value": eager / student}, "compiled": {"value": compiled / student}},
        "roofline": {"bytes_least": 1000 * size, "flops": 2000 * size, "binds": binds},
        "roofline_microseconds": size / 4.0,
    }


RECORD: dict[str, Any] = {
    "assignment": "softmax",
    "submission": {"path": "solution.py"},
    "entry": "softmax",
    "vary": 4096,
    "environment": {"gpu": "NVIDIA H200"},
    "rows": [
        row(16, 8.0, 16.0, 8.5),
        row(32, 10.0, 20.0, 10.0),
        {"size": 64, "error": "The card went away.", "inputs": []},
    ],
}

EXPECTED = """\
softmax  solution.py
softmax on NVIDIA H200, with 4096 as the size that varies

     size    yours  eager torch  torch.compile  to eager  to compiled  of roofline
       16     8 µs        16 µs         8.5 µs     2.00x        1.06x          50%
       32    10 µs        20 µs          10 µs     2.00x        1.00x          80%
       64  The card went away.
"""


def test_a_row_of_the_table_has_times_ratios_and_the_share_of_the_roofline() -> None:
    assert render(RECORD, Look(100)).startswith(EXPECTED)


def test_the_plot_has_a_mark_for_each_side_and_the_roofline_on_top() -> None:
    plot = render(RECORD, Look(100)).removeprefix(EXPECTED)
    assert plot.count("●") == 3 and plot.count("○") == 3  # one in the legend
    line = next(row for row in plot.splitlines() if row.count("─") > 20)
    assert line.split("│")[0].strip() == "" or float(line.split("│")[0]) >= 4
    assert plot.rstrip().splitlines()[-1].split() == ["16", "32"]


def test_rates_are_bytes_where_memory_binds_and_operations_where_arithmetic_does() -> None:
    found = curves(RECORD)
    assert found is not None and found.unit == "GB/s" and found.rates["student"] == pytest.approx((2.0, 3.2))
    assert found.rates["roofline"] == pytest.approx((4.0, 4.0))
    by_arithmetic = curves(RECORD | {"rows": [row(16, 8.0, 8.0, 8.0, "arithmetic")]})
    assert by_arithmetic is not None and by_arithmetic.unit == "TFLOP/s"
    assert by_arithmetic.rates["student"] == pytest.approx((0.004,))


def test_a_sweep_of_which_nothing_was_measured_is_its_table_alone() -> None:
    nothing = RECORD | {"rows": RECORD["rows"][2:]}
    assert curves(nothing) is None
    assert render(nothing, Look(100)).rstrip().endswith("64  The card went away.")


def test_a_sweep_recorded_on_an_h200_has_its_figures() -> None:
    recorded = json.loads((Path(__file__).parent / "sweep_h200.json").read_text())
    table = [line.split() for line in render(recorded, Look(100)).splitlines()[4:7]]
    assert table == [
        ["256", "5.69", "µs", "5.86", "µs", "5.96", "µs", "1.03x", "1.05x", "64%"],
        ["1024", "17.9", "µs", "20.8", "µs", "17.4", "µs", "1.16x", "0.97x", "81%"],
        ["4096", "67.1", "µs", "106", "µs", "81.9", "µs", "1.58x", "1.22x", "87%"],
    ]
    found = curves(recorded)
    assert found is not None and 4500 < found.rates["roofline"][0] < 4800  # GB/s of HBM3e


def test_one_size_is_a_plot_too() -> None:
    assert "●" in render(RECORD | {"rows": RECORD["rows"][:1]}, Look(80))


def test_a_terminal_without_unicode_gets_ascii() -> None:
    shown = render(RECORD, Look(80, unicode=False))
    assert shown.isascii() and "8 us" in shown and "?" not in shown


@pytest.mark.parametrize(("value", "expected"), [(0, 1), (1, 1), (3.9, 5), (4200, 5000), (0.021, 0.025), (10, 10)])
def test_the_scale_ends_at_a_round_number(value: float, expected: float) -> None:
    assert rounded_up(value) == pytest.approx(expected)
    assert math.isclose(rounded_up(value) / 5 * 5, rounded_up(value))
