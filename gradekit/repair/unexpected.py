"""Errors of the tutoring itself: they cost a mend, never the report, and stand in the log."""

import contextlib
import logging
from collections.abc import Iterator

LOG = logging.getLogger("gradekit.repair")
"""Has a warning, with its traceback, for each error; printed nowhere unless logging is configured."""

LOG.addHandler(logging.NullHandler())


@contextlib.contextmanager
def survived(what: str) -> Iterator[None]:
    """Leaves the block at its first error and logs that `what` failed: an unexpected text is not the student's
    fault."""
    try:
        yield
    except Exception:  # whatever it is, a check must not fail for it
        LOG.warning("%s failed", what, exc_info=True)
