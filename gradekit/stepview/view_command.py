"""The command `gradekit view`. Nothing heavy is imported before it is called."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from gradekit.progress import reading
from gradekit.report.translation import say
from gradekit.request import GradingOptions


def whole_numbers(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """What an option's text such as 3,0,1 holds. Raises click.BadParameter where it is no such text."""
    if value is not None and not re.fullmatch(r"\d+(,\d+)*", value):
        raise click.BadParameter(f"{value!r} is no list of whole numbers such as 3 or 3,0,1", context, option)
    return None if value is None else tuple(map(int, value.split(",")))


@click.command()
@click.argument("path", default=".", type=click.Path(path_type=Path))
@click.option("-a", "--assignment", "id", metavar="ID", help="The assignment, where neither folder nor entry tells it.")
@click.option("-o", "--output", metavar="FILE", help="Where the page is written; by default beside PATH. - for stdout.")
@click.option("-k", "--keyword", metavar="EXPR", help="Play a call of the checks whose names match, as in pytest.")
@click.option("--seed", type=int, metavar="N", help="Draw other examples than the release's.")
@click.option("--inputs", metavar="JSON", help="Play this one example, as a report's replay line gives it (with -k).")
@click.option("-i", "--input", "given", metavar="SPEC", multiple=True,
              help="Play the call of these arguments: 'float32 64x64', 3.")  # fmt: skip
@click.option("--program", metavar="X,Y,Z", callback=whole_numbers, help="Play this program of the grid first.")
@click.option("--quick", is_flag=True, help="Look for a failure among few examples.")
def view(
    path: Path, id: str | None, output: str | None, given: tuple[str, ...], program: tuple[int, ...] | None,
    quick: bool, **options: Any,
) -> None:  # fmt: skip
    """Play a call of PATH step by step, as a page of HTML: the first that fails, or a small one where none does.

    The page shows what each line of a kernel makes, for one program of its grid, and where it touches memory. Nothing
    but a browser is needed to look at it. Where nothing has changed since the last check of PATH, what failed then is
    played, and nothing is checked again.
    """
    from gradekit.report import record, steps

    asked = GradingOptions(profile="quick" if quick else "default", device="cpu", stop=True, **options)
    with reading(path):
        from gradekit.inspector.inspect import parse_input
        from gradekit.stepview.played import step_record

        arguments = tuple(parse_input(text) for text in given)
        known = None if arguments or options["seed"] is not None or options["inputs"] else _known(path, id, asked)
        found = step_record(path, id, known or asked, arguments, program)
        if known and not found["message"]:  # it takes more than this one example to fail
            found = step_record(path, id, asked, arguments, program)
    if output == "-":
        click.echo(steps.render(found), nl=False)
        return
    target = Path(output) if output else beside(path)
    try:
        record.write(steps.render(found), target)
    except OSError as error:
        raise click.UsageError(f"cannot write to {target}: {error.strerror}") from None
    click.echo(say(f"Open {target} in a browser."))
    for note in found["notes"]:
        click.echo(say(note), err=True)


def _known(path: Path, id: str | None, asked: Any) -> Any:
    """Options that try nothing but the call that failed in the last check of the submission at `path`, of the check
    that `asked` for; None where none did, or something has changed since."""
    from gradekit import remembered

    for check in (remembered.unchanged(path, id) or {"checks": ()})["checks"]:
        example = (check["counterexample"] or {}).get("example")
        if check["outcome"] == "failed" and example and asked.keyword in (None, check["id"]):
            return replace(asked, keyword=check["id"], inputs=example)
    return None


def beside(path: Path) -> Path:
    """Where the page of the submission at `path` is written."""
    return path / "steps.html" if path.is_dir() else path.with_name(f"{path.stem}-steps.html")
