"""The command line. Holds no policy: each command hands its arguments on, and shows what comes back.

Nothing heavy is imported before a command needs it, so that --help and list answer at once.
"""

import json
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from gradekit.assignment import UsageError, course_file, course_setting, discover, folders, get, in_order
from gradekit.authoring.commands import COMMANDS as AUTHORING
from gradekit.batch.class_commands import COMMANDS as BATCH
from gradekit.batch.class_commands import standing
from gradekit.calibrate import calibrate
from gradekit.lms.lms_commands import COMMANDS as LMS
from gradekit.processes import usual_jobs
from gradekit.progress import interruptible, reading, shown
from gradekit.replaying import replay
from gradekit.report import translation
from gradekit.report.text import clean
from gradekit.report.translation import say
from gradekit.request import GradingOptions
from gradekit.stepview.view_command import beside, view, whole_numbers
from gradekit.submission import SubmissionError
from gradekit.versions import version

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class CommandGroup(click.Group):
    """A group whose commands never end in a traceback: an error of gradekit's own is a sentence and exit code 3.
    `--lang` may stand behind the command, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the group's own options, and find the command."""
        place = next((n for n, arg in enumerate(args) if arg.partition("=")[0] == "--lang"), len(args))
        end = place + (1 if "=" in "".join(args[place : place + 1]) else 2)
        return super().parse_args(ctx, args[place:end] + args[:place] + args[end:])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            raise click.exceptions.Exit(128 + signal.SIGINT) from None
        except click.ClickException as error:
            vars(error)["message"] = say(error.message)
            raise
        except UsageError as error:
            raise click.UsageError(say(clean(str(error)))) from None  # file names may hold control characters
        except BrokenPipeError:  # the reader has seen enough: gradekit check | head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(1) from None
        except OSError as error:
            if error.filename is None:
                _fault(error)
            raise click.UsageError(f"{error.filename}: {error.strerror}") from None
        except Exception as error:  # noqa: BLE001  # whatever it is, it is ours
            _fault(error)


def _fault(error: Exception) -> NoReturn:
    from gradekit.checking import ExitCode, save_traceback

    said = clean(f"{type(error).__name__}: {error}"[:2000])
    click.echo(f"gradekit itself failed: {said}\n{save_traceback(error)}", err=True)
    raise click.exceptions.Exit(ExitCode.FAULT)


@click.group(cls=CommandGroup, context_settings=CONTEXT)
@click.version_option(version("gradekit") or "unknown", prog_name="gradekit")
@click.option("--assignments", metavar="PATH", help="Where assignments are: folders, or built-in, as in a search path.")
@click.option("--lang", type=click.Choice(translation.languages()), help="The language of reports and pages.")
def main(assignments: str | None, lang: str | None) -> None:
    """Grades Triton kernels on any machine, and says what is wrong with them.

    \b
    Exit codes: 0  all that was measured passed
                1  something failed, or the submission was rejected
                2  wrong usage
                3  gradekit itself failed: nothing counts against the submission
                4  bench: this machine has no GPU
              130  it was interrupted
    """
    if assignments:
        os.environ["GRADEKIT_ASSIGNMENTS"] = assignments  # for every process that takes part
    wanted = lang or os.environ.get(translation.VARIABLE) or course_setting(Path.cwd(), "lang") or "en"
    if wanted not in translation.languages():
        raise click.UsageError(f"no language {wanted!r}; there are {', '.join(translation.languages())}")
    if wanted != translation.language():
        os.environ[translation.VARIABLE] = wanted
    if docs := course_setting(Path.cwd(), "docs"):
        os.environ.setdefault("GRADEKIT_DOCS", docs)


@main.command("list")
def list_() -> None:
    """List the assignments in the order of learning: points, what they are about, and how far you are.

    Where they are from several places, the place stands behind each.
    """
    from gradekit.batch.policy import load
    from gradekit.course.attempts import is_started

    known = discover()
    if not known:
        raise click.UsageError("no assignments were found: set GRADEKIT_ASSIGNMENTS to their folder")
    course = course_file(Path.cwd())
    ordered = in_order(known, load(course).policies if course else ())
    width, worth = max(map(len, known)), [say(f"{each.points:g} points") if each.points else "" for each in ordered]
    are_mixed = len({assignment.folder.parent for assignment in ordered}) > 1
    for assignment, points in zip(ordered, worth, strict=True):
        place, name = Path(assignment.id), f"  [{assignment.origin}]" if are_mixed else ""
        own = f"  ({say(standing(place))})" if is_started(place, assignment.id) else ""
        column = f"{points:<{max(map(len, worth))}}  " if any(worth) else ""
        click.echo(f"{assignment.id:<{width}}  {column}{say(assignment.summary)}{own}{name}")


