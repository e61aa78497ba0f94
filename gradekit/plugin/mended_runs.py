"""A failing check tried on mended programs: the submission with one small edit, traced and run like any submission.

The edited text comes from the student's, so it runs where that ran: in the confined tracer alone. Its verdict is for
the diagnosis; the check has failed before, and earns nothing by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.causes import IN_MEMORY, SAYS_ALL, Cause
from gradekit.compat.pytest import arguments
from gradekit.findings import Kind
from gradekit.plugin.check_points import awarding, worth
from gradekit.plugin.design import DESIGN
from gradekit.program import Aten, Copy, Launch, Program, View, run_steps

if TYPE_CHECKING:
    from gradekit.judge.evidence import Diagnosis
    from gradekit.judge.failure import Failure
    from gradekit.mending.mend import Clues, Mend
    from gradekit.plugin.examples import Example, Examples
    from gradekit.plugin.run_state import GradingRun
    from gradekit.screening.screen import ShownCall
    from gradekit.subject.subject import Call, Subject
    from gradekit.submission import Submission

MOST_ELEMENTS = 100_000
"""Of the inputs of an example beside the failing one."""

_CHANGES_VALUES = {Cause.RACE, Cause.WRITE_CONFLICT, Cause.UNINITIALIZED_READ, Cause.UNDEFINED_LANES}
"""What goes wrong in memory that makes results wrong, too."""

_MENDED = (Kind.CORRECTNESS, Kind.MEMORY, Kind.STRUCTURE)


def mended_diagnosis(
    item: pytest.Item,
    run: GradingRun,
    failed: tuple[BaseException, Call | None],
    examples: tuple[Examples | None, Example | None],
) -> Diagnosis | None:
    """What a mended program shows to be wrong, where the check of `item` `failed` with an error
    in a call; None where nothing does.

    `examples` are the check's, and the one among them that failed.
    """
    from gradekit.judge.failure import Failure
    from gradekit.mending.search import Mending

    error, call = failed
    if not isinstance(error, Failure) or call is None or not _is_for_mending(item, run):
        return None
    if not _is_mendable(error, call) or not isinstance(item, pytest.Function):
        return None
    assert run.submission is not None
    mending = run.mending if run.mending is not None else Mending(run.submission.text, _handout(run))
    run.mending = mending
    tries, clues = _Tries(item, run, examples, call, error.repeat), _clues(error, call, mending.text)
    return mending.diagnosis(clues, tries.is_right, tries.spent, lambda: tries.screened(error, clues))


def _handout(run: GradingRun) -> str:
    path = run.request.assignment.handout
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _is_for_mending(item: pytest.Item, run: GradingRun) -> bool:
    options = run.request.options
    return options.trivial is None and run.request.programs is None and worth(item).kind in _MENDED


def _is_mendable(error: Failure, call: Call) -> bool:
    """Whether another program could help: not where a message says all, nor where nothing
    was run but for want of programs."""
    if call.observation is None:
        return error.cause is Cause.NO_KERNEL
    return error.repeat is not None or not error.cause.traits & SAYS_ALL


class _Tries:
    """The failing example of a check, and others of it, for any text of the submission."""

    def __init__(
        self, item: pytest.Function, run: GradingRun, examples: tuple[Examples | None, Example | None], call: Call,
        repeat: Callable[[Any], None] | None = None,
    ) -> None:  # fmt: skip
        self._item, self._run, self._call = item, run, call
        self._subject: Subject | None = None
        self._examples, self._failing = examples
        self._repeat = repeat
        findings = call.observation.findings if call.observation is not None else ()
        self._mine = {finding.cause for finding in findings}
        self._known = {cause for cause, _, _ in run.subject.found_in_memory} if run.subject is not None else set()

    def is_right(self, text: str) -> bool:
        """Whether the failing example and the others pass with `text` for the submission, and no other mistake is made
        in memory than before, none of this call's among them."""
        subject = self._subject_of(text)
        with awarding():
            passes = all(self._passes(subject, one) and self._makes_no_other(subject) for one in self._wanted())
            return passes and self._keeps_values(subject) and self._makes_no_other(subject)

    def _makes_no_other(self, subject: Subject) -> bool:
        """Whether nothing goes wrong in memory but what other calls of the submission had shown, and this one not."""
        seen = {cause for cause, _, _ in subject.found_in_memory}
        return seen <= self._known and not seen & self._mine

    def screened(self, error: Failure, clues: Clues) -> list[Mend]:
        """Mends that seem right at a first look at the failing call, and at calls of the other examples; none where
        the look itself fails."""
        try:
            return self._screened(error, clues)
        except Exception:  # noqa: BLE001  (a text that nobody expected costs time, and no mend)
            return []

    def _screened(self, error: Failure, clues: Clues) -> list[Mend]:
        from gradekit.mending.draft import draft_of
        from gradekit.plugin.screened_calls import failing
        from gradekit.screening.screen import Screen
        from gradekit.screening.told import mend_of

        shown = failing(error, self._call)
        draft = draft_of(self._run.submission.text) if self._run.submission is not None else None
        if shown is None or draft is None:
            return []
        if self._run.screen is None:
            self._run.screen = Screen(draft, self._run.request.assignment.allow)
        screen = self._run.screen
        found = screen.survivors([shown, *self._shown()], clues.kernels, clues.others)
        likely = screen.likeliest(found)
        return [mend for change in likely if (mend := mend_of(change, screen.draft.source)) is not None]

    def _shown(self) -> Iterator[ShownCall]:
        """The calls of the other examples, as the submission is."""
        from gradekit.judge.failure import Failure
        from gradekit.plugin.screened_calls import failing, passing

        subject, examples = self._run.subject, self._examples
        if subject is None or examples is None:
            return
        kept, found_in_memory = list(subject.calls), dict(subject.found_in_memory)
        try:
            with awarding():
                for example in self._others:
                    subject.forget_calls()
                    error = examples.again(example, submission=subject)
                    call = subject.calls[-1] if subject.calls else None
                    if call is None or error is not None and not isinstance(error, Failure):
                        continue
                    shown = failing(error, call) if error is not None else passing(call)
                    if shown is not None:
                        yield shown
        finally:
            subject.calls[:] = kept
            subject.found_in_memory = found_in_memory

    def spent(self) -> int:
        """The units of work that the last text has cost."""
        from gradekit.mending.search import work_of

        return work_of(self._subject.programs) if self._subject is not None else 0

    def _keeps_values(self, subject: Subject) -> bool:
        """Whether a check of memory has the results that it had: one that does nothing touches nothing outside. Of
        elements that programs compete for, or that begin with what nobody wrote, nothing is asked."""
        observation = self._call.observation
        if worth(self._item).kind is not Kind.MEMORY or observation is None or self._mine & _CHANGES_VALUES:
            return True
        try:
            results = subject.call(self._call.entry, self._call.args, self._call.wanted).results
        except Exception:  # noqa: BLE001  (whatever it is, this is no mend)
            return False
        return len(results) == len(observation.results) and all(map(_alike, observation.results, results))

    def _subject_of(self, text: str) -> Subject:
        """A subject in the process that all tries of the run share, which `GradingRun` ends."""
        assert self._run.submission is not None
        submission = replace(self._run.submission, text=text)
        before = self._run.mended
        self._subject = self._started(submission) if before is None else before.of_another_text(submission)
        self._run.mended = self._subject
        return self._subject

    def _started(self, submission: Submission) -> Subject:
        from gradekit.sandbox import Tracer
        from gradekit.subject.subject import Subject

        request = self._run.request
        start = lambda: Tracer(submission, limits=request.limits)
        return Subject(submission, request.assignment, start, is_brief=True)

    def _wanted(self) -> Iterator[Example | None]:
        yield self._failing
        yield from self._others

    @cached_property
    def _others(self) -> list[Example]:
        """The examples beside the failing one that a mend must make right, too."""
        design, every = self._item.stash.get(DESIGN, None), self._examples
        planned = design.given if design is not None else []
        return every.beside(planned, arguments(self._item), _elements) if every is not None else []

    def _passes(self, subject: Subject, example: Example | None) -> bool:
        try:
            if example is None and self._repeat is not None:
                self._repeat(subject)
                return True
            if example is not None and self._examples is not None:
                error = self._examples.again(example, submission=subject)
                return error is None
            if self._examples is not None:
                return self._is_clean(subject)
            self._item.obj(**{**arguments(self._item), "submission": subject})
        except (Exception, pytest.fail.Exception):  # noqa: BLE001  (whatever it is, this is no mend)
            return False
        return True

    def _is_clean(self, subject: Subject) -> bool:
        """Whether the call that another check made finds nothing wrong in memory."""
        seen = subject.call(self._call.entry, self._call.args, self._call.wanted)
        return not any(finding.cause.traits & IN_MEMORY for finding in seen.findings)


