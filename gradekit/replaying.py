"""The command `gradekit replay`: the failing call of a check as a Python file. Imports nothing heavy until called."""

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import click

from gradekit.assignment import get
from gradekit.report.translation import say
from gradekit.request import GradingOptions
from gradekit.submission import SubmissionError, read


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True, path_type=Path))
@click.option("-a", "--assignment", "id", metavar="ID", help="The assignment, where neither folder nor entry tells it.")
@click.option("-k", "--check", "name", metavar="NAME", help="The check; by default the first that fails.")
@click.option("-o", "--output", "output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
def replay(path: Path, id: str | None, name: str | None, output: Path | None) -> None:
    """Write a call that fails to a Python file: its tensors, the submission, what the check said, and the right result.

    PATH is a submission, or the record of a check (gradekit check --json). Where nothing has changed since the last
    check of a submission, that one's record is taken; else it is checked first.
    """
    from gradekit.report.record import write
    from gradekit.report.replay_script import NoReplay, chosen, script

    record = _record(path, id, name)
    if name is None and not any(check["outcome"] == "failed" for check in record["checks"]):
        click.echo(say("No check failed: there is no call to write down."))
        return
    try:
        check = chosen(record, name)
    except NoReplay as error:
        raise click.UsageError(f"{error}; the submission has {_failed(record)}") from None
    folder = path if path.is_dir() else path.parent
    target = output or folder / f"replay_{re.sub(r'[^A-Za-z0-9_]+', '_', check['id']).strip('_')}.py"
    try:
        write(script(record, check, _text(path, record), target.name), target)
    except OSError as error:
        raise click.UsageError(f"cannot write to {target}: {error.strerror}") from None
    click.echo(f"{target}: python {target}")


def _record(path: Path, id: str | None, name: str | None) -> dict[str, Any]:
    from gradekit.report.record import to_dict, validate

    if path.suffix == ".json":
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            validate(record)
        except ValueError as error:
            raise click.UsageError(f"{path} is no record of a check: {error}") from None
        return record
    from gradekit import remembered
    from gradekit.report.replay_script import NoReplay, chosen

    with contextlib.suppress(NoReplay):
        if kept := remembered.unchanged(path, id):
            chosen(kept, name)
            return kept
    from gradekit import checking

    keyword = name.partition("[")[0] if name else None  # a parametrization cannot be told by -k
    return to_dict(checking.check(path, id, GradingOptions(keyword=keyword, stop=True)))


def _failed(record: dict[str, Any]) -> str:
    failed = [check["id"] for check in record["checks"] if check["outcome"] == "failed"]
    return f"failed {', '.join(failed)}" if failed else "failed no check"


def _text(path: Path, record: dict[str, Any]) -> str:
    file = Path(record["submission"]["path"]) if path.suffix == ".json" else path
    try:
        found = read(file, entry=get(record["assignment"]).entry)
    except SubmissionError as error:
        raise click.UsageError(str(error)) from None
    if found.sha256 != record["submission"]["sha256"]:
        raise click.UsageError(f"{file} has changed since it was checked: check it again")
    return found.text
