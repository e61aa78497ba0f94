"""`python -m gradekit.tracer FD SCRATCH [MEANS...]`: the tracer's fork server and the supervisor that watches over it.
It speaks over the Unix socket that it inherits as FD, keeps its files in the folder SCRATCH, which it removes when it
ends, and confines submissions as strongly as it can, but for the MEANS that it is to do without."""

from __future__ import annotations

import sys

from gradekit.tracer.supervisor import watch

if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
