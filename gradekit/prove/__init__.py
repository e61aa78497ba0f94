"""Proofs: what holds of a call for all sizes at once, decided by a solver and told to nobody before the engine agrees.

terms      terms, parts, division, value_of: integers as polynomials over sizes, and conditions on them
kernels    kernel walks through TTIR; rules, tiles, memory_rules, loops: what each operation means; slicing: which matter
host       host: what host code computed; setting, promises: what is taken for granted of its arguments
claims     claims: of one launch; coverage, witness, coordinates: of its results; call: of all launches;
           beyond: what wraps around beyond the promised sizes
solver     solve, query, linearized: questions and their limits, in steps; simpler: what needs no question
verdicts   prover: paths and budgets; question: verdicts as data; probe: single programs on the engine
"""
