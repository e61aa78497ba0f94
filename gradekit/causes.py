"""Why a check fails: the closed vocabulary of causes, one row for each.

A row has the word that the record carries, what it means, and the advice that holds for every submission with that
cause. The tables of docs/report.md and report/schema.json are written from it by tools/tables.py.
"""

from __future__ import annotations

from enum import Flag, StrEnum, auto
from typing import Self


class Trait(Flag):
    """What else is true of a cause."""

    IN_MEMORY = auto()  # a run can find it in memory: it fails a memory check
    SAYS_ALL = auto()  # its message needs no diagnosis
    BY_CHANCE = auto()  # results may differ from run to run: it fails a check of correctness, right results or not


NONE, IN_MEMORY, SAYS_ALL, BY_CHANCE = Trait(0), Trait.IN_MEMORY, Trait.SAYS_ALL, Trait.BY_CHANCE


class Cause(StrEnum):
    """Why a check failed, as a machine-readable word; the mistakes that an assignment lists declare one of these.

    `meaning` says it in a sentence, `hint` what to do about it: empty where the message alone says all. Of several
    findings in memory, the one whose row stands first is shown.
    """

    meaning: str
    hint: str
    traits: Trait

    def __new__(cls, word: str, meaning: str = "", hint: str = "", traits: Trait = NONE) -> Self:
        cause = str.__new__(cls, word)
        cause._value_, cause.meaning, cause.hint, cause.traits = word, meaning, hint, traits
        return cause

    # found in memory by a run, the gravest first: a cause before its consequences
    BUDGET_EXCEEDED = (
        "budget-exceeded",
        "a kernel ran for too long or asked for too much memory",
        "look for a loop that never ends, or for a grid or a tensor that is far too large",
        IN_MEMORY | SAYS_ALL,
    )
    DEVICE_ASSERT = "device-assert", "a `tl.device_assert` failed", "", IN_MEMORY | SAYS_ALL
    OUT_OF_BOUNDS_STORE = (
        "out-of-bounds-store",
        "a kernel wrote outside of a tensor",
        "store to offsets inside the tensor alone: look at the mask of tl.store, and at how the address is computed",
        IN_MEMORY,
    )
    OUT_OF_BOUNDS_LOAD = (
        "out-of-bounds-load",
        "a kernel read outside of a tensor",
        "load offsets inside the tensor alone: look at the mask of tl.load, and at how the address is computed",
        IN_MEMORY,
    )
    INPUT_MODIFIED = (
        "input-modified",
        "an input was written to",
        "write to a new tensor (torch.empty_like), not to the one that was passed in",
        IN_MEMORY,
    )
    WRITE_CONFLICT = (
        "write-conflict",
        "two programs of one launch wrote different values to one element",
        "let exactly one program write each element, or combine the values with tl.atomic_add",
        IN_MEMORY | BY_CHANCE,
    )
    RACE = (
        "race",
        "a program read what another program of the same launch wrote",
        "programs of one launch run in any order: split the work into two launches, or use an atomic",
        IN_MEMORY | BY_CHANCE,
    )
    MISSING_BARRIER = (
        "missing-barrier",
        "a program read or overwrote what another lane had written, without a barrier between",
        "the lanes of a program run in any order: call tl.debug_barrier() between the store and what depends on it",
        IN_MEMORY | SAYS_ALL | BY_CHANCE,
    )
    UNINITIALIZED_READ = (
        "uninitialized-read",
        "a kernel read an element that nothing had written",
        "torch.empty holds no values yet: see which launch writes an element before that, or begin with torch.zeros",
        IN_MEMORY | BY_CHANCE,
    )
    UNWRITTEN_OUTPUT = (
        "unwritten-output",
        "elements of the result were never written",
        "check that the grid and the offsets cover every element, the last, partial block too",
        IN_MEMORY | BY_CHANCE,
    )
    UNDEFINED_LANES = (
        "undefined-lanes",
        "the result depends on lanes that the mask of a load left out",
        "give tl.load an other=..., which those lanes get; without it their value is undefined",
        IN_MEMORY,
    )
    BROKEN_PROMISE = (
        "broken-promise",
        "what the kernel promised to the compiler does not hold",
        "promise (tl.multiple_of, tl.max_contiguous, tl.assume) only what is true for every size",
        IN_MEMORY | BY_CHANCE,
    )
    # counted by a run
    TOO_MANY_BYTES = (
        "too-many-bytes",
        "more bytes were moved than the assignment allows",
        "keep values on chip: load each element once, and store only the result",
        SAYS_ALL,
    )
    TOO_MANY_LAUNCHES = (
        "too-many-launches",
        "more kernels were launched than the assignment allows",
        "do the steps in one kernel, so that intermediate values never leave the chip",
        SAYS_ALL,
    )
    TOO_MUCH_MEMORY = (
        "too-much-memory",
        "more memory was allocated than the assignment allows",
        "allocate the result alone, and keep intermediate values inside the kernel",
        SAYS_ALL,
    )
    # what the card saw
    TOO_SLOW = (
        "too-slow",
        "on this GPU the call takes longer than the assignment allows",
        "see which binds, memory or arithmetic; then look at tile sizes, num_warps and what is read twice",
    )
    ILLEGAL_ACCESS = (
        "illegal-access",
        "on the GPU, a kernel accessed memory that is not its own",
        "look for a load or store without a mask, and for offsets that overflow 32 bits at this size",
    )
    OUT_OF_RESOURCES = (
        "out-of-resources",
        "a kernel needs more registers or shared memory than the GPU has",
        "choose smaller tiles, or fewer stages: both live in shared memory",
    )
    # what the judge saw in the result
    WRONG_TYPE = "wrong-type", "the result is no tensor", "return the result as a torch tensor", SAYS_ALL
    WRONG_SHAPE = "wrong-shape", "the result has another shape than the reference", "", SAYS_ALL
    WRONG_DTYPE = (
        "wrong-dtype",
        "the result has another dtype than the reference",
        "allocate the result with the dtype that the handout asks for; tl.store converts the values to it",
        SAYS_ALL,
    )
    WRONG_VALUES = "wrong-values", "elements of the result are wrong"
    NAN = (
        "nan",
        "elements of the result are NaN where the reference has none",
        "look for 0/0, inf - inf, and masked-off elements that enter a reduction",
    )
    # diagnoses, from evidence
    MISSING_MASK = (
        "missing-mask",
        "wrong because a partial block is not masked",
        "compute mask = offsets < n, and pass it to tl.load and tl.store",
    )
    IGNORES_STRIDES = (
        "ignores-strides",
        "wrong because the input's strides are not used",
        "pass that tensor's strides to the kernel and multiply the indices by them (or copy it, where that is allowed)",
    )
    OVERFLOW = (
        "overflow",
        "wrong because a value on the way grew too large for its dtype",
        "subtract the row's maximum before exp, or convert to float32 before the arithmetic",
    )
    WRONG_FORMULA = (
        "wrong-formula",
        "computed without any rounding, the result is not what the reference computes",
        "compare the formula with the handout's, term by term and constant by constant: it is nearly right",
        SAYS_ALL,
    )
    LOW_PRECISION = (
        "low-precision",
        "wrong because the arithmetic was done in too low a precision",
        "convert to float32 for the arithmetic, and back when you store",
    )
    ALL_ZEROS = (
        "all-zeros",
        "the result is all zeros",
        "check that the kernel is launched and stores to the tensor that is returned",
    )
    KEPT_RESULT = (
        "kept-result",
        "the result lies in memory that was allocated before the call",
        "allocate the result in every call, and keep no buffer for it",
        SAYS_ALL,
    )
    DEPENDS_ON_EARLIER_CALLS = (
        "depends-on-earlier-calls",
        "the same call gives another result after other calls",
        "keep no tensor between calls, in a global or a cache; what backward needs goes through ctx.save_for_backward",
        SAYS_ALL,
    )
    BROKEN_RELATION = (
        "broken-relation",
        "the results of two calls do not go together, such as a row by itself and the same row among others",
        "look for what ties rows, heads or columns together that have nothing to do with each other",
        SAYS_ALL,
    )
    UNCHANGED_INPUT = (
        "unchanged-input",
        "the result is an input, unchanged",
        "return the tensor that the kernel writes, not the one that it reads",
    )
    # what the tracer saw on the host
    FORBIDDEN_OP = (
        "forbidden-op",
        "the host computes with torch where a kernel is asked for",
        "do this step inside the Triton kernel; the host may allocate, view, copy and launch",
    )
    NO_KERNEL = (
        "no-kernel",
        "the result was made without a Triton kernel",
        "launch a Triton kernel: kernel[grid](...); a grid of 0 programs (n // BLOCK, for a small n) launches none",
    )
    READS_VALUES = (
        "reads-values",
        "the host reads a tensor's values",
        "the host sees shapes and dtypes, never values: compute with them in the kernel",
    )
    COMPILATION_ERROR = "compilation-error", "Triton does not compile the kernel"
    EXCEPTION = "exception", "the submission raised an exception"
    TIMEOUT = "timeout", "the submission did not end in time"
    MISSING_ENTRY = (
        "missing-entry",
        "the submission does not define the function that the assignment asks for",
    )
    WRONG_ARITY = (
        "wrong-arity",
        "the function takes other parameters than the assignment says",
        "give the function the parameters that the handout names",
    )
    SYNTAX_ERROR = "syntax-error", "the submission is not valid Python"
    UNREADABLE = "unreadable", "the submission's file cannot be read"
    OUT_OF_MEMORY = "out-of-memory", "the submission asked for more memory than there is"
    CRASH = "crash", "the submission's process ended without an answer"
    # what a question's key says of an answer
    WRONG_ANSWER = "wrong-answer", "a question's key has another answer"
    NO_ANSWER = "no-answer", "a question was not answered, or not by one of its choices"


OUT_OF_BOUNDS = frozenset({Cause.OUT_OF_BOUNDS_LOAD, Cause.OUT_OF_BOUNDS_STORE})
