"""Runs one check: under the seed and the profile, with its calls watched, so that a failure comes with its evidence."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.compat.hypothesis import ReplayDatabase
from gradekit.compat.hypothesis import examples as hypothesis_examples
from gradekit.compat.pytest import arguments
from gradekit.findings import Cause
from gradekit.plugin import check_points, example_cache
from gradekit.plugin.check_results import CheckEvidence, diagnosis
from gradekit.plugin.design import DESIGN, Design, design_of
from gradekit.plugin.examples import Example, Examples, FailedExample, controlled
from gradekit.plugin.further_run import FurtherInputs, FurtherRun
from gradekit.plugin.pictured import pictured
from gradekit.plugin.profiles import Profile
from gradekit.plugin.proving import proofs
from gradekit.plugin.relating import RightResults, relations
from gradekit.plugin.run_state import GradingRun
from gradekit.plugin.value_proofs import compared_calls, value_proofs

if TYPE_CHECKING:
    from gradekit.judge.compare import OnRight
    from gradekit.judge.evidence import Diagnosis
    from gradekit.judge.reference import Reference
    from gradekit.subject.runs import Share
    from gradekit.subject.subject import Call, Subject

EVIDENCE = pytest.StashKey[CheckEvidence]()
_EXAMPLES = pytest.StashKey[Examples]()
_REPLAY = pytest.StashKey[ReplayDatabase]()
_FURTHER = pytest.StashKey[FurtherRun]()


@contextlib.contextmanager
def running(item: pytest.Item, run: GradingRun) -> Iterator[None]:
    """Open while the test function of `item` runs; leaves an CheckEvidence in the item's stash.

    Raises:
        Unsupported, NeedsCard: no example failed, but of at least one the result could not be known here.
    """
    from gradekit.judge.compare import telling

    assert run.subject is not None, "checks of a rejected submission do not run"
    answers_for_all = check_points.claims(item, "assert_memory_clean")
    run.subject.begin_check(_share(run.profile))
    with check_points.awarding() as award:
        evidence = item.stash[EVIDENCE] = CheckEvidence(award)
        factory = _examples(item, run, run.subject, evidence)
        test = getattr(item, "obj", None)
        design = item.stash[DESIGN] = design_of(test, run.profile, run.request.seed)
        replay = item.stash[_REPLAY] = ReplayDatabase()
        further = item.stash[_FURTHER] = FurtherRun()
        drawn = None if design is None else run.profile.drawn
        with (
            hypothesis_examples(test, drawn, replay, at_least=run.profile.at_least),
            controlled(test, run.request.seed, factory) as examples,
            telling(_both((right := RightResults()).add, compared := compared_calls(item, run))),
        ):
            try:
                if examples is not None:
                    item.stash[_EXAMPLES] = examples
                yield
                _decide(examples)
                if answers_for_all:
                    _assert_memory_of_all_calls(run.subject)
                evidence.details |= proofs(item, run) | relations(item, run, right) | value_proofs(compared, run)
                _remember(item, run, examples, further)
            except BaseException as error:
                _trace_back(evidence, examples, error, design, further)
                evidence.call = _last_call(run.subject)
                if run.request.options.diagnose:
                    _diagnose(item, run, examples, evidence, error)
                raise
            else:
                evidence.call = _last_call(run.subject)
            finally:
                evidence.details |= _counted(examples, design, further) | _timed(run.subject)


def _diagnose(
    item: pytest.Item, run: GradingRun, examples: Examples | None, evidence: CheckEvidence, error: BaseException
) -> None:
    failed = evidence.repeated or error
    evidence.diagnosis = _mended(item, run, examples, evidence, error) or diagnosis(failed, evidence, run)
    evidence.details |= pictured(evidence.call, failed, run)


def _mended(
    item: pytest.Item, run: GradingRun, examples: Examples | None, evidence: CheckEvidence, error: BaseException
) -> Diagnosis | None:
    from gradekit.plugin.mended_runs import mended_diagnosis

    seen = examples.failure(error) if examples is not None else None
    return mended_diagnosis(item, run, (evidence.repeated or error, evidence.call), (examples, seen))


def _both(one: OnRight, other: OnRight | None) -> OnRight:
    def tell(actual: Any, wanted: list[Reference]) -> None:
        one(actual, wanted)
        if other is not None:
            other(actual, wanted)

    return tell


def _assert_memory_of_all_calls(subject: Subject) -> None:
    """A check that claims clean memory, which runs last, also answers for what the calls of other checks have shown.

    Raises:
        Failure: the gravest finding of those calls.
    """
    from gradekit.judge.failure import Failure
    from gradekit.judge.memory_checks import assert_memory_clean, gravest

    worst = gravest(cause for cause, _, _ in subject.found_in_memory)
    if worst is None:
        return
    call = next(call for (cause, _, _), call in subject.found_in_memory.items() if cause is worst)
    subject.calls[:] = [call]
    assert call.observation is not None
    try:
        assert_memory_clean(call.observation)
    except Failure as failure:
        message = f"{failure.message} The calls of another check show it."
        raise Failure(failure.cause, message, line=failure.line, facts=failure.facts) from None


def _last_call(subject: Subject) -> Call | None:
    return subject.calls[-1] if subject.calls else None


def ran_planned(item: pytest.Function, run: GradingRun) -> bool:
    """Whether the check of `item` is through without Hypothesis: it has passed on the examples that this
    process remembers, or on its design where nothing else is to be drawn. Where a row of the design
    fails, Hypothesis is to begin with it.

    Raises:
        what the simplest failing example raised, where the request does not ask for shrinking.
    """
    examples = item.stash.get(_EXAMPLES, None)
    if examples is None:
        return False
    if run.request.options.inputs:
        return _ran_given(item, run.request.options.inputs, examples)
    if _passed_cached(item, run, examples):
        _run_further(item, run, examples)
        return True
    return _passed_design(item, run, examples)


def _run_further(item: pytest.Function, run: GradingRun, examples: Examples) -> None:
    """Try what the examples that have passed did not see of the submission.

    Raises:
        what the first failing example of these raised.
    """
    if run.profile.name == "quick" or run.request.options.trivial is not None or run.request.programs is not None:
        return
    secret = run.request.options.secret_seed
    if secret is not None and run.request.options.seed == secret:
        return  # under the public seed, the check has looked already
    assert run.subject is not None, "checks of a rejected submission do not run"
    if run.further is None:
        run.further = FurtherInputs(run.subject)
    found = item.stash[_FURTHER]
    run.further.run(item.obj, examples, arguments(item), found)
    if examples.failed is not None and examples.first_problem is not None:
        raise examples.first_problem
    if found.shortage is not None:
        raise found.shortage


def _passed_cached(item: pytest.Function, run: GradingRun, examples: Examples) -> bool:
    fixtures = arguments(item)
    drawn = _remembered(item, run, examples, fixtures)
    if not drawn:
        return False
    assert run.subject is not None, "checks of a rejected submission do not run"
    key = example_cache.key(item, run)
    run.subject.expect(example_cache.calls(key))
    if examples.run_all(drawn, fixtures):
        example_cache.put_calls(key, run.subject.forms)
        return True
    evidence = item.stash[EVIDENCE]
    if not run.request.options.shrink and examples.first_problem is not None:
        evidence.history.around = lambda: examples.run_more(drawn, fixtures)
        raise examples.first_problem
    examples.forget()
    evidence.history.ran.clear()
    return False


def _passed_design(item: pytest.Function, run: GradingRun, examples: Examples) -> bool:
    design = item.stash[DESIGN]
    if design is None or not design.planned:
        return False
    first, *rest = design.given
    passed = examples.run_all([first], arguments(item))
    if rest and examples.failed is None:
        _trace_ahead(run, first, rest)
        passed = examples.run_all(rest, arguments(item))
    if examples.failed is not None:
        item.stash[_REPLAY].numbers = design.numbers(examples.failed.given)
    elif passed:
        _run_further(item, run, examples)
    return passed and not run.profile.drawn


def _trace_ahead(run: GradingRun, first: Mapping[str, Any], rest: Sequence[Mapping[str, Any]]) -> None:
    """Have the calls of the other rows traced while the first of them run."""
    from gradekit.subject.expected_calls import expected_forms

    assert run.subject is not None, "checks of a rejected submission do not run"
    (call,), others = first.values(), [next(iter(given.values())) for given in rest]
    run.subject.expect(expected_forms(run.subject.forms, call, others))


def _ran_given(item: pytest.Function, text: str, examples: Examples) -> bool:
    """Run the check on the one example that `text` describes; True.

    Raises:
        what the example raises.
    """
    from gradekit.inputs.example_text import loads

    examples.run_all([loads(text)], arguments(item))
    if examples.first_problem is not None:
        raise examples.first_problem
    return True


def _remembered(
    item: pytest.Function, run: GradingRun, examples: Examples, fixtures: dict[str, Any]
) -> Sequence[example_cache.DrawnArguments]:
    key = example_cache.key(item, run)
    known = example_cache.get(key)
    if known is None and not run.request.options.shrink:
        design = item.stash[DESIGN]
        planned = [] if design is None else design.given
        drawn = examples.drawn(lambda: item.obj(**fixtures)) if design is None or run.profile.drawn else []
        example_cache.put(key, [*planned, *drawn])
        known = example_cache.get(key)
    return known or ()


def _remember(item: pytest.Item, run: GradingRun, examples: Examples | None, further: FurtherRun) -> None:
    """Keep what any submission is to be tried on: not what this one alone asks for."""
    passed = examples.all_passed if examples is not None else None
    passed = [given for given in passed or () if repr(given) not in further.ran] or None
    key = example_cache.key(item, run)
    if passed is not None and not example_cache.get(key):
        example_cache.put(key, passed)


def _examples(
    item: pytest.Item, run: GradingRun, subject: Subject, evidence: CheckEvidence
) -> Callable[[Callable[..., Any]], Examples]:
    """What makes the Examples of a test that uses Hypothesis; they write their history into `evidence`."""
    from gradekit.engine.executor import Unsupported
    from gradekit.judge.evidence import EarlierRun
    from gradekit.judge.failure import NeedsPerson
    from gradekit.subject.device import NeedsCard

    def ended(passed: bool) -> None:
        if subject.calls:
            evidence.history.ran.append(EarlierRun(subject.calls[-1].args, passed))

    def examples(test: Callable[..., Any]) -> Examples:
        return Examples(
            test,
            run.profile,
            fixtures=frozenset(getattr(item, "funcargs", {})),
            deferred=(Unsupported, NeedsCard, NeedsPerson),
            hopeless=_hopeless,
            begin=subject.forget_calls,
            ended=ended,
        )

    return examples


def _share(profile: Profile) -> Share:
    from gradekit.subject.runs import Share

    return Share(profile.on_card, max(profile.examples // profile.on_card, 1))


def _timed(subject: Subject) -> dict[str, Any]:
    """What was timed, for the report."""
    from gradekit.subject.timed_call import facts

    return {"speed": facts(subject.timings[-1])} if subject.timings else {}


def _hopeless(error: BaseException) -> bool:
    """Whether each further try of the same kind would take seconds: the submission hangs, or dies."""
    return getattr(error, "cause", None) in (Cause.TIMEOUT, Cause.CRASH, Cause.OUT_OF_MEMORY, Cause.BUDGET_EXCEEDED)


def _decide(examples: Examples | None) -> None:
    """Raise what an example raised, or why one could not be decided, also where Hypothesis has ended without an error:
    it may not have repeated an example that failed before it began."""
    if examples is not None and examples.first_problem is not None:
        raise examples.first_problem


def _trace_back(evidence: CheckEvidence, examples: Examples | None, error: BaseException, design: Design | None,
                further: FurtherRun) -> None:  # fmt: skip
    """Find the example behind the error, and run it once more, so that the calls are those of this example."""
    example = examples.failure(error) if examples is not None else None
    if examples is None or example is None:
        return
    example = _most_telling(example, examples)
    evidence.drawn = example.given | _by_position(example)
    evidence.origin = further.origin(example.given) or _origin(design, example)
    evidence.repeated = examples.again(example)


def _origin(design: Design | None, example: Example) -> str:
    planned = design is not None and design.numbers(example.given) is not None
    return "the covering design" if planned else "a random draw"


def _most_telling(smallest: Example, examples: Examples) -> Example:
    """Of the examples that failed for the cause of the `smallest`, with tensors of its forms, the one whose numbers
    show most; of equals the smallest, and then the first."""
    own = next((failed for failed in examples.failures if failed.example is smallest), None)
    if own is None:
        return smallest
    rivals = [failed for failed in examples.failures if _kind(failed) == _kind(own)]
    return max([own, *rivals], key=lambda failed: _telling(failed.error)).example


def _kind(failed: FailedExample) -> tuple[Any, ...]:
    return getattr(failed.error, "cause", None), getattr(failed.error, "line", None), _forms(failed.example)


def _forms(example: Example) -> tuple[Any, ...]:
    """What an example is but for its values: the form of each tensor, and how many values were drawn on its way."""
    given = example_cache.flattened(tuple(example.given.values()))
    return (len(example.drawn), *((s.dtype, s.shape, s.stride, s.offset) for s in given if hasattr(s, "stride")))


def _telling(error: BaseException) -> tuple[int, ...]:
    comparison = getattr(error, "comparison", None)
    return comparison.telling if comparison is not None else (0,)


def _by_position(example: Example) -> dict[str, Any]:
    return {f"draw {number}": value for number, value in enumerate(example.drawn, 1)}


def _counted(examples: Examples | None, design: Design | None, further: FurtherRun) -> dict[str, Any]:
    if examples is None:
        return {}
    if design is None:
        return {"examples": examples.ran}
    coverage = design.coverage(examples.has_run, examples.ran - len(further.ran))
    return {"examples": examples.ran, "coverage": coverage | further.as_data()}
