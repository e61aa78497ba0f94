"""Grading in two stages: correctness on any machine, then speed on a machine with a GPU, which gets only programs.

Pure functions of records. The store keeps the results of both stages; when records are read, what the GPU stage
measured replaces the speed checks that were pending.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gradekit.findings import Check, Kind, Outcome, Report, Status
from gradekit.report import record

Record = Mapping[str, Any]

_OF_CARD = ("gpu", "gpu_uuid", "driver")


def awaits_gpu(found: Record) -> bool:
    """Whether a speed check waits for a card."""
    waiting = (c["kind"] == Kind.SPEED and c["outcome"] == Outcome.PENDING for c in found["checks"])
    return found["status"] == Status.GRADED and any(waiting)


def merged(found: Record, on_card: Record) -> dict[str, Any]:
    """The record `found`, with what was measured on a card in place of the speed checks that were pending in it.

    What the card could not measure either stays pending, for the reason that was met there.
    """
    report, speed = record.from_dict(found), record.from_dict(on_card)
    if speed.status is not Status.GRADED:
        return dict(found)
    return record.to_dict(_merged(report, speed))


def _merged(report: Report, speed: Report) -> Report:
    measured = {check.id: check for check in speed.checks}
    checks = tuple(_better(check, measured.get(check.id)) for check in report.checks)
    card = {name: speed.environment[name] for name in _OF_CARD if speed.environment.get(name)}
    notes = tuple(dict.fromkeys(report.notes + speed.notes))
    seconds = round(report.seconds + speed.seconds, 3)
    return replace(report, checks=checks, environment={**report.environment, **card}, notes=notes, seconds=seconds)


def _better(check: Check, measured: Check | None) -> Check:
    if check.outcome is not Outcome.PENDING or measured is None or measured.outcome is Outcome.FAULT:
        return check
    return measured
