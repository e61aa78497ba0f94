"""What is known of a call for all values, as a sentence: a pure function of
`details.values` of a check in the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def value_sentence(details: Mapping[str, Any]) -> str | None:
    """That a call is its reference for all values; None where that is not known."""
    found = details.get("values")
    if found is None or found["verdict"] != "proved":
        return None
    sizes = ", ".join(f"{name} {shape}" for name, shape in found["sizes"].items())
    return f"proved for all values, over the reals, at {sizes}: the kernels' formula is the reference's"
