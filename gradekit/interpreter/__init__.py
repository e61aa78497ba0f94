"""Evaluates a submission's source on the tensors of a call, without running any Python of it.

Kernels are evaluated for all programs of a grid at once, and for several copies of the call that differ in single
nodes; host code on whole tensors, with a closed vocabulary. What is not understood raises NotWalked: nothing is said
of it then.

walk.py          one walk of the language        context.py       what a walk is given, and leaves
kernel_walk.py   kernels: tiles in copies        vocabulary.py    the functions of tl
tile_values.py   values and arithmetic           tile_memory.py   loads, stores, atomics
philox.py        tl.rand                         walked_call.py   the steps of a traced call
steps_between.py what lies between launches      smaller_tiles.py a call that costs less to evaluate
shown_call.py    a call with what is right there walked_text.py   a call with another text
host_walk.py     host code: numbers and tensors  host_values.py   what its names stand for
host_vocabulary.py  what it may call             host_limits.py   what it may ask for
host_launches.py the kernels that it launches    host_call.py     a call with its host code
"""
