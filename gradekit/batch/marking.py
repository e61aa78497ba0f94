"""What people mark a class with, as data for a page. Runs where staff do; decisions go the way of `gradekit mark`."""

import hashlib
import random
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from gradekit.assignment import UsageError
from gradekit.batch import feedback, gradebook
from gradekit.batch.class_folder import ClassFolder, GradingSession, listed
from gradekit.batch.gradebook import Line, labelled
from gradekit.marks import LINE, Mark
from gradekit.report import templates
from gradekit.report.changes import changes
from gradekit.report.grouping import ending
from gradekit.report.page import source_rows
from gradekit.report.text import clean, one_line, points
from gradekit.report.translation import say


@dataclass
class Marking:
    """The marking of one assignment by one person; `is_anonymous` hides who handed in, and mixes the order."""

    folder: ClassFolder
    id: str
    person: str
    is_anonymous: bool = False

    def __post_init__(self) -> None:
        self.session = GradingSession(self.folder, self.id)

    def handed_in(self) -> list[Line]:
        """The lines of those who have handed in, in the order of marking."""
        found = [line for line in self.session.lines() if line.digest]
        if self.is_anonymous:  # the same order each time, and no one's
            random.Random(hashlib.sha256(self.id.encode()).digest()).shuffle(found)
        return found

    def called(self, number: int, line: Line) -> str:
        """What the page calls a hand-in."""
        return f"Submission {number + 1}" if self.is_anonymous else one_line(line.label)

    def overview(self) -> dict[str, Any]:
        """The list of hand-ins, with who has an open request."""
        marked = {student for student, _ in self.folder.store.marks(self.id)}
        open_ = {request.student for request in self.folder.store.requests(self.id) if not request.answer}
        rows = [
            {"name": self.called(number, line), "number": number, "points": f"{points(line.points)} / "
             f"{points(line.possible)}", "status": line.status, "marked": "marked" if line.student in marked else "",
             "request": "request" if line.student in open_ else ""}
            for number, line in enumerate(self.handed_in())
        ]  # fmt: skip
        asked = sorted(self._shown_requests(), key=lambda each: bool(each["answer"]))  # open ones first
        return {"title": f"{one_line(self.id)}: marking", "rows": rows, "requests": asked}

    def one(self, number: int) -> dict[str, Any]:
        """One hand-in: checks, source with what is said of each line, reasons to give again. IndexError for none."""
        lines = self.handed_in()
        if not 0 <= number < len(lines):
            raise IndexError(number)
        line = lines[number]
        worth = f"{points(line.points)} of {points(line.possible)} points" + f" ({line.note})" * bool(line.note)
        marks = self.folder.store.marks(self.id)
        found = gradebook.marked(self.session.grading.records()[line.digest], line.student, marks)
        source = feedback.source(self.folder.store.hand_ins(self.id), line.student, found)
        blamed = [
            (check["source"]["line"], {"number": one_line(check["title"]), "text": one_line(check["message"])})
            for check in found["checks"] if check["source"] and ending(check) == "failed"
        ]  # fmt: skip
        return {
            "title": f"{one_line(self.id)}: {self.called(number, line)}", "number": number,
            "before": number - 1, "after": number + 1 if number + 1 < len(lines) else -1,
            "points": worth, "message": found["message"], "ending": ending,
            "checks": sorted(
                ({**check, "again": reasons(marks, check["id"])} for check in found["checks"]),
                key=lambda check: ending(check) == "passed",
            ),
            "source": list(source_rows(source, found["notes"], blamed)),
            "requests": [each for each in self._shown_requests() if each["number"] == number],
        }  # fmt: skip

    def decide(self, number: int, form: Mapping[str, str]) -> None:
        """Do what a form of the page asks for: mark a check, comment a line, or answer a request. Raises UsageError
        where there is no such check, or it is not worth that much, and ValueError where a number cannot be read."""
        student = self.handed_in()[number].student
        if "request" in form:
            self.folder.store.answer_request(int(form["request"]), form["answer"], self.person)
            return
        check, worth, why = form["check"], form.get("points", "").strip(), form.get("why", "").strip()
        if again := form.get("again"):
            worth, _, why = again.partition("|")
        if check == "line":
            check = f"{LINE}{int(form['line'])}"
        self.folder.mark(self.id, student, check, Mark(float(worth) if worth else None, self.person, why))

    def _shown_requests(self) -> list[dict[str, Any]]:
        places = {line.student: (number, self.called(number, line)) for number, line in enumerate(self.handed_in())}
        return [
            {"id": each.id, "number": places[each.student][0], "name": places[each.student][1],
             "check": one_line(each.check), "text": clean(each.text), "answer": clean(each.answer)}
            for each in self.folder.store.requests(self.id) if each.student in places
        ]  # fmt: skip


