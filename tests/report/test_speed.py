"""What was timed is told in a few sentences, in the terminal and in JUnit's file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradekit.findings import Check, Kind, Outcome
from gradekit.report import bench_table, junit
from gradekit.report.record import validate
from gradekit.report.speed_sentences import ceiling, duration, sentences
from gradekit.report.terminal import Look, render

from .samples import ENVIRONMENT, PASSED, record

SPEED: dict[str, Any] = {
    "card": "NVIDIA H200",
    "size": "[8192, 4096] float32",
    "microseconds": {"student": 67.6, "eager": 107.0, "compiled": 82.3},
    "ratios": {
        "eager": {"value": 1.582, "low": 1.577, "high": 1.587},
        "compiled": {"value": 1.218, "low": 1.214, "high": 1.222},
    },
    "rounds": 12,
    "discarded": 0,
    "sm_mhz": {"lowest": 1980, "highest": 1980},
    "verdicts": [{"side": "eager", "at_least": 1.0, "some_from": None, "verdict": "pass", "share": 1.0}],
    "configuration": "",
    "configurations": {},
    "compile_seconds": {"student": 1.7, "eager": 0.0, "compiled": 1.1},
    "launches": 1,
    "peak_bytes": 134217728,
    "roofline": {
        "bytes_least": 268435456, "bytes_moved": 268435456, "flops": 167772160, "bytes_per_second": 3.97e12,
        "flops_per_second": 2.48e12, "most_bytes_per_second": 4.59e12, "most_flops_per_second": 4.07e14,
        "of_bytes": 0.865, "of_flops": 0.006, "binds": "memory",
    },
    "notes": [],
}  # fmt: skip
TIMED = Check("test_speed", "Is as fast as torch", Kind.SPEED, Outcome.PASSED, 20, 20, details={"speed": SPEED})
BONUS = Check("test_bonus", "Is faster yet", Kind.SPEED, Outcome.FAILED, 0, 5, "It is 1.22 times as fast.", bonus=True)
HERE = ENVIRONMENT | {"gpu": "NVIDIA H200", "gpu_uuid": "GPU-0", "driver": "580.82.07"}


def test_a_timed_check_is_this_text() -> None:
    data = record(TIMED, BONUS, environment=HERE)
    validate(data)
    assert (
        render(data)
        == """\
softmax  submission.py
20 of 20 points  (2 checks: 1 passed, 1 missed)

  ✓ Is as fast as torch                                                  20 / 20
      67.6 µs at [8192, 4096] float32 on NVIDIA H200: 1.58 times as fast as
      eager torch (1.58 to 1.59; 107 µs), 1.22 times as fast as torch.compile
      (1.21 to 1.22; 82.3 µs).
      Memory binds: 3.97 TB/s is 86% of the most that this card moves.
  – Is faster yet                                                    bonus 0 / 5
      It is 1.22 times as fast.

