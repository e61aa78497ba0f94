"""Evaluates a submission's source on the tensors of a call, without running any Python of it.

Kernels are evaluated for all programs of a grid at once, and for several copies of the call that differ in single
nodes; host code on whole tensors, with a closed vocabulary. What is not understood raises NotWalked: nothing is said
of it then.

walk.py          one walk of the language            kernel_walk.py      kernels: tiles in copies
tile_values.py   values, arithmetic and memory       vocabulary.py       the functions of tl
host_walk.py     host code, and what it launches     host_vocabulary.py  what it may call and ask for
walked_call.py   the steps of a traced call          shown_call.py       a call on which changes are tried
"""
