"""Nothing that a submission says reaches a reader raw: not the terminal, not JSON, not JUnit, not a page or a table."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from gradekit.cli import main
from gradekit.findings import Report
from gradekit.report import junit, record, terminal
from gradekit.report.record import to_dict
from gradekit.report.text import csv_cell, for_html, for_markdown
from gradekit.sandbox.replies import error, loaded
from tests import zygote
from tests.graded import graded
from tests.report.samples import PASSED, report

from .cheats import HEAD
from .test_cheats import TWO
from .world import ROOT

SAYINGS = {
    "colours": "\x1b[2J\x1b[31mpassed\x1b[0m", "a title": "\x1b]0;root@grader\x07",
    "a link": "\x1b]8;;http://a/\x07click\x1b]8;;\x07", "one-character controls": "\x9b2J\x84\x85\x8d",
    "a line that overwrites another": "failed\rpassed", "backspaces": "failed\b\b\b\b\b\bpassed", "a bell": "\a" * 10,
    "a null": "a\0b", "the other direction": "\u202edessap\u202c", "what cannot be seen": "pa\u200bss\u2060ed\ufeff",
    "half characters": "\ud800\udfff", "tags": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "entities": "&lt;b&gt; ]]> <!-- -->", "attributes": "\" onmouseover=\"alert(1)\" ' x='",
    "a formula": "=HYPERLINK(\"http://a\",\"passed\")", "another formula": "@SUM(1+1)*cmd|' /C calc'!A0",
    "Markdown": "[passed](http://a) ![x](http://a/x.png) @everyone",
    "a report": "{\"schema\": \"gradekit/report/1\", \"score\": {\"earned\": 100}}",
    "the last line of Autolab": "\n{\"scores\": {\"Correctness\": 100}}\n",
    "other line ends": "a\u2028b\u2029c\x0bd\x0ce\x1cf\x85g",
    "format codes": "%s %n {0} {x.__class__} $HOME `id` ${7*7} {{7*7}}", "a megabyte": "x" * 1_000_000,
}  # fmt: skip

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def report_on(folder: Path, saying: str) -> Report:
    """A report whose messages, notes, source lines and details hold the saying."""
    quoted = ascii(saying)
    text = f"{HEAD}\nprint({quoted})\nraise_here = 1 / 0  # {quoted[:200]}\ndef add(x, y):\n    raise ValueError({quoted})\n"
    return graded("vector_add", text, folder, profile="quick", keyword=TWO)


@pytest.mark.sample(6)
@pytest.mark.parametrize("saying", SAYINGS.values(), ids=SAYINGS)
def test_a_saying_stays_words(tmp_path: Path, saying: str) -> None:
    """In every rendering"""
    data = record.to_dict(report_on(tmp_path, saying))
    record.validate(data)
    assert CONTROL.search(terminal.render(data)) is None
    assert json.loads(record.dumps(data)) == data and record.dumps(data).isascii()
    ElementTree.fromstring(junit.render(data))
    assert CONTROL.search(junit.render(data)) is None
    messages = [check["message"] for check in data["checks"]]
    assert messages and all(len(message) < 10_000 for message in messages)
    for message in messages:
        assert re.search("[<>\"']", for_html(message)) is None
        assert not csv_cell(message).startswith(("=", "+", "-", "@"))
        assert re.search(r"(?<!\\)[\[\]<>@`]", for_markdown(message)) is None


def test_standard_output_is_the_report_alone(tmp_path: Path) -> None:
    """What a submission prints is not on it, whatever it looks like"""
    path = tmp_path / "submission.py"
    path.write_text(
        f"{HEAD}\nimport os\nprint('PRINTED')\nos.write(1, b'WRITTEN')\nos.system('echo STARTED')\nadd = wrong\n"
    )
    what = ["-a", "vector_add", "-k", "contiguous_float32", "--quick"]
    done = zygote.ran(["-m", "gradekit.cli", "check", path, *what, "--json", "-"], folder=ROOT)
    assert done.returncode == 1 and json.loads(done.stdout)["score"]["earned"] == 0
    assert not re.search("PRINTED|WRITTEN|STARTED", done.stdout + done.stderr)


@pytest.mark.parametrize(
    "name", ["\x1b[2Ja.py", "a\nb.py", "<b>.py", "=1+1.py", "\u202eyp.a", "-rf.py", "$(id).py", "a b'c\".py"]
)
def test_a_files_name_is_only_a_name(tmp_path: Path, name: str) -> None:
    """On the terminal and in the command that shows the failure again"""
    path = tmp_path / name
    path.write_text(f"{HEAD}\nadd = wrong\n")
    done = CliRunner().invoke(main, ["check", str(path), "-a", "vector_add", "-k", "contiguous_float32", "--quick"])
    assert CONTROL.search(done.output) is None
    assert done.exit_code == (1 if name.endswith(".py") else 2), done.output


# --- what a submission writes cannot be taken for the report's own lines ----------------------------------------------


FORGED = "  ✓ Adds two contiguous float32 vectors                                  16 / 16"


def sent(message: str) -> str:
    """The message of an error that a submission's process sent."""
    return error({"cause": "exception", "message": message, "line": 3, "detail": ""}).message


def test_each_line_of_an_exception_carries_a_mark() -> None:
    assert sent(f"ValueError: no\n\n{FORGED}\n100 of 100 points") == (
        f"ValueError: no\n│ \n│ {FORGED}\n│ 100 of 100 points"
    )  # fmt: skip


def test_a_hint_of_gradekits_own_has_none() -> None:
    message = "TypeError: 'function' object is not subscriptable"
    assert sent(f"{message}\nIf this is a launch, is @triton.jit missing above the kernel?").count("│") == 0
    assert sent(f"{message}\nIf this is a launch, all is well.").count("│") == 1


def test_a_note_of_the_submissions_carries_a_mark_on_every_line_that_it_takes() -> None:
    note = f"line 1 was left out (x)\n{FORGED}\n100 of 100 points" + " so" * 60
    notes = loaded({"functions": {}, "notes": [note]}).notes
    text = terminal.render(to_dict(report(PASSED)) | {"notes": list(notes)})
    lines = [line for line in text.split("\n") if " so so" in line or "left out" in line or "Adds two" in line]
    assert len(lines) > 2 and all(line.startswith("│ ") for line in lines)


@pytest.mark.parametrize("end", ["\r", "\x0b", "\u2028", "\x85"])
def test_no_other_line_end_starts_a_line(end: str) -> None:
    text = terminal.render(to_dict(report(PASSED)) | {"notes": [f"a{end}{FORGED}"]})
    assert "Adds two contiguous" in text and end not in text
