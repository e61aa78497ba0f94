"""The submission as a test sees it: `submission.softmax(x)` looks like a call, and is
a trace, a run and an observation.

subject.py      what a test calls
entry.py        one function of the submission
call_spec.py    a call as data, and the form in which it is traced
rules.py        what every program must keep to, whatever it computes
written.py      arguments that a call may write, as results
handed_numbers.py  the numbers that the host hands on by itself
soundness.py    whether kernels are Triton's, and who is to blame where they are not
runs.py         runs of traced calls, each made once
run_cache.py    runs that a warm grader need not repeat
digest.py       which programs compute the same
provenance.py   whose kernel, or which torch operation, computed a value
kernel_ways.py  the branch coverage of a check
expected_calls.py  the calls that a check is going to make, so that they can be traced ahead
entry_proofs.py what is proved of an entry, and refutations run
timed_call.py   what a test asserts about speed
speed_trial.py  a call timed on the card, beside torch
value_trial.py  whether a call is its reference for all values
device.py       the card that a grading run may use
"""
