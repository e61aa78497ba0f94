"""`python -m gradekit.tracer FD SCRATCH`: the tracer's server, which speaks over the Unix socket that it inherits as FD,
and removes the folder SCRATCH when it ends by itself."""

from __future__ import annotations

import sys

from gradekit.tracer.server import serve

if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
