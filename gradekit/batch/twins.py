"""Submissions of a class whose code is the same, but for comments and layout: what one came to, the next comes to.

Works in a grader, before and after it grades. Only for texts that have no means to read their own source or places:
Python and Triton then do the same with both. Lines are those of whoever asks.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gradekit import recorded
from gradekit.findings import Outcome, Status
from gradekit.sandbox.tracer import moved
from gradekit.submission import Submission, SubmissionError, read
from gradekit.submission.layout import code_of, moved_lines
from gradekit.wire import ForkedCache


def asked_once(
    in_class: ForkedCache, path: Path, entry: str, graded: object, grade: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The result (see JobResult) of the submission at `path`: by that of a twin, or else what `grade` gives."""
    try:
        own = read(path, entry=entry)
    except SubmissionError:
        return grade()
    code = code_of(own.text)
    if code is None:
        return grade()
    key = hashlib.sha256(ascii((code, graded)).encode()).digest()
    twin = in_class.get(key)
    found = _told(own, *twin) if twin is not None else None
    if found is None:
        found = grade()
        if found["record"]["status"] == Status.GRADED:
            in_class.put(key, [own.text, found])
    return found


def firsts(files: Mapping[str, Path], entry: str) -> dict[str, str]:
    """By digest, that of the first submission with the same code; these come first, so that few wait for a twin."""
    first: dict[str, str] = {}
    found = {digest: first.setdefault(_code_at(path, entry) or digest, digest) for digest, path in files.items()}
    return dict(sorted(found.items(), key=lambda each: each[0] != each[1]))


def _code_at(path: Path, entry: str) -> str | None:
    try:
        return code_of(read(path, entry=entry).text)
    except (SubmissionError, OSError):
        return None


def _told(own: Submission, text: str, result: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a submission by that of its twin, with another `text`; None where a report may say more of lines
    than their numbers, and they differ: then it has to be graded."""
    from gradekit.batch.similar import of_source  # imports torch, which the coordinator does without

    outcomes = {check["outcome"] for check in result["record"]["checks"]}
    is_moved = moved_lines(text, own.text) != {}
    if is_moved and outcomes - {Outcome.PASSED, Outcome.PENDING}:
        return None
    programs = recorded.loads(result["programs"]) if is_moved and result["programs"] else {}
    told = moved((result["record"], programs), text, own.text)
    if told is None:
        return None
    record, programs = told
    prints = json.dumps(json.loads(result["fingerprint"]) | of_source(own.text), separators=(",", ":"))
    record |= {"submission": own.facts(), "seconds": 0.0}
    waiting = recorded.dumps(programs) if programs else result["programs"]
    return result | {"record": record, "programs": waiting, "fingerprint": prints}
