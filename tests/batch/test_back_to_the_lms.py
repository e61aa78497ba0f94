"""Feedback goes back under the names that the LMS knows, and the times that it tells elsewhere count to the minute."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from gradekit.batch import feedback, intake
from gradekit.batch.intake import HandIn, TimesError, Wanted, hand_ins
from gradekit.batch.policy import LatePolicy, Policy, spelled
from tests.report.samples import PASSED, record

SOFTMAX = Wanted(("submission", "softmax"), id="softmax", entry="softmax")
DOWNLOADS = {
    "canvas": ("lovelaceada_LATE_1234_5678_softmax-1.py", "1234", "lovelaceada_LATE_1234_5678_report.html"),
    "moodle's folders": (
        "Ada Lovelace_4711_assignsubmission_file_/softmax.py", "4711", "Ada Lovelace_4711_assignsubmission_file_/report.html",
    ),
    "moodle's files": (
        "Ada Lovelace_4711_assignsubmission_file_softmax.py", "4711", "Ada Lovelace_4711_assignsubmission_file_report.html",
    ),
    "canvas, no submission": ("hopper_1006_16_notes.pdf", "1006", "hopper_1006_16_report.html"),
    "moodle, no submission": (
        "Ada Lovelace_4711_assignsubmission_file_notes.pdf", "4711", "Ada Lovelace_4711_assignsubmission_file_report.html",
    ),
    "a folder": ("ada/submission.py", "ada", "ada/report.html"),
}  # fmt: skip


@pytest.mark.parametrize(("file", "student", "name"), DOWNLOADS.values(), ids=DOWNLOADS)
def test_reports_have_the_names_of_the_download(tmp_path: Path, file: str, student: str, name: str) -> None:
    (tmp_path / "in" / file).parent.mkdir(parents=True)
    (tmp_path / "in" / file).write_text("def softmax(x): ...\n")
    (hand_in,) = hand_ins(tmp_path / "in", SOFTMAX)
    assert hand_in.student == student
    feedback.write(tmp_path / "out", student, record(PASSED))
    data, count = feedback.zipped([(hand_in, ""), (replace(hand_in, student="nobody"), "")], tmp_path / "out")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.namelist() == [name] and b"Agrees with" in archive.read(name)
        assert count == 1 and archive.getinfo(name).compress_size < archive.getinfo(name).file_size / 2


def test_canvas_moodle_and_a_table_say_when_hand_ins_came(tmp_path: Path) -> None:
    file, noon = tmp_path / "times", datetime(2026, 12, 1, 12, 5, tzinfo=UTC)
    file.write_text('[{"user_id": 1234, "submitted_at": "2026-12-01T12:05:00Z"}, {"user_id": 1, "submitted_at": null}]')
    assert intake.times(file) == {"1234": noon}
    file.write_text(
        'Identifier,Full name,Last modified (submission)\nParticipant 4711,Ada,"Tuesday, 1 December 2026, 1:05 PM"\n'
        "Participant 4712,Bob,-\n"
    )
    assert intake.times(file, timezone(timedelta(hours=1))) == {"4711": noon}
    file.write_text("student,submitted\nada,2026-12-01T13:05:00+01:00\nbob,\n")
    assert intake.times(file) == {"ada": noon}
    found = intake.timed([HandIn("ada", file), HandIn("bob", file), HandIn("cyd", file, submitted=noon)], {"ada": noon})
    assert [hand_in.submitted for hand_in in found] == [noon, None, noon]


@pytest.mark.parametrize("text", ["name\nada\n", "student,submitted\nada,2026-12-01\n", "[{\"user_id\": 1, \"submitted_at\": \"?\"}]"])
def test_a_file_that_says_no_time_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "times").write_text(text)
    with pytest.raises(TimesError):
        intake.times(tmp_path / "times")


def test_lateness_is_told_to_the_minute() -> None:
    assert [spelled(timedelta(minutes=m)) for m in (1, 60, 125, 1500)] == ["1 min", "1 h", "2 h 5 min", "1 day 1 h"]
    due = datetime(2026, 12, 1, 12, tzinfo=UTC)
    late = Policy(due=due, late=LatePolicy(percent_a_day=10)).lateness(due + timedelta(minutes=1), "ada")
    assert LatePolicy(percent_a_day=10).percent(late) == 10
