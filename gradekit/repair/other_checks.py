"""What becomes of other checks with a mend that makes one check right."""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import torch

from gradekit.causes import Cause
from gradekit.engine.memory import POISON
from gradekit.judge.failure import Failure
from gradekit.repair.failed_check import Example, WalkedExamples
from gradekit.repair.work import Limit
from gradekit.subject.subject import Subject


class OtherChecks(Enum):
    """What becomes of other checks with a mend that makes one right: `ALL` are right; some are wrong `AS_BEFORE`; or,
    `IN_PART`, some are right that were wrong, and some wrong in another way; or what was right is wrong, or nothing is
    better."""

    ALL = "all"
    AS_BEFORE = "as before"
    IN_PART = "in part"
    NOT = "not"


def with_a_mend(
    examples: Iterable[Example], subject: Subject, kernel: str,
    before: Callable[[Example], BaseException | None], walked: WalkedExamples | None = None,
) -> OtherChecks:  # fmt: skip
    """What becomes of examples of other checks with the mended `subject`, where a `kernel` takes part in them; "" for
    any. `before` gives what an example raised without the mend. Results that a walk finds right, where the mended text
    can be `walked`, are not computed again.

    What fails as before has another mistake, and so has what Triton refused before. So may what fails in another way,
    if the mend makes examples of other checks right; of its own check, only where it is strided itself, or no element
    that was right is wrong now.
    """
    right, wrong, most = list[Example](), list[Example](), Limit.RUN_OF_OTHERS
    is_as_before = worse = False
    is_walked = lambda one: walked is not None and one.compares and walked.error(one) is None
    for example in examples:
        is_known = is_walked(example)
        if not is_known and not most:
            continue
        most -= not is_known
        after = example.failure(subject, kernel) if not is_known else None
        known = before(example) if after is not None else None
        if after is None:
            right.append(example)
        elif known is None:
            return OtherChecks.NOT
        elif getattr(known, "cause", None) is not Cause.COMPILATION_ERROR and not fail_alike(known, after):
            wrong.append(example)
            worse |= is_worse(known, after)
        else:
            is_as_before = True
    if not wrong:
        return OtherChecks.AS_BEFORE if is_as_before else OtherChecks.ALL
    wrong_checks = {one.check for one in wrong if not one.is_strided}
    mended = [one for one in right if before(one) is not None and (is_walked(one) or one.run(subject) is None)]
    is_apart = not any(one.check in wrong_checks for one in mended)
    return OtherChecks.IN_PART if mended and (is_apart or not worse) else OtherChecks.NOT


def confirmed(
    walked: WalkedExamples, own: Iterable[Example], held: Iterable[Example],
    before: Callable[[Example], BaseException | None],
) -> int | None:  # fmt: skip
    """How many examples are right with a change, by walks, where all of a check's `own` are, and those that are `held`
    of other checks are right or wrong as before; 0 where one is not, None where too few can be walked. `before` gives
    what an example raised without the change."""
    errors = [walked.error(example) for example in own]
    if any(isinstance(error, Failure) for error in errors):
        return 0
    for example in (one for one in held if one.compares):
        errors.append(error := walked.error(example))
        if isinstance(error, Failure) and ((known := before(example)) is None or not fail_alike(known, error)):
            return 0
    right = errors.count(None)
    return right if right >= Limit.LEAST_WALKED else None


def fail_alike(before: BaseException, after: BaseException) -> bool:
    """Whether an example is wrong as it was."""
    one, other = (getattr(error, "comparison", None) for error in (before, after))
    if one is None or other is None:
        return one is other and getattr(before, "cause", None) is getattr(after, "cause", None)
    return alike(one.actual, other.actual)


def is_worse(before: BaseException, after: BaseException | None) -> bool:
    """Whether elements of an example are wrong that were right, or that is not known."""
    one, other = (getattr(error, "comparison", None) for error in (before, after))
    if one is None or other is None or one.wrong.shape != other.wrong.shape:
        return True
    return bool((other.wrong & ~one.wrong).any())


def alike(before: Any, after: Any) -> bool:
    """Whether two results agree wherever the first is a number that was written."""
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor) or before.shape != after.shape:
        return type(before) is type(after) and not isinstance(before, torch.Tensor)
    dense = before.clone(memory_format=torch.contiguous_format).view(-1, 1)  # bytes have no stride of 0
    is_written = (dense.view(torch.uint8) != POISON).any(dim=1).view(before.shape)
    known = before.double().isfinite() & is_written
    return torch.allclose(before.double()[known], after.double()[known], rtol=0.01, atol=0.01, equal_nan=False)


def is_emptied(error: Failure, subject: Subject) -> bool:
    """Whether the last result is all zeros, and that of an error is not, where what is right may follow from the
    result: to drop all elements is never wrong there."""
    comparison, seen = error.comparison, subject.calls[-1].observation if subject.calls else None
    if comparison is None or comparison.reference.key is not None or seen is None:
        return False
    made = next(iter(seen.results), None)
    return made is not None and not bool(made.any()) and bool(comparison.actual.any())
