"""How many beginner's mistakes a report names, and whether it points at the line:
`python benchmarks/tutoring.py [id ...]`.

The mistakes are those of tests/mending/corpus. One row for each assignment, and before it one line for each mistake:
the verdict, whether the line is right, the CPU seconds of all processes for mended programs and for the whole report,
and the first sentence of the diagnosis. `--show` prints what each report says, `--name` takes one mistake, `--developed`
and `--held-out` the one part of them or the other, and `--folder DIR` takes those of DIR/<id>.toml instead, which nobody
who works on the tutoring need have seen.
"""

from __future__ import annotations

import argparse
import contextlib
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

from gradekit import assignment as assignments
from gradekit import reuse
from gradekit.judge.evidence import Diagnosis
from gradekit.plugin import mended_runs
from gradekit.plugin.runner import grade
from gradekit.report.record import to_dict
from gradekit.report.terminal import render
from gradekit.request import GradingOptions, GradingRequest
from tests.mending.corpora import BeginnersMistake, Tutored, Verdict, corpus, read
from tests.mending.corpora import assignments as with_corpus

Wanted = Callable[[BeginnersMistake], bool]

_HEADER = (
    f"{'assignment':18} {'mistakes':>8} {'named':>6} {'line':>5} {'wrong':>6} {'seen':>5} {'silent':>7} {'passes':>7} "
    f"{'mending s':>9} {'most':>6}"
)


@dataclass(frozen=True)
class Measured:
    """What a report says of a mistake, and the CPU seconds of its mended programs and of the whole report."""

    tutored: Tutored
    mending: float
    whole: float


def main() -> None:
    """Grade the mistakes and print the table."""
    options = _options()
    for id in options.ids or _with_mistakes(options.folder):
        print(_HEADER)
        print(_row(id, list(_tutored(_mistakes(id, options), options.show, _grading(options)))), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ids", nargs="*", help="assignments; all that have a corpus by default")
    parser.add_argument("--show", action="store_true", help="print what each report says")
    parser.add_argument("--quick", action="store_true", help="few examples for each check, and many where those show nothing")
    parser.add_argument("--first", action="store_true", help="end each report at the first check that fails")
    parser.add_argument("--name", help="mistakes whose names hold this")
    parser.add_argument("--developed", action="store_true", help="those that rules may be made for")
    parser.add_argument("--held-out", action="store_true", help="those that no rule was made for")
    parser.add_argument("--folder", type=Path, help="mistakes that lie outside of the repository: DIR/<id>.toml")
    return parser.parse_args()


def _with_mistakes(folder: Path | None) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml")) if folder else with_corpus()


def _mistakes(id: str, options: argparse.Namespace) -> Iterator[BeginnersMistake]:
    mistakes = read(options.folder / f"{id}.toml") if options.folder else corpus(id)
    return filter(_wanted(options), mistakes)


def _grading(options: argparse.Namespace) -> GradingOptions:
    return GradingOptions(device="cpu", profile="quick" if options.quick else "default", stop=options.first)


def _wanted(options: argparse.Namespace) -> Wanted:
    both = options.developed == options.held_out
    return lambda mistake: (both or mistake.held_out == options.held_out) and (options.name or "") in mistake.name


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
            measured = Measured(Tutored.of(mistake, record), sum(spent), _cpu_seconds() - before)
            print(_line(measured, record), flush=True)
            if show:
                print(render(record), flush=True)
            yield measured


@contextlib.contextmanager
def _timed_mending() -> Iterator[list[float]]:
    """The CPU seconds of each search for a mend, while the block runs."""
    spent: list[float] = []
    search = mended_runs.mended_diagnosis

    def timed(*args: Any) -> Diagnosis | None:
        before = _cpu_seconds()
        try:
            return search(*args)
        finally:
            spent.append(_cpu_seconds() - before)

    mended_runs.mended_diagnosis = timed
    try:
        yield spent
    finally:
        mended_runs.mended_diagnosis = search


def _record(mistake: BeginnersMistake, grading: GradingOptions) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "submission.py"
        path.write_text(mistake.text, encoding="utf-8")
        request = GradingRequest(assignments.get(mistake.assignment), path, grading)
        return to_dict(grade(request))


def _line(measured: Measured, record: dict[str, Any]) -> str:
    """Verdict, line, seconds and what is said first, by the check that names the cause or else the first that fails."""
    tutored = measured.tutored
    failed = _failed(record)
    naming = [check for check in failed if tutored.mistake.is_named_by(check)]
    check = (naming or failed or [record | {"source": None, "hint": ""}])[0]
    line = "line right" if tutored.line else "other line"
    said = _sentence(check["message"])
    where = (check["source"] or {}).get("line")
    seconds = f"{measured.mending:5.1f} {measured.whole:5.1f} s"
    hint = f" ({check['hint']})" if check["hint"] and not naming else ""
    return f"{tutored.mistake.name:32} {tutored.verdict:6} {line} {seconds}  [{where}] {said}{hint}"


def _failed(record: dict[str, Any]) -> list[dict[str, Any]]:
    rejected = [record | {"source": None}] if record["cause"] else []
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
    counts += f" {of[Verdict.SILENT]:>7} {of[Verdict.PASSES]:>7}"
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
