"""A sweep over sizes as a table: a pure function of a record."""

import json
from pathlib import Path
from typing import Any

from gradekit.report.bench_table import render
from gradekit.report.terminal import Look


def row(size: int, student: float, eager: float, compiled: float, binds: str = "memory") -> dict[str, Any]:
    """A size at which `size` kilobytes move and twice as many thousand operations are done; times in microseconds."""
    return {
        "size": size, "error": "", "microseconds": {"student": student, "eager": eager, "compiled": compiled},
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
        row(16, 8.0, 16.0, 8.5), row(32, 10.0, 20.0, 10.0), {"size": 64, "error": "The card went away.", "inputs": []},
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


def test_a_sweep_of_which_nothing_was_measured_has_its_error() -> None:
    nothing = RECORD | {"rows": RECORD["rows"][2:]}
    assert render(nothing, Look(100)).rstrip().endswith("64  The card went away.")


def test_a_sweep_recorded_on_an_h200_has_its_figures() -> None:
    recorded = json.loads((Path(__file__).parent / "sweep_h200.json").read_text())
    table = [line.split() for line in render(recorded, Look(100)).splitlines()[4:7]]
    assert table == [
        ["256", "5.69", "µs", "5.86", "µs", "5.96", "µs", "1.03x", "1.05x", "64%"],
        ["1024", "17.9", "µs", "20.8", "µs", "17.4", "µs", "1.16x", "0.97x", "81%"],
        ["4096", "67.1", "µs", "106", "µs", "81.9", "µs", "1.58x", "1.22x", "87%"],
    ]


def test_a_terminal_without_unicode_gets_ascii() -> None:
    shown = render(RECORD, Look(80, unicode=False))
    assert shown.isascii() and "8 us" in shown and "?" not in shown