@main.command()
@click.argument("id")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite files that are there; a copy of your own stays.")
@click.option("--notebook", is_flag=True, help="Lay out the handout and the starter as one Jupyter notebook.")
def start(id: str, folder: Path | None, force: bool, notebook: bool) -> None:
    """Start the assignment ID: copy its handout, starter and public tests into DIR (by default ./ID)."""
    from gradekit.course import start as starting

    folder = folder or Path(id)
    files = starting.start(get(id), folder, force=force, notebook=notebook)
    click.echo("\n".join(map(str, files)))
    if notebook:
        click.echo(say(f"\nOpen {folder / 'submission.ipynb'}: it explains, and its last cell checks."))
    else:
        own = next(file for file in files if file.stem in ("submission", "answers"))
        click.echo(say(f"\nRead {folder / 'README.md'}, write {own}, then: gradekit check {shlex.quote(str(folder))}"))


def _target(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:
    """A file to write to; that it cannot be written is reported before the grading, not after it."""
    if value is None or value == "-":
        return Path(value) if value else None
    path = Path(value)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise click.BadParameter(f"cannot write to {value}", ctx, parameter)
    return path


@main.command()
@click.argument("path", default=".", type=click.Path(path_type=Path))
@click.option("-a", "--assignment", "id", metavar="ID", help="The assignment, where neither folder nor entry tells it.")
@click.option("--json", "json_file", metavar="FILE", callback=_target, help="Write the report record; - for stdout.")
@click.option("--junit", "junit_file", metavar="FILE", callback=_target, help="Write the report as JUnit XML.")
@click.option("--html", "html_file", metavar="FILE", callback=_target, help="Write the report as a page of HTML.")
@click.option("-k", "--keyword", metavar="EXPR", help="Run only the checks whose names match, as in pytest.")
@click.option("--seed", type=int, metavar="N", help="Draw other examples than the release's.")
@click.option("--inputs", metavar="JSON", help="Try this one example, as a report's replay line gives it.")
@click.option("--quick", is_flag=True, help="Try few examples: a first look in seconds.")
@click.option("-x", "--exitfirst", "stop", is_flag=True, help="Stop at the first check that fails.")
@click.option(
    "--require-isolation", "isolation", metavar="[LEVEL]", type=click.IntRange(0, 3), is_flag=False, flag_value=2,
    help="Refuse to run where submissions are isolated below LEVEL (2): see doctor.",
)  # fmt: skip
@click.option("--device", metavar="DEVICE", default="auto", help="auto: a GPU if there is one; cpu; cuda or cuda:1.")
@click.option(
    "-j", "--jobs", metavar="N", type=click.IntRange(1), default=usual_jobs,
    help="Run checks in N processes at once; by default one for each core, at most 4.",
)  # fmt: skip
@click.option(
    "--server/--no-server", default=None, expose_value=False,
    help="Use a process that stays ready for the next check, or none; by default, not in CI and containers.",
)  # fmt: skip
def check(
    path: Path, id: str | None, json_file: Path | None, junit_file: Path | None, html_file: Path | None, quick: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Check the submission at PATH: a .py file, a notebook or a folder (by default this one)."""
    from gradekit import checking, remembered
    from gradekit.report import record

    asked = GradingOptions(profile="quick" if quick else "default", **options)
    before = remembered.last(path)
    for_a_reader = not (json_file or junit_file or html_file)
    report = checking.unreadable(path, id) if for_a_reader else None
    with interruptible(), shown(sys.stderr, f"Reading {path}") as screen:
        sources: list[str] = []
        watch = {"on_progress": screen, "on_subject": lambda subject: sources.append(subject.submission.text)}
        watch["on_evidence"] = lambda check, *more: screen.ended(check)
        if sys.stderr.isatty():
            failed = {check["id"] for check in (before or {"checks": ()})["checks"] if check["outcome"] == "failed"}
            watch |= {"on_failing": screen.failing, "first": failed}
        report = report or checking.check(path, id, asked, **watch)
    data = record.to_dict(report)
    if data["checks"] and data["status"] == "graded":
        remembered.keep(path, data)
    _write(json_file, lambda: record.dumps(data))
    if junit_file or html_file:
        from gradekit.report import junit, page  # they import a template engine

        _write(junit_file, lambda: junit.render(data))
        links = _links(path, html_file)
        _write(html_file, lambda: page.render(data, "".join(sources), before=before, links=links))
    if Path("-") not in (json_file, junit_file, html_file):
        _show(data, before)
        _keep_attempt(path if path.is_dir() else path.parent, data, options)
    raise click.exceptions.Exit(checking.exit_code(report))


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("path", default=".", type=click.Path(path_type=Path, exists=True))
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def watch(path: Path, options: tuple[str, ...]) -> None:
    """Check the submission at PATH on each save, with OPTIONS of `gradekit check`, until it is interrupted.

    A check of what has changed meanwhile is broken off, and what failed last time is looked at first. A process stays
    ready for the next check, unless --no-server is among the options.
    """
    from gradekit import watching

    is_terminal = sys.stdout.isatty()
    watching.watch(path, options, lambda text: click.echo(text, nl=False), terminal=is_terminal)


@main.group()
def server() -> None:
    """The process of yours that stays ready for the next `gradekit check`; it ends by itself after 30 idle minutes."""


_NO_SERVER = "No server is running, and in containers and CI none stays ready: GRADEKIT_SERVER=1 asks for one here."


@server.command()
def status() -> None:
    """Say which are running."""
    from gradekit.server import client

    lines = client.described()
    if not any("this installation's" in line for line in lines):
        lines.append("No server is running." if client.is_resident(()) else _NO_SERVER)
    click.echo(say("\n".join(lines)))


@server.command()
@click.option("--all", "every", is_flag=True, help="Those of other installations, too.")
def stop(every: bool) -> None:
    """End this installation's; checks that it is running go on."""
    from gradekit.server import client

    count = client.stopped(every=every)
    click.echo(say(f"Stopped: {count}." if count else "No server was running."))


def _keep_attempt(folder: Path, data: dict[str, Any], options: dict[str, Any]) -> None:
    from gradekit.course import attempts

    is_whole = not (options["keyword"] or options["inputs"] or options["stop"]) and data["status"] == "graded"
    if is_whole and attempts.is_started(folder, data["assignment"]):
        attempts.add(folder, data)


def _write(target: Path | None, text: Callable[[], str]) -> None:
    from gradekit.report import record

    if target == Path("-"):
        click.echo(text(), nl=False)
    elif target is not None:
        record.write(text(), target)


def _links(path: Path, page: Path | None) -> dict[str, str]:
    """What lies beside the submission at `path`, as seen from `page`: its handout, and its steps if they are newer."""
    folder, steps = path if path.is_dir() else path.parent, beside(path)
    links = {"handout": folder / "README.md"} if list(folder.glob("test_*.py")) else {}
    if steps.is_file() and all(steps.stat().st_mtime >= file.stat().st_mtime for file in folder.glob("*.py")):
        links["steps"] = steps
    at = page.parent if page else Path()
    return {name: Path(os.path.relpath(file, at)).as_posix() for name, file in links.items() if file.is_file()}


def _show(data: dict[str, Any], before: dict[str, Any] | None) -> None:
    from gradekit.report import changes, terminal

    look = _look()
    click.echo(terminal.render(data, look), nl=False, color=look.colour)
    if said := changes.sentence(before, data):
        click.echo("\n".join(terminal.filled(said, look, 0)))


def _look() -> Any:
    """What standard output can show: its width, colour unless NO_COLOR is set, and characters beyond ASCII."""
    from gradekit.report.terminal import Look

    is_terminal = sys.stdout.isatty()
    width = min(max(shutil.get_terminal_size().columns, 60), 100) if is_terminal else 80
    colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Look(width, colour, _can_encode("✓✗◌│", sys.stdout.encoding))


def _can_encode(text: str, encoding: str | None) -> bool:
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@main.command()
@click.argument("id", required=False)
@click.option("--quick", is_flag=True, help="Try few examples for each claim.")
@click.option("--show", metavar="NAME", help="Print the mistake NAME of ID as a whole submission, and grade nothing.")
@click.option("--mutants", is_flag=True, help="Try small edits of the solution in place of the claims: each must fail.")
@click.option("--most", metavar="N", type=click.IntRange(1), help="With --mutants: N of them, of every kind.")
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1),
    help="Grade N at once, without a GPU; by default one for each core, and claims one by one where there is a GPU.",
)  # fmt: skip
def verify(id: str | None, quick: bool, show: str | None, mutants: bool, most: int | None, jobs: int | None) -> None:
    """Show that the assignment ID (by default each) grades as it should.

    The solution earns everything, the starter nothing, each mistake fails for the reason that it declares, and
    trivially wrong results earn nothing for correctness.
    """
    from gradekit.authoring.lint import reads_well
    from gradekit.batch.pool import graders
    from gradekit.course import mistakes
    from gradekit.course import verify as verifying

    if show:
        if id is None:
            raise click.UsageError("--show needs the assignment: gradekit verify ID --show NAME")
        click.echo(mistakes.mistake(get(id), show).text, nl=False)
        return
    if mutants:
        raise click.exceptions.Exit(_mutants(id, most, jobs))
    tried = []
    with graders(jobs) as (grade, each):
        for assignment in [get(id)] if id else discover().values():
            claims = [reads_well(assignment), *verifying.claims(assignment, grade, quick=quick)]
            width, began = max(len(claim.subject) for claim in claims), time.monotonic()
            click.echo(assignment.id)
            for result in each(verifying.tried, claims):
                click.echo(verifying.row(result, width))
                tried.append(result)
            click.echo(f"  {verifying.summary(tried[-len(claims) :], time.monotonic() - began)}\n")
    raise click.exceptions.Exit(0 if tried and all(result.held for result in tried) else 1)


