"""Evaluates a submission's source on the tensors of a call, without running any Python of it.

Kernels are evaluated for all programs of a grid at once, and for several copies of the call that differ in single
nodes; host code on whole tensors, with a closed vocabulary. What is not understood raises NotWalked: nothing is said
of it then.

walk.py          one walk of the language            kernel_walk.py      kernels: tiles in copies
tile_values.py   values, arithmetic and memory       vocabulary.py       the functions of tl
host_walk.py     host code, and what it launches     host_vocabulary.py  what it may call and ask for
walked_call.py   the steps of a traced call          shown_call.py       a call on which changes are tried
"""


class Limit:
    """What is evaluated of a call before it counts as not understood; work in units of about a nanosecond."""

    WORK, EVALUATION = 60_000_000, 1000  # of one call; of one expression or statement of host code
    FEW_APART, OPERATIONS_APART = 1000, 6  # evaluations for one copy alone that are free; what each further one adds
    HOST_ELEMENTS = 1 << 22  # of a tensor that host code makes, or of its storage
    ITEMS = 1 << 12  # of a list, with those of the lists in it; characters of a string; steps of a loop of host code
    DEPTH, TURNS = 16, 4096  # functions that call each other; of one loop of a kernel
    PROGRAMS = 4096  # of one launch
    COPIES, TILE_ELEMENTS = 96, 1 << 18  # of a launch that are walked at a time; of a tile in all copies
    KEPT_BYTES = 1 << 16  # of the storages of a launch whose outcome is kept
    BITS = 64  # of a Python number, and the largest exponent of another
    OFF, OFF_IN_BFLOAT16 = 1e-2, 5e-2  # by which results that are both right may differ, as a share and beside it
