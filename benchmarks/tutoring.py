"""How many beginner's mistakes a report names, and whether it points at the line:
`python benchmarks/tutoring.py [id ...]`.

The mistakes are those of tests/mending/corpus. One row for each assignment; `--show` prints what each report says,
`--name` takes one mistake, `--developed` and `--held-out` the one part of them or the other.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from gradekit import assignment as assignments
from gradekit import reuse
from gradekit.plugin.runner import grade
from gradekit.report.record import to_dict
from gradekit.report.terminal import render
from gradekit.request import GradingOptions, GradingRequest
from tests.mending.corpora import BeginnersMistake, Tutored, Verdict, corpus
from tests.mending.corpora import assignments as with_corpus

Wanted = Callable[[BeginnersMistake], bool]


def main() -> None:
    """Grade the mistakes and print the table."""
    options = _options()
    print(f"{'assignment':18} {'mistakes':>8} {'named':>6} {'line':>5} {'wrong':>6} {'silent':>7} {'CPU s':>6}")
    for id in options.ids or with_corpus():
        found = list(_tutored(id, _wanted(options), options.show, _grading(options)))
        print(_row(id, [tutored for tutored, _ in found], [seconds for _, seconds in found]), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ids", nargs="*", help="assignments; all that have a corpus by default")
    parser.add_argument("--show", action="store_true", help="print what each report says")
    parser.add_argument("--quick", action="store_true", help="few examples for each check")
    parser.add_argument("--first", action="store_true", help="end each report at the first check that fails")
    parser.add_argument("--name", help="mistakes whose names hold this")
    parser.add_argument("--developed", action="store_true", help="those that rules may be made for")
    parser.add_argument("--held-out", action="store_true", help="those that no rule was made for")
    return parser.parse_args()


def _grading(options: argparse.Namespace) -> GradingOptions:
    return GradingOptions(device="cpu", profile="quick" if options.quick else "default", stop=options.first)


def _wanted(options: argparse.Namespace) -> Wanted:
    both = options.developed == options.held_out
    return lambda mistake: (both or mistake.held_out == options.held_out) and (options.name or "") in mistake.name


def _tutored(id: str, wanted: Wanted, show: bool, grading: GradingOptions) -> Iterator[tuple[Tutored, float]]:
    with reuse.kept():
        for mistake in filter(wanted, corpus(id)):
            before = _cpu_seconds()
            record = _record(mistake, grading)
            seconds = _cpu_seconds() - before
            tutored = Tutored.of(mistake, record)
            if show or tutored.verdict is not Verdict.NAMED or not tutored.line:
                line = "" if tutored.line else ", other line"
                print(f"--- {id} {mistake.name}: {tutored.verdict}{line}, {seconds:.1f} s\n{mistake.title}")
                print(render(record) if show else _messages(record), flush=True)
            yield tutored, seconds


def _record(mistake: BeginnersMistake, grading: GradingOptions) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "submission.py"
        path.write_text(mistake.text, encoding="utf-8")
        request = GradingRequest(assignments.get(mistake.assignment), path, grading)
        return to_dict(grade(request))


def _messages(record: dict[str, Any]) -> str:
    failed = [check for check in record["checks"] if check["outcome"] == "failed"]
    said = Counter(f"  {(c['source'] or {}).get('line')} {c['cause']}: {c['message']} ({c['hint']})" for c in failed)
    return "\n".join(said) or record["message"] or "  nothing failed"


def _row(id: str, found: Sequence[Tutored], seconds: Sequence[float]) -> str:
    of = Counter(tutored.verdict for tutored in found)
    lines = sum(tutored.line for tutored in found)
    counts = f"{len(found):>8} {of[Verdict.NAMED]:>6} {lines:>5} {of[Verdict.WRONG]:>6} {of[Verdict.SILENT]:>7}"
    return f"{id:18} {counts} {sum(seconds) / max(len(seconds), 1):>6.1f}"


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