def _mutants(id: str | None, most: int | None, jobs: int | None) -> int:
    from gradekit.mutation import survey as surveying

    chosen = [get(id)] if id else [assignment for assignment in discover().values() if not assignment.is_quiz]
    return max(surveying.shown(assignment, click.echo, most=most, jobs=jobs) for assignment in chosen)


@main.command()
@click.argument("id", required=False)
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit with 1 where a starter is out of date.")
@click.option("--notebook", is_flag=True, help="In DIR/ID, a notebook too, which runs on Colab.")
@click.option("--install", metavar="SOURCE", default="", help="What pip gets in it: by default the wheel beside it.")
def release(id: str | None, folder: Path | None, only_check: bool, notebook: bool, install: str) -> None:
    """Make the starter of ID (by default of each) from its solution; with DIR, all that students get, in DIR/ID."""
    from gradekit.course import release as releasing

    chosen = [get(id)] if id else list(discover().values())
    if only_check:
        differences = {assignment.id: releasing.stale(assignment) for assignment in chosen}
        for name, difference in differences.items():
            click.echo(difference or f"{name}: starter and handout are up to date")
        raise click.exceptions.Exit(1 if any(differences.values()) else 0)
    for assignment in chosen:
        click.echo("\n".join(map(str, releasing.release(assignment, folder))))
        if folder and notebook:
            click.echo(releasing.notebook(assignment, folder, install))


