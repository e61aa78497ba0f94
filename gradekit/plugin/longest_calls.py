"""What goes wrong in the longest calls that an entry promises, which are traced and not run."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradekit.causes import Cause
from gradekit.judge.failure import Failure
from gradekit.sandbox import Form, TraceError
from gradekit.unseen.promised_sizes import PromisedSizes

if TYPE_CHECKING:
    from gradekit.inputs.draws import Draws
    from gradekit.program import Program
    from gradekit.subject.subject import Subject
    from gradekit.unseen.host_branches import TracedForm
    from gradekit.unseen.promised_sizes import LongCall

TOO_LARGE = "invalid argument (a grid of"
"""What Triton says of a grid that CUDA does not launch."""

MORE = 1.5
"""Host code whose instructions become more by such a factor, as a dimension grows, goes over its elements: it would
take too long for the longest."""


class LongestCalls:
    """Looks at each of them once for a submission."""

    def __init__(self, subject: Subject) -> None:
        self._subject, self._promised = subject, PromisedSizes()
        self._is_steady: dict[tuple[str, str], bool] = {}
        self._is_too_large = False  # a grid has been found to be: it fails one check, and not all

    def shortage(self, draws: Draws, forms: Sequence[TracedForm]) -> Failure | None:
        """What the first of them that leaves elements out, or cannot be launched, does wrong."""
        for call in self._promised.calls(draws, forms):
            failure = shortage_of(self._subject, call) if self._steady(call) else None
            if failure is not None and not (self._is_too_large and TOO_LARGE in failure.message):
                self._is_too_large |= TOO_LARGE in failure.message
                return failure
        return None

    def _steady(self, call: LongCall) -> bool:
        key = call.form.entry, call.name
        if key not in self._is_steady:
            self._is_steady[key] = self._takes_as_long(call)
        return self._is_steady[key]

    def _takes_as_long(self, call: LongCall) -> bool:
        """Whether host code executes as many instructions for long dimensions as for short ones."""
        before = 0
        for form in call.growing():
            try:
                instructions = self._subject.instructions(form.entry, form.args)
            except TraceError:
                return False
            if before and instructions > MORE * before:
                return False
            before = instructions
        return True


def shortage_of(subject: Subject, call: LongCall) -> Failure | None:
    """What a call leaves out, if anything; or that it asks for a grid that no card has."""
    refused: list[TraceError] = []

    def ask(form: TracedForm) -> Program | None:
        try:
            return subject.program_apart(Form(form.entry, form.args, form.wanted, form.upstream, is_exact=False))
        except TraceError as error:
            refused.extend([error] if form is call.form and TOO_LARGE in error.message else [])
            return None

    short = call.shortage(ask)
    if short is not None:
        cause = Cause.UNWRITTEN_OUTPUT if short.stored else Cause.WRONG_VALUES
        failure = Failure(cause, call.description(short), line=short.tally.line)
    elif refused:
        said = refused[0].message.rstrip(".")
        message = f"With {call.told}: {said}. A card launches at most 2,147,483,647 by 65,535 by 65,535 programs."
        failure = Failure(refused[0].cause, message, line=refused[0].line)
    else:
        return None
    failure.repeat = functools.partial(_raise_again, call)
    return failure


def _raise_again(call: LongCall, other: Subject) -> None:
    failure = shortage_of(other, call)
    if failure is not None:
        raise failure
