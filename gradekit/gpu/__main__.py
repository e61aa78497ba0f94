"""`python -m gradekit.gpu SOCKET PROGRESS FOLDER DEVICE PARENT [WITHOUT...]`: the worker's process.

It speaks over the socket that it inherits as SOCKET with the process PARENT, says in the file PROGRESS what it is at,
and runs programs on DEVICE ("cuda:0", or "cpu" for the CPU emulation); FOLDER is for its files. It is confined first,
by all means that this machine has but those named: see sandboxing.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gradekit.gpu import sandboxing

if __name__ == "__main__":
    sock, progress, folder, device, parent, *without = sys.argv[1:]
    means = sandboxing.enter(Path(folder), device, int(parent), without)
    from gradekit.gpu.server import serve

    serve(int(sock), int(progress), Path(folder), device, means)
