"""Gives gradekit.repair the examples of a check that has failed, each with what runs and judges it, and those of all
other checks, on which a mend is held before a line is blamed."""

import inspect
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from gradekit.causes import IN_MEMORY, Cause
from gradekit.compat.pytest import arguments
from gradekit.findings import Kind
from gradekit.inputs.spec import Input
from gradekit.judge.evidence import Diagnosis
from gradekit.judge.failure import Failure
from gradekit.plugin.check_points import worth
from gradekit.plugin.check_results import DEFERRED, explained
from gradekit.plugin.design import DESIGN, Design, FurtherRun, flattened, known_design, telling
from gradekit.plugin.examples import Example, Examples, raised_by
from gradekit.plugin.profiles import Limit, Profile
from gradekit.plugin.run_state import GradingRun
from gradekit.repair import failed_check as repair
from gradekit.repair import work as repair_work
from gradekit.repair.failed_check import FailedCheck
from gradekit.repair.texts import Texts
from gradekit.repair.tutor import Tutor
from gradekit.sandbox import TraceError
from gradekit.source.draft import numbers_of
from gradekit.subject.runs import Share
from gradekit.subject.subject import Call, Subject

_MENDED = (Kind.CORRECTNESS, Kind.MEMORY, Kind.STRUCTURE)


def mended_diagnosis(
    item: pytest.Item,
    run: GradingRun,
    failed: tuple[BaseException, Call | None],
    examples: tuple[Examples | None, Example | None],
) -> Diagnosis | None:
    """What a mended program shows to be wrong, where the check of `item` `failed` with an error in a call; None where
    nothing does. `examples` are the check's, and the one among them that failed."""
    error, call = failed
    if isinstance(error, TraceError) and error.cause in (Cause.COMPILATION_ERROR, Cause.EXCEPTION):
        line = error.line if error.cause is Cause.COMPILATION_ERROR else None
        error = Failure(error.cause, error.said, line=line)
    is_tried = run.request.options.trivial is None and run.request.programs is None and worth(item).kind in _MENDED
    if not (isinstance(error, Failure) and isinstance(item, pytest.Function) and is_tried) or call is None:
        return None
    return _tutor(run).diagnosis(_failed_check(item, (error, call), *examples))


def _tutor(run: GradingRun) -> Tutor:
    if run.tutor is None:
        assert run.submission is not None and run.subject is not None
        request = run.request
        handout = request.assignment.handout
        numbers = numbers_of(handout.read_text(encoding="utf-8") if handout.is_file() else "")
        every = (item for item in run.items if isinstance(item, pytest.Function))
        planned = lambda: [one for item in every for one in planned_examples(item, run.profile, request.seed)]
        told = lambda error, call, subject: explained(error, call, subject, run)
        about = run.submission, run.subject, request.assignment, request.limits
        run.tutor = Tutor(Texts(*about, numbers, planned, told, lambda *of: _failed_anew(run, *of)))
    return run.tutor


def _failed_anew(run: GradingRun, subject: Subject, of_all: bool) -> repair.FailedCheck | None:
    """Of the public checks of results that which draws calls of most kinds, or each of them, run with another text:
    what fails, where that is one of a few examples, or of those that the text's own branches and loops ask for; None
    where it passes, and in a quick look."""
    drawn, seed = dict(run.drawn), run.request.seed
    every = (item for item in run.items if isinstance(item, pytest.Function) and item.name in drawn)
    public = [item for item in every if worth(item).kind is Kind.CORRECTNESS and not item.path.stem.endswith("_hidden")]
    designs = [(item, design) for item in public if (design := known_design(item, run.profile, seed)) is not None]
    if run.profile.name == "quick":
        return None
    kinds = lambda one: len({pair for row in one[1].planned for pair in row.row.items()})
    each = sorted(designs, key=kinds, reverse=True)[: None if of_all else 1]
    return next(filter(None, (_failed_with(run, subject, *one) for one in each)), None)


def _failed_with(run: GradingRun, subject: Subject, item: pytest.Function, design: Design) -> repair.FailedCheck | None:
    from gradekit.plugin.further_run import FurtherInputs  # imports a solver

    test, given = inspect.unwrap(item.obj.hypothesis.inner_test), {**_fixed(item), "submission": subject}
    examples = Examples(test, run.profile, frozenset(given), DEFERRED, begin=subject.forget_calls)
    few = telling([one.row for one in design.planned], repair_work.Limit.FURTHER)
    subject.begin_check(Share())
    examples.run_all([design.given[place] for place in few], given)
    if examples.failed is None:
        FurtherInputs(subject, run.drawn).run(item.name, item.obj, design, examples, given, FurtherRun())
    if examples.failed is None:
        return None
    subject.begin_check(Share())
    error = examples.again(examples.failed, submission=subject)
    is_told = isinstance(error, Failure) and (error.comparison is not None or error.told.traits & IN_MEMORY)
    if not is_told or not subject.calls:
        return None
    return _failed_check(item, (error, subject.calls[-1]), examples, examples.failed, given)


