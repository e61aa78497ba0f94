"""Proofs: what holds of a call for all sizes at once, decided by a solver and told to nobody before the engine agrees.

terms      terms, division, value_of: integers as polynomials over sizes, conditions on them, and what they are worth
kernels    walk goes through TTIR, its loops and branches; integer_rules, memory_rules: what each operation means, and
           the accesses that come out; symbolic_values: what they work on
host       symbolic_host: what host code computed; setting: what is taken for granted of its arguments, and the calls
           that are followed
claims     claims: of one launch; coverage: of its results
solver     solve: questions as text, and their limits, in steps
verdicts   prover: paths, budgets, all that is claimed of a call; question: verdicts as data; probe: single programs on
           the engine
"""
