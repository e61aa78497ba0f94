"""The pytest plugin: grades a submission with an assignment's ordinary test functions.

    marks       points and partial credit, which instructors write
    runner      `grade`: runs pytest for a request and returns the report
    options     pytest's command line, from which the same request is made
    run_state   one run: its request, the submission, what is known so far
    lifecycle   what happens at each of pytest's steps in a grading run
    checking    runs one check and gathers its evidence; `examples` stands between it and Hypothesis
    rehearsal   examples that were drawn before, for a grader that stays warm
    profiles    how many examples, and Hypothesis's settings
    record      from what happened to the report record
    hooks       how gradekit enters pytest; `hookspecs` lets other plugins watch

pytest finds the hooks by their names in this module.
"""

from gradekit.plugin.hooks import (
    pytest_addhooks,
    pytest_addoption,
    pytest_configure,
    pytest_unconfigure,
    submission,
)
from gradekit.plugin.marks import award, points
from gradekit.plugin.run_state import NoSuchDevice
from gradekit.plugin.runner import NoSuchCheck, grade

__all__ = [
    "NoSuchCheck",
    "NoSuchDevice",
    "award",
    "grade",
    "points",
    "pytest_addhooks",
    "pytest_addoption",
    "pytest_configure",
    "pytest_unconfigure",
    "submission",
]
