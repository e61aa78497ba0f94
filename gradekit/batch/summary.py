"""A class at a glance: how the points are spread, which checks cost how many, how close speeds were, and faults; and
its progress while it is graded, with an estimate of the time that the rest takes."""

import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from gradekit.batch.gradebook import Line
from gradekit.batch.policy import spelled
from gradekit.batch.pool import Pool
from gradekit.report.grouping import ending, plain_title
from gradekit.report.pictures import BINS, binned
from gradekit.report.record import awaits_gpu
from gradekit.report.rests_on import unsure
from gradekit.report.text import counted, one_line, points, seconds, shortened

SHOWN = 5  # the most lines that one section has


def render(lines: Sequence[Line], records: Mapping[str, Mapping[str, Any]], width: int = 100) -> str:
    """The summary as text: `lines` of the grade book, and the records (by digest) that were graded."""
    graded = [record for record in records.values() if record["status"] == "graded"]
    sections = [
        [tally(lines)], _distribution(lines), _failures(graded, width), _rejections(records.values(), width),
        _speeds(graded, width), _pending(graded, width), _resting(graded, width),
        _for_a_person(lines, records, width), _faults(lines, records.values(), width),
    ]  # fmt: skip
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


STATUS = {"fault": "not graded"}  # what people are told of a status, where that is another word


def tally(lines: Sequence[Line]) -> str:
    """How many students have which status, and how many were late."""
    by_status = Counter(line.status for line in lines)
    parts = [f"{number} {STATUS.get(status, status)}" for status, number in by_status.most_common()]
    parts += [f"{late} late"] if (late := sum(line.penalty > 0 for line in lines)) else []
    return f"{counted(len(lines), 'student')}: {', '.join(parts)}" if lines else "no students yet"


def shares_of(lines: Iterable[Line]) -> list[float]:
    """What part of the possible points each line has."""
    return [line.points / line.possible for line in lines if line.counts and line.possible > 0]


def _distribution(lines: Sequence[Line]) -> list[str]:
    shares = shares_of(lines)
    if not shares:
        return []
    bins = binned(shares)
    most = max(bins.values())
    rows = [
        f"  {number * 100 // BINS:3d} to {(number + 1) * 100 // BINS:3d}  {'#' * round(40 * bins[number] / most):<40} "
        f"{bins[number]}".rstrip() for number in reversed(range(BINS))
    ]  # fmt: skip
    middle, mean = statistics.median(shares) * 100, statistics.mean(shares) * 100
    open_yet = "; of what is measured already" if any(line.pending for line in lines) else ""
    return [f"points, in percent (median {middle:.0f}, mean {mean:.0f}{open_yet}):", *rows]


def _section(head: str, rows: Iterable[str], width: int) -> list[str]:
    found = [shortened(f"  {row}", width) for row in rows]
    return [shortened(head, width), *found] if found else []


def _counts(found: Iterable[str], most: int | None = SHOWN) -> list[str]:
    return [f"{number:4d}  {what}" for what, number in Counter(found).most_common(most)]


def by_check(failed: Iterable[tuple[Any, Mapping[str, Any]]]) -> list[tuple[str, list[Any], Counter[str]]]:
    """Failed checks by test, its cases as one, the most first: title, whose failed, and how many for which cause."""
    titles: dict[str, str] = {}
    whose: dict[str, dict[tuple[Any, str], None]] = defaultdict(dict)
    for who, check in failed:
        name = check["id"].partition("[")[0]
        titles.setdefault(name, plain_title(check))
        whose[name][who, str(check["cause"] or "other")] = None
    rows = [
        (titles[name], list(dict.fromkeys(who for who, _ in each)), Counter(sorted(cause for _, cause in each)))
        for name, each in whose.items()
    ]
    return sorted(rows, key=lambda row: -len(row[1]))


def _failures(records: Iterable[Mapping[str, Any]], width: int) -> list[str]:
    failed = ((n, check) for n, record in enumerate(records) for check in record["checks"] if ending(check) == "failed")
    told = (
        f"{len(whose):4d}  {title}  ({', '.join(f'{cause} {n}' for cause, n in causes.most_common(3))})"
        for title, whose, causes in by_check(failed)
    )
    return _section("checks that failed, and for how many submissions:", told, width)


def _speeds(records: Iterable[Mapping[str, Any]], width: int) -> list[str]:
    """Speeds that lie within 5 % of what was asked for: the ones that a student will ask about."""
    speeds = [(one_line(c["title"]), c["details"].get("speed", {})) for record in records for c in record["checks"]]
    asked = [
        (title, speed["ratios"][verdict["side"]]["value"], verdict["at_least"])
        for title, speed in speeds for verdict in speed.get("verdicts", ())
    ]  # fmt: skip
    close = sorted((value / least, value, least, title) for title, value, least in asked)
    rows = [f"{value:.3f} of {least:g}  {title}" for share, value, least, title in close if abs(share - 1) < 0.05]
    return _section("speeds within 5 % of what was asked for:", rows[:20], width)


def _pending(records: Iterable[Mapping[str, Any]], width: int) -> list[str]:
    open_yet = (check for record in records for check in record["checks"] if check["outcome"] == "pending")
    why = (one_line(check["message"]) or one_line(check["title"]) for check in open_yet)
    return _section("pending checks, which count neither for nor against:", _counts(why), width)


