"""`gradekit calibrate`: how fast right submissions are on the card at hand, and what an assignment may ask for there.

Right submissions (solution.py and right_*.py), and the mistakes that must be too slow, are graded by the speed checks
alone, so that a figure here is the figure of a check. What is proposed is a row of [cards] in assignment.toml.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from gradekit.assignment import Assignment, get
from gradekit.findings import Cause, Check, Kind, Report
from gradekit.request import GradingOptions, GradingRequest

Grade = Callable[[GradingRequest], Report]
Cards = Mapping[str, Mapping[str, float]]

MARGIN, STEP = 0.9, 0.05  # what is asked for is this share of what the solution has reached here, in these steps

SOLUTION = "solution.py"


@dataclass(frozen=True)
class Reached:
    """What one submission has reached in a check: the interval of its ratio to a side, and what the test asks for."""

    submission: str
    check: str
    card: str
    side: str
    low: float
    high: float
    factor: float

    @property
    def share(self) -> float:
        """At least this much of what the check asks for."""
        return self.low / self.factor


def measured(assignment: Assignment, grade: Grade) -> Iterator[Reached | str]:
    """What each submission reaches in each speed check; a sentence where a check measured nothing."""
    solution = assignment.solution
    if solution is None or not solution.is_file():
        yield f"there is no solutions/{assignment.id}/solution.py"
        return
    for path in (solution, *sorted(solution.parent.glob("right_*.py"))):
        yield from _of(path.name, grade(_asked(assignment, path)), assignment.cards)
    yield from _of_slow_mistakes(assignment, grade)


def _asked(assignment: Assignment, path: Path) -> GradingRequest:
    return GradingRequest(assignment, path, GradingOptions(kind="speed", profile="quick"))


def _of_slow_mistakes(assignment: Assignment, grade: Grade) -> Iterator[Reached | str]:
    from gradekit.course.mistakes import all_of

    for mistake in all_of(assignment):
        if mistake.cause is Cause.TOO_SLOW:
            with tempfile.TemporaryDirectory(prefix="gradekit-calibrate-") as folder:
                path = Path(folder, f"{mistake.name}.py")
                path.write_text(mistake.text, encoding="utf-8")
                yield from _of(mistake.name, grade(_asked(assignment, path)), assignment.cards)


def _of(name: str, report: Report, cards: Cards) -> Iterator[Reached | str]:
    checks = [check for check in report.checks if check.kind is Kind.SPEED]
    if not checks:
        yield f"{name}: {report.message or 'no speed check was run'}"
    for check in checks:
        measured = "speed" in check.details
        yield from _of_check(name, check, cards) if measured else [f"{name}, {check.id}: {check.message}"]


def _of_check(name: str, check: Check, cards: Cards) -> Iterator[Reached]:
    from gradekit.subject.timed_call import row_of

    said = check.details["speed"]
    asked = row_of(cards, said["card"]) or {}
    for verdict in said["verdicts"]:
        ratio, side = said["ratios"][verdict["side"]], verdict["side"]
        factor = verdict["at_least"] / asked.get(side, 1.0)
        yield Reached(name, check.id, said["card"], side, ratio["low"], ratio["high"], factor)


def proposed(found: list[Reached]) -> dict[str, float]:
    """By side, the share of what the checks ask for that the solution, which is to earn all points, reaches with a
    margin: 1 at most. Other right submissions need not be fast."""
    shares: dict[str, list[float]] = {}
    for one in found:
        if one.submission == SOLUTION:
            shares.setdefault(one.side, []).append(one.share)
    return {side: min(1.0, int(MARGIN * min(each) / STEP + 1e-9) * STEP) for side, each in shares.items()}


@click.command()
@click.argument("id")
def calibrate(id: str) -> None:
    """Measure the right submissions of the assignment ID on this machine's GPU, and propose what to ask for there.

    Exits with 4 without a GPU. Nothing is written: the row goes into assignment.toml by hand.
    """
    from gradekit.batch import grader
    from gradekit.plugin import grade

    assignment = get(id)
    if not grader.visible_cards():
        click.echo("Nothing was measured: this machine has no GPU.", err=True)
        raise click.exceptions.Exit(4)
    found = []
    for one in measured(assignment, grade):
        if isinstance(one, str):
            click.echo(one)
            continue
        found.append(one)
        reached = f"{one.low:5.2f} to {one.high:5.2f} times {one.side}, asked {one.factor:g}"
        click.echo(f"{one.submission:<28} {one.check:<32} {reached}")
    asked = proposed(found)
    if not asked:
        raise click.exceptions.Exit(1)
    row = ", ".join(f"{side} = {share:.3g}" for side, share in asked.items())
    click.echo(f'\n[cards]\n"{found[0].card}" = {{ {row} }}')
