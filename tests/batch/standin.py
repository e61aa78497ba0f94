"""A stand-in course, from a Canvas download to its grade book: own assignments beside built-in ones, hidden tests, late
work, kills in the middle, a mark, a container without a card, and back to Canvas. What comes out is known by hand.

`python -m tests.batch.standin FOLDER` runs it whole: 60 students, three own and three built-in assignments.
"""

import csv
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

from gradekit.assignment import load
from gradekit.batch.store import Store
from tests import zygote
from tests.batch.clusters import book
from tests.lms import container
from tests.patience import GUARD
from tests.plugin.samples import RIGHT, TESTS, TOML, TRIPLES

ROOT = Path(__file__).parents[2]

HIDDEN = '''
from hypothesis import given

from gradekit import assert_close, points, public_tests, reference, vectors

public = public_tests(__file__)

@points(20)
@given(x=vectors(size=(1000, 1100)))
def test_long(submission, x):
    """Doubles long vectors"""
    assert_close(submission.double(x), reference(public.twice, x))
'''

BROKEN = "def double(x:\n"
OWN = {"right": (RIGHT, Fraction(1)), "wrong": (TRIPLES, Fraction(20, 70)), "broken": (BROKEN, Fraction(0))}
"""Texts for an assignment of the course's own, and the part of its 70 points that each earns: 30 for values and 20 for
memory in the public tests, 20 in the hidden one."""

DUE, DAYS_LATE, A_DAY = datetime(2026, 10, 12, 12, tzinfo=UTC), 2, 10
"""The first assignment is due then; each day that a hand-in is late costs so many percent."""
MARKED = Fraction(12, 70)
"""A person gives 12 points to the first student whose text is broken."""