@main.command()
@click.argument("path", default=".", type=click.Path(path_type=Path))
@click.option("-a", "--assignment", metavar="ID", help="The assignment, where neither folder nor entry tells it.")
@click.option("--target", metavar="SM", default="sm_80", show_default=True, help="sm_75, ..., sm_120; gfx942.")
@click.option("--stage", type=click.Choice(["ttir", "ttgir", "ptx", "sass", "amdgcn"]), help="Show this stage.")
@click.option("--entry", metavar="NAME", help="The function to call, where it is not the assignment's.")
@click.option("-i", "--input", "inputs", metavar="SPEC", multiple=True, help="An argument: 'float16 4096x4096', 3.")
@click.option("--json", "json_file", metavar="FILE", callback=_target, help="Write the record; - for stdout.")
def inspect(path: Path, target: str, inputs: tuple[str, ...], **options: Any) -> None:
    """Say what the compiler makes of the kernels of PATH on a card, without the card.

    Registers, spills, occupancy, tensor cores, and how wide each line loads and stores.
    """
    stage, json_file = options.pop("stage"), options.pop("json_file")
    with reading(path):
        from gradekit.inspector import inspect as inspector
        from gradekit.inspector import targets
        from gradekit.plugin.timed import timed_calls

        given = tuple(inspector.parse_input(text) for text in inputs)
        on = targets.target(target)
        answer = inspector.inspect_submission(path, on, inputs=given, timed=timed_calls, **options)
    _write(json_file, lambda: inspector.dumps(answer))
    if json_file != Path("-"):
        _show_inspected(answer, stage)


