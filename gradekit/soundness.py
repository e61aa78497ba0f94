"""Who is to blame where the engine breaks down over a program: its author, or gradekit.

A submission's process can send whatever program it likes. Where the engine meets one that it cannot even misunderstand,
Triton itself is asked, in a clean and confined process, whether the kernels are its own language and take the arguments
that they are launched with. If they are not, the submission has forged its program, and fails. If they are, gradekit
has met a mistake of its own, which costs nobody a point.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from gradekit import rules, sandbox
from gradekit.engine.run import ForbiddenOp, OverBudget, Unsupported
from gradekit.findings import Cause
from gradekit.judge.failure import Failure
from gradekit.program import Argument, Descriptor, Launch, Program, View


@contextlib.contextmanager
def held(program: Program, entry: str) -> Iterator[None]:
    """Open while the engine runs `program`, which a call of `entry` became.

    Raises:
        Failure: the program is not one that Triton and the tracer make, or needs more memory than there is.
    """
    try:
        yield
    except (Failure, ForbiddenOp, OverBudget, Unsupported):
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise Failure(Cause.BUDGET_EXCEEDED, f"{entry} needs more memory than this machine has.") from None
        if is_forged(program):
            raise Failure(Cause.CRASH, f"What {entry} was traced to is no program that Triton would run.") from None
        raise


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python or torch asked for memory in vain."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def is_forged(program: Program) -> bool:
    """Whether a kernel of `program` is none, or is launched with other arguments than it takes."""
    signatures = {key: sandbox.signature(kernel.ttir) for key, kernel in program.kernels.items()}
    if None in signatures.values():
        return True
    launches = (step for step in rules.all_steps(program.steps) if isinstance(step, Launch))
    return not all(_takes(signatures[launch.kernel] or [], launch.args) for launch in launches)


def _takes(types: Sequence[str], arguments: Sequence[Argument]) -> bool:
    """Descriptors stand for several arguments each, by version: with one of them, the rest cannot be told apart."""
    if any(isinstance(argument, Descriptor) for argument in arguments):
        return True
    return len(types) == len(arguments) and all(map(_fits, types, arguments))


def _fits(kind: str, argument: Argument) -> bool:
    return isinstance(argument, View) == (kind.startswith("*") or "ptr" in kind)
