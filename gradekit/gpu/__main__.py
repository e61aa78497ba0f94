"""`python -m gradekit.gpu FD FOLDER DEVICE PARENT`: the worker's process.

It speaks over the socket that it inherits as FD with the process PARENT, and runs programs on DEVICE ("cuda:0", or "cpu"
for the stand-in); FOLDER is for its files.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gradekit.gpu.server import serve

if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
