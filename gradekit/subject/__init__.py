"""The submission as a test sees it: `submission.softmax(x)` looks like a call, and is
a trace, a run and an observation.

subject.py      what a test calls, and a function of it
call_spec.py    a call as data, the form in which it is traced, and the calls that a check is going to make
rules.py        what every program must keep to, whatever it computes: operations, kernels, numbers of the host
written.py      arguments that a call may write, as results
soundness.py    whether kernels are Triton's, and who is to blame where they are not
runs.py         runs of traced calls, each made once
in_part.py      some programs of a call that is too large to be run as a whole
run_cache.py    runs that a warm grader need not repeat
digest.py       which programs compute the same
entry_proofs.py what is proved of an entry or of all of a submission, and refutations run
timed_call.py   what a test asserts about speed, and a call timed on the card, beside torch
device.py       the card that a grading run may use
"""
