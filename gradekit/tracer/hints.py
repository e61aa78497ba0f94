"""A kind sentence for the errors that beginners meet most often."""

from __future__ import annotations


def hint(message: str) -> str:
    """What to do about an error with this message; "" where there is nothing helpful to say."""
    return ""
