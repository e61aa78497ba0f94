"""The report record, version 1: a Report as plain data, its schema, and its file."""

import dataclasses
import functools
import json
import math
import secrets
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from gradekit.findings import SCHEMA, Cause, Check, Kind, Outcome, Report, SourceLine, Status
from gradekit.report.rests_on import rests_on

_ORDER = (
    "schema", "assignment", "status", "message", "cause", "hint", "source", "submission", "score", "checks", "rests_on",
)  # fmt: skip
"""The fields that a reader of the file meets first."""


def to_dict(report: Report) -> dict[str, Any]:
    """The record of `report`: data that any JSON writer accepts; numbers JSON has no name for become "inf" or "nan"."""
    checks = [{**plain(check), "hint": _hint(check)} for check in report.checks]
    found = {**plain(report), "schema": SCHEMA, "score": plain(report.score), "checks": checks}
    found |= {"hint": report.cause.hint if report.cause else "", "rests_on": rests_on(checks)}
    first = {name: found.pop(name) for name in _ORDER}
    return {name: value for name, value in (first | found).items() if value or name != "rests_on"}


def _hint(check: Check) -> str:
    """What to do about a failure: advice of this check alone, or else of its cause."""
    if check.outcome is not Outcome.FAILED or "points_by" in check.details:  # a person has said it
        return ""
    return str(check.details.get("hint") or (check.cause.hint if check.cause else ""))


def from_dict(data: Mapping[str, Any]) -> Report:
    """The report of a record that is valid (see `validate`): what `to_dict` made of it comes out the same again."""
    known = {field.name for field in dataclasses.fields(Report)}
    given = {name: value for name, value in data.items() if name in known}
    checks = (_restored(c) | {"kind": Kind(c["kind"]), "outcome": Outcome(c["outcome"])} for c in data["checks"])
    given |= {"status": Status(data["status"]), "checks": tuple(Check(**check) for check in checks)}
    return Report(**_restored(given) | {"notes": tuple(data["notes"])})


def _restored(data: Mapping[str, Any]) -> dict[str, Any]:
    cause, source = data["cause"], data["source"]
    given = {"cause": Cause(cause) if cause else None, "source": SourceLine(**source) if source else None}
    return {name: value for name, value in {**data, **given}.items() if name != "hint"}


def plain(value: Any) -> Any:
    """`value` with every part of it a JSON type; what has no JSON form becomes its text."""
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, (bool, int)) or value is None:
        return value
    return str(value)


# --- what a card measured: correctness comes first, from any machine --------------------------------------------------


def awaits_gpu(found: Mapping[str, Any]) -> bool:
    """Whether a speed check waits for a card."""
    waiting = (c["kind"] == Kind.SPEED and c["outcome"] == Outcome.PENDING for c in found["checks"])
    return found["status"] == Status.GRADED and any(waiting)


def merged(found: Mapping[str, Any], on_card: Mapping[str, Any]) -> dict[str, Any]:
    """The record `found`, with what was measured on a card in place of the speed checks that were pending; one that
    could not be stays so, for the reason that was met there."""
    report, speed = from_dict(found), from_dict(on_card)
    if speed.status is not Status.GRADED:
        return dict(found)
    measured = {check.id: check for check in speed.checks if check.outcome is not Outcome.FAULT}
    checks = tuple(measured.get(c.id, c) if c.outcome is Outcome.PENDING else c for c in report.checks)
    card = {name: speed.environment[name] for name in ("gpu", "gpu_uuid", "driver") if speed.environment.get(name)}
    notes = tuple(dict.fromkeys(report.notes + speed.notes))
    seconds = round(report.seconds + speed.seconds, 3)
    environment = {**report.environment, **card}
    return to_dict(dataclasses.replace(report, checks=checks, environment=environment, notes=notes, seconds=seconds))


# --- its schema -------------------------------------------------------------------------------------------------------


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON schema of the record, from the package."""
    text = resources.files("gradekit.report").joinpath("schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def validate(data: Any) -> None:
    """Check `data` against the schema. Raises ValueError where it is not a record; the message names the field."""
    import jsonschema  # here alone: a check need not wait for it

    errors = jsonschema.Draft202012Validator(schema()).iter_errors(data)
    error = next(iter(sorted(errors, key=lambda e: list(map(str, e.absolute_path)))), None)
    if error is not None:
        raise ValueError(f"{error.json_path.removeprefix('$').removeprefix('.') or 'the record'}: {error.message}")


# --- its file ---------------------------------------------------------------------------------------------------------


def dumps(data: Mapping[str, Any]) -> str:
    """The record as JSON text, ending in a newline; ASCII, so that it survives any pipe."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


UNFINISHED = ".gradekit-unfinished-"  # how the names of files begin that are not written whole


def write(text: str, path: Path) -> None:
    """Put `text` at `path` whole or not at all: a reader never sees half of it, and a failure leaves what was there.
    Raises OSError where the folder cannot be written."""
    own = path.with_name(f"{UNFINISHED}{secrets.token_hex(8)}")
    try:
        with own.open("x", encoding="utf-8") as stream:
            stream.write(text)
        own.replace(path)
    except BaseException:
        own.unlink(missing_ok=True)
        raise
