"""Whether an assignment's checks suffice: they have to find small edits of its solution.

operators.py   the table of operators: of kernels, of host code, and of both
mutants.py     all mutants of a text, and those that a person judged equivalent to the solution
survey.py      grades mutants on all cores, and says what came of them, with a score
"""
