"""The pytest plugin: grades a submission with an assignment's ordinary test functions.

    marks       points and partial credit, which instructors write
    options     the command line
    grading     one run: assignment, submission, what is known so far
    checking    runs one check and gathers its evidence; `examples` stands between it and Hypothesis
    rehearsal   examples that were drawn before, for a grader that stays warm
    profiles    how many examples, and Hypothesis's settings
    record      from what happened to the report record
    hooks       how gradekit enters pytest; `hookspecs` lets other plugins watch
    run         what happens at each of pytest's steps in a grading run
    door        `grade`: a whole run as one function call

pytest finds the hooks by their names in this module.
"""

from gradekit.plugin.door import NoSuchCheck, grade
from gradekit.plugin.grading import NoSuchDevice
from gradekit.plugin.hooks import (
    pytest_addhooks,
    pytest_addoption,
    pytest_configure,
    pytest_unconfigure,
    submission,
)
from gradekit.plugin.marks import award, points

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
