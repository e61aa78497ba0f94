"""The compiler's process with a Triton that has no backend for AMD's cards: `python -m tests.inspector.without_amd`."""

import sys
from pathlib import Path

from gradekit.compat import triton
from gradekit.inspector import compiler

if __name__ == "__main__":
    triton.backends = {"nvidia": triton.backends["nvidia"]}
    compiler.main(Path(sys.argv[1]), int(sys.argv[2]))
