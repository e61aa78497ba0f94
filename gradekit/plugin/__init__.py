"""The pytest plugin: grades a submission with an assignment's ordinary test functions.

    runner          `grade`: runs pytest for a request and returns the report
    options         pytest's command line, from which the same request is made
    run_state       one run: its request, the submission, what is known so far
    lifecycle       what happens at each of pytest's steps in a grading run
    check_points    points and partial credit, which instructors write
    check_run       runs one check and collects its evidence; `examples` stands between it and Hypothesis
    tutoring        gives gradekit.repair the examples of a check that failed
    first_look      what failed last time, looked at before its turn
    check_evidence  what that is; `check_verdict` is what an exception says of a check
    check_results   from both to the checks of the report
    blamed_lines    the line to look at where a failed check names none
    example_cache   examples that were drawn before, for a process that grades many submissions
    profiles        how many examples, and Hypothesis's settings
    timed           the calls that the checks of speed time
    hooks           how gradekit enters pytest; `hookspecs` lets other plugins watch

pytest finds the hooks by their names in this module.
"""

from gradekit.plugin.check_points import award, points
from gradekit.plugin.hooks import (
    pytest_addhooks,
    pytest_addoption,
    pytest_configure,
    pytest_unconfigure,
    submission,
)
from gradekit.plugin.run_state import NoSuchDevice
from gradekit.plugin.runner import NoSuchCheck, grade
