"""The report record, version 1: a Report as plain data, its schema, and its file."""

from __future__ import annotations

import functools
import json
import math
import os
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from gradekit.findings import SCHEMA, Cause, Check, Kind, Outcome, Report, SourceLine, Status
from gradekit.report.rests_on import rests_on


class RecordError(ValueError):
    """The data is not a report record: which field, and what is wrong with it."""


def to_dict(report: Report) -> dict[str, Any]:
    """The record of `report`: data that any JSON writer accepts; numbers JSON has no name for become "inf" or "nan"."""
    score, checks = report.score, [_check(check) for check in report.checks]
    resting = rests_on(checks)
    return {
        "schema": SCHEMA,
        "assignment": report.assignment,
        "status": report.status.value,
        "message": report.message,
        "cause": report.cause.value if report.cause else None,
        "hint": report.cause.hint if report.cause else "",
        "source": _source(report.source),
        "submission": plain(report.submission),
        "score": {"earned": score.earned, "possible": score.possible, "pending": score.pending},
        "checks": checks,
        **({"rests_on": resting} if resting else {}),
        "notes": list(report.notes),
        "environment": plain(report.environment),
        "seed": report.seed,
        "seconds": report.seconds,
    }


def _check(check: Check) -> dict[str, Any]:
    return {
        "id": check.id,
        "title": check.title,
        "kind": check.kind.value,
        "outcome": check.outcome.value,
        "earned": check.earned,
        "possible": check.possible,
        "bonus": check.bonus,
        "message": check.message,
        "cause": check.cause.value if check.cause else None,
        "hint": _hint(check) if check.outcome is Outcome.FAILED else "",
        "source": _source(check.source),
        "counterexample": plain(check.counterexample),
        "details": plain(check.details),
    }


def _hint(check: Check) -> str:
    """What to do about a failure: advice of this check's own, or else what holds for
    every submission with that cause."""
    return str(check.details.get("hint") or (check.cause.hint if check.cause else ""))


def _source(source: SourceLine | None) -> dict[str, Any] | None:
    return {"line": source.line, "text": source.text} if source else None


def from_dict(data: Mapping[str, Any]) -> Report:
    """The report of a record that is valid (see `validate`): what `to_dict` made of it comes out the same again."""
    return Report(
        assignment=data["assignment"],
        status=Status(data["status"]),
        submission=dict(data["submission"]),
        checks=tuple(map(_check_from, data["checks"])),
        environment=dict(data["environment"]),
        seconds=data["seconds"],
        message=data["message"],
        cause=_cause_from(data["cause"]),
        source=_source_from(data["source"]),
        notes=tuple(data["notes"]),
        seed=data["seed"],
    )


def _check_from(data: Mapping[str, Any]) -> Check:
    special = {
        "kind": Kind(data["kind"]),
        "outcome": Outcome(data["outcome"]),
        "cause": _cause_from(data["cause"]),
        "source": _source_from(data["source"]),
    }
    return Check(**{**{key: value for key, value in data.items() if key != "hint"}, **special})


def _cause_from(word: str | None) -> Cause | None:
    return Cause(word) if word else None


def _source_from(data: Mapping[str, Any] | None) -> SourceLine | None:
    return SourceLine(**data) if data else None


def plain(value: Any) -> Any:
    """`value` with every part of it a JSON type; what has no JSON form becomes its text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, (bool, int)) or value is None:
        return value
    return str(value)


# --- its schema -------------------------------------------------------------------------------------------------------


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON schema of the record, from the package."""
    text = resources.files("gradekit.report").joinpath("schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def validate(data: Any) -> None:
    """Check `data` against the schema.

    Raises:
        RecordError: it is not a record; the message names the field.
    """
    import jsonschema  # here alone: a check need not wait for it

    errors = jsonschema.Draft202012Validator(schema()).iter_errors(data)
    error = next(iter(sorted(errors, key=lambda e: list(map(str, e.absolute_path)))), None)
    if error is not None:
        raise RecordError(f"{error.json_path.removeprefix('$').removeprefix('.') or 'the record'}: {error.message}")


# --- its file ---------------------------------------------------------------------------------------------------------


def dumps(data: Mapping[str, Any]) -> str:
    """The record as JSON text, ending in a newline; ASCII, so that it survives any pipe."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def write(text: str, path: Path) -> None:
    """Put `text` at `path` whole or not at all: a reader never sees half of it, and a failure leaves what was there.

    Raises:
        OSError: the folder cannot be written.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            os.fchmod(stream.fileno(), 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
