"""Canvas gets points by its API after a yes, and no one else gets the token: against a stand-in server on loopback."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from click.testing import CliRunner

from gradekit.assignment import UsageError
from gradekit.batch.class_folder import ClassFolder, GradingSession
from gradekit.batch.exports import Canvas
from gradekit.batch.gradebook import Line
from gradekit.batch.intake import HandIn
from gradekit.cli import main
from tests.batch.clusters import serving
from tests.plugin.samples import laid_out
from tests.report.samples import FAILED, PASSED, record

PLACE = "/api/v1/courses/3/assignments/7"


class StandIn(BaseHTTPRequestHandler):
    """As Canvas: one assignment of 70 points, four students, two to a page."""

    server: Any

    def do_GET(self) -> None:
        self.server.seen.append(self.headers.get("Authorization"))
        students = [{"user_id": 1, "score": None}, {"user_id": 2, "score": 40.0}, {"user_id": 3, "score": None, "excused": True}, {"user_id": 4, "score": 3.0}]
        if self.path == PLACE:
            self._json({"points_possible": 70.0})
        elif self.path == f"{PLACE}/submissions?per_page=100":
            self._json(students[:2], f'<http://127.0.0.1:{self.server.server_port}{PLACE}/submissions?page=2>; rel="next"')
        elif self.path == f"{PLACE}/submissions?page=2":
            self._json(students[2:], '<http://evil.example/more>; rel="next"')
        elif self.path == "/api/v1/courses/9/assignments/9":
            self.send_response(302)
            self.send_header("Location", "http://evil.example/")
            self.end_headers()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.sent.append((self.path, dict(parse_qsl(self.rfile.read(length).decode()))))
        self._json({"id": 1})

    def _json(self, data: Any, link: str = "") -> None:
        self.send_response(200)
        if link:
            self.send_header("Link", link)
        self.end_headers()
        self.wfile.write(json.dumps(data).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Any]:
    made: Any = HTTPServer(("127.0.0.1", 0), StandIn)
    made.seen, made.sent = [], []
    with serving(made):
        yield made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassFolder:
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(laid_out(tmp_path)))
    monkeypatch.setenv("CANVAS_TOKEN", "secret")
    monkeypatch.chdir(tmp_path)
    made = ClassFolder.open(tmp_path / "out", new=True)
    request = GradingSession(made, "double").grading
    for student in "1234":
        made.store.add_hand_ins("double", [HandIn(student, tmp_path / f"{student}.py", digest="d")])
    made.store.add_result(request.key("d"), record(PASSED, FAILED), "host")
    return made


def run(server: Any, folder: ClassFolder, *more: str, answer: str = "") -> Any:
    url = f"http://127.0.0.1:{server.server_port}"
    words = ["canvas", "-a", "double", "-o", str(folder.path), "--url", url, "--to", "3", "7", *more]
    return CliRunner().invoke(main, words, input=answer)


def test_it_says_first_what_it_would_send_and_sends_nothing(server: Any, folder: ClassFolder) -> None:
    done = run(server, folder)
    assert done.exit_code == 0 and done.output.splitlines() == [
        "1: 40", "4: 40 (Canvas has 3)", "2 students with points that Canvas does not have",
        "Nothing was sent: with --send, this asks and sends them.",
    ]  # fmt: skip
    assert server.sent == [] and set(server.seen) == {"Bearer secret"}


def test_nothing_is_sent_without_a_yes(server: Any, folder: ClassFolder) -> None:
    assert run(server, folder, "--send", answer="n\n").exit_code == 0 and server.sent == []
    assert "Sent." in run(server, folder, "--send", answer="y\n").output
    form = {"grade_data[1][posted_grade]": "40", "grade_data[4][posted_grade]": "40"}
    assert server.sent == [(f"{PLACE}/submissions/update_grades", form)]


def test_a_class_list_with_other_keys_than_canvas_s_is_refused(server: Any, folder: ClassFolder) -> None:
    canvas = Canvas(f"http://127.0.0.1:{server.server_port}", 3, 7, "secret")
    with pytest.raises(UsageError, match="Canvas knows none of these students"):
        canvas.planned([Line("ada", "double", "graded", 40, 70)], 70.0)


def test_other_points_there_are_refused(server: Any, folder: ClassFolder) -> None:
    canvas = Canvas(f"http://127.0.0.1:{server.server_port}", 3, 7, "secret")
    with pytest.raises(UsageError, match="70 points in Canvas, and 100 here: say scale = 70"):
        canvas.planned([], 100.0)


def test_the_token_goes_nowhere_else(server: Any, folder: ClassFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="over https alone"):
        Canvas("http://canvas.example.org", 3, 7, "secret")
    with pytest.raises(UsageError, match="Canvas answers 302"):
        Canvas(f"http://127.0.0.1:{server.server_port}", 9, 9, "secret").planned([], 70.0)
    monkeypatch.delenv("CANVAS_TOKEN")
    done = run(server, folder)
    assert done.exit_code == 2 and "set CANVAS_TOKEN" in done.output
