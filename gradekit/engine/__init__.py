"""The CPU engine: runs programs, watches every memory access, and counts.

run        the way in: a Program and its inputs give a Run
ttir       TTIR text to operations
frame      the values of a region, for the programs that run it; the budget
control    blocks as steps; loops, conditions, branches and calls, for programs that part ways
values     the forms of a value: number, Affine, Later, tensor, mask, pointer
integers   exact integer arithmetic on them; casts: conversions of floats
ops_*      one function for each TTIR operation; registry: their table; libdevice: functions by name
memory     storages in one address space; host: fills and copies
fast       loads and stores at full speed; checked: lane by lane, with findings; atomics
explain    what was seen, in the student's words
"""
