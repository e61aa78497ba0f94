"""Marking in a browser does what the command does, keeps out whoever has not its address, and survives a regrade."""

import hashlib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradekit.batch import grader
from gradekit.batch.class_folder import ClassFolder, GradingSession
from gradekit.batch.intake import HandIn
from gradekit.batch.marking import Marking, MarkingServer, history
from gradekit.cli import main
from gradekit.report import page
from tests.batch.clusters import serving
from tests.plugin.samples import laid_out
from tests.report.samples import FAILED, PASSED, REJECTED, SourceLine, record

SOURCE = "import torch\n\ndef double(x):\n    return x + '<b>'\n"
SHA = hashlib.sha256(SOURCE.encode()).hexdigest()
MINE = {"submission": {"path": "submission.py", "sha256": SHA, "cells": []}}
WRONG = record(PASSED, replace(FAILED, source=SourceLine(4, "    return x + '<b>'")), **MINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassFolder:
    """A class in which ada and bob have handed in the same, and cyd something that cannot be read."""
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(laid_out(tmp_path)))
    monkeypatch.chdir(tmp_path)
    made = ClassFolder.open(tmp_path / "out", new=True)
    request = GradingSession(made, "double").grading
    for student, digest, found in (("ada", "a", WRONG), ("bob", "a", WRONG), ("cyd", "c", record(**REJECTED, checks=()))):
        (tmp_path / f"{student}.py").write_text(SOURCE)
        made.store.add_hand_ins("double", [HandIn(student, tmp_path / f"{student}.py", student.title(), digest=digest)])
        made.store.add_result(request.key(digest), found, "host")
    return made


@pytest.fixture
def server(folder: ClassFolder) -> Iterator[MarkingServer]:
    with serving(MarkingServer(Marking(folder, "double", "Mo"))) as made:
        yield made


def fetched(url: str, host: str | None = None, **form: str) -> str:
    data = urllib.parse.urlencode(form).encode() if form else None
    asked = urllib.request.Request(url, data, {"Host": host} if host else {})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return str(answer.read().decode())


def points(folder: ClassFolder) -> dict[str, float]:
    return {line.student: line.points for line in GradingSession(folder, "double").lines()}


def test_a_person_marks_checks_and_lines_and_gives_a_reason_again(server: MarkingServer, folder: ClassFolder) -> None:
    assert all(name in fetched(server.url) for name in ("Ada", "Bob", "Cyd"))
    before = fetched(f"{server.url}0")
    assert "&lt;b&gt;" in before and "<b>" not in before and "1 of 33 elements is wrong" in before
    after = fetched(f"{server.url}0", check=FAILED.id, points="15", why="Nearly.")
    assert "accepted, 15 / 30" in after and "15: Nearly." in after
    fetched(f"{server.url}1", check=FAILED.id, again="15|Nearly.")
    assert points(folder) == {"ada": 55, "bob": 55, "cyd": 0}
    assert "Comment: Why a string?" in fetched(f"{server.url}0", check="line", line="4", why="Why a string?")
    assert "Comment: " not in fetched(f"{server.url}1")
    fetched(f"{server.url}2", check="total", points="20", why="Read it by hand.")
    assert points(folder)["cyd"] == 20


def test_marks_survive_a_regrade_and_comments_stay_with_their_text(server: MarkingServer, folder: ClassFolder) -> None:
    fetched(f"{server.url}0", check=FAILED.id, points="15", why="Nearly.")
    fetched(f"{server.url}0", check="line", line="4", why="Why a string?")
    session = GradingSession(folder, "double")
    folder.store.add_result(session.grading.key("a"), WRONG, "host")
    session.finish()
    report = (folder.path / "double/feedback/ada/report.html").read_text()
    assert "Comment: Why a string?" in report and "Nearly. (marked by Mo)" in report
    assert "Why a string?" not in (folder.path / "double/feedback/bob/report.html").read_text()
    newer = record(PASSED, submission={"path": "submission.py", "sha256": "ff" * 32, "cells": []})
    folder.store.add_result(session.grading.key("a"), newer, "host")
    assert "Why a string?" not in fetched(f"{server.url}0")


