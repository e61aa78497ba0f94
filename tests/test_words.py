"""What students read: short sentences of plain words, measured."""

import re
import statistics
from pathlib import Path

import pyphen
import pytest

from gradekit.causes import Cause
from gradekit.tracer.hints import HINTS
from tools import messages
from tools.messages import ROOMS, sentences

ROOT = Path(__file__).parents[1]
SYLLABLES = pyphen.Pyphen(lang="en_US")
CODE = re.compile(r'`[^`]*`|"[^"]*"|\[[^\]]*\]|\w*[_(][^\s;,]*|\w+(\.\w+)+(\([^)]*\))?|\b[A-Z]\w*[a-z][A-Z]\w*')


def reading_level(text: str) -> float:
    """The school grade in which `text` can be read (Flesch and Kincaid, 1975): code in it counts as one short word."""
    plain = CODE.sub("code", text)
    sentences = [part for part in re.split(r"[.!?;:](?:\s|$)", plain) if re.search(r"[a-z]", part)]
    words = re.findall(r"[A-Za-z']+", plain)
    syllables = sum(len(SYLLABLES.positions(word)) + 1 for word in words)
    return 0.39 * len(words) / len(sentences) + 11.8 * syllables / len(words) - 15.59


@pytest.fixture(scope="module")
def levels() -> dict[str, float]:
    """All that students may read, with its reading level; what they are asked to fill in counts as code."""
    own = [text for cause in Cause for text in (cause.meaning, cause.hint) if text] + [advice for _, advice in HINTS]
    found = (text for room in ROOMS for row in sentences(room) for text in row if len(text) > 24)
    return {text: reading_level(text) for text in own + [re.sub(r"\{\d*\}|\$+\w+", "code", text) for text in found]}


def test_half_of_what_students_read_is_for_the_eighth_grade_or_below(levels: dict[str, float]) -> None:
    assert statistics.median(levels.values()) <= 8


def test_no_message_is_harder_than_the_twelfth_grade(levels: dict[str, float]) -> None:
    assert [text for text, level in levels.items() if level > 12] == []


def test_every_environment_variable_is_in_the_table_of_settings() -> None:
    files = [file for folder in ("gradekit", "autograder") for file in (ROOT / folder).rglob("*") if file.is_file()]
    read = [file.read_text(encoding="utf-8") for file in files if file.suffix != ".pyc"]
    named = {name for text in read for name in re.findall(r"\bGRADEKIT_[A-Z_]+\b", text)}
    documented = set(
        re.findall(r"^\| `(GRADEKIT_[A-Z_]+)`", (ROOT / "docs/settings.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert named == documented


def test_the_page_of_messages_has_every_sentence() -> None:
    text = messages.page().replace("\\", "")
    assert all(cause.hint in text for cause in Cause) and all(
        advice in text for _, advice in HINTS if "*" not in advice
    )
    for said in (  # of a diagnosis, of a failure, of a rule and of an operator, whose advice stands behind
        "- Every element is 0.\n",
        "- {1} has shape {2}, and must have {3}.\n",
        "- Line $line has `$it` where another line has `$H * $N` and adds to that. / multiply it by $N here, too",
        "- has the strides `{1}` and `{2}` in each other's place. / exchange the two: an index goes with the stride",
    ):
        assert said in text, said


def test_the_list_of_messages_has_no_hole_that_markdown_takes_for_a_role() -> None:
    assert messages._escaped("uses {1}`{2}` in [it]") == r"uses \{1}`{2}` in \[it\]"