def _show_inspected(answer: Any, stage: str | None) -> None:
    from gradekit.report import inspection

    look, rows, submission = _look(), answer.stage(stage) if stage else (), answer.submission
    if stage and not rows:
        raise click.ClickException(f"no kernel got as far as {stage}: without --stage you see why")
    text = (
        inspection.render_stage(rows, submission.text.split("\n"), submission.facts(), look) if stage
        else inspection.render(answer.record(), look)
    )  # fmt: skip
    click.echo(text, nl=False, color=look.colour)


@main.command()
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
    passes = record["passes"].values()
    if is_empty := not any(found["claims"] for found in passes):
        click.echo(say("Nothing could be proved: why not stands above."), err=True)
    if is_empty or any(found["refuted"] for found in passes):
        raise click.exceptions.Exit(1)


@main.command()
@click.argument("path", default=".", type=click.Path(path_type=Path))
@click.option("-a", "--assignment", "id", metavar="ID", help="The assignment, where neither folder nor entry tells it.")
@click.option("--sizes", metavar="N,N,...", callback=whole_numbers, help="The sizes, such as 1024,2048,4096.")
@click.option("--json", "json_file", metavar="FILE", callback=_target, help="Write all samples; - for stdout.")
@click.option("--device", metavar="DEVICE", default="auto", help="auto: the GPU that there is; cuda or cuda:1.")
def bench(path: Path, id: str | None, sizes: tuple[int, ...] | None, json_file: Path | None, **options: Any) -> None:
    """Time the submission at PATH over a range of sizes, beside torch and the roofline. Exits with 4 without a GPU."""
    if not any(map(os.path.exists, _DRIVERS)):
        _no_card("speed is timed on a GPU, and this machine has none")
    from gradekit import bench as benching
    from gradekit.subject.device import NeedsCard

    try:
        record = benching.bench(path, id, on_row=_show_progress, sizes=sizes or (), **options)
    except NeedsCard as error:
        _no_card(error.reason)
    except (ValueError, SubmissionError) as error:
        raise click.UsageError(str(error)) from None
    _show_bench(record, json_file)


_DRIVERS = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg")
"""What a GPU's driver leaves on Linux and on WSL: without any, torch is not asked, which takes seconds."""


def _no_card(reason: str) -> NoReturn:
    click.echo(say(f"Nothing was timed: {reason}. `gradekit inspect` says much without one."), err=True)
    raise click.exceptions.Exit(4)


def _show_progress(row: dict[str, Any]) -> None:
    if sys.stderr.isatty():
        click.echo(f"{row['size']}: {say(row['error'] or 'timed')}", err=True)


def _show_bench(record: dict[str, Any], json_file: Path | None) -> None:
    from gradekit.report import bench_table as text

    _write(json_file, lambda: json.dumps(record, indent=1) + "\n")
    if json_file != Path("-"):
        look = _look()
        click.echo(text.render(record, look), nl=False, color=look.colour)
    raise click.exceptions.Exit(1 if any(row["error"] for row in record["rows"]) else 0)


@main.command()
def doctor() -> None:
    """Say what this machine has, what it can measure, and how to mend what is missing."""
    from gradekit import doctor as doctoring

    items = doctoring.examined()
    click.echo(doctoring.render(items), nl=False)
    raise click.exceptions.Exit(0 if doctoring.works(items) else 1)


_OWN = {"calibrate": calibrate, "replay": replay, "view": view}
for _name, _command in (AUTHORING | BATCH | LMS | _OWN).items():
    main.add_command(_command, _name)


class AssignmentId(click.ParamType):
    """The id of an assignment, which a shell completes."""

    name = "id"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Those of the search path, from here."""
        return [CompletionItem(id) for id in folders() if id.startswith(incomplete)]


for _command in main.commands.values():
    for _parameter in _command.params:
        if {"-a", "--like"} & set(_parameter.opts) or (_parameter.name == "id" and _command is not AUTHORING["new"]):
            _parameter.type = AssignmentId()


if __name__ == "__main__":
    main()