def _resting(records: Iterable[Mapping[str, Any]], width: int) -> list[str]:
    """What those without a failure rest on, and how many have nothing unseen."""
    full = [record for record in records if record.get("rests_on")]
    sure = sum(not unsure(record) for record in full)
    sums = {name: sum(record["rests_on"][name] for record in full) for name in ("examples", "proved", "exact")}
    seen = {0: "each with something unseen", len(full): "with nothing unseen"}.get(sure)
    head = (
        f"{counted(len(full), 'submission')} without a failure, {seen or f'{sure} of them with nothing unseen'} "
        f"(on the whole {counted(sums['examples'], 'example')}, {counted(sums['proved'], 'claim')} proved, "
        f"{counted(sums['exact'], 'formula')} right in exact arithmetic)"
    )
    return [head] if full else []


def _for_a_person(lines: Iterable[Line], records: Mapping[str, Mapping[str, Any]], width: int) -> list[str]:
    """Submissions that decide by what no example and no proof covers, such as text made of a size, or whose host code
    turned to the system, as tracer.loading notes it."""
    own = ((line, records[line.digest]) for line in lines if line.digest in records)
    asked = lambda record: [one_line(note) for note in record["notes"] if " turned to the system (" in note]
    each = ((line, [*unsure(record), *asked(record)]) for line, record in own)
    rows = [f"{one_line(line.label)}  {'; '.join(named)}" for line, named in each if named]
    return _section("for a person to look at:", rows, width)


def _rejections(records: Iterable[Mapping[str, Any]], width: int) -> list[str]:
    causes = Counter(record["cause"] or "other" for record in records if record["status"] == "rejected")
    named = ", ".join(f"{cause} {n}" for cause, n in causes.most_common())
    return [shortened(f"rejected as a whole: {named}", width)] if named else []


def _faults(lines: Sequence[Line], records: Iterable[Mapping[str, Any]], width: int) -> list[str]:
    students = [line.label for line in lines if line.status == "fault"]
    head = f"not graded, by no fault of theirs ({len(students)}): {', '.join(map(one_line, students[:20]))}"
    reasons = _counts(one_line(record["message"]) for record in records if record["status"] == "fault")
    return [shortened(head, width), *_section(head, reasons, width)[1:]] if students else []


def line_for(student: str, record: Mapping[str, Any]) -> str:
    """What a submission came to, in one line: "ada  70 / 100  (20 pending)  failed: Is right for ..."."""
    score = record["score"]
    if record["status"] == "fault":
        return f"{one_line(student)}  not graded: {one_line(record['message'])}"
    if record["status"] == "rejected" and not score["possible"]:
        return f"{one_line(student)}  rejected: {one_line(record['message'])}"
    text = f"{one_line(student)}  {points(score['earned'])} / {points(score['possible'])}"
    text += f"  ({points(score['pending'])} pending)" if score["pending"] else ""
    if record["status"] == "rejected":
        return f"{text}  rejected: {one_line(record['message'])}"
    failed = [one_line(check["title"]) for check in record["checks"] if check["outcome"] == "failed"]
    return text + (f"  failed {len(failed)}: {'; '.join(dict.fromkeys(failed))}" if failed else "")


# --- progress: one count for submissions that are graded, one for those whose speed is measured on a GPU --------------

Say = Callable[[str], None]


class Count:
    """How many of `total` are done, and how long the rest takes."""

    def __init__(self, total: int) -> None:
        self.done, self.total = 0, total
        self._began, self._now = math.inf, 0.0

    def add(self, now: float, seconds: float) -> None:
        """One more is done, in so many seconds of work."""
        self.done += 1
        self._began, self._now = min(self._began, now - seconds), now

    @property
    def left(self) -> float:
        """Seconds for the rest at the rate of those that have ended: those that have begun are slower ones."""
        return (self._now - self._began) * (self.total - self.done) / max(self.done, 1)

    def __str__(self) -> str:
        """3/40, 5 min left."""
        return f"{self.done}/{self.total}" + (f", {duration(self.left)} left" if 2 < self.done < self.total else "")


def duration(value: float) -> str:
    """8.2 -> "8.2 s", 200 -> "4 min", 5000 -> "1 h 24 min"."""
    return seconds(value) if value < 100 else spelled(timedelta(seconds=value))


class ProgressLog:
    """Says a line for each result: of the students in `names` (by digest), of `todo` submissions; of `waiting` others
    the speed alone is measured."""

    def __init__(
        self, names: Mapping[str, str], todo: int, waiting: int, pool: Pool, say: Say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._names, self._are_cards, self._say, self._clock = names, pool.has_gpus(), say, clock
        self._graded, self._measured = Count(todo), Count(waiting)

    def graded(self, digest: str, found: Mapping[str, Any]) -> None:
        """A submission has its result."""
        self._graded.add(self._clock(), found["seconds"])
        self._measured.total += self._are_cards and awaits_gpu(found)
        self._write(str(self._graded), digest, found)

    def measured(self, digest: str, found: Mapping[str, Any]) -> None:
        """A submission's speed was measured."""
        self._measured.add(self._clock(), found["seconds"])
        card = one_line(str(found["environment"].get("gpu")))
        self._write(f"speed {self._measured}, on {card}", digest, found)

    def _write(self, head: str, digest: str, found: Mapping[str, Any]) -> None:
        self._say(shortened(f"[{head}] {line_for(self._names[digest], found)}", 160))
