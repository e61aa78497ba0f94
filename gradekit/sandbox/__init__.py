"""The grader's side of the tracer: starts it, limits it, speaks with it, and trusts nothing that it says.

One fork server per grader imports torch and triton once; each `Tracer` is a child that it forks, holding one
submission. Every wait has a time limit, every message a size limit, and a child that dies or stays silent is a
`TraceError`, never an exception of another kind.

    tracer.py       Tracer: one submission, asked to load and to trace; Form: a call, without the values; what it sent,
                    for a text with the same code on other lines
    servers.py      the fork server, the isolation it must offer, and what a submission may use
    replies.py      what a submission's process sends, checked; TraceError, Unavailable
"""

from gradekit.processes import clean_environment
from gradekit.sandbox.replies import Loaded, TraceError, Unavailable
from gradekit.sandbox.servers import Limits, host
from gradekit.sandbox.tracer import MANY, NO_SUBMISSION, Form, Tracer, multiprocessors_for
