"""Whether a call computes what its reference does, for all values: both as formulas over the reals.

graph.py            formulas as a graph of operations, equal ones once
torch_rules.py      tensors whose elements are formulas, and what torch's operations make of them
both_sides.py       a call's results as formulas, by its kernels and by its reference
algebra.py          exact polynomials in atoms, and what a rounded number stands for
normal.py           normal forms in a region of values
equality.py         whether two formulas are equal for all values, and values at which they differ
verdicts.py         the verdict on a call
"""
