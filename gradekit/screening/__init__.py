"""Which small changes of a kernel would make a failing call right, found without tracing any.

gradekit/interpreter evaluates the kernel's source, with a change in each of several copies, on the tensors of the
failing call. Where no change of a kernel does, host code is tried in the same way. It is a first look: what seems
right is traced and run by the engine like any other mend before it is believed, and a kernel that is not understood,
or whose result is not reproduced, is left alone.

changes.py       a change, and where it is made  replacements.py  one thing for another
additions.py     what may be missing             statement_changes.py  statements for others
together.py      changes of several places       all_changes.py   all of a kernel
tried_change.py  a change as it is tried         screen.py        tries them, within a budget
static_places.py where constants alone may stand          survivor_mends.py  a change as a mend
host_changes.py  single changes of host code     host_screen.py   tries them, within a budget
"""
