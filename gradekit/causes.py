"""Why a check fails: the closed vocabulary of causes, one row for each.

A row has the word that the record carries and what the grader does with it; causes.toml has what a reader is told. The
tables of docs/report.md and report/schema.json are written from both by tools/tables.py.
"""

import tomllib
from enum import Flag, StrEnum, auto
from pathlib import Path
from typing import Self


class Trait(Flag):
    """What else is true of a cause."""

    IN_MEMORY = auto()  # a run can find it in memory: it fails a memory check
    SAYS_ALL = auto()  # its message needs no diagnosis
    BY_CHANCE = auto()  # results may differ from run to run: it fails a check of correctness, right results or not
    NO_RESULT = auto()  # a call ends there: whether its result would be right is not known


NONE, IN_MEMORY, SAYS_ALL, BY_CHANCE = Trait(0), Trait.IN_MEMORY, Trait.SAYS_ALL, Trait.BY_CHANCE
NO_RESULT = Trait.NO_RESULT

_TOLD = tomllib.loads(Path(__file__).with_name("causes.toml").read_text(encoding="utf-8"))


class Cause(StrEnum):
    """Why a check failed, as a machine-readable word; the mistakes that an assignment lists declare one of these.
    `meaning` says it in a sentence, `hint` what to do about it: empty where the message alone says all. Of several
    findings in memory, the one whose row stands first is shown."""

    meaning: str
    hint: str
    traits: Trait

    def __new__(cls, word: str, traits: Trait = NONE) -> Self:
        cause = str.__new__(cls, word)
        cause._value_, cause.traits = word, traits
        cause.meaning, cause.hint = _TOLD[word]["meaning"], _TOLD[word].get("hint", "")
        return cause

    # found in memory by a run, the gravest first: a cause before its consequences
    BUDGET_EXCEEDED = "budget-exceeded", IN_MEMORY | SAYS_ALL
    DEVICE_ASSERT = "device-assert", IN_MEMORY | SAYS_ALL
    OUT_OF_BOUNDS_STORE = "out-of-bounds-store", IN_MEMORY
    OUT_OF_BOUNDS_LOAD = "out-of-bounds-load", IN_MEMORY
    INPUT_MODIFIED = "input-modified", IN_MEMORY
    WRITE_CONFLICT = "write-conflict", IN_MEMORY | BY_CHANCE
    RACE = "race", IN_MEMORY | BY_CHANCE
    MISSING_BARRIER = "missing-barrier", IN_MEMORY | BY_CHANCE
    UNINITIALIZED_READ = "uninitialized-read", IN_MEMORY | BY_CHANCE
    UNWRITTEN_OUTPUT = "unwritten-output", IN_MEMORY | BY_CHANCE
    UNDEFINED_LANES = "undefined-lanes", IN_MEMORY
    BROKEN_PROMISE = "broken-promise", IN_MEMORY | BY_CHANCE
    # counted by a run
    TOO_MANY_BYTES = "too-many-bytes", SAYS_ALL
    TOO_MANY_LAUNCHES = "too-many-launches", SAYS_ALL
    TOO_MUCH_MEMORY = "too-much-memory", SAYS_ALL
    # what the card saw
    TOO_SLOW = "too-slow"
    ILLEGAL_ACCESS = "illegal-access"
    OUT_OF_RESOURCES = "out-of-resources"
    # what the judge saw in the result
    WRONG_TYPE = "wrong-type", SAYS_ALL
    WRONG_SHAPE = "wrong-shape", SAYS_ALL
    WRONG_DTYPE = "wrong-dtype", SAYS_ALL
    WRONG_VALUES = "wrong-values"
    NAN = "nan"
    # diagnoses, from evidence
    MISSING_MASK = "missing-mask"
    IGNORES_STRIDES = "ignores-strides"
    OVERFLOW = "overflow"
    WRONG_FORMULA = "wrong-formula", SAYS_ALL
    LOW_PRECISION = "low-precision"
    ALL_ZEROS = "all-zeros"
    KEPT_RESULT = "kept-result", SAYS_ALL
    DEPENDS_ON_EARLIER_CALLS = "depends-on-earlier-calls", SAYS_ALL
    BROKEN_RELATION = "broken-relation", SAYS_ALL
    UNCHANGED_INPUT = "unchanged-input"
    # what the tracer saw on the host
    FORBIDDEN_OP = "forbidden-op", NO_RESULT
    NO_KERNEL = "no-kernel"
    READS_VALUES = "reads-values", NO_RESULT
    COMPILATION_ERROR = "compilation-error", NO_RESULT
    EXCEPTION = "exception", NO_RESULT
    TIMEOUT = "timeout"
    MISSING_ENTRY = "missing-entry"
    WRONG_ARITY = "wrong-arity", NO_RESULT
    SYNTAX_ERROR = "syntax-error"
    UNREADABLE = "unreadable"
    OUT_OF_MEMORY = "out-of-memory"
    CRASH = "crash"
    # what a question's key says of an answer
    WRONG_ANSWER = "wrong-answer"
    NO_ANSWER = "no-answer"


OUT_OF_BOUNDS = frozenset({Cause.OUT_OF_BOUNDS_LOAD, Cause.OUT_OF_BOUNDS_STORE})
