"""Runs one check: under the seed and the profile, with its calls watched, so that a failure comes with its evidence."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gradekit.compat.hypothesis import ReplayDatabase
from gradekit.compat.hypothesis import examples as hypothesis_examples
from gradekit.compat.pytest import arguments
from gradekit.engine.budget import Unsupported
from gradekit.findings import Cause, Kind
from gradekit.inputs.as_text import loads
from gradekit.inputs.spec import salted
from gradekit.judge.by_text import right_alone
from gradekit.judge.compare import telling
from gradekit.judge.evidence import Diagnosis
from gradekit.judge.failure import Failure
from gradekit.judge.memory_checks import assert_memory_clean, gravest
from gradekit.plugin import check_points
from gradekit.plugin.beside_examples import RightResults, exact_runs, proofs, relations
from gradekit.plugin.check_results import DEFERRED, CheckEvidence, diagnosis, pictured
from gradekit.plugin.design import (
    DESIGN,
    Design,
    DrawnArguments,
    FurtherRun,
    cache_key,
    drawn_once,
    flattened,
    known_design,
)
from gradekit.plugin.examples import Example, Examples, FailedExample, controlled
from gradekit.plugin.run_state import GradingRun
from gradekit.program import Program
from gradekit.sandbox import TraceError
from gradekit.sandbox.tracer import Form
from gradekit.subject.call_spec import expected_forms
from gradekit.subject.runs import Observation, Share
from gradekit.subject.subject import Call, Subject
from gradekit.subject.timed_call import facts


class CheckRun:
    """The check of a pytest item, in whose stash it stays, while it runs: with the `evidence` behind its outcome; its
    `design`, the examples that are planned, None where the test draws in a way of its own; `examples` of a test that
    uses Hypothesis, once it runs; and `further` calls for what those have not seen."""

    def __init__(self, item: pytest.Item, run: GradingRun) -> None:
        assert run.subject is not None, "checks of a rejected submission do not run"
        self.item, self.run, self.subject = item, run, run.subject
        item.stash[CHECK] = self
        self.evidence = CheckEvidence()
        self.design = item.stash[DESIGN] = known_design(item, run.profile, run.request.seed)
        self.examples: Examples | None = None
        self.further = FurtherRun()
        self._replay = ReplayDatabase()

    @property
    def _test(self) -> Any:
        return getattr(self.item, "obj", None)

    @property
    def _fixtures(self) -> dict[str, Any]:
        assert isinstance(self.item, pytest.Function)
        return arguments(self.item)

    # --- the whole check ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Open while the test runs. Raises Unsupported or NeedsCard where no example failed, but one was left open."""
        profile, seed = self.run.profile, self.run.request.seed
        answers_for_all = check_points.claims(self.item, "assert_memory_clean")
        self.subject.begin_check(Share(profile.on_card, max(profile.examples // profile.on_card, 1)))
        drawn = None if self.design is None else profile.drawn
        with (
            check_points.awarding() as self.evidence.award,
            hypothesis_examples(self._test, drawn, self._replay, at_least=profile.at_least),
            controlled(self._test, seed, self._make_examples) as self.examples,
            telling((right := RightResults()).add),
        ):
            try:
                yield
                self._raise_first_problem()
                self.subject.assert_kernels_work()
                if answers_for_all:
                    _assert_memory_of_all_calls(self.subject)
                self.evidence.details |= proofs(self.item, self.run) | relations(self.item, self.run, right)
                self.evidence.details |= exact_runs(self.item, self.run, right)
            except BaseException as error:
                with self.run.looking_for_a_cause(self.evidence.details):
                    self._trace_back(error)
                self._note_last_call()
                if self.run.request.options.diagnose:
                    self._diagnose(error)
                raise
            else:
                self._note_last_call()
                if self.subject.used:  # a check that fails uses more or less, as its example is found anew or is known
                    self.evidence.details["budget"] = float(f"{self.subject.used:.3g}")
            finally:
                self.evidence.details |= self._counted()
                if self.subject.timings:
                    self.evidence.details["speed"] = facts(self.subject.timings[-1])

    def _make_examples(self, test: Callable[..., Any]) -> Examples:
        """The Examples of a test that uses Hypothesis; they note in the evidence what they ran."""

        def ended(error: BaseException | None) -> None:
            if self.subject.calls:
                self.evidence.ran.append((self.subject.calls[-1].args, error))
            if error is not None:
                self._tell_failing()

        return Examples(
            test, self.run.profile, fixtures=frozenset(getattr(self.item, "funcargs", {})),
            deferred=DEFERRED,
            hopeless=_hopeless if not self.run.only_tries else lambda error: True, begin=self.subject.forget_calls,
            ended=ended,
        )  # fmt: skip

    def _tell_failing(self) -> None:
        """Tell whoever watches of the first example that fails, while a simpler one and the cause are looked for."""
        failures = [] if self.examples is None else self.examples.failures
        message = getattr(failures[0].error, "message", "") if len(failures) == 1 else ""
        if message and self.run.on_failing is not None:
            self.run.on_failing(check_points.title(self.item), message)

    def _raise_first_problem(self) -> None:
        """Raise what an example raised, or why one is undecided, also where Hypothesis has ended without an error."""
        if self.examples is not None and self.examples.first_problem is not None:
            raise self.examples.first_problem

    def _counted(self) -> dict[str, Any]:
        if self.examples is None:
            return {}
        if self.design is None:
            return {"examples": self.examples.ran}
        coverage = self.design.coverage(self.examples.has_run, self.examples.ran - len(self.further.ran))
        return {"examples": self.examples.ran, "coverage": coverage | self.further.as_data()}

    # --- where it fails ----------------------------------------------------------------------------------------------

    def _trace_back(self, error: BaseException) -> None:
        """Find the example behind the error, and run it once more, so that the calls are those of this example."""
        examples, evidence = self.examples, self.evidence
        example = examples.failure(error) if examples is not None else None
        if examples is None or example is None:
            return
        example = most_telling(example, examples)
        evidence.drawn = example.given
        planned = self.design is not None and self.design.numbers(example.given) is not None
        evidence.origin = self.further.origin(example.given)
        evidence.origin = evidence.origin or ("the covering design" if planned else "a random draw")
        evidence.repeated = examples.again(example)

    def _note_last_call(self) -> None:
        self.evidence.call = self.subject.calls[-1] if self.subject.calls else None

    def _diagnose(self, error: BaseException) -> None:
        evidence, failed, used = self.evidence, self.evidence.repeated or error, self._tutored
        for way in (self._of_earlier_calls, lambda error: self._mended(error, failed)):
            with self.run.looking_for_a_cause(evidence.details):
                evidence.diagnosis = evidence.diagnosis or way(error)
        with self.run.looking_for_a_cause(evidence.details):
            evidence.diagnosis = diagnosis(failed, evidence, self.run, evidence.diagnosis)
        with self.run.looking_for_a_cause(evidence.details):
            evidence.details |= pictured(evidence.call, failed, self.run)
        evidence.details |= {"tutoring": self._tutored - used} if self._tutored > used else {}

    @property
    def _tutored(self) -> int:
        """The work that the diagnoses of the submission have taken so far, in the engine's units."""
        return self.run.tutor.work.used if self.run.tutor is not None else 0

    def _of_earlier_calls(self, error: BaseException) -> Diagnosis | None:
        """That what failed is right where its call is the first of a process; None where it became the same program."""
        call = self.evidence.call
        if self.examples is None or call is None or call.observation is None:
            return None
        text = self.run.submission.text if self.run.submission is not None and self.run.trivial is None else ""
        example, alone = self.examples.failure(error), right_alone(text)
        if alone is None:
            return None
        if example is None:
            return alone if isinstance(error, Failure) and self._holds_alone(error, call) else None
        apart = self.run.another_subject()
        try:
            if apart.traced(call.entry, call.args, call.wanted) == call.observation.program:
                return None
            if self.examples.again(example, submission=apart) is not None:
                return None
        except TraceError:
            return None
        finally:
            apart.close()
        return alone

    def _holds_alone(self, error: Failure, call: Call) -> bool:
        """Whether what failed beside the examples holds where each call is the first of a process."""
        repeat = error.repeat
        if repeat is None and gravest([error.cause]) is not None:
            repeat = lambda apart: assert_memory_clean(apart.call(call.entry, call.args, call.wanted))
        with contextlib.suppress(Failure, TraceError, Unsupported):
            if repeat is not None:
                repeat(_EachAlone(self.run.another_subject))
                return True
        return False

    def _mended(self, error: BaseException, failed: BaseException) -> Diagnosis | None:
        if not isinstance(failed, (Failure, TraceError)):
            return None
        from gradekit.plugin.tutoring import mended_diagnosis

        seen = self.examples.failure(error) if self.examples is not None else None
        return mended_diagnosis(self.item, self.run, (failed, self.evidence.call), (self.examples, seen))

    # --- its examples, without Hypothesis ----------------------------------------------------------------------------

    def ran_planned(self) -> bool:
        """Whether the check is through without Hypothesis: with the examples that this process remembers, or with its
        design where nothing else is drawn. Without shrinking, raises what a failing example raises."""
        if self.examples is None:
            return False
        if text := self.run.request.options.inputs:
            self.examples.run_all([loads(text)], self._fixtures)
            self._raise_first_problem()
            return True
        return self._ran_known(self.examples, self._drawn(self.examples))

    def _ran_known(self, examples: Examples, drawn: Sequence[DrawnArguments]) -> bool:
        """Whether the check is through with its design, what that has not seen and the examples that are remembered:
        in this order, which is that of a check that draws them itself."""
        if self.design is not None and self.design.planned:
            passed = self._passed_design(examples, self.design)
            if not self.run.profile.drawn or not passed:
                return self._decided(examples, passed)
        new = [given for given in drawn if not examples.has_run(given)]
        return bool(drawn) and self._decided(examples, examples.run_all(new, self._fixtures) or not new)

    def _decided(self, examples: Examples, passed: bool) -> bool:
        if not passed and not self.run.request.options.shrink and examples.first_problem is not None:
            raise examples.first_problem
        return passed

    def _drawn(self, examples: Examples) -> Sequence[DrawnArguments]:
        """What is drawn beside the design, the same for any submission; nothing where a test could change it."""
        key = cache_key(self.item, self.run.request.seed, self.run.profile)
        draws = self.design is None or self.run.profile.drawn
        return drawn_once(key, lambda: examples.drawn(lambda: self._test(**self._fixtures)) if draws else [])

    def _passed_design(self, examples: Examples, design: Design) -> bool:
        first, *rest = design.given
        passed = examples.run_all([first], self._fixtures)
        if rest and examples.failed is None:
            (call,), others = first.values(), [next(iter(given.values())) for given in rest]
            self.subject.expect(expected_forms(self.subject.forms, call, others))  # traced while the first of them run
            passed = examples.run_all(rest, self._fixtures)
        if examples.failed is not None:
            self._replay.numbers = design.numbers(examples.failed.given)
        elif passed:
            self._run_further(examples)
        return passed

    def _run_further(self, examples: Examples) -> None:
        """Try what the examples that have passed did not see. Raises what the first failing one raised."""
        run, options = self.run, self.run.request.options
        if run.profile.name == "quick" or options.trivial is not None or run.request.programs is not None:
            return
        if options.secret_seed is not None and options.seed == options.secret_seed:
            return  # under the public seed, the check has looked already
        if self.item.name not in dict(run.drawn):
            return
        from gradekit.plugin.further_run import FurtherInputs  # imports a solver

        if run.further is None:
            run.further = FurtherInputs(self.subject, run.drawn)
        run.further.run(self.item.name, self._test, self.design, examples, self._fixtures, self.further)
        if examples.failed is not None:
            self._raise_first_problem()
        if self.further.shortage is not None:
            self.subject.forget_calls()  # no call that was run shows it
            raise self.further.shortage


class _EachAlone:
    """A subject of which each call is the first of a process that `start` gives."""

    def __init__(self, start: Callable[[], Subject]) -> None:
        self._start = start

    def __getattr__(self, entry: str) -> Callable[..., Observation]:
        return lambda *args: self.call(entry, args)

    def call(self, entry: str, args: Sequence[Any], wanted: tuple[int, ...] = ()) -> Observation:
        """As Subject.call."""
        with contextlib.closing(self._start()) as subject:
            return subject.call(entry, args, wanted)

    def program_apart(self, form: Form) -> Program:
        """As Subject.program_apart."""
        with contextlib.closing(self._start()) as subject:
            return subject.program_apart(form)


CHECK = pytest.StashKey[CheckRun]()  # the check that runs, or ran last, in an item's stash


def evidence_of(item: pytest.Item) -> CheckEvidence:
    """What stands behind the outcome of the item's check; empty where it did not run."""
    check = item.stash.get(CHECK, None)
    return check.evidence if check is not None else CheckEvidence()


def _assert_memory_of_all_calls(subject: Subject) -> None:
    """A check that claims clean memory answers for all calls, too. Raises Failure for their gravest finding."""
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


def _hopeless(error: BaseException) -> bool:
    """Whether each further try of the same kind would take seconds: the submission hangs, or dies."""
    return getattr(error, "cause", None) in (Cause.TIMEOUT, Cause.CRASH, Cause.OUT_OF_MEMORY, Cause.BUDGET_EXCEEDED)


def most_telling(smallest: Example, examples: Examples) -> Example:
    """Of the examples that failed as the `smallest` did, in its forms, that whose numbers show most; else the first."""
    own = next((failed for failed in examples.failures if failed.example is smallest), None)
    if own is None:
        return smallest
    rivals = [failed for failed in examples.failures if _alike(failed) == _alike(own)]
    compared = [(getattr(failed.error, "comparison", None), failed) for failed in [own, *rivals]]
    return max(compared, key=lambda one: one[0].telling if one[0] is not None else (0,))[1].example


def _alike(failed: FailedExample) -> tuple[Any, ...]:
    return getattr(failed.error, "cause", None), getattr(failed.error, "line", None), _forms(failed.example)


def _forms(example: Example) -> tuple[Any, ...]:
    """What an example is but for its values: the form of each tensor, and how many values were drawn on its way."""
    given = flattened(tuple(example.given.values()))
    return tuple((s.dtype, s.shape, s.stride, s.offset) for s in given if hasattr(s, "stride"))


# --- a check once more, under a seed that no student knows ------------------------------------------------------------


def run_secretly(item: pytest.Function, run: GradingRun) -> None:
    """Run the check of `item`, passed under the public seed, under the secret one; but speed is not timed twice."""
    secret = run.request.options.secret_seed
    if secret is None or check_points.worth(item).kind is Kind.SPEED:
        return
    before = evidence_of(item)
    options = replace(run.request.options, seed=secret)
    hidden_run = replace(run, request=replace(run.request, options=options))
    try:
        with salted(secret), CheckRun(item, hidden_run).running():
            if not item.stash[CHECK].ran_planned():
                item.obj(**arguments(item))
    finally:
        evidence = evidence_of(item)
        evidence.is_secret = True
        if before.award.fraction < evidence.award.fraction:
            evidence.award = before.award
        evidence.details |= {"coverage": before.details["coverage"]} if "coverage" in before.details else {}
        examples = [found.details["examples"] for found in (before, evidence) if "examples" in found.details]
        evidence.details |= {"examples": sum(examples)} if examples else {}
