"""Proofs: what holds of a call for all sizes at once, decided by a solver and told to nobody before the engine agrees.

terms      terms, parts, division, value_of: integers as polynomials over sizes, and conditions on them
kernels    walk goes through TTIR; integer_rules, tiles, memory_rules, loops: what each operation means; slicing: what
           matters; kernel: the accesses that come out; symbolic_values, symbolic_access: what it works on
host       symbolic_host: what host code computed; setting, assumptions: what is taken for granted of its arguments;
           sample_calls: the calls that are followed
claims     claims: of one launch; coverage, witness, coordinates: of its results; call: of all launches;
           beyond: what wraps around beyond the promised sizes
solver     solve, query, linearized: questions and their limits, in steps; simpler: what needs no question
verdicts   prover: paths and budgets; question: verdicts as data; probe: single programs on the engine
"""
