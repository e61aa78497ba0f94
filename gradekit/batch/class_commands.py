"""The commands for a class: grade, regrade, mark, gradebook. Holds no policy: each hands its arguments on."""

from __future__ import annotations

import functools
import getpass
import importlib.util
import os
import re
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradekit.assignment import discover
from gradekit.report.text import counted, one_line
from gradekit.report.translation import say

if TYPE_CHECKING:
    from gradekit.batch.class_folder import ClassFolder, GradingSession

_FOLDER, _THERE = (click.Path(exists=exists, file_okay=False, path_type=Path) for exists in (False, True))
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

out = click.option("-o", "--out", metavar="OUT", required=True, type=_FOLDER, help="The class's folder.")
database = click.option("--store", metavar="URL", help="Another database than OUT/class.db, such as postgresql://...")

_BY = click.option("--by", "person", metavar="NAME", help="Who decided; by default, the user.")
_COURSE = click.option("--course", metavar="TOML", type=_FILE, help="The policy: due dates, lateness, attempts.")
_ROSTER = click.option("--roster", metavar="CSV", type=_FILE, help="The class list: who is missing, and by what name.")


def tell(text: str, *, nl: bool = True) -> None:
    """Print a text in the reader's language."""
    click.echo(say(text), nl=nl)


def _of_class(command: Callable[..., None], *, new: bool = False) -> Callable[..., None]:
    """The options that name a class, which may be `new`; the command gets its `folder`, with the files given for it."""

    @out
    @database
    @functools.wraps(command)
    def with_folder(*args: Any, out: Path, store: str | None, **named: Any) -> None:
        files = {name: named.pop(name) for name in ("roster", "course") if name in named}
        command(*args, folder=_class(out, store, new=new, **files), **named)

    return with_folder


def _of_assignment(command: Callable[..., None]) -> Callable[..., None]:
    """The options that name an assignment of a class: the command gets `id` and `folder`."""
    named = click.option("-a", "--assignment", "id", metavar="ID", required=True, help="The assignment.")
    return named(_of_class(command))


