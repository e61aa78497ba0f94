"""gradekit status: where a class stands, for staff; and for a student, the assignments that were started."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--out", metavar="OUT", type=click.Path(file_okay=False, path_type=Path),
              help="The class's folder: what became of its hand-ins.")  # fmt: skip
@click.option("--store", metavar="URL", help="Another database than OUT/class.db, such as postgresql://...")
def status(folder: Path, out: Path | None, store: str | None) -> None:
    """Say where you stand: the assignments that were started in DIR and the folders in it, with their last points.

    With -o OUT, for staff: what became of the hand-ins of each assignment of the class.
    """
    click.echo(_of_class(out, store) if out else _of_student(folder), nl=False)


def _of_class(out: Path, store: str | None) -> str:
    from gradekit.batch import course_pages, roster
    from gradekit.batch.class_folder import ClassFolder

    made = ClassFolder.open(out, store)
    course = made.course(None)
    listed = made.own("roster.csv")
    lines = made.course_lines(course, roster.load(listed) if listed else [])
    return course_pages.status(course, lines) if lines else f"nothing was handed in to {out} yet\n"


def _of_student(folder: Path) -> str:
    from gradekit.assignment import discover
    from gradekit.course import attempts

    known = discover()
    places = [folder, *sorted(child for child in folder.iterdir() if child.is_dir())]
    started = [(id, place) for place in places for id in known if attempts.is_started(place, id)
               and place != known[id].folder]  # fmt: skip
    if not started:
        return f"nothing was started in {folder}: gradekit start ID lays an assignment out, gradekit list names them\n"
    width = max(len(id) for id, _ in started)
    return "".join(f"{id:<{width}}  {standing(place)}\n" for id, place in started)


def standing(place: Path) -> str:
    """The last attempt in a folder, the best, and how many there were."""
    from gradekit.course import attempts

    found = attempts.read(place)
    if not found:
        return "started, not checked yet"
    best = max(found, key=lambda attempt: attempt.earned)
    better = f"; best {best.earned:g}" if best.earned > found[-1].earned else ""
    return f"{found[-1].said}{better}; attempt {len(found)}, {found[-1].when[:16].replace('T', ' ')} UTC"