def test_only_who_has_the_address_gets_in(server: MarkingServer, folder: ClassFolder) -> None:
    root = f"http://127.0.0.1:{server.server_port}"
    for url, host in ((f"{root}/", None), (f"{root}/0", None), (f"{root}/guessed/0", None), (server.url, "evil.example")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            fetched(url, host)
        with refused.value:
            assert refused.value.code == 404
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetched(f"{root}/guessed/0", check=FAILED.id, points="30", why="mine")
    refused.value.close()
    assert server.server_address[0] == "127.0.0.1" and not folder.store.marks("double")


@pytest.mark.parametrize("form", [
    {"check": FAILED.id, "points": "31", "why": "x"}, {"check": "nothing", "points": "1", "why": "x"},
    {"check": "line", "line": "x", "why": "x"}, {"request": "7", "answer": "x"}, {"check": FAILED.id, "points": "many", "why": "x"},
])  # fmt: skip
def test_what_cannot_be_done_is_told_and_changes_nothing(
    server: MarkingServer, folder: ClassFolder, form: dict[str, str]
) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetched(f"{server.url}0", **form)
    with refused.value:
        assert refused.value.code == 400 and b"cannot be done" in refused.value.read()
    assert not folder.store.marks("double")


def test_marking_can_be_anonymous(folder: ClassFolder) -> None:
    made = Marking(folder, "double", "Mo", is_anonymous=True)
    shown = str(made.overview()) + str([made.one(number) for number in range(3)])
    assert "Submission 1" in shown and not [name for name in ("Ada", "ada", "Bob", "Cyd") if name in shown]
    assert [line.student for line in made.handed_in()] == [line.student for line in made.handed_in()]


def said(folder: ClassFolder, *words: str) -> str:
    done = CliRunner().invoke(main, [*words, "-a", "double", "-o", str(folder.path)])
    assert done.exit_code == 0, done.output
    return done.output


def test_requests_are_a_list_with_answers(server: MarkingServer, folder: ClassFolder) -> None:
    assert said(folder, "requests") == "Nobody has asked for another look.\n"
    said(folder, "requests", "--student", "Ada", "--check", FAILED.id, "--text", "It is right on my machine.")
    assert "It is right on my machine." in fetched(server.url) and "open" in said(folder, "requests")
    fetched(f"{server.url}0", request="1", answer="Try 33 columns.")
    assert "answered by Mo)\n    It is right on my machine.\n    Try 33 columns." in said(folder, "requests")
    done = CliRunner().invoke(main, ["requests", "--answer", "1", "again", "-a", "double", "-o", str(folder.path)])
    assert done.exit_code == 2 and "no open request 1" in done.output


def test_the_answer_to_a_request_is_in_the_report_and_in_the_history(folder: ClassFolder) -> None:
    said(folder, "requests", "--student", "Ada", "--check", FAILED.id, "--text", "It is right on my machine.")
    assert "Not answered yet." in history(folder, "double", "ada")
    said(folder, "requests", "--answer", "1", "Try 33 columns.", "--by", "Mo")
    mine, other = ((folder.path / f"double/feedback/{one}/report.txt").read_text() for one in ("ada", "bob"))
    for text in (mine, history(folder, "double", "ada")):
        assert f"Asked about {FAILED.id}: It is right on my machine." in text and "Answered by Mo: Try 33 columns." in text
    assert "Try 33 columns." not in other + history(folder, "double", "bob")


def test_a_request_names_a_check_and_a_comment_a_line_that_is_there(folder: ClassFolder) -> None:
    common = ["-a", "double", "-o", str(folder.path)]
    asked = ["requests", *common, "--student", "ada", "--text", "Why?", "--check"]
    done = CliRunner().invoke(main, [*asked, FAILED.id[:-1]])
    assert done.exit_code == 2 and f"did you mean {FAILED.id}?" in done.output
    assert folder.store.requests("double") == []
    assert CliRunner().invoke(main, [*asked, "total"]).exit_code == 0
    done = CliRunner().invoke(main, ["mark", "ada", "line:5", "--why", "so", *common])
    assert done.exit_code == 2 and "there is no line 5: what ada handed in has 4 lines" in done.output


def test_the_command_does_what_the_page_does(folder: ClassFolder) -> None:
    said(folder, "mark", "Ada", "line:4", "--why", "Why a string?", "--by", "Mo")
    said(folder, "mark", "Ada", FAILED.id, "--points", "15", "--why", "Nearly.", "--by", "Mo")
    assert points(folder)["ada"] == 55
    done = CliRunner().invoke(
        main, ["mark", "Ada", "line:4", "--points", "3", "--why", "x", "-a", "double", "-o", str(folder.path)]
    )
    assert done.exit_code == 2 and "a comment without points" in done.output
    told = said(folder, "history", "ada")
    assert "40 of 70 points, graded" in told and "15 points by Mo" in told and "line:4: a comment by Mo" in told


def test_the_history_says_what_has_changed(folder: ClassFolder) -> None:
    request = GradingSession(folder, "double").grading
    folder.store.add_hand_ins("double", [HandIn("ada", folder.path / "b.py", digest="b")])
    folder.store.add_result(request.key("b"), record(PASSED, replace(PASSED, id=FAILED.id)), "host")
    assert f"; passes now: {FAILED.id}" in history(folder, "double", "ada")


def test_a_comment_stands_at_its_line_on_the_page() -> None:
    text = page.render(WRONG | {"notes": ["Line 3: Say what it does. (comment by Mo)"]}, SOURCE)
    assert "Comment: Say what it does. (comment by Mo)" in text


EARLIER = "These points were given by an earlier release of the tests or of gradekit."


@pytest.fixture
def edited(folder: ClassFolder) -> ClassFolder:
    """The class after its tests were edited; bob's mark and cyd's, whose file could not be read, are a person's."""
    said(folder, "mark", "bob", FAILED.id, "--points", "12.5", "--why", "Nearly.", "--by", "Mo")
    said(folder, "mark", "cyd", "total", "--points", "20", "--why", "On paper.", "--by", "Mo")
    grading = GradingSession(folder, "double").grading
    folder.store.add_release("double", grading.release, grader.contents(grading.assignment))
    tests = grading.assignment.tests
    tests.write_text(tests.read_text().replace("@points(20, ", "@points(10, "))
    return folder


def test_after_the_tests_were_edited_no_command_loses_the_book(edited: ClassFolder) -> None:
    before = points(edited)
    said(edited, "mark", "ada", "line:4", "--why", "Why a string?", "--by", "Mo")
    assert points(edited) == before == {"ada": 40, "bob": 52.5, "cyd": 20}
    book = (edited.path / "double/gradebook.csv").read_text()
    assert "to do" not in book and book.count(EARLIER) == 2  # what could not be read says that
    assert EARLIER in (edited.path / "double/feedback/bob/report.txt").read_text()


def test_a_part_of_a_class_is_graded_by_other_tests_only_where_that_is_said(edited: ClassFolder) -> None:
    common = ["regrade", "-a", "double", "-o", str(edited.path)]
    done = CliRunner().invoke(main, [*common, "--student", "bob"])
    assert done.exit_code == 2 and len(edited.store.history("double", "a")) == 2
    told = " ".join(done.output.split())
    changed = "since points were given, test_double.py (test_memory counts 10, before 20) changed; who is not graded again"
    assert f"{changed} keeps them, as the report says. --all grades all 2 again" in told
    assert "--only grades 1 submission" in told
    session = GradingSession(edited, "double")
    chosen = {"student": "cyd", "check": None, "cause": None}
    assert session.choose(**chosen, every=False)[-1] == "1 submission to grade again"
    assert session.choose(**chosen, every=True)[-1] == "2 submissions to grade again"
    said_first = session.choose(student=None, check=None, cause=None, every=None)
    assert said_first[0].startswith(changed) and said_first[1:] == ["2 submissions to grade again"]
    assert session.choose(student=None, check=FAILED.id, cause=None, every=False)[-1] == "1 submission to grade again"


def test_results_of_the_edited_tests_stand_beside_those_of_before_which_say_so(edited: ClassFolder) -> None:
    grading = GradingSession(edited, "double").grading
    edited.store.add_result(grading.key("a"), record(replace(PASSED, earned=10.0, possible=10.0), **MINE), "host")
    records = grading.records()
    assert [records[one]["message"] for one in "ac"] == ["", REJECTED["message"]]
    assert grading.changed()[0].startswith("since points were given, test_double.py (") and grading.of_this_release().keys() == {"a"}
    assert points(edited) | {"ada": 10} == {"ada": 10, "bob": 10, "cyd": 20}
    edited.store.add_result(grading.key("c"), record(**REJECTED, checks=()), "host")
    assert grading.changed() == [] and points(edited)["cyd"] == 20


def test_a_mark_takes_the_place_of_the_machine_s_hint_and_stands_alone(folder: ClassFolder) -> None:
    both = [replace(FAILED, id=f"test_{n}", title=f"Check {n}", details={"hint": "Add eps.", "observation": "o"}) for n in "ab"]
    folder.store.add_result(GradingSession(folder, "double").grading.key("a"), record(PASSED, *both, **MINE), "host")
    said(folder, "mark", "ada", "test_a", "--points", "12.5", "--why", "Only eps is missing.", "--by", "Mo")
    text = (folder.path / "double/feedback/ada/report.txt").read_text()
    marked, other = text[text.index("Check a") : text.index("Check b")], text[text.index("Check b") :]
    assert "Only eps is missing. (marked by Mo)" in marked and "hint" not in marked
    assert "hint    Add eps." in other and text.count("Add eps.") == 1


def test_the_history_names_who_handed_in_the_same_file_and_ends_no_line_with_a_colon(folder: ClassFolder) -> None:
    failed = [replace(FAILED, id=f"test_{n}") for n in range(5)]
    grading = GradingSession(folder, "double").grading
    folder.store.add_hand_ins("double", [HandIn(one, folder.path / "b.py", digest="b") for one in ("cyd", "dan")])
    folder.store.add_result(grading.key("c"), record(*failed), "host")
    folder.store.add_result(grading.key("b"), record(*(replace(PASSED, id=one.id) for one in failed)), "host")
    told = history(folder, "double", "cyd")
    assert "b.py  the same file as that of dan\n" in told and "cyd.py\n" in told
    assert "; all that was measured passes now, 5 checks more than before\n" in told