@dataclass(frozen=True)
class Stand:
    """A course in `folder`: its own assignments, those that are built in, and so many students."""

    folder: Path
    own: Sequence[str]
    built_in: Sequence[str]
    students: int
    kills: int = 1

    @property
    def ids(self) -> list[str]:
        return [*self.own, *self.built_in]

    def text(self, student: int, id: str) -> tuple[str, Fraction] | None:
        """What a student hands in, and what part of the points it earns; None for nothing."""
        if student % 7 == 6:
            return None
        if id in self.own:
            return list(OWN.values())[(student + self.own.index(id)) % 3]
        if student % 5 == 4:
            return (ROOT / "assignments" / id / "starter.py").read_text(encoding="utf-8"), Fraction(0)
        return (ROOT / "solutions" / id / "solution.py").read_text(encoding="utf-8"), Fraction(1)

    @property
    def marked(self) -> int:
        """The student whom a person gives points for the first assignment."""
        return next(s for s in range(self.students) if (given := self.text(s, self.ids[0])) and given[0] == BROKEN)

    def is_late(self, student: int, id: str) -> bool:
        """Whether the hand-in came days after it was due."""
        return id == self.ids[0] and student % 3 == 1

    def share(self, student: int, id: str) -> Fraction:
        """The part of the points that counts."""
        given = self.text(student, id)
        earned = given[1] if given else Fraction(0)
        if id == self.ids[0] and student == self.marked:
            earned = MARKED
        return earned * (100 - A_DAY * DAYS_LATE) / 100 if self.is_late(student, id) else earned

    def lay_out(self) -> None:
        """The course's repository, and a Canvas download for each assignment."""
        for id in self.own:
            place, secret = self.folder / "assignments" / id, self.folder / "solutions" / id
            place.mkdir(parents=True)
            secret.mkdir(parents=True)
            (place / "assignment.toml").write_text(TOML)
            (place / f"test_{id}.py").write_text(TESTS)
            (secret / f"test_{id}_hidden.py").write_text(HIDDEN)
        rules = "".join(f"[assignments.{id}]\nscale = 100\nweight = {n + 1}\n" for n, id in enumerate(self.ids))
        course = '[course]\nname = "Kernels"\nroster = "canvas.csv"\ndrop_lowest = 1\n'
        late = f"[assignments.{self.ids[0]}]\ndue = {DUE.isoformat()}\nlate = {{percent_a_day = {A_DAY}}}\n"
        (self.folder / "course.toml").write_text(course + rules.replace(f"[assignments.{self.ids[0]}]\n", late))
        (self.folder / "times.csv").write_text(self.times())
        (self.folder / "canvas.csv").write_text(self.canvas())
        for id in self.ids:
            for student in range(self.students):
                if given := self.text(student, id):
                    name = f"{last(student).lower()}ada_{1000 + student}_{5000 + student}_submission.py"
                    place = self.folder / "in" / id / name
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_text(given[0])

    def times(self) -> str:
        """When each hand-in came: just in time, or a second too late for the day before."""
        late = DUE + timedelta(days=DAYS_LATE - 1, seconds=1)
        when = [(late if self.is_late(s, self.ids[0]) else DUE).isoformat() for s in range(self.students)]
        return "\n".join(["student,submitted", *(f"{1000 + s},{each}" for s, each in enumerate(when))]) + "\n"

    def canvas(self) -> str:
        """Canvas's grade book, which is its class list too."""
        head = ["Student", "ID", "SIS Login ID", "Section", *(f"{id} ({70 + n})" for n, id in enumerate(self.ids))]
        rows = [["    Points Possible", "", "", "", *["100"] * len(self.ids)]]
        rows += [[f"{last(s)}, Ada", str(1000 + s), f"s{s}", "A", *[""] * len(self.ids)] for s in range(self.students)]
        return "\n".join(",".join(f'"{cell}"' for cell in row) for row in [head, *rows]) + "\n"

    def run(self, *words: str | Path, kill_after: int = 0) -> str:
        """What the command says; with `kill_after`, it is killed after so many results."""
        command = ["-m", "gradekit", *map(str, words)]
        environment = os.environ | {"PYTHONPATH": zygote.python_path(), "PYTHONWARNINGS": "ignore"}
        environment.pop("GRADEKIT_ASSIGNMENTS", None)
        if kill_after:
            with open(os.devnull, "r+b") as nowhere:
                standard = (nowhere.fileno(),) * 3
                self._kill(zygote.shared().start(command, environment, self.folder, (), standard), kill_after)
            return ""
        done = zygote.ran(command, environment=environment, folder=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _kill(self, process: zygote.Adopted, results: int) -> None:
        """End the command as soon as its store has so many results."""
        end = time.monotonic() + GUARD
        while self.results() < results and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"

    def results(self) -> int:
        """How many results the store has."""
        if not (self.folder / "class/class.db").is_file():
            return 0
        store = Store(f"sqlite:///{self.folder / 'class/class.db'}")
        given = {(id, one.digest) for id in store.assignments() for one in store.hand_ins(id)}
        return sum(len(store.history(id, digest)) for id, digest in given)

    def graded(self) -> None:
        """Grade all assignments into one folder, killed on the way as often as is asked for."""
        command = ("grade", "in", "-o", "class", "--profile", "quick", "--times", "times.csv", "--resume")
        for kill in range(self.kills):
            self.run(*command, kill_after=2 * kill + 1)
        self.run(*command)
        given = ("--points", "12", "--why", "A typing error.")
        self.run("mark", str(1000 + self.marked), "total", "-a", self.ids[0], "-o", "class", *given)

    def by_hand(self) -> dict[str, tuple[list[str], str]]:
        """By student: the share in each assignment and the total, in percent, as course.csv has to have them."""
        return {str(1000 + student): self._by_hand(student) for student in range(self.students)}

    def _by_hand(self, student: int) -> tuple[list[str], str]:
        shares = [self.share(student, id) for id in self.ids]
        total = max(self._without(n, shares) for n in range(len(shares)))  # dropped is what makes the most of the rest
        return [percent(share) for share in shares], percent(total)

    def _without(self, dropped: int, shares: Sequence[Fraction]) -> Fraction:
        """The total of all but one assignment; their weights are 1, 2, 3 and so on."""
        counted = [(share, n + 1) for n, share in enumerate(shares) if n != dropped]
        return sum((share * weight for share, weight in counted), Fraction(0)) / sum(weight for _, weight in counted)

    def course_book(self) -> dict[str, dict[str, str]]:
        """course.csv by student."""
        return book(self.folder, "class/course.csv")


def last(student: int) -> str:
    """A family name for each number."""
    return "X" + "".join(chr(ord("a") + int(digit)) for digit in str(student))


def percent(share: Fraction) -> str:
    """2/7 -> "28.57"."""
    return f"{float(100 * share):.2f}".rstrip("0").rstrip(".")


def tried(stand: Stand) -> None:
    """Run the whole course, and compare what comes out with what is known by hand."""
    stand.lay_out()
    stand.graded()
    rows = stand.course_book()
    found = {student: ([row[id] for id in stand.ids], row["total"]) for student, row in rows.items()}
    assert found.keys() == stand.by_hand().keys()
    assert not list((stand.folder / "class").rglob(".*")), "what was half written when it was killed"
    wrong = {who: (found[who], right) for who, right in stand.by_hand().items() if found[who] != right}
    assert not wrong, wrong
    assert rows["1000"]["name"] == f"Ada {last(0)}"
    id = stand.own[0]
    column = stand.ids.index(id)
    stand.run("gradebook", "canvas.csv", "-a", id, "-o", "class", "--to", "up.csv", "--column", id)
    with (stand.folder / "up.csv").open(newline="") as stream:
        sent = {row["ID"]: row[f"{id} (70)"] for row in csv.DictReader(stream) if row["ID"]}
    handed = {str(1000 + s) for s in range(stand.students) if stand.text(s, id)}
    assert {student: cell for student, cell in sent.items() if student in handed} == {
        student: shares[column] for student, (shares, _) in stand.by_hand().items() if student in handed
    }
    assert all(cell == "" for student, cell in sent.items() if student not in handed)
    whole = (stand.folder / "class/index.html").read_text(encoding="utf-8")
    assert all(f'"{id}/index.html"' in whole for id in stand.ids) and 'students/1000/index.html"' in whole
    assert "Total: " in (stand.folder / "class/students/1000/index.html").read_text(encoding="utf-8")
    assert all(id in stand.run("status", "-o", "class") for id in stand.ids)


def tried_in_a_container(stand: Stand) -> None:
    """What Gradescope's container, which has no card, gives the wrong text of an assignment with hidden tests."""
    text, share = OWN["wrong"]
    place = stand.folder / "container"
    place.mkdir()
    done, results = container.gradescope(place, load(stand.folder / "assignments" / stand.own[0]), text)
    assert done.code == 0, done.said
    assert results.get("score") == 70 * share, results["output"]


if __name__ == "__main__":
    whole = Stand(Path(sys.argv[1]).resolve(), ("double", "twice", "again"), ("vector_add", "softmax", "matmul"), 60, 2)
    tried(whole)
    print("the grade book is right")
    if container.possible():
        tried_in_a_container(whole)
        print("and so is what the container says")
