"""Whether a call computes what its reference does, for all values: both as formulas over the reals.

graph.py            formulas as a graph of operations, equal ones once
arrays.py           tensors whose elements are formulas, which the engine and torch compute with
torch_rules.py      what torch's operations make of formulas
both_sides.py       a call's results as formulas, by its kernels and by its reference
algebra.py          exact polynomials in atoms
constants.py        what a rounded number stands for
normal.py           normal forms in a region of values
equality.py         whether two formulas are equal for all values, and whether a region has any
distinguishing.py   values at which two formulas differ
verdicts.py         the verdict on a call
"""
