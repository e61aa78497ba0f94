"""The compiler's process with a Triton that lacks ptxas: `python -m tests.inspector.without_ptxas`."""

from __future__ import annotations

import sys
from pathlib import Path

from gradekit.compat import triton
from gradekit.inspector import compiler


def absent(name: str) -> str:
    """Where no tool is."""
    raise RuntimeError(f"Cannot find {name}")


if __name__ == "__main__":
    triton.tool = absent
    compiler.main(Path(sys.argv[1]), int(sys.argv[2]))
