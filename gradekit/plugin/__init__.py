"""The pytest plugin: grades a submission with an assignment's ordinary test functions.

    runner          `grade`: runs pytest for a request and returns the report
    run_state       one run: its request, the submission, what is known so far
    lifecycle       what happens at each of pytest's steps in a grading run
    check_points    points and partial credit, which instructors write
    check_run       runs one check and collects its evidence; `examples` stands between it and Hypothesis
    check_workers   checks that run in forks of the grader, and a look at what failed last time
    design          the examples that a check plans, and those that were drawn before
    further_run     calls for what the design has not seen of the submission
    beside_examples what else a check tries and proves: exact arithmetic, related calls, all sizes
    tutoring        gives gradekit.repair the examples of a check that failed
    check_results   from an exception and its evidence to the checks of the report, with the line to look at
    profiles        how many examples, and Hypothesis's settings
    timed           the calls that the checks of speed time
    hooks           how gradekit enters pytest: its command line and its fixture

pytest finds the hooks by their names in this module.
"""

from gradekit.plugin.check_points import award, points
from gradekit.plugin.hooks import pytest_addoption, pytest_configure, submission
from gradekit.plugin.run_state import NoSuchDevice
from gradekit.plugin.runner import NoSuchCheck, grade