Checked in 3.2 s on the CPU engine and NVIDIA H200 (driver 580.82.07); torch
2.13.0, triton 3.9.0, seed 7.
"""
    )


def test_a_bonus_that_was_reached_is_counted_apart() -> None:
    reached = replace(BONUS, outcome=Outcome.PASSED, earned=5, message="")
    assert "25 of 20 points (5 of them bonus)  (2 checks passed)" in render(record(TIMED, reached))


CLOSE = {"side": "compiled", "at_least": 1.22, "some_from": None, "verdict": "too close to call", "share": 1.0}
MEMORY = "Memory binds: 3.97 TB/s is 86% of the most that this card moves."


@pytest.mark.parametrize(("ceiling", "changes", "told"), [
    ({"binds": "arithmetic", "flops_per_second": 6.35e14, "of_flops": 0.82}, {},
     ["Arithmetic binds: 635 TFLOP/s is 82% of the most that this card computes."]),
    ({"bytes_per_second": 8.53e10, "of_bytes": 0.02}, {},
     ["Neither memory nor arithmetic is the limit: 85.3 GB/s is 2% of the most that this card moves. The rest is waiting."]),
    ({"bytes_moved": 3 * 268435456}, {}, [f"{MEMORY} The kernels ask for 3.0 times the bytes that have to move."]),
    ({}, {"verdicts": [CLOSE]},
     [MEMORY, "Too close to call: noise leaves open whether it is 1.22 times as fast as torch.compile, so it counts as reached."]),
    ({}, {"configuration": "BLOCK: 64", "configurations": {"BLOCK: 64": 67.6, "BLOCK: 32": 80.0}},
     [MEMORY, "Fastest of 2 configurations: BLOCK: 64."]),
    ({}, {"notes": ["Eager torch was timed without a CUDA graph."]}, [MEMORY, "Eager torch was timed without a CUDA graph."]),
], ids=["arithmetic", "far from every ceiling", "bytes that move again", "the benefit of the doubt", "the fastest configuration", "how it was timed"])
def test_what_binds_and_what_is_not_as_usual_is_told(ceiling: dict[str, Any], changes: dict[str, Any], told: list[str]) -> None:
    assert sentences(SPEED | changes | {"roofline": SPEED["roofline"] | ceiling})[1:] == told


def test_two_sizes_are_shown_apart() -> None:
    cases = [replace(TIMED, id=f"test_speed[{n}]", title=f"Is as fast as torch [{n}]") for n in (1, 2)]
    assert render(record(*cases)).count("Is as fast as torch [") == 2


def test_one_call_that_two_checks_are_about_is_told_once() -> None:
    text = render(record(TIMED, replace(TIMED, id="test_faster", title="Is faster")))
    assert text.count("67.6 µs at") == 1
    assert "      as above\n" in text


def test_junit_has_the_sentences_and_takes_a_missed_bonus_for_no_failure() -> None:
    text = junit.render(record(PASSED, TIMED, BONUS))
    assert '<property name="speed" value="Memory binds: 3.97 TB/s' in text
    assert 'failures="0"' in text


@pytest.mark.parametrize(("microseconds", "text"), [(13.2, "13.2 µs"), (2100.0, "2.1 ms"), (1.5e6, "1.5 s")])
def test_durations_are_short(microseconds: float, text: str) -> None:
    assert duration(microseconds) == text


@pytest.mark.parametrize(("peak", "expected"), [(None, 10.0), (1e9, 10.0), (1e8, 50.0)])
def test_the_ceiling_is_the_longer_of_bytes_and_arithmetic(peak: float | None, expected: float) -> None:
    said = {"bytes_least": 1e4, "flops": 5e3, "most_bytes_per_second": 1e9, "most_flops_per_second": peak}
    assert ceiling(said) == pytest.approx(expected)


# --- A sweep over sizes as a table ------------------------------------------------------------------------------------


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
    assert bench_table.render(RECORD, Look(100)).startswith(EXPECTED)


def test_a_sweep_of_which_nothing_was_measured_has_its_error() -> None:
    nothing = RECORD | {"rows": RECORD["rows"][2:]}
    assert bench_table.render(nothing, Look(100)).rstrip().endswith("64  The card went away.")


def test_a_sweep_recorded_on_an_h200_has_its_figures() -> None:
    recorded = json.loads((Path(__file__).parent / "sweep_h200.json").read_text())
    table = [line.split() for line in bench_table.render(recorded, Look(100)).splitlines()[4:7]]
    assert table == [
        ["256", "5.69", "µs", "5.86", "µs", "5.96", "µs", "1.03x", "1.05x", "64%"],
        ["1024", "17.9", "µs", "20.8", "µs", "17.4", "µs", "1.16x", "0.97x", "81%"],
        ["4096", "67.1", "µs", "106", "µs", "81.9", "µs", "1.58x", "1.22x", "87%"],
    ]


def test_a_terminal_without_unicode_gets_ascii() -> None:
    shown = bench_table.render(RECORD, Look(80, unicode=False))
    assert shown.isascii() and "8 us" in shown and "?" not in shown
