"""The compiler's process with a Triton that brings no assembler: `python -m tests.inspector.without_ptxas`."""

import sys
from pathlib import Path

from gradekit.compat import triton
from gradekit.inspector import compiler


def absent(name: str) -> str:
    """In place of compat's `tool`."""
    raise RuntimeError(f"Cannot find {name}")


if __name__ == "__main__":
    triton.tool = absent
    compiler.main(Path(sys.argv[1]), int(sys.argv[2]))
