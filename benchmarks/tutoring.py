"""How many beginner's mistakes a report names, and whether it points at the line:
`python benchmarks/tutoring.py [id ...]`.

The mistakes are those of tests/repair/corpus. One row for each assignment, and before it one line for each mistake:
the verdict, whether the line is right, the CPU seconds of all processes for mended programs and for the whole report,
and the first sentence of the diagnosis. `--show` prints what each report says, `--name` takes one mistake, `--developed`
and `--held-out` the one part of them or the other, and `--folder DIR` takes those of DIR/<id>.toml instead, which nobody
who works on the tutoring need have seen. `--parts 2 --part 1` takes every second mistake, for several processes.

What is said is held against tests/repair/table.csv, mistake by mistake (`make tutoring`): what is worse is printed, and the
exit status is 1. `--write` puts it into that table, with the sentence of `--why` where something is worse. `--from-logs FILE ...`
grades nothing, and takes what such runs have printed, elsewhere and in any number of processes.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import tutoring_table
from benchmarks.tutoring_table import Row
from gradekit import assignment as assignments
from gradekit import reuse
from gradekit.judge.evidence import Diagnosis
from gradekit.plugin import tutoring
from gradekit.plugin.runner import grade
from gradekit.repair.idioms import candidates
from gradekit.report.record import to_dict
from gradekit.report.terminal import render
from gradekit.request import GradingOptions, GradingRequest
from tests.repair.corpora import BeginnersMistake, Tutored, Verdict, corpus, read
from tests.repair.corpora import assignments as with_corpus

Wanted = Callable[[BeginnersMistake], bool]

_HEADER = (
    f"{'assignment':18} {'mistakes':>8} {'named':>6} {'line':>5} {'wrong':>6} {'seen':>5} {'silent':>7} {'passes':>7} {'two':>4} "
    f"{'mending s':>9} {'most':>6}"
)


_PRINTED = re.compile(
    r"(\w+)/(\w+) +(\w+) +(line right|other line) +([\d.]+) +([\d.]+) s +\[(\d+)\] +([\w-]+)( two)?(?: |$)"
)
"""A mistake as a run prints it."""


@dataclass(frozen=True)
class Measured:
    """What a report says of a mistake, whether it says that there are `two`, and the CPU seconds of its mended programs
    and of the whole report."""

    tutored: Tutored
    mending: float
    whole: float
    at: int = 0
    cause: str = ""
    two: bool = False

    @property
    def row(self) -> Row:
        """The row of the table."""
        mistake, tutored = self.tutored.mistake, self.tutored
        seconds = round(self.mending, 1), round(self.whole, 1)
        return Row(
            mistake.assignment, mistake.name, tutored.verdict, tutored.line, self.at, self.cause, *seconds, self.two
        )


def main() -> None:
    """Grade the mistakes, print the table, and hold it against what is known."""
    options = _options()
    _leave_out(options.without)
    found = [row for path in options.from_logs for row in _printed(path.read_text(encoding="utf-8"))]
    for id in options.ids or _with_mistakes(options.folder) if not options.from_logs else ():
        print(_HEADER)
        measured = list(_tutored(_mistakes(id, options), options.show, _grading(options)))
        print(_row(id, measured), flush=True)
        found += [one.row for one in measured]
    if not options.folder:
        sys.exit(_against_the_table(found, options))


def _against_the_table(found: Sequence[Row], options: argparse.Namespace) -> int:
    """Prints what is worse and what is better than the table has it; 1 where something is worse, and not accepted."""
    before = tutoring_table.read()
    worse, better = tutoring_table.compared(found, before)
    print(f"\n{len(found)} mistakes held against the table: {len(worse)} worse, {len(better)} better")
    print("\n".join([*(f"  worse   {line}" for line in worse), *(f"  better  {line}" for line in better)]), flush=True)
    if options.write:
        tutoring_table.write(tutoring_table.updated(found, before, options.why))
    return 1 if worse and not options.write else 0


def _printed(log: str) -> Iterator[Row]:
    """The rows that runs have printed, among other lines and behind whatever a line begins with."""
    for line in log.splitlines():
        found = _PRINTED.search(line)
        if found is not None:
            id, name, verdict, place, mending, whole, at, cause, two = found.groups()
            seconds = float(mending), float(whole)
            yield Row(id, name, Verdict(verdict), place == "line right", int(at), cause.strip("-"), *seconds, bool(two))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ids", nargs="*", help="assignments; all that have a corpus by default")
    parser.add_argument("--show", action="store_true", help="print what each report says")
    parser.add_argument(
        "--quick", action="store_true", help="few examples for each check, and many where those show nothing"
    )
    parser.add_argument("--first", action="store_true", help="end each report at the first check that fails")
    parser.add_argument("--name", help="mistakes whose names match this pattern", default="")
    parser.add_argument(
        "--without", nargs="+", default=[], metavar="RULE", help="without these rules of mending; all: without any"
    )
    parser.add_argument("--developed", action="store_true", help="those that rules may be made for")
    parser.add_argument("--held-out", action="store_true", help="those that no rule was made for")
    parser.add_argument("--parts", type=int, default=1, help="of so many parts ...")
    parser.add_argument("--part", type=int, default=0, help="... this one, from 0")
    parser.add_argument("--write", action="store_true", help="put what is said into the table")
    parser.add_argument("--why", default="", help="why mistakes are told worse than before")
    parser.add_argument("--from-logs", nargs="+", type=Path, default=[], help="what runs have printed")
    parser.add_argument("--folder", type=Path, help="mistakes that lie outside of the repository: DIR/<id>.toml")
    return parser.parse_args()


def _leave_out(rules: Sequence[str]) -> None:
    """Takes rules out of the search, to measure what they are worth."""
    every = candidates._of_one_rule
    is_left_out = lambda name: rules == ["all"] or name in rules
    candidates._of_one_rule = lambda name, found: iter(()) if is_left_out(name) else every(name, found)


def _with_mistakes(folder: Path | None) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml")) if folder else with_corpus()


def _mistakes(id: str, options: argparse.Namespace) -> Iterator[BeginnersMistake]:
    mistakes = read(options.folder / f"{id}.toml") if options.folder else corpus(id)
    wanted = filter(_wanted(options), mistakes)
    return itertools.islice(wanted, options.part, None, options.parts)


def _grading(options: argparse.Namespace) -> GradingOptions:
    return GradingOptions(device="cpu", profile="quick" if options.quick else "default", stop=options.first)


def _wanted(options: argparse.Namespace) -> Wanted:
    both = options.developed == options.held_out
    return lambda mistake: (
        (both or mistake.held_out == options.held_out) and re.search(options.name, mistake.name) is not None
    )


def _tutored(mistakes: Iterable[BeginnersMistake], show: bool, grading: GradingOptions) -> Iterator[Measured]:
    every = list(mistakes)
    with reuse.kept(), _timed_mending() as spent:
        for mistake in every[:1]:
            _record(mistake, grading)  # what is done once for all submissions is part of none
        for mistake in every:
            spent.clear()
            before = _cpu_seconds()
            record = _record(mistake, grading)
            if grading.profile == "quick" and not _failed(record):
                record = _record(mistake, replace(grading, profile="default"))  # a few examples did not show it
            telling = _telling(mistake, record)
            is_two = re.search("two mistakes|another mistake", f"{telling['message']} {telling['hint']}") is not None
            said = (telling["source"] or {}).get("line") or 0, telling.get("cause") or "", is_two
            measured = Measured(Tutored.of(mistake, record), sum(spent), _cpu_seconds() - before, *said)
            print(_line(measured, telling), flush=True)
            if show:
                print(render(record), flush=True)
            yield measured


@contextlib.contextmanager
def _timed_mending() -> Iterator[list[float]]:
    """The CPU seconds of each search for a mend, while the block runs."""
    spent: list[float] = []
    search = tutoring.mended_diagnosis

    def timed(*args: Any) -> Diagnosis | None:
        before = _cpu_seconds()
        try:
            return search(*args)
        finally:
            spent.append(_cpu_seconds() - before)

    tutoring.mended_diagnosis = timed
    try:
        yield spent
    finally:
        tutoring.mended_diagnosis = search


def _record(mistake: BeginnersMistake, grading: GradingOptions) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "submission.py"
        path.write_text(mistake.text, encoding="utf-8")
        request = GradingRequest(assignments.get(mistake.assignment), path, grading)
        return to_dict(grade(request))


def _telling(mistake: BeginnersMistake, record: dict[str, Any]) -> dict[str, Any]:
    """The check that names the cause, or else the first that fails."""
    failed = _failed(record)
    naming = [check for check in failed if mistake.is_named_by(check)]
    return (naming or failed or [record | {"source": None, "hint": "", "outcome": "passed"}])[0]


def _line(measured: Measured, check: dict[str, Any]) -> str:
    """Verdict, line, seconds and what is said first."""
    tutored = measured.tutored
    line = "line right" if tutored.line else "other line"
    seconds = f"{measured.mending:5.1f} {measured.whole:5.1f} s"
    hint = f" ({check['hint']})" if check["hint"] and not tutored.mistake.is_named_by(check) else ""
    name, said = f"{tutored.mistake.assignment}/{tutored.mistake.name}", _sentence(check["message"])
    cause = f"{measured.cause or '-'}{' two' if measured.two else ''}"
    return f"{name:48} {tutored.verdict:6} {line} {seconds}  [{measured.at}] {cause} {said}{hint}"


def _failed(record: dict[str, Any]) -> list[dict[str, Any]]:
    rejected = [record | {"source": None, "outcome": "failed"}] if record["cause"] else []
    return [check for check in record["checks"] if check["outcome"] == "failed"] or rejected


def _sentence(message: str) -> str:
    """The first sentence of a message that is no figure of wrong elements; the first of all where there is no other."""
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z`])", message)
    told = [one for one in sentences if not re.match(r"At shape|The worst is|All wrong elements", one)]
    return (told or sentences or [""])[0][:240]


def _row(id: str, found: Sequence[Measured]) -> str:
    of = Counter(measured.tutored.verdict for measured in found)
    lines = sum(measured.tutored.line for measured in found)
    counts = f"{len(found):>8} {of[Verdict.NAMED]:>6} {lines:>5} {of[Verdict.WRONG]:>6} {of[Verdict.SYMPTOM]:>5}"
    counts += f" {of[Verdict.SILENT]:>7} {of[Verdict.PASSES]:>7} {sum(one.two for one in found):>4}"
    mending = [measured.mending for measured in found] or [0.0]
    return f"{id:18} {counts} {sum(mending) / len(mending):>9.1f} {max(mending):>6.1f}"


def _cpu_seconds() -> float:
    """Of this process and all that descend from it, those that have ended among them."""
    ticks, parents = {}, {}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit():
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])
                ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    mine = [os.getpid()]
    for process in mine:
        mine += [child for child, parent in parents.items() if parent == process]
    return sum(ticks.get(process, 0) for process in mine) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