def _alike(before: Any, after: Any) -> bool:
    """Whether two results agree wherever the first is a number."""
    import torch

    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor) or before.shape != after.shape:
        return type(before) is type(after) and not isinstance(before, torch.Tensor)
    known = before.double().isfinite()
    return torch.allclose(before.double()[known], after.double()[known], rtol=0.01, atol=0.01, equal_nan=False)


def _elements(example: Example) -> int:
    """The elements of all inputs of an example; far too many where they are not known."""
    given = [
        part for value in example.given.values() for part in (value if isinstance(value, (tuple, list)) else [value])
    ]
    sizes = [part.numel for part in given if hasattr(part, "numel") and isinstance(part.numel, int)]
    return sum(sizes) if sizes and sum(sizes) <= MOST_ELEMENTS else 0


# --- what is known of the failure -------------------------------------------------------------------------------------


def _clues(error: Failure, call: Call, text: str) -> Clues:
    from gradekit.inputs.spec import Input
    from gradekit.judge.evidence import errors_are_small
    from gradekit.mending.mend import Clues

    observation = call.observation
    if observation is None:
        return Clues(frozenset({error.cause}), ())
    small = error.comparison is not None and errors_are_small(error.comparison)
    strided = any(isinstance(arg, Input) and not arg.is_contiguous for arg in call.args)
    first, others = _kernels(error, observation, text)
    elements = sum(arg.numel for arg in call.args if isinstance(arg, Input))
    causes = frozenset(_causes(error, observation.findings))
    touched = any(cause.traits & IN_MEMORY for cause in causes)
    wrong = _wrong_pointers(error, observation, text) if not touched else frozenset()
    given = (call.entry, tuple(map(_laid_out, call.args))) if error.repeat is None else None  # of one call alone
    return Clues(causes, first, others, small, strided, elements, wrong, given)


