"""What is installed, and what gradekit accepts: from package metadata, so that asking imports none of the packages."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
"""Of a checkout, where it holds more than the metadata of whenever that was installed."""


def version(name: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def cache_folder() -> Path:
    """Where gradekit keeps what it would else find out again for this user; it may not be there yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gradekit"


def environment(gpu: str | None = None) -> dict[str, Any]:
    """The versions that a result depends on, as the report record has them; `gpu` is the card that took part."""
    return {**_packages(), "python": platform.python_version(), "gpu": gpu}


@functools.cache
def _packages() -> dict[str, str | None]:
    """The installed versions, read once: each takes some milliseconds, and a class has hundreds of records."""
    names = ("torch", "triton", "hypothesis")
    return {"gradekit": version("gradekit") or "unknown"} | {name: version(name) for name in names}


def supported() -> dict[str, SpecifierSet]:
    """The versions that are known to work: of "python", then of each package that gradekit cannot do without. Raises
    PackageNotFoundError where gradekit is not installed, and this is no checkout."""
    from packaging.requirements import Requirement  # not needed by most commands
    from packaging.specifiers import SpecifierSet

    needed = [Requirement(line) for line in requirements()]
    always = {need.name: need.specifier for need in needed if "extra" not in str(need.marker)}
    return {"python": SpecifierSet(_project()["requires-python"])} | always


def requirements() -> list[str]:
    """What gradekit needs, a line for each package: 'click>=8.1,<9'. Raises PackageNotFoundError."""
    return list(_project()["dependencies"])


def _project() -> dict[str, Any]:
    """The part of pyproject.toml that says so; from the metadata, where gradekit is installed from a wheel."""
    if PROJECT.is_file():
        return tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    found = importlib.metadata.metadata("gradekit")
    return {"requires-python": found["Requires-Python"], "dependencies": found.get_all("Requires-Dist") or []}
