"""Errors of the tutoring itself: they cost a mend, never the report, and stand in the log."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

LOG = logging.getLogger("gradekit.repair")
"""Has a warning, with its traceback, for each error; printed nowhere unless logging is configured."""

LOG.addHandler(logging.NullHandler())


@contextlib.contextmanager
def survived(what: str) -> Iterator[None]:
    """Ends the block at its first error, and goes on behind it: a text that nobody expected is no student's fault.
    `what` says in the log what was being done."""
    try:
        yield
    except Exception:  # whatever it is, a check must not fail for it
        LOG.warning("%s failed", what, exc_info=True)
