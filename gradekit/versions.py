"""What is installed: versions from package metadata, so that asking imports nothing."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any


def version(name: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def environment(gpu: str | None = None) -> dict[str, Any]:
    """The versions that a result depends on, as the report record has them; `gpu` is the card that took part."""
    return {
        "gradekit": version("gradekit") or "unknown",
        "torch": version("torch"),
        "triton": version("triton"),
        "hypothesis": version("hypothesis"),
        "python": platform.python_version(),
        "gpu": gpu,
    }
