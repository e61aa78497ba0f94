"""Points into Canvas by its API: what would be sent is said first, and nothing is sent without a yes.

The token comes from the environment (CANVAS_TOKEN) and goes to the address that was named, over https, and nowhere
else: no redirect is followed. Points that are the same there already are not sent, and excused students stay excused.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from gradekit.batch.exports import check_worth
from gradekit.batch.gradebook import Line
from gradekit.checking import UsageError
from gradekit.report.text import one_line, points

TOKEN = "CANVAS_TOKEN"
LOOPBACK = ("127.0.0.1", "localhost")


class CanvasError(UsageError):
    """Canvas refuses, or cannot be reached: what to do."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow none: the token is for the address that was named."""


@dataclass(frozen=True)
class Canvas:
    """An assignment of a course at `url`, with the `token` of a person who may grade it.

    Raises:
        CanvasError: the address is not one of https.
    """

    url: str
    course: int
    assignment: int
    token: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise CanvasError(f"{self.url}: a token goes over https alone")

    @property
    def _place(self) -> str:
        return f"{self.url.rstrip('/')}/api/v1/courses/{self.course}/assignments/{self.assignment}"

    def planned(self, lines: Iterable[Line], possible: float) -> dict[str, str]:
        """What to send, by Canvas's number of the student: points that Canvas does not have yet.

        Raises:
            ExportError: the assignment is worth other points there.
            CanvasError: Canvas cannot be asked.
        """
        check_worth("the assignment", "Canvas", self._json(self._place)["points_possible"], possible)
        submissions = {str(each["user_id"]): each for each in self._pages(f"{self._place}/submissions?per_page=100")}
        plan = {}
        for line in lines:
            known = submissions.get(line.student)
            if known and line.counts and not known.get("excused") and _differs(known.get("score"), line.points):
                plan[line.student] = points(line.points)
        return plan

    def send(self, plan: Mapping[str, str]) -> None:
        """Send the points, in one request.

        Raises:
            CanvasError: Canvas refuses them.
        """
        form = {f"grade_data[{student}][posted_grade]": worth for student, worth in plan.items()}
        self._open(f"{self._place}/submissions/update_grades", urllib.parse.urlencode(form).encode())

    def _pages(self, url: str) -> Iterable[Any]:
        """All items of a list that comes in pages."""
        while url:
            body, links = self._open(url)
            yield from json.loads(body)
            match = re.search(r'<([^>]+)>; rel="next"', links)
            url = match[1] if match and match[1].startswith(self._place) else ""

    def _json(self, url: str) -> Any:
        return json.loads(self._open(url)[0])

    def _open(self, url: str, form: bytes | None = None) -> tuple[bytes, str]:
        asked = urllib.request.Request(url, form, {"Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.build_opener(_NoRedirect).open(asked, timeout=60) as answer:
                return answer.read(), answer.headers.get("Link", "")
        except urllib.error.HTTPError as error:
            with error:
                raise CanvasError(f"Canvas answers {error.code} {one_line(str(error.reason))} to {url}") from None
        except (urllib.error.URLError, TimeoutError) as error:
            raise CanvasError(f"Canvas cannot be reached at {self.url}: {one_line(str(error))}") from None


def _differs(there: float | None, here: float) -> bool:
    return there is None or round(there, 2) != round(here, 2)