def _failed_check(
    item: pytest.Function, failed: tuple[Any, Call], examples: Examples | None, example: Example | None,
    given: Mapping[str, Any] | None = None,
) -> repair.FailedCheck:  # fmt: skip
    """What is known of a check that failed; `given` are its fixtures where it has ended."""
    about, (error, call) = (item.name, worth(item).kind), failed
    if examples is None:
        call_of_test = lambda subject: item.obj(**{**arguments(item), "submission": subject})
        return FailedCheck(*about, error, call, judge=raised_by(error.repeat or call_of_test))
    design = item.stash.get(DESIGN, None)
    beside = examples.beside(design.given if design is not None else [], given or arguments(item), _few_elements)

    def own(one: Example) -> repair.Example:
        judge = lambda subject: examples.again(one, submission=subject)
        return repair.Example(one.key, judge, item.name, elements=_few_elements(one), traits=_traits(one.given))

    failures = [own(one.example) for one in examples.failures]
    judge = raised_by(error.repeat) if example is None and error.repeat is not None else None
    first = own(example) if example is not None else None
    return FailedCheck(*about, error, call, first, [own(one) for one in beside], failures, judge)


def planned_examples(item: pytest.Function, profile: Profile, seed: int) -> Iterator[repair.Example]:
    """Those of the design of a check of results or of memory, from the smallest on, without the largest."""
    handle = getattr(item.obj, "hypothesis", None)
    design = item.stash.get(DESIGN, None) or known_design(item, profile, seed)
    if handle is None or design is None or worth(item).kind not in (Kind.CORRECTNESS, Kind.MEMORY):
        return
    test = inspect.unwrap(handle.inner_test)
    fixed = _fixed(item)
    if set(inspect.signature(test).parameters) != {"submission", *fixed, *(design.given[0] if design.given else ())}:
        return
    about = item.name, worth(item).kind is Kind.CORRECTNESS
    every = [*design.given, *(also for one in design.given if (also := apart(one)) != one)]
    for one in sorted(every, key=_elements):
        if 0 < _elements(one) <= repair_work.Limit.EXAM_ELEMENTS:
            given = {**fixed, **one}
            judge = raised_by(lambda submission, given=given: test(**given, submission=submission))  # type: ignore[misc]
            key, is_strided = Example(dict(one), frozenset()).key, any(not spec.is_contiguous for spec in _specs(given))
            yield repair.Example(key, judge, *about, _elements(given), is_strided, _traits(one))


def _fixed(item: pytest.Function) -> dict[str, Any]:
    return {**getattr(getattr(item, "callspec", None), "params", {})}


def apart(value: Any) -> Any:
    """An example whose views have a gap behind each dimension, each in a storage of its own, so that no two are one in
    memory. Contiguous tensors stay so, for a check may promise that."""
    if isinstance(value, Mapping):
        return {name: apart(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return tuple(map(apart, value))
    if not isinstance(value, Input) or not _is_strided(value):
        return value
    stride, step = list(value.stride), min((one for one in value.stride if one), default=1)
    for dim in sorted((dim for dim, one in enumerate(stride) if one), key=lambda dim: (stride[dim], -dim)):
        stride[dim], step = step, step * (value.shape[dim] + 1)
    return replace(value, stride=tuple(stride), base=0)


def _is_strided(spec: Input) -> bool:
    return len(spec.shape) >= Limit.SEVERAL_DIMENSIONS and not spec.is_contiguous


def _traits(given: Mapping[str, Any]) -> frozenset[Hashable]:
    found: set[Hashable] = set()
    for name, value in given.items():
        for number, spec in enumerate(flattened(value)):
            if isinstance(spec, Input):
                layout = tuple(map(_kind, spec.stride)), spec.is_contiguous
                sizes, values = tuple(map(_kind, spec.shape)), spec.profile
                found |= {(name, number, trait) for trait in (layout, spec.dtype, values, (values, sizes))}
                found |= {(name, number, "apart")} if apart(spec) == spec and _is_strided(spec) else set()
            else:
                found.add((name, number, repr(spec)))
    return frozenset(found)


def _kind(number: int) -> str:
    """Of a size or a stride: none, one, a power of two, or another number."""
    return str(number) if number < 2 else "power" if number & (number - 1) == 0 else "other"


def _specs(given: Mapping[str, Any]) -> list[Input]:
    return [spec for spec in flattened(tuple(given.values())) if isinstance(spec, Input)]


def _elements(given: Mapping[str, Any]) -> int:
    return sum(spec.numel for spec in _specs(given))


def _few_elements(example: Example) -> int:
    """The elements of all inputs of an example; 0 where they are not known, or more than Limit.OTHER_ELEMENTS."""
    elements = _elements(example.given)
    return elements if elements <= Limit.OTHER_ELEMENTS else 0
