"""Proofs: what holds of a call for all sizes at once, decided by a solver and told to nobody before the engine agrees.

terms      terms, division, value_of: integers as polynomials over sizes, conditions on them, and what they are worth
kernels    walk goes through TTIR, its loops and branches; integer_rules, memory_rules: what each operation means, and
           the accesses that come out; symbolic_values: what they work on
host       symbolic_host: what host code computed; setting: what is taken for granted of its arguments, and the calls
           that are followed
claims     claims: of one launch, and of its results
solver     solve: questions as text, and their limits, in steps
verdicts   prover: paths, budgets, all that is claimed of a call; question: verdicts as data; probe: single programs on
           the engine
"""


class Limit:
    """How much is tried for a proof, in the solver's own steps and never in time."""

    SOLVER_STEPS = 15_000_000  # of all questions of one solver, where nobody says less
    # of one question: each try looks in an order of its own, for hundredths of a second
    TRIES = (80_000, *3 * (250_000,))
    COUNTEREXAMPLES = 24  # kept, to be tried on later questions
    SMALL = (8, 200, 5000, 100_000, 1 << 21)  # sizes up to which counterexamples are looked for, one after the other
    FAR = (1 << 20, 1 << 17, 1 << 12, 64, 2)  # times a size, the first first: a tile or a tensor may be too large there

    OPERATIONS = 20_000  # that one walk comes by: branches and loops inside of each other multiply
    PARTS, TEXT = 1 << 10, 80  # of a product: with more, a number's origin is lost; characters of a term
    SPLITS = 6  # of counters into quotients and remainders
    PROBE_WORK = 200_000_000  # of one program on the engine: a fifth of a second

    # calls that are followed in place of examples
    PRIMES = (301, 37, 53, 91, 19, 11, 7, 5, 3, 2)  # sizes, one for each dimension: falling, all but the last odd
    GAP, RANKS = 3, 2  # elements between rows of a tensor that is not contiguous; numbers of dimensions
