"""Whether a run is right, and if not, why. Runs in the grader's process on plain tensors; student code never does.

reference.py        what the right result is
comparison.py       a result beside its reference, element by element
result_map.py       a result as a map: which program wrote what, and what is wrong
evidence.py         what a diagnosis may rest on
failure.py          a failed claim about a submission
framework_claims.py claims about an entry as a part of torch
speed.py            from timed rounds to a ratio with an interval, and a verdict
tolerance.py        how far rounding may take a result from it
compare.py          whether a result is right, element by element, up to ties and order
contents.py         results identified by their contents, so that equal ones are compared once
memory_checks.py    what the run touched, launched, allocated and moved, and what they need to know of it
diagnose.py         from evidence to a tutor's words, by the rules of by_finding.py and by_value.py; by_text.py for
                    what is read off the text, by_running.py for where a NaN begins, left_out.py for what is never
                    read or written
accesses.py         which elements the kernels of a call load and store
trivial.py          trivial results that must fail
"""