def reasons(marks: gradebook.Marks, check: str) -> list[dict[str, str]]:
    """A check's rubric: points with their reasons as they were given to others before, the most frequent first."""
    given = [kept for (_, marked), kept in marks.items() if kept.comment and marked == check]
    found = [("" if mark.points is None else f"{mark.points:g}", mark.comment) for mark in given]
    ranked = sorted(dict.fromkeys(found), key=lambda item: -found.count(item))
    return [{"value": f"{worth}|{why}", "text": one_line(f"{worth or '-'}: {why}")} for worth, why in ranked]


def history(folder: ClassFolder, id: str, student: str) -> str:
    """A student's attempts, oldest first, each with what changed since the one before, then people's decisions."""
    lines: list[str] = []
    before: Mapping[str, Any] | None = None
    given = folder.store.hand_ins(id)
    for hand_in in (one for one in given if one.student == student):
        others = {labelled(one.student, one.name): 0 for one in given if one.digest == hand_in.digest != ""
                  and one.student != student}  # fmt: skip
        same = f"  the same file as that of {listed(list(others))}" * bool(others)
        when = hand_in.submitted.isoformat(" ", "minutes") if hand_in.submitted else "no time"
        results = folder.store.history(id, hand_in.digest)
        lines.append(say(f"{when}  {one_line(hand_in.path.name)}{same}" + ("" if results else "  not graded yet")))
        for result in results:
            score = result.record["score"]
            said = f"{points(score['earned'])} of {points(score['possible'])} points, {result.record['status']}"
            now = changes(before, result.record)
            changed = (f"; {word.lower()}" + f": {', '.join(map(one_line, ids))}" * bool(ids) for word, ids in now)
            made = f"{result.graded:%Y-%m-%d %H:%M} on {one_line(result.grader)}"
            lines.append(say(f"    {made}: {said}{''.join(changed)}"))
            before = result.record
    for (whose, check), kept in folder.store.marks(id).items():
        if whose == student:
            worth = "a comment" if kept.points is None else f"{points(kept.points)} points"
            by = f"{one_line(kept.person)}, {kept.made:%Y-%m-%d %H:%M}"
            lines += [say(f"{one_line(check)}: {worth} by {by}:"), f"    {one_line(kept.comment)}"]
    lines += [say(said) for one in folder.store.requests(id) if one.student == student for said in one.said]
    return "\n".join(lines) + "\n"


# --- marking server ---------------------------------------------------------------------------------------------------


HEADERS: dict[str, str | int] = {
    "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
}  # fmt: skip


class MarkingServer(ThreadingHTTPServer):
    """Serves the pages of `marking` on 127.0.0.1 (port 0: any). Browsers open connections before they ask anything."""

    def __init__(self, marking: Marking, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.marking, self.path = marking, f"/{secrets.token_urlsafe(16)}"

    @property
    def url(self) -> str:
        """Where the list of hand-ins is."""
        return f"http://127.0.0.1:{self.server_port}{self.path}/"


class Handler(BaseHTTPRequestHandler):
    """One request: `/PATH/` is the list, `/PATH/N` one hand-in; a form of it is sent to the same place."""

    server: MarkingServer
    timeout = 10  # seconds that a connection may stay without a request
    server_version, sys_version = "gradekit", ""

    def do_GET(self) -> None:
        """Show a page."""
        self._answer(self._page)

    def do_POST(self) -> None:
        """Take a decision, then show the page again."""
        self._answer(self._decided)

    def _answer(self, answer: Callable[[str], None]) -> None:
        place = urlsplit(self.path).path.removeprefix(self.server.path)
        if self.headers.get("Host") != f"127.0.0.1:{self.server.server_port}" or place == urlsplit(self.path).path:
            self._send(HTTPStatus.NOT_FOUND, "There is nothing here.", "text/plain")
            return
        try:
            answer(place.strip("/"))
        except (UsageError, ValueError, KeyError, IndexError) as error:
            self._send(HTTPStatus.BAD_REQUEST, f"That cannot be done: {one_line(str(error))}", "text/plain")

    def _page(self, place: str) -> None:
        marking = self.server.marking
        view = marking.one(int(place)) if place else marking.overview()
        shown = {"home": self.server.path, "is_one": bool(place)} | view
        self._send(HTTPStatus.OK, templates.page("marking.html", shown, forms=True), "text/html")

    def _decided(self, place: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > 1 << 20:
            raise ValueError("the form is too long")
        form = dict(parse_qsl(self.rfile.read(length).decode("utf-8"), keep_blank_values=True))
        self.server.marking.decide(int(place), form)
        self._send(HTTPStatus.SEE_OTHER, "", "text/plain", Location=f"{self.server.path}/{place}")

    def _send(self, status: HTTPStatus, text: str, kind: str, **more: str) -> None:
        body = text.encode()
        of_body = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": len(body)}
        self.send_response(status)
        for name, value in (HEADERS | of_body | more).items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the person who marks."""
