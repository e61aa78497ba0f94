"""A small server for marking in a browser: on loopback alone, under a path that nobody can guess, without scripts.

It serves one person on their own machine. A request whose Host is not this address is refused, so that no page of
another site can reach it through a name of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from gradekit.batch.marking import Marking
from gradekit.checking import UsageError
from gradekit.marks import MarkError
from gradekit.report import templates
from gradekit.report.text import one_line

HEADERS: dict[str, str | int] = {
    "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
}  # fmt: skip


class MarkingServer(ThreadingHTTPServer):
    """Serves the pages of `marking` on 127.0.0.1; `port` 0 takes any that is free.

    With a thread for each connection: browsers open some before they have anything to ask.
    """

    daemon_threads = True

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

    def _answer(self, answer: Callable[[str], str | None]) -> None:
        place = urlsplit(self.path).path.removeprefix(self.server.path)
        if self.headers.get("Host") != f"127.0.0.1:{self.server.server_port}" or place == urlsplit(self.path).path:
            self._send(HTTPStatus.NOT_FOUND, "There is nothing here.", "text/plain")
            return
        try:
            text = answer(place.strip("/"))
        except (MarkError, UsageError, ValueError, KeyError, IndexError) as error:
            self._send(HTTPStatus.BAD_REQUEST, f"That cannot be done: {one_line(str(error))}", "text/plain")
            return
        if text is not None:
            self._send(HTTPStatus.OK, text, "text/html")

    def _page(self, place: str) -> str:
        marking = self.server.marking
        view = marking.one(int(place)) if place else marking.overview()
        return templates.page("marking.html", {"home": self.server.path, "is_one": bool(place)} | view, forms=True)

    def _decided(self, place: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > 1 << 20:
            raise ValueError("the form is too long")
        form = dict(parse_qsl(self.rfile.read(length).decode("utf-8"), keep_blank_values=True))
        self.server.marking.decide(int(place), form)
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", f"{self.server.path}/{place}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in (HEADERS | {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": len(body)}).items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the person who marks."""
