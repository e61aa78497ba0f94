"""Whether a run is right, and if not, why. Runs in the grader's process on plain tensors; student code never does.

reference.py    what the right result is          compare.py   whether a result is that, element by element
tolerance.py    how far rounding may take it      memory.py    what the run touched, launched, allocated and moved
diagnose.py     from evidence to a tutor's words  mutants.py   trivial results that must fail
remembered.py   right results that a warm grader need not work out again
contents.py     results known by their contents, so that what is right is compared once
"""

from gradekit.judge.compare import assert_close
from gradekit.judge.comparison import Comparison
from gradekit.judge.diagnose import diagnose
from gradekit.judge.evidence import Diagnosis, Example
from gradekit.judge.failure import Failure
from gradekit.judge.memory import (
    assert_allocates,
    assert_bytes_moved,
    assert_inputs_unmodified,
    assert_launches,
    assert_memory_clean,
    least_bytes,
)
from gradekit.judge.mutants import MUTANTS
from gradekit.judge.observation import Counters, Observed
from gradekit.judge.reference import Reference, reference

__all__ = [
    "MUTANTS",
    "Comparison",
    "Counters",
    "Diagnosis",
    "Example",
    "Failure",
    "Observed",
    "Reference",
    "assert_allocates",
    "assert_bytes_moved",
    "assert_close",
    "assert_inputs_unmodified",
    "assert_launches",
    "assert_memory_clean",
    "diagnose",
    "least_bytes",
    "reference",
]
