"""The command `gradekit prove`. Nothing heavy is imported before it is called."""

from __future__ import annotations

import json
from pathlib import Path

import click

from gradekit.progress import reading


@click.command()
@click.argument("path", default=".", type=click.Path(path_type=Path))
@click.option("-a", "--assignment", "id", metavar="ID", help="The assignment, where neither folder nor entry tells it.")
@click.option("--json", "as_json", is_flag=True, help="Print the record in place of the report.")
def prove(path: Path, id: str | None, as_json: bool) -> None:
    """Prove, for all sizes that the assignment promises, that PATH stays inside its tensors and writes its results.

    Each load, store and result is proved, refuted with sizes at which the engine sees it fail, or left open.
    """
    from gradekit.report import proofs

    with reading(path):
        from gradekit.subject.entry_proofs import prove_submission

        record = prove_submission(path, id)
    click.echo(json.dumps(record, indent=1) if as_json else proofs.render(record), nl=as_json)
    if any(found["refuted"] for found in record["passes"].values()):
        raise click.exceptions.Exit(1)