def _written_to(what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The option that says where a file is written; the command gets `target`."""
    file = click.Path(dir_okay=False, path_type=Path)
    return click.option("--to", "target", type=file, required=True, metavar="FILE", help=what)


def _address(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    if given is not None and not re.fullmatch(r"[a-z+]+://.+:\d+/?", given):
        raise click.BadParameter(f"a scheduler's address looks like tcp://host:8786, not {given}")
    if given is not None and given.startswith("tls://"):
        from gradekit.batch.pool import can_encrypt

        if not can_encrypt():
            raise click.BadParameter(
                "tls:// needs certificates: set GRADEKIT_CERTIFICATES to a folder with ca.pem, cert.pem and key.pem"
            )
    return given


isolated = click.option(
    "--require-isolation", "isolation", type=click.IntRange(0, 3), default=2, show_default=True, metavar="LEVEL",
    help="Run no submission that is isolated below LEVEL: see doctor.",
)  # fmt: skip


def _on_workers(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say where submissions are graded; the command gets `count` and `cluster`."""
    count = click.option(
        "--workers", "count", metavar="N", type=click.IntRange(min=1), help="Graders at a time; by default one a core."
    )
    cluster = click.option("--cluster", metavar="ADDRESS", callback=_address,
                           help="A Dask scheduler whose workers grade, such as tcp://host:8786.")  # fmt: skip
    return count(cluster(command))


NEEDED = ("sqlalchemy", "distributed", "yaml")  # what these commands import beyond what a student's gradekit needs


def _complete() -> None:
    if not all(map(importlib.util.find_spec, NEEDED)):
        raise click.UsageError("grading a class takes more than checking a file: pip install 'gradekit[batch]'")


def _class(folder: Path, url: str | None, **named: Any) -> ClassFolder:
    _complete()
    from gradekit.batch.class_folder import ClassFolder

    return ClassFolder.open(folder, url, **named)


@click.command()
@click.argument("submissions", type=_THERE)
@click.option("-a", "--assignment", "id", metavar="ID",
              help="The assignment; by default each of course.toml's that SUBMISSIONS has a folder for.")  # fmt: skip
@functools.partial(_of_class, new=True)
@click.option("--resume", is_flag=True, help="Go on with what OUT has begun.")
@_ROSTER
@_COURSE
@click.option("--times", metavar="FILE", type=_FILE,
              help="When hand-ins came: Canvas's submissions as JSON, Moodle's worksheet, or a CSV.")  # fmt: skip
@_on_workers
@click.option("--seed", type=int, metavar="N", help="Draw other examples than the release's.")
@click.option("--secret-seed", type=click.IntRange(0, 2**62), metavar="N",
              help="The secret seed of the class; by default a new one, kept in its store.")  # fmt: skip
@click.option("--profile", type=click.Choice(["quick", "default", "thorough"]), help="How many examples; or as before.")
@click.option("--hidden/--no-hidden", default=None,
              help="With hidden tests (at first) or without; or as before. A change is another grading.")  # fmt: skip
@isolated
def grade(submissions: Path, id: str | None, folder: ClassFolder, resume: bool, count: int | None, cluster: str | None,
          times: Path | None, **options: Any) -> None:  # fmt: skip
    """Grade every submission in the folder SUBMISSIONS.

    It may be a folder for each student, or what Canvas, Moodle, Gradescope or nbgrader hand out. Each result is kept as
    soon as it is known: killed at any moment, the same command with --resume goes on.
    """
    named = {name: value for name, value in options.items() if value is not None}
    chosen = {id: submissions} if id else _by_assignment(folder, submissions)
    begun = [id for id in chosen if folder.store.hand_ins(id)]
    if begun and not resume:
        there = f"{folder.path} holds results of {', '.join(begun)} already"
        raise click.UsageError(f"{there}: go on with --resume, or name another folder")
    for each, place in chosen.items():
        session = _session(folder, each, named)
        for line in session.take_in(place, times):
            tell(line)
        _run(session, count, cluster)


def _session(folder: ClassFolder, id: str, options: Mapping[str, Any] | None = None) -> GradingSession:
    from gradekit.batch.class_folder import GradingSession

    return GradingSession(folder, id, options=options)


def _run(session: GradingSession, count: int | None, cluster: str | None) -> None:
    session.run(tell, count, cluster)
    tell("\n" + session.finish(), nl=False)


def _by_assignment(folder: ClassFolder, submissions: Path) -> dict[str, Path]:
    ids = folder.course.policies
    found = {id: submissions / id for id in ids if (submissions / id).is_dir()}
    if not found:
        there = ", ".join(ids) or "none: there is no course.toml"
        raise click.UsageError(f"say the assignment with -a, or have a folder in {submissions} for each of {there}")
    others = sorted(path.name for path in submissions.iterdir() if path.is_dir() and path.name not in ids)
    if others:
        tell(f"left aside, for course.toml does not name it: {', '.join(others)}")
    return found


@click.command()
@click.argument("student")
@click.argument("check")
@_of_assignment
@click.option("--points", type=click.FloatRange(min=0), metavar="N", help="What it earns; without, a comment alone.")
@click.option("--why", required=True, help="The reason, which the student reads.")
@_BY
def mark(
    student: str, check: str, id: str, folder: ClassFolder, points: float | None, why: str, person: str | None
) -> None:
    """Decide what CHECK earns STUDENT: a person's mark wins over the machine's, also after a regrade.

    CHECK is a check's name, such as test_speed; line:14 for a comment at that line; or total, for a submission that was
    rejected. The class's files are written anew.
    """
    from gradekit.marks import Mark

    said = folder.mark(id, student, check, Mark(points, person or user(), why))
    _session(folder, id).finish()
    tell(said)


def user() -> str:
    """What the system calls whoever runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without a name, as in containers
        return f"user {os.getuid()}"


@click.command()
@_of_assignment
@click.option("--student", metavar="STUDENT", help="Only this student's submissions.")
@click.option("--check", metavar="CHECK", help="Only those that failed this check.")
@click.option("--cause", metavar="CAUSE", help="Only those with a check that failed for this cause, or fault.")
@click.option("--all/--only", "every", default=None,
              help="Where the tests have changed since: everyone, or those alone who were named.")  # fmt: skip
@_on_workers
@_COURSE
@_ROSTER
@isolated
def regrade(
    id: str, folder: ClassFolder, isolation: int, count: int | None, cluster: str | None, **chosen: Any
) -> None:  # fmt: skip
    """Grade again what OUT has graded: all of it, or by student, by check or by cause. What was, stays as history."""
    session = _session(folder, id, {"isolation": isolation})
    tell("\n".join(session.choose(**chosen)))
    _run(session, count, cluster)


@click.command()
@click.argument("export", type=_FILE)
@_of_assignment
@_written_to("Where to write the file for the LMS.")
@click.option("--column", metavar="NAME", help="Canvas: the assignment's title or id. nbgrader: the grade cell.")
@click.option("--grade-column", default="Grade", show_default=True, help="Moodle: the grade's column, in its language.")
@_COURSE
def gradebook(export: Path, id: str, folder: ClassFolder, target: Path, **options: Any) -> None:
    """Fill EXPORT, the file that Canvas or Moodle exported or nbgrader's gradebook.db, with the points of the class."""
    from gradekit.batch.class_folder import listed
    from gradekit.batch.exports import fill

    filled = fill(export, target, _session(folder, id).lines(), id, **options)
    without = f"; left as they were, without a result: {listed(filled.without)}" if filled.without else ""
    tell(f"{target}: {counted(filled.filled, 'student')} with points{without}")


@click.command()
@_of_assignment
@_written_to("The zip to write.")
def feedback(id: str, folder: ClassFolder, target: Path) -> None:
    """Put the reports of ID into one zip, under the names that Canvas or Moodle knows the hand-ins by."""
    from gradekit.batch.feedback import zipped

    data, count = zipped(folder.store.hand_ins(id), folder.path / id / "feedback")
    if not count:
        raise click.UsageError(f"there is no feedback on {id} in {folder.path}")
    target.write_bytes(data)
    tell(f"{target}: {counted(count, 'report')}")


@click.command()
@_of_assignment
def similar(id: str, folder: ClassFolder) -> None:
    """List the submissions whose programs resemble each other. For a person to look at: it is no verdict.

    Names, constants, order and layout do not count, and what many have in common counts little. Nothing is run: what it
    compares was kept when the class was graded.
    """
    tell(_session(folder, id).similar(), nl=False)


@click.command()
@click.argument("address", callback=_address)
@click.option(
    "--graders", type=click.IntRange(min=0), metavar="N", help="How many grade at a time; by default one a core."
)
@click.option("--no-cards", is_flag=True, help="Leave the GPUs of this machine alone.")
@click.option("--stand-in", is_flag=True, hidden=True)
def worker(address: str, graders: int | None, no_cards: bool, stand_in: bool) -> None:
    """Lend this machine to the Dask scheduler at ADDRESS, such as tls://host:8786, until it is interrupted.

    Its cores grade, and each of its GPUs times what `gradekit grade --cluster ADDRESS` sends, one program at a time. It
    needs the same release of the assignments.
    """
    _complete()
    from gradekit.batch import grader
    from gradekit.batch.pool import serve, worker_commands

    found = [grader.FAKE_GPU] if stand_in else [] if no_cards else grader.visible_cards()
    count = os.cpu_count() or 1 if graders is None else graders
    tell(f"{count} graders, {len(found)} cards for {address}")
    serve(worker_commands(address, count, found))


@click.command()
@_of_assignment
@click.option("--url", required=True, metavar="URL", help="Canvas's address, such as https://canvas.example.org.")
@click.option("--to", "target", nargs=2, type=int, required=True, metavar="COURSE ASSIGNMENT", help="Canvas's numbers.")
@click.option("--send", is_flag=True, help="Send it after a yes; without, only say what would be sent.")
def canvas(id: str, folder: ClassFolder, url: str, target: tuple[int, int], send: bool) -> None:
    """Bring the points of ID into Canvas by its API, with the token in the variable CANVAS_TOKEN.

    Says what Canvas does not have yet; with --send, asks, and sends it in one request.
    """
    from gradekit.batch.exports import TOKEN, Canvas, worth

    token = os.environ.get(TOKEN)
    if not token:
        raise click.UsageError(f"set {TOKEN} to an access token of Canvas (Account, Settings, New Access Token)")
    lines = _session(folder, id).lines()
    there = Canvas(url, *target, token)
    plan = there.planned(lines, worth(lines))
    for line in lines:
        new, old = plan.get(line.student, ("", ""))
        if new:
            tell(f"{line.label}: {new} (Canvas has {old})" if old else f"{line.label}: {new}")
    tell(f"{counted(len(plan), 'student')} with points that Canvas does not have")
    if plan and send and click.confirm(say("Send them?")):
        there.send(plan)
        tell("Sent.")
    elif plan:
        tell("Nothing was sent." if send else "Nothing was sent: with --send, this asks and sends them.")


# --- of people who mark -----------------------------------------------------------------------------------------------


@click.command()
@_of_assignment
@_BY
@click.option("--anonymous", is_flag=True, help="Hide who handed in what.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="By default, any that is free.")
@click.option("--open/--no-open", "opens", default=True, help="Open the browser, or only say the address.")
def marking(id: str, folder: ClassFolder, person: str | None, anonymous: bool, port: int, opens: bool) -> None:
    """Mark the hand-ins of ID in a browser, on this machine alone, until it is interrupted.

    Source with what checks found at its lines, comments at lines, points with reasons that can be given again, and
    requests. The class's files are written anew at the end. All of it can be done by mark and requests, too.
    """
    from gradekit.batch.marking import Marking, MarkingServer

    work = Marking(folder, id, person or user(), anonymous)
    with MarkingServer(work, port) as server:
        tell(f"{server.url}\nCtrl-C ends it, and writes the class's files anew.")
        if opens:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            tell("\n" + work.session.finish(), nl=False)


@click.command()
@_of_assignment
@_BY
@click.option("--student", metavar="STUDENT", help="Who asks: with --check and --text, a new request.")
@click.option("--check", metavar="CHECK", default="total", show_default=True, help="What it is about.")
@click.option("--text", metavar="TEXT", help="What is asked.")
@click.option("--answer", nargs=2, type=(int, str), metavar="N TEXT", help="Answer request N.")
def requests(id: str, folder: ClassFolder, person: str | None, student: str | None, check: str, text: str | None,
             answer: tuple[int, str] | None) -> None:  # fmt: skip
    """List what students have asked to be looked at again; add a request, or answer one."""
    if student and text:
        folder.ask(id, student, check, text)
    if answer:
        folder.store.answer_request(answer[0], answer[1], person or user())
        _session(folder, id).finish()
    asked = folder.store.requests(id)
    if not asked:
        tell("Nobody has asked for another look.")
    for each in asked:
        said = f"answered by {each.person}" if each.answer else "open"
        tell(one_line(f"{each.id}  {each.student}, {each.check}: ({said})"))
        for words in filter(None, (each.text, each.answer)):
            click.echo(f"    {one_line(words)}")


@click.command()
@click.argument("student")
@_of_assignment
def history(student: str, id: str, folder: ClassFolder) -> None:
    """Say what STUDENT handed in, what each attempt came to, what changed, and what people decided."""
    from gradekit.batch import marking as data

    click.echo(data.history(folder, id, folder.student(id, student)), nl=False)


# --- where a class, or a student, stands ------------------------------------------------------------------------------


@click.command()
@click.argument("folder", metavar="[DIR]", default=".", type=_THERE)
@click.option("-o", "--out", metavar="OUT", type=_FOLDER, help="The class's folder: what became of its hand-ins.")
@database
def status(folder: Path, out: Path | None, store: str | None) -> None:
    """Say where you stand: the assignments that were started in DIR and the folders in it, with their last points.

    With -o OUT, for staff: what became of the hand-ins of each assignment of the class.
    """
    if not out:
        tell(_student_status(folder), nl=False)
        return
    made = _class(out, store)
    from gradekit.batch import course_pages

    lines = made.course_lines()
    tell(course_pages.status(made.course, lines) if lines else f"nothing was handed in to {out} yet\n", nl=False)


def _student_status(folder: Path) -> str:
    from gradekit.course import attempts

    known = discover()
    places = [folder, *sorted(child for child in folder.iterdir() if child.is_dir())]
    started = [(id, place) for place in places for id in known if attempts.is_started(place, id)
               and place != known[id].folder]  # fmt: skip
    if not started:
        said = f"nothing was started in {folder}: gradekit start ID lays an assignment out, gradekit list names them"
        return said + "\n"
    width = max(len(id) for id, _ in started)
    return "".join(f"{id:<{width}}  {say(standing(place))}\n" for id, place in started)


def standing(place: Path) -> str:
    """The last attempt in a folder, the best, and how many there were."""
    from gradekit.course import attempts

    found = attempts.read(place)
    if not found:
        return "started, not checked yet"
    best = max(found, key=lambda attempt: attempt.earned)
    better = f"; best {best.earned:g}" if best.earned > found[-1].earned else ""
    return f"{found[-1].said}{better}; attempt {len(found)}, {found[-1].when[:16].replace('T', ' ')} UTC"


COMMANDS: dict[str, click.Command] = {
    "grade": grade, "regrade": regrade, "mark": mark, "gradebook": gradebook, "similar": similar, "worker": worker,
    "feedback": feedback, "canvas": canvas, "marking": marking, "requests": requests, "history": history,
    "status": status,
}  # fmt: skip
