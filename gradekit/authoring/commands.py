"""The commands for authors: `gradekit new` and `gradekit lint`. Nothing heavy is imported before they are called."""

import sys
from pathlib import Path

import click

from gradekit.assignment import folders, get, named_folder
from gradekit.report.text import counted


@click.command()
@click.argument("id")
@click.option("--like", "other", metavar="ID", help="Begin as a copy of this assignment, with its entry renamed.")
@click.option("--reference", metavar="FILE.py:FUNCTION", help="Write tests, handout and starter around this function.")
def new(id: str, other: str | None, reference: str | None) -> None:
    """Write the files of a new assignment ID into assignments/ and solutions/ here, and say what is left to do.

    The annotations of a reference say shapes and ranges: x: "[M, N]", index: "int64 [N] 0..V - 1", bins: "= B",
    x: "[N] in place". What they leave out is asked for.
    """
    from gradekit.authoring import scaffold
    from gradekit.authoring.lint import lint as linted

    if bool(other) == bool(reference):
        raise click.UsageError("say either --like ID or --reference FILE.py:FUNCTION")
    if not id.isidentifier():
        raise click.UsageError(f"{id!r} cannot be the name of an assignment: its tests and its entry are Python names")
    files = scaffold.like(id, get(other)) if other else _from_reference(id, reference or "")
    if id in (known := folders()):
        click.echo(f"note: here, it takes the place of {known[id]}")
    for path in scaffold.write(Path(), files):
        click.echo(f"  {path}")
    for complaint in linted(Path("assignments", id).resolve()):
        click.echo(f"left to do: {complaint.text}")
    left = "change the task and its tests" if other else f"write solutions/{id}/solution.py"
    click.echo(f"then: {left}, and gradekit verify {id}")


def _from_reference(id: str, said: str) -> dict[str, str]:
    from gradekit.authoring.scaffold import from_reference
    from gradekit.authoring.signature import signature

    file, _, name = said.partition(":")
    try:
        text = Path(file).read_text(encoding="utf-8")
        return from_reference(id, signature(text, name or id, _ask), text)
    except (ValueError, ArithmeticError) as error:
        raise click.UsageError(f"{file}: {error}") from None


def _ask(question: str) -> str:
    if not sys.stdin.isatty():
        raise click.UsageError(f"the reference does not say {question}: annotate it, or run this in a terminal")
    return str(click.prompt(question))


@click.command()
@click.argument("id", required=False)
def lint(id: str | None) -> None:
    """Say what reading finds wrong with the assignment ID, or with each: names, tables, points, mistakes.

    Nothing is run, so that it takes a second. ID may be a folder.
    """
    from gradekit.authoring.lint import lint as linted

    found = []
    for folder in [named_folder(id)] if id else folders().values():
        for complaint in linted(folder):
            found.append(complaint)
            click.echo(f"{'note: ' if complaint.is_note else ''}{complaint.text.replace(f'{Path.cwd()}/', '')}")
    wrong = sum(not complaint.is_note for complaint in found)
    notes = f", {counted(len(found) - wrong, 'note')}" if len(found) > wrong else ""
    click.echo(f"{wrong or 'nothing'} to mend{notes}")
    raise click.exceptions.Exit(1 if wrong else 0)


COMMANDS = {"lint": lint, "new": new}
