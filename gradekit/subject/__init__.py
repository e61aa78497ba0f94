"""The submission as a test sees it: `submission.softmax(x)` looks like a call, and is a trace, a run and an observation.

subject.py   what a test calls                      rules.py       what a program must keep, whatever it computes
entry.py     one function of the submission         soundness.py   whether kernels are Triton's, and who is to blame
runs.py      runs of traced calls, none twice       device.py      the card that a grading run may use
speed.py     what a test says about speed           measuring.py   a call timed on the card, beside torch
shared.py    runs that a warm grader need not repeat        sameness.py    which programs do the same
forms.py     a call as data, and how it is traced
"""
