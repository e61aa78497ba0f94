"""What replaying costs: a program in the worker against the same function called directly, for six kernels.

    python benchmarks/replay.py [--rounds 30] [--only NAME ...] [--record FILE]

Needs a card. The direct side is the function of kernels.py as its author would call it, in this process; the replayed
side is the program that the tracer made of it, in the worker's process. Both are captured in CUDA graphs, meet a cold
L2 cache and rotate the same sets of inputs; they take turns within one run. A ratio above 1 means that the replay is
slower. The results of all sets must be the same, bit for bit.
"""

from __future__ import annotations

import argparse
import functools
import json
from pathlib import Path
from typing import Any

import kernels
import torch
from speed import CASES, Case, programs, versions

from gradekit.gpu import Limit, baselines, card
from gradekit.gpu.card import Card
from gradekit.gpu.contest import interleave
from gradekit.gpu.inputs import make_set
from gradekit.gpu.worker import Worker
from gradekit.judge.speed import ratio, seconds
from gradekit.program import Program

FLOOR = 0.02
"""How far from 1 a ratio may be."""


def compare(case: Case, program: Program, worker: Worker, found: Card, rounds: int) -> dict[str, Any]:
    """One kernel on both sides, as data for the record."""
    prepared = worker.prepare(program, case.specs)
    sets = [make_set(case.specs, number, found.device) for number in range(prepared.sets)]
    direct = baselines.eager(getattr(kernels, case.entry), sets, found)
    replayed = functools.partial(worker.turn, prepared.id, milliseconds=Limit.TURN_MS)
    sides = {"replayed": replayed, "direct": functools.partial(direct.clock.turn, Limit.TURN_MS)}
    timings = interleave(sides, lambda taken: len(taken) >= rounds, rounds=rounds)
    equal = _equal([*worker.results(prepared.id)], direct.clock.outputs)
    worker.forget(prepared.id)
    direct.clock.close()
    slower = ratio(timings.rounds, "replayed", "direct")
    return {
        "ratio": [slower.value, slower.low, slower.high], "rounds": slower.rounds, "discarded": slower.discarded,
        "replayed": seconds(timings.rounds, "replayed"), "direct": seconds(timings.rounds, "direct"),
        "bit_for_bit": equal, "how": [prepared.how, direct.clock.how], "sets": prepared.sets,
        "sm_mhz": _clocks(timings.rounds), "samples": [dict(r.seconds) for r in timings.rounds],
    }  # fmt: skip


def _equal(results: list[list[Any]], outputs: list[torch.Tensor]) -> bool:
    return all(torch.equal(mine, its.cpu()) for (mine,), its in zip(results, outputs, strict=True))


def _clocks(rounds: Any) -> list[int]:
    known = [mhz for taken in rounds for mhz in taken.sm_mhz.values() if mhz is not None]
    return [min(known), max(known)] if known else []


def row(name: str, found: dict[str, Any]) -> str:
    """The line of the table for one kernel."""
    value, low, high = found["ratio"]
    good = abs(value - 1) <= FLOOR and found["bit_for_bit"] and found["how"] == ["graph", "graph"]
    return (
        f"| {name} | {found['direct'] * 1e6:.2f} | {found['replayed'] * 1e6:.2f} "
        f"| {value:.4f} ({low:.4f} to {high:.4f}) | {found['rounds']} "
        f"| {'yes' if found['bit_for_bit'] else 'NO'} | {'ok' if good else 'MISSED'} |"
    )


def main() -> None:
    """Prints a table, and writes the record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--record", type=Path)
    asked = parser.parse_args()
    found = card.find("cuda")
    assert found is not None
    record: dict[str, Any] = {"versions": versions(found), "kernels": {}}
    print(json.dumps(record["versions"]))
    print(
        "| kernel | direct us | replayed us | replayed / direct | rounds | same bits | within 2 % |\n"
        + "|---" * 7
        + "|"
    )
    with Worker(found) as worker:
        for name, program in programs(asked.only).items():
            record["kernels"][name] = compare(CASES[name], program, worker, found, asked.rounds)
            print(row(name, record["kernels"][name]), flush=True)
    if asked.record:
        asked.record.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
