"""Claims about an entry as a part of torch: an operator that models, autograd and torch.compile can use."""

import textwrap

from gradekit.findings import Cause
from gradekit.framework import Inspection
from gradekit.judge.failure import Failure, NeedsPerson

LONGEST_QUOTED = 400  # characters of what torch says that a message has, cut between words


def assert_operator(seen: Inspection) -> None:
    """Raise unless the model calls an operator of the submission, whose schema says that it changes nothing. Raises
    Failure (exception where there is no operator, or none was seen because compiling failed; input-modified where its
    schema says that it writes to an input), and NeedsPerson where only the submission says so."""
    if not seen.schema and seen.error:  # one may be registered: compiling ended before any was called
        message = "Compiling a model that calls this failed before an operator was seen in it."
        raise Failure(Cause.EXCEPTION, message + _said(" torch.compile says", seen.error))
    if not seen.schema:
        message = "A model that calls this calls no operator of torch: register one, with torch.library.triton_op."
        raise Failure(Cause.EXCEPTION, message)
    if "!" in seen.schema.partition("->")[0]:
        raise Failure(Cause.INPUT_MODIFIED, f"The operator's schema says that it changes an input: {seen.schema}.")
    _confirmed(seen)


def assert_compiles(seen: Inspection, *, kernels: bool = True) -> None:
    """Raise unless a model around the entry is compiled as one graph, forward and backward. With `kernels`,
    torch.compile must see the entry's Triton kernels in it, not a call into the unknown. Raises Failure (exception
    where compiling failed, no-kernel where none is seen), and NeedsPerson where only the submission says so."""
    if seen.error:
        message = "A model that calls this cannot be compiled as one graph." + _said(" torch.compile says", seen.error)
        raise Failure(Cause.EXCEPTION, message)
    if kernels and not seen.kernels:
        called = ", ".join(name for name in seen.forward if not name.startswith("aten::")) or "nothing else"
        how = "launch with wrap_triton(kernel)[grid](...), in a triton_op."
        raise Failure(Cause.NO_KERNEL, f"torch.compile sees no Triton kernel in the model, only {called}: {how}")
    _confirmed(seen)


def assert_opcheck(seen: Inspection, check: str) -> None:
    """Raise unless torch.library.opcheck finds nothing wrong with the operator; `check` is one of its tests. Raises
    Failure where it finds something, or there is no operator, and NeedsPerson where only the submission says so."""
    if seen.schema and seen.checks[check]:
        said = _said(f", by {check}", seen.checks[check])
        raise Failure(Cause.EXCEPTION, f"torch.library.opcheck finds a fault{said}")
    assert_operator(seen)


def _confirmed(seen: Inspection) -> None:
    """Raises NeedsPerson where what was seen cannot be believed by itself."""
    if seen.unconfirmed:
        raise NeedsPerson(f"A person must confirm this: {seen.unconfirmed}.")


def _said(who: str, error: str) -> str:
    return f"{who}: {textwrap.shorten(error, LONGEST_QUOTED, placeholder=' ...')}" if error else ""
