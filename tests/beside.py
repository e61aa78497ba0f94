"""Cases and texts of a test module that are data: they stand beside it, in the TOML file of its name."""

import tomllib
from pathlib import Path
from typing import Any


def beside(module: str) -> dict[str, Any]:
    """What stands in the TOML file of the module with that `__file__`."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))
