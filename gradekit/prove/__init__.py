"""Proofs: what holds of a call for all sizes at once, decided by a solver and told to nobody before the engine agrees.

terms      terms, parts, division, value_of, columns: integers as polynomials over sizes, and conditions on them
kernels    walk goes through TTIR, its loops and branches; integer_rules, memory_rules: what each operation means, and
           the accesses that come out; symbolic_values, symbolic_access: what they work on
host       symbolic_host: what host code computed; setting, assumptions: what is taken for granted of its arguments;
           sample_calls: the calls that are followed
claims     claims: of one launch; coverage, witness, enumerated: of its results; call: of all launches, and what wraps
           around beyond the promised sizes
solver     solve, query, linearized: questions and their limits, in steps
verdicts   prover: paths and budgets; question: verdicts as data; probe: single programs on the engine
"""
