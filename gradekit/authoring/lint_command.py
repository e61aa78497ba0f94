"""The command `gradekit lint`. Nothing heavy is imported before it is called."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("id", required=False)
def lint(id: str | None) -> None:
    """Say what reading finds wrong with the assignment ID, or with each: names, tables, points, mistakes.

    Nothing is run, so that it takes a second. ID may be a folder.
    """
    from gradekit.assignment import folders, named_folder
    from gradekit.authoring.lint import lint as linted
    from gradekit.report.text import counted

    found = []
    for folder in [named_folder(id)] if id else folders().values():
        for complaint in linted(folder):
            found.append(complaint)
            click.echo(f"{'note: ' if complaint.is_note else ''}{_near(complaint.text)}")
    wrong = sum(not complaint.is_note for complaint in found)
    notes = f", {counted(len(found) - wrong, 'note')}" if len(found) > wrong else ""
    click.echo(f"{wrong or 'nothing'} to mend{notes}")
    raise click.exceptions.Exit(1 if wrong else 0)


def _near(text: str) -> str:
    """Files below the current folder by their names from there."""
    return text.replace(f"{Path.cwd()}/", "")
