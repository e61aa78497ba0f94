"""Whether a program's kernels are Triton's, and who is to blame where the engine breaks down over a program.

A submission's process can send whatever program it likes. So each kernel is shown to Triton itself first, in a
clean and confined process that has met no submission: what its parser and verifier refuse is no kernel, whatever
the engine would have made of it. Where the engine breaks down nevertheless, the arguments of the launches are
compared with the kernels: if they do not fit, the program is forged; if they do, gradekit has met a mistake of
its own, which costs nobody a point.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Sequence

from gradekit.engine.executor import ForbiddenOp, OverBudget, Unsupported
from gradekit.findings import Cause
from gradekit.judge.failure import Failure
from gradekit.program import Argument, Descriptor, Launch, Program, View, every_step
from gradekit.reuse import SharedCache, shared
from gradekit.sandbox import NO_SUBMISSION, TraceError, Tracer
from gradekit.subject.digest import of_kernel

_accepted: SharedCache[bytes, bool] = shared()
"""Digests of kernels that Triton has accepted, but for names and places: of a class, many have the same."""


class Soundness:
    """What is known of one submission's kernels: `signatures` by their text, None where Triton refuses it. That Triton
    accepts a text is known of every submission's; whatever else its process says is for this one alone."""

    def __init__(self) -> None:
        self.signatures: dict[str, list[str] | None] = {}
        self._fine: set[str] = set()
        self._reader = Tracer(NO_SUBMISSION)  # its process begins with the first question
        weakref.finalize(self, self._reader.abandon)

    def start(self) -> None:
        """Starts the process that shows kernels to Triton."""
        self._reader.start()

    @contextlib.contextmanager
    def held(self, program: Program, entry: str) -> Iterator[None]:
        """Open while the engine runs `program`, which a call of `entry` became. Raises Failure where the program is not
        one that Triton and the tracer make, or needs more memory than there is."""
        if not all(self._is_accepted(kernel.unaligned) for kernel in program.kernels.values()):
            raise _forged(entry)
        try:
            yield
        except (Failure, ForbiddenOp, OverBudget, Unsupported):
            raise
        except Exception as error:
            if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # Python's or torch's
                raise Failure(Cause.BUDGET_EXCEEDED, f"{entry} needs more memory than this machine has.") from None
            if not self._arguments_fit(program):
                raise _forged(entry) from None
            raise

    def _is_accepted(self, ttir: str) -> bool:
        if ttir in self._fine:
            return True
        digest = of_kernel(ttir)
        if _accepted.get(digest) is None and self._signature(ttir) is None:
            return False
        _accepted.put(digest, True)
        self._fine.add(ttir)
        return True

    def _signature(self, ttir: str) -> list[str] | None:
        if ttir not in self.signatures:
            try:
                self.signatures[ttir] = self._reader.signature(ttir)
            except TraceError:
                self.signatures[ttir] = None
        return self.signatures[ttir]

    def _arguments_fit(self, program: Program) -> bool:
        launches = (step for step in every_step(program.steps) if isinstance(step, Launch))
        texts = ((program.kernels[launch.kernel].unaligned, launch.args) for launch in launches)
        return all(_fit(self._signature(text) or [], args) for text, args in texts)


def _forged(entry: str) -> Failure:
    return Failure(Cause.CRASH, f"What {entry} was traced to is not a program that Triton would run.")


def _fit(types: Sequence[str], arguments: Sequence[Argument]) -> bool:
    """With a descriptor, which stands for several arguments by version, the rest cannot be matched one by one."""
    if any(isinstance(argument, Descriptor) for argument in arguments):
        return True
    are_pointers = [kind.startswith("*") or "ptr" in kind for kind in types]
    return are_pointers == [isinstance(argument, View) for argument in arguments]
