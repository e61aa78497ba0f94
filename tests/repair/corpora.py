"""Beginner's mistakes with what a tutor would say of them, and how well a report says it.

corpus/<id>.toml has them, for one assignment each:

    base = "solutions/softmax/right_one_row.py"        the right submission that is edited, from the repository's root

    [zeros_beyond_the_end]                             the mistake's name
    title = "Masked elements are loaded as 0."         what the student did
    words = ["other=|beyond|past the end", "-inf"]     what the report must say: every one, each with its alternatives
    line = "x = tl.load("                              a piece of the line (or lines) that the report may point at
    base = "..."                                       where it is another file than the others'
    edit = '''
    -    x = tl.load(x_ptr + cols, mask=mask, other=-float("inf"))
    +    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    '''

gradekit.course.edits says how an edit is written. Where a line is missing from the submission, `line` is a list of pieces of
lines that a tutor would point at instead. The mistakes of corpus/held_out/<id>.toml are held out: they were written before anybody
saw what is said about them, and rules are not to be made for them. Where there is no such file, every third mistake is held out.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from gradekit.course.edits import edited
from gradekit.submission.parsed_source import meaning
from tests import right

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "corpus"


_PATTERN = re.compile(r"Every element is|Just those|Within a row all|Only the first|(n)?ever written|loads elements outside of|The first (NaN|infinity) is made|still goes past the end of")
"""Sentences of diagnoses that tell what all wrong elements have in common, and blame nothing."""


_FIGURES = re.compile(r"At shape [^:]*: .*?expected [^ ]+(\.(?= |$)|$)")
"""What a message shows of numbers, in which any word may occur ("exp" in "expected"), and which names nothing."""


_PLACE = re.compile(r"Something is wrong (in|where|with)")
"""How a diagnosis begins that blames a line, and names no cause: right or wrong by its line."""


_AS_TRIED = re.compile(r"line (\d+) as `([^`]+)`")
"""A line as it was tried, with which examples are right."""


class Verdict(StrEnum):
    """What a report says of a mistake: its cause, something else, a pattern in what was seen, or wrong numbers alone;
    or that no check fails, so that there is nothing to explain."""

    NAMED = "named"
    WRONG = "WRONG"
    SYMPTOM = "seen"
    SILENT = "silent"
    PASSES = "passes"


@dataclass(frozen=True)
class BeginnersMistake:
    """One mistake: the wrong submission's `text`, the `right` one's, and what its report must say and point at."""

    assignment: str
    name: str
    title: str
    text: str
    right: str
    words: tuple[str, ...]
    pieces: tuple[str, ...]
    held_out: bool

    @cached_property
    def lines(self) -> frozenset[int]:
        """The numbers of the lines that a report may point at."""
        numbered = enumerate(self.text.splitlines(), 1)
        return frozenset(number for number, line in numbered if any(piece in line for piece in self.pieces))

    def is_named_by(self, check: Mapping[str, Any]) -> bool:
        """Whether a check of a record says the cause, in its message or its hint, or shows what stands in the right
        submission as what was tried."""
        said = f"{_FIGURES.sub('', check['message'])} {check['hint']}"
        is_said = all(re.search(word, said, re.IGNORECASE) for word in self.words)
        return check["outcome"] == "failed" and (is_said or self._is_given_back_by(check["hint"]))

    def _is_given_back_by(self, hint: str) -> bool:
        lines = self.text.splitlines()
        for number, new in _AS_TRIED.findall(hint):
            old = lines[int(number) - 1]
            lines[int(number) - 1] = old[: len(old) - len(old.lstrip())] + new
        return lines != self.text.splitlines() and meaning("\n".join(lines)) == meaning(self.right)

    def is_placed_by(self, check: Mapping[str, Any]) -> bool:
        """Whether a check of a record names no cause and blames one of the lines, or none."""
        points = self.points_right(check) or not check["source"]
        return bool(_PLACE.search(check["message"])) and points

    def points_right(self, check: Mapping[str, Any]) -> bool:
        """Whether a check of a record points at one of the lines."""
        return bool(check["source"]) and check["source"]["line"] in self.lines


@dataclass(frozen=True)
class Tutored:
    """What a report says of a mistake, and whether a check that names it (or, where none does, any) points at its line."""

    mistake: BeginnersMistake
    verdict: Verdict
    line: bool

    @staticmethod
    def of(mistake: BeginnersMistake, record: Mapping[str, Any]) -> "Tutored":
        """What a record says of the mistake."""
        checks = (
            [*record["checks"], record | {"outcome": "failed", "details": {}}] if record["cause"] else record["checks"]
        )
        failed = [check for check in checks if check["outcome"] == "failed"]
        naming = [check for check in failed if mistake.is_named_by(check)]
        if naming:
            return Tutored(mistake, Verdict.NAMED, any(map(mistake.points_right, naming)))
        diagnosed = [check for check in failed if "observed_cause" in check["details"]]
        told = [check for check in diagnosed if not _PATTERN.search(check["message"]) and not mistake.is_placed_by(check)]
        verdict = Verdict.WRONG if told else Verdict.SYMPTOM if diagnosed else Verdict.SILENT if failed else Verdict.PASSES
        return Tutored(mistake, verdict, any(map(mistake.points_right, failed)))


def corpus(assignment: str) -> Iterator[BeginnersMistake]:
    """The mistakes of an assignment, in the order of its files; each has a name of its own.

    Raises:
        EditError: an edit does not fit its base in exactly one way.
        ValueError: no line of the mistaken submission has the piece that its line is to have.
    """
    kept_aside = FOLDER / "held_out" / f"{assignment}.toml"
    is_apart, names = kept_aside.is_file(), set[str]()
    for number, mistake in enumerate(read(FOLDER / f"{assignment}.toml"), 1):
        names.add(mistake.name)
        yield replace(mistake, held_out=not is_apart and number % 3 == 0)
    for mistake in read(kept_aside) if is_apart else ():
        name = f"{mistake.name}_held_out" if mistake.name in names else mistake.name
        yield replace(mistake, held_out=True, name=name)


def read(path: Path) -> Iterator[BeginnersMistake]:
    """The mistakes of one file, called after its assignment; none of them is marked as held out.

    Raises:
        EditError, ValueError: as of `corpus`.
    """
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    usual = data.pop("base", "")
    for name, table in data.items():
        base = table.get("base", usual)
        text = edited(right.text(base), table["edit"], base)
        pieces = (table["line"],) if isinstance(table["line"], str) else tuple(table["line"])
        found = BeginnersMistake(path.stem, name, table["title"], text, right.text(base), tuple(table["words"]), pieces, held_out=False)
        if not found.lines:
            raise ValueError(f"{path.stem}: {name}: no line has {' or '.join(pieces)}")
        yield found


def assignments() -> list[str]:
    """The assignments that have a corpus."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))
