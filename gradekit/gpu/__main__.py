"""`python -m gradekit.gpu.__main__ SOCKET PROGRESS FOLDER DEVICE [WITHOUT...]`: the worker's process.

It speaks over the socket that it inherits as SOCKET, says in the file PROGRESS what it is at, and runs programs on
DEVICE ("cuda:0", or "cpu" for the CPU emulation); FOLDER is for its files. It is confined first, by all means that this
machine has but those named: see sandboxing.py.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from gradekit.gpu import sandboxing


def main(words: Sequence[str]) -> None:
    """Works, as these words say."""
    sock, progress, folder, device, *without = words
    means = sandboxing.enter(Path(folder), device, without)
    from gradekit.gpu.server import serve

    serve(int(sock), int(progress), Path(folder), device, means)


if __name__ == "__main__":
    main(sys.argv[1:])
