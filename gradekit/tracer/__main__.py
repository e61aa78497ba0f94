"""`python -m gradekit.tracer FD`: the tracer's server, speaking over the Unix socket that it inherits as FD."""

from __future__ import annotations

import sys

from gradekit.tracer.server import serve

if __name__ == "__main__":
    serve(int(sys.argv[1]))
