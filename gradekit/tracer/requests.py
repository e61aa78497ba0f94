"""What both sides of the tracer's socket say about a request. Imports the standard library alone."""

from __future__ import annotations

from typing import Any


def activity(request: dict[str, Any]) -> str:
    """What the tracer does for `request`, as error messages put it: "in softmax", or "while the file was loaded"."""
    return f"in {request['entry']}" if "entry" in request else "while the file was loaded"
