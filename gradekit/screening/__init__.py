"""Which small changes of a kernel would make a failing call right, found without tracing any.

A kernel's source is evaluated here as text, on the tensors of the failing call: its syntax tree is walked, for all
programs of a grid at once, with a vocabulary of our own. Where no change of a kernel does, the host code around it is
walked in the same way. No Python of a submission runs. It is a first look: what seems
right is traced and run by the engine like any other mend before it is believed, and a kernel that the walk does not
understand, or whose result it does not reproduce, is left alone.

tile_values.py   values and arithmetic           vocabulary.py    the functions of tl
philox.py        tl.rand                         tile_memory.py   loads, stores, atomics
expressions.py   expressions of a kernel         walk.py          its statements
walked_call.py   the steps of a traced call      kinds.py         what may stand in the place of what
changes.py       a change, and where it is made  replacements.py  one thing for another
additions.py     what may be missing             statement_changes.py  statements for others
together.py      changes of several places       all_changes.py   all of a kernel
tried_change.py  a change as it is tried         screen.py        tries them, within a budget
steps_between.py what lies between launches      smaller_tiles.py a call that costs less to walk
static_places.py where constants alone may stand          walked_text.py   a call with another text
swap.py          what a walk is given            survivor_mends.py  a change as a mend
shown_call.py    a call with what is right there
host_walk.py     statements of host code         host_expressions.py  its expressions
host_values.py   what its names stand for        host_vocabulary.py  what it may call
host_launches.py the kernels that it launches    host_call.py     a call with its host code
host_changes.py  single changes of it            host_screen.py   tries them, within a budget
host_limits.py   what it may ask for
"""
