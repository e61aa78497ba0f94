"""The submission as a test sees it: `submission.softmax(x)` looks like a call, and is
a trace, a run and an observation.

subject.py      what a test calls, and a function of it
call_spec.py    a call as data, the form in which it is traced, and the calls that a check is going to make
rules.py        what every program must keep to, whatever it computes: operations, kernels, numbers of the host; whether
                its kernels are Triton's, and who is to blame where they are not
written.py      arguments that a call may write, as results
runs.py         runs of traced calls, each made once; of one that is too large, some programs
run_cache.py    runs that a warm grader need not repeat
digest.py       which programs compute the same
entry_proofs.py what is proved of an entry or of all of a submission, and refutations run
timed_call.py   what a test asserts about speed, and a call timed on the card, beside torch
device.py       the card that a grading run may use
"""


class Limit:
    """What the calls of a submission may use. Work is in the engine's units, about a nanosecond each."""

    WORK = 250_000_000_000  # of all runs of a check: some four minutes; a right kernel of a plain style takes a tenth
    WORK_IN_ALL = 3 * WORK  # of all checks, so that grading ends where each takes nearly what it may
    # of a run and a check, once a run has used up a whole budget
    HURRY, CHECK_IN_A_HURRY = 1_500_000_000, 10_000_000_000
    BRIEF_WORK = 400_000_000  # of a submission that is tried for a few small calls
    DEATHS = 2  # of its process, by which it is called no more: each costs the student ten seconds
    FIRST_SECONDS = 4.0  # on the wall, of the first rounds of one call that is timed

    RUNNABLE = 1 << 23  # elements of the largest tensor of a call that is run as a whole
    SPREAD = 64  # programs of another, over the grid, beside those at its ends
    READ_ELEMENTS = 1 << 22  # of integer inputs that are read when traffic is counted: addresses may depend on them
    WRITTEN = 64  # numbers that the host writes out as a tensor; different floats that it hands on one at a time
    PLACES = 1024  # integers that it hands on one at a time, where each goes another step on than all before it

    REMEMBERED_BYTES = 32 << 20  # results kept for the next check: a grader must do with a container's 768 MiB
    CLASS_BYTES = 64 << 20  # run records that the graders of a class share
    CONFIGURATION_BYTES = 1 << 28  # results that differ between the configurations of one call
