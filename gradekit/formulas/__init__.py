"""Whether a call computes what its reference does, for all values: both as formulas over the reals.

graph.py            formulas as a graph of operations, equal ones once
arrays.py           tensors whose elements are formulas, which the engine and torch compute with
torch_rules.py      what torch's operations make of formulas
torch_reductions.py those that reduce
symbolic_memory.py  an engine memory whose elements are formulas
both_sides.py       a call's results as formulas, by its kernels and by its reference
algebra.py          exact polynomials in atoms
constants.py        what a rounded number stands for
value_paths.py      regions of values
normal.py           normal forms in a region
equality.py         whether two formulas are equal for all values
region_solver.py    whether a region has any values, and which
numeric.py          what formulas are for given values
distinguishing.py   values at which two formulas differ
verdicts.py         the verdict on a call
"""
