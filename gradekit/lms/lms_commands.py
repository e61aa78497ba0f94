"""The commands for LMS containers: autograde, which runs inside, and package, which makes what is uploaded."""

from pathlib import Path
from typing import Any

import click

from gradekit.assignment import get
from gradekit.batch.class_commands import isolated
from gradekit.credit import PendingPolicy
from gradekit.report.translation import say

_pending = click.option(
    "--pending", type=click.Choice([each.value for each in PendingPolicy]), default="left out", show_default=True,
    callback=lambda context, option, word: PendingPolicy(word),
    help="What points count that are not measured, such as speed without a GPU.",
)  # fmt: skip


@click.command()
@click.argument("lms")
@click.argument("id")
@click.option("--seconds", type=click.IntRange(min=30), metavar="N", help="The LMS's limit, where it is not the usual.")
@click.option("--root", default="/", type=click.Path(exists=True, file_okay=False, path_type=Path), hidden=True)
@isolated
@_pending
def autograde(lms: str, id: str, **options: Any) -> None:
    """Grade the submission in this LMS's container with the assignment ID, and leave the result where LMS reads it.

    Exits with 0 whatever the result: another code would tell the LMS that there is none. Only "oci", for anything else
    that runs containers, exits as check does.
    """
    from gradekit.checking import exit_code
    from gradekit.lms.autograde import autograde as run
    from gradekit.lms.platforms import PLATFORMS
    from gradekit.report.record import from_dict

    if lms not in PLATFORMS:
        raise click.UsageError(f"{lms} is none of {', '.join(PLATFORMS)}")
    found = run(PLATFORMS[lms], id, **options)
    if PLATFORMS[lms].tells_by_exit_code:
        raise click.exceptions.Exit(exit_code(from_dict(found)))


@click.command()
@click.argument("lms")
@click.argument("id")
@click.option("-o", "--output", "target", required=True, type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE", help="A .zip or .tar file.")  # fmt: skip
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler whose GPUs time the programs, such as tls://...")
@click.option("--certificates", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="The folder with ca.pem, cert.pem and key.pem for it.")  # fmt: skip
@click.option("--secret-seed", type=click.IntRange(0, 2**62), metavar="N",
              help="The secret seed of the examples; by default a new one.")  # fmt: skip
@click.option("--hidden/--no-hidden", default=None,
              help="With hidden tests and a secret seed (by default, but where students read it), or not.")  # fmt: skip
@_pending
def package(lms: str, id: str, target: Path, **more: Any) -> None:
    """Make what is uploaded to LMS for the assignment ID.

    LMS is gradescope, prairielearn, autolab, vpl or coderunner (Moodle), codegrade, classroom, gitlab or oci.

    It holds gradekit, the tests with the hidden ones, a secret seed for their examples, and the LMS's scripts; no
    solution. What students can read (classroom, gitlab) has neither hidden tests nor a secret seed.
    """
    from gradekit.lms.package import build

    names = build(lms, get(id), target, **more)
    hidden = [name for name in names if name.endswith("_hidden.py")]
    said = f"{len(hidden)} of hidden tests" if hidden else "without hidden tests"
    click.echo(say(f"{target}: {len(names)} files, {said}"))


COMMANDS = {"autograde": autograde, "package": package}
