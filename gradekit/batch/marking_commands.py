"""The commands of people who mark: marking, in a browser; requests and history, as text."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from gradekit.batch.class_commands import database, mark, out, user

_ID = click.option("-a", "--assignment", "id", metavar="ID", required=True, help="The assignment.")
_BY = click.option("--by", "person", default=None, metavar="NAME", help="Who decided; by default, the user.")


@click.command()
@_ID
@out
@database
@_BY
@click.option("--anonymous", is_flag=True, help="Hide who handed in what.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="By default, any that is free.")
@click.option("--open/--no-open", "opens", default=True, help="Open the browser, or only say the address.")
def marking(id: str, out: Path, store: str | None, person: str | None, anonymous: bool, port: int, opens: bool) -> None:
    """Mark the hand-ins of ID in a browser, on this machine alone, until it is interrupted.

    Source with what checks found at its lines, comments at lines, points with reasons that can be given again, and
    requests. The class's files are written anew at the end. All of it can be done by mark and requests, too.
    """
    from gradekit.batch.class_folder import ClassFolder
    from gradekit.batch.marking import Marking
    from gradekit.batch.marking_server import MarkingServer

    work = Marking(ClassFolder.open(out, store), id, person or user(), anonymous)
    with MarkingServer(work, port) as server:
        click.echo(f"{server.url}\nCtrl-C ends it, and writes the class's files anew.")
        if opens:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("\n" + work.session.finish(), nl=False)


@click.command()
@_ID
@out
@database
@_BY
@click.option("--student", metavar="STUDENT", help="Who asks: with --check and --text, a new request.")
@click.option("--check", metavar="CHECK", default="total", show_default=True, help="What it is about.")
@click.option("--text", metavar="TEXT", help="What is asked.")
@click.option("--answer", nargs=2, type=(int, str), metavar="N TEXT", help="Answer request N.")
def requests(id: str, out: Path, store: str | None, person: str | None, student: str | None, check: str,
             text: str | None, answer: tuple[int, str] | None) -> None:  # fmt: skip
    """List what students have asked to be looked at again; add a request, or answer one."""
    from gradekit.batch.class_folder import ClassFolder
    from gradekit.report.text import one_line

    folder = ClassFolder.open(out, store)
    if student and text:
        folder.store.add_request(id, folder.student(id, student), check, text)
    if answer:
        folder.store.answer_request(answer[0], answer[1], person or user())
    for each in folder.store.requests(id):
        said = f"answered by {each.person}: {each.answer}" if each.answer else "open"
        click.echo(one_line(f"{each.id}  {each.student}, {each.check}: {each.text}  ({said})"))


@click.command()
@click.argument("student")
@_ID
@out
@database
def history(student: str, id: str, out: Path, store: str | None) -> None:
    """Say what STUDENT handed in, what each attempt came to, what changed, and what people decided."""
    from gradekit.batch import marking as data
    from gradekit.batch.class_folder import ClassFolder

    folder = ClassFolder.open(out, store)
    click.echo(data.history(folder, id, folder.student(id, student)), nl=False)


COMMANDS: dict[str, click.Command] = {"mark": mark, "marking": marking, "requests": requests, "history": history}
