"""The command `gradekit replay`: the failing call of a check as a Python file. Nothing heavy
is imported before it is called."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True, path_type=Path))
@click.option("-a", "--assignment", "id", metavar="ID", help="The assignment, where neither folder nor entry tells it.")
@click.option("-k", "--check", "name", metavar="NAME", help="The check; by default the first that fails.")
@click.option("-o", "--output", "output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
def replay(path: Path, id: str | None, name: str | None, output: Path | None) -> None:
    """Write a call that fails to a Python file: its tensors, the submission's call, and the right result.

    PATH is a submission, which is checked first, or the record of a check (gradekit check --json).
    """
    from gradekit.report.replay_script import NoReplay, chosen, script

    record = _record(path, id, name)
    try:
        check = chosen(record, name)
    except NoReplay as error:
        raise click.UsageError(f"{error}; the submission has {_failed(record)}") from None
    target = output or Path(f"replay_{re.sub(r'[^A-Za-z0-9_]+', '_', check['id']).strip('_')}.py")
    target.write_text(script(check, _file(record), _folder(record["assignment"])), encoding="utf-8")
    click.echo(f"{target}: python {target}")


def _record(path: Path, id: str | None, name: str | None) -> dict[str, Any]:
    if path.suffix == ".json":
        from gradekit.report.record import RecordError, validate

        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            validate(record)
        except (ValueError, RecordError) as error:
            raise click.UsageError(f"{path} is no record of a check: {error}") from None
        return record
    from gradekit import checking
    from gradekit.report.record import to_dict
    from gradekit.request import GradingOptions

    return to_dict(checking.check(path, id, GradingOptions(keyword=_keyword(name), stop=True)))


def _keyword(name: str | None) -> str | None:
    """What runs the check called `name` alone; a parametrization cannot be told by it."""
    return name.partition("[")[0] if name else None


def _failed(record: dict[str, Any]) -> str:
    failed = [check["id"] for check in record["checks"] if check["outcome"] == "failed"]
    return f"failed {', '.join(failed)}" if failed else "failed no check"


def _file(record: dict[str, Any]) -> Path:
    from gradekit.submission import read

    path = Path(record["submission"]["path"])
    if path.suffix == ".py":
        return path.absolute()
    if path.is_dir():
        return Path(read(path).path).absolute()
    raise click.UsageError(f"{path} is no Python file: save its cells as one first")


def _folder(assignment: str) -> Path:
    from gradekit.assignment import get

    return get(assignment).folder.absolute()