def _laid_out(argument: Any) -> Any:
    """The shape and strides of a tensor, a whole number, or None."""
    from gradekit.inputs.spec import Input
    from gradekit.mending.host_numbers import Layout

    if isinstance(argument, Input):
        return Layout(argument.shape, argument.stride)
    return argument if isinstance(argument, int) and not isinstance(argument, bool) else None


def _causes(error: Failure, findings: Any) -> Iterator[Cause]:
    yield error.cause
    yield from (finding.cause for finding in findings if finding.cause.traits & IN_MEMORY)


def _kernels(error: Failure, observation: Any, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kernels of a call that write the wrong result, and those that what they read comes from."""
    from gradekit.mending.draft import stored_pointers
    from gradekit.subject.provenance import views_in

    program: Program = observation.program
    stored = stored_pointers(text)
    wrong = _wrong_storages(error, observation)
    writers: dict[str, bool] = {}
    known = set(wrong)
    for step in reversed(list(run_steps(program.steps))):
        if isinstance(step, Copy) and step.target.storage in known:
            known.add(step.origin.storage)
        elif isinstance(step, Aten) and known & {view.storage for view in step.outputs}:
            known |= {view.storage for view in views_in(step.args)}
        elif isinstance(step, Launch):
            name = program.kernels[step.kernel].name
            written = _written(step, stored.get(name))
            if written & known:
                writers[name] = writers.get(name, False) or bool(written & wrong)
                known |= _storages(step)
    order = dict.fromkeys(program.kernels[launch.kernel].name for launch in program.launches())
    first = tuple(name for name in order if writers.get(name, False))
    others = tuple(name for name in order if not writers.get(name, True))
    return (first, others) if first or others else (tuple(order), ())


def _wrong_pointers(error: Failure, observation: Any, text: str) -> frozenset[str]:
    """ "kernel.pointer" for each pointer that the wrong result was stored through; nothing where that is not clear."""
    from gradekit.mending.draft import pointers_of, stored_pointers

    names, stored, wrong = pointers_of(text), stored_pointers(text), _wrong_storages(error, observation)
    program: Program = observation.program
    found: set[str] = set()
    for launch in program.launches():
        name = program.kernels[launch.kernel].name
        views = [argument.storage for argument in launch.args if isinstance(argument, View)]
        if len(views) != len(names.get(name, ())):
            return frozenset()
        through = zip(views, names[name], stored.get(name, ()), strict=False)
        found |= {f"{name}.{pointer}" for storage, pointer, stores in through if stores and storage in wrong}
    return frozenset(found)


def _storages(launch: Launch) -> set[int]:
    return {argument.storage for argument in launch.args if isinstance(argument, View)}


def _written(launch: Launch, stored: tuple[bool, ...] | None) -> set[int]:
    """The storages that a launch may write: all, where the text does not say which of the pointers are stored to."""
    views = [argument.storage for argument in launch.args if isinstance(argument, View)]
    if stored is None or len(stored) != len(views):
        return set(views)
    return {storage for storage, is_stored in zip(views, stored, strict=True) if is_stored}


def _wrong_storages(error: Failure, observation: Any) -> set[int]:
    import torch

    program: Program = observation.program
    views = [(r, v) for r, v in zip(program.results, observation.results, strict=False) if isinstance(r, View)]
    wrong = error.comparison.actual if error.comparison is not None else None
    mine = [
        view for view, value in views
        if wrong is not None and value.shape == wrong.shape and torch.equal(value.nan_to_num(), wrong.nan_to_num())
    ]  # fmt: skip
    found = {view.storage for view in (mine or [view for view, _ in views])}
    for step in reversed(list(run_steps(program.steps))):
        if isinstance(step, Copy) and step.target.storage in found:
            found.add(step.origin.storage)
    return found
