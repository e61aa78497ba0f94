"""The submission as a test calls it: traced once for each signature, run once for each input, in every configuration."""

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

from gradekit.assignment import Assignment
from gradekit.engine import executor
from gradekit.engine.budget import Budget, OverBudget, Unsupported
from gradekit.findings import Cause
from gradekit.inputs.spec import Input
from gradekit.judge.compare import assert_close
from gradekit.judge.failure import Failure
from gradekit.judge.memory_checks import assert_memory_clean
from gradekit.judge.reference import reference
from gradekit.program import Program
from gradekit.sandbox import Form, Limits, TraceError, Tracer
from gradekit.subject import Limit
from gradekit.subject.call_spec import call_spec
from gradekit.subject.runs import Share
from gradekit.subject.subject import Subject
from gradekit.submission import Submission
from tests.beside import beside
from tests.texts import HEAD

TEXTS = beside(__file__)
TEXT = TEXTS["text"]

SUBMISSION = Submission("submission.py", TEXT, "0" * 64)
ASSIGNMENT = Assignment("sums", "Sums", "add", "x + y", Path("."))


class CountingTracer(Tracer):
    """A tracer that counts: what was traced, and how many were started."""

    traced: ClassVar[list[Any]] = []
    started: ClassVar[int] = 0

    def __init__(self) -> None:
        type(self).started += 1
        super().__init__(SUBMISSION, limits=Limits(call_seconds=1.5, packages_seconds=1.5))

    def trace_form(self, form: Form) -> Program:
        self.traced.append((form.entry, form.args))
        return super().trace_form(form)


@pytest.fixture
def subject() -> Iterator[Subject]:
    CountingTracer.traced, CountingTracer.started = [], 0
    subject = Subject(SUBMISSION, ASSIGNMENT, CountingTracer)
    yield subject
    subject.close()


def vector(size: int = 100, **changes: Any) -> Input:
    return Input(**{"dtype": "float32", "shape": (size,), "stride": (1,), **changes})


def plus(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def test_a_call_answers_with_the_result_and_what_it_took(subject: Subject) -> None:
    x, y = vector(), vector(seed=1)
    seen = subject.add(x, y)
    assert torch.equal(seen.tensor, x.tensor() + y.tensor())
    assert (seen.entry, seen.inputs, seen.findings) == ("add", (x, y), ())
    assert seen.counters.launches == 1 and seen.counters.bytes_stored == 400


def test_the_next_subject_runs_no_call_again_that_was_changed_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    run, ran, found = executor.run, list[Program](), list[torch.Tensor]()
    monkeypatch.setattr(executor, "run", lambda program, *given, **named: ran.append(program) or run(program, *given, **named))
    for seed in (1, 1, 2):
        with contextlib.closing(Subject(SUBMISSION, ASSIGNMENT, CountingTracer)) as subject:
            seen = subject.changed_in_place(subject.add(vector(), vector(seed=seed)))
            found.append(seen.results if seed == 1 else seen.tensor)
            ran.append(seed)
    counts = [len(list(group)) for is_run, group in itertools.groupby(ran, lambda one: isinstance(one, Program)) if is_run]
    assert len(counts) == 2 and found[0].contents == found[1].contents
    assert torch.equal(found[2], vector().tensor() + vector(seed=2).tensor())


def test_several_results_have_no_one_tensor(subject: Subject) -> None:
    seen = subject.both(vector(), vector(seed=1))
    assert len(seen.results) == 2
    with pytest.raises(Failure) as caught:
        _ = seen.tensor
    assert caught.value.cause is Cause.WRONG_TYPE


def test_one_signature_is_traced_once_but_the_first_twice(subject: Subject) -> None:
    for size, seed in itertools.product([100, 101, 102], range(4)):
        subject.add(vector(size, seed=seed), vector(size, seed=9))
    assert [args[0].shape for _, args in CountingTracer.traced] == [(100,), (100,), (101,), (102,)]


def test_what_a_check_expects_in_vain_the_next_gets_as_it_is(subject: Subject) -> None:
    calls = [call_spec("add", (vector(size), vector(size, seed=1))) for size in range(100, 130)]
    forms = {call.signature: call.form for call in calls}
    for size in (100, 101):
        subject.add(vector(size), vector(size, seed=1))
    for _ in range(2):
        subject.begin_check(Share())
        subject.expect(forms)
    seen = [subject.add(vector(size), vector(size, seed=1)) for size in range(129, 99, -1)]
    assert [one.program.inputs[0].shape for one in seen] == [(size,) for size in range(129, 99, -1)]


def test_what_is_expected_is_traced_ahead_but_for_what_was_traced_before(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {size: call_spec("add", (vector(size), vector(size, seed=1))) for size in (101, 102)}
    for size in (100, 101):
        subject.add(vector(size), vector(size, seed=1))
    asked: list[tuple[int, ...]] = []
    monkeypatch.setattr(
        CountingTracer, "prefetch", lambda tracer, new: asked.extend(form.args[0].shape for form in new)
    )
    subject.expect({call.signature: call.form for call in calls.values()})
    assert asked == [(102,)]


@pytest.mark.parametrize("size", [100, 101])
def test_a_result_of_an_earlier_call_of_the_same_form_is_no_new_tensor(subject: Subject, size: int) -> None:
    with contextlib.suppress(Failure):
        subject.remembers(vector(), vector(seed=1))
    with pytest.raises(Failure) as caught:
        subject.remembers(vector(size), vector(size, seed=2))
    assert caught.value.cause is Cause.NO_KERNEL


@pytest.mark.parametrize("other", [vector(101), vector(stride=(2,)), vector(offset=1), vector(dtype="float16")])
def test_another_form_is_another_signature(subject: Subject, other: Input) -> None:
    subject.add(vector(), vector())
    subject.add(other, other)
    assert len(CountingTracer.traced) == 3


def test_the_same_input_is_not_run_twice(subject: Subject) -> None:
    first = subject.add(vector(), vector(seed=1))
    assert subject.add(vector(), vector(seed=1)) is first
    assert subject.add(vector(), vector(seed=2)) is not first


def test_tensors_without_a_spec_are_run_again(subject: Subject) -> None:
    x = torch.ones(3)
    first = subject.add(x, x)
    x += 1
    assert not torch.equal(subject.add(x, x).tensor, first.tensor)


def test_every_distinct_configuration_is_run_and_the_wrong_one_named(subject: Subject) -> None:
    x, y = vector(), vector(seed=1)
    seen = subject.tuned(x, y)
    assert torch.equal(seen.tensor, x.tensor() + y.tensor())
    alone, after_others = seen.variants  # the configuration with 8 warps computes what the first does
    assert "32" in alone.label and "32" in after_others.label
    with pytest.raises(Failure, match="With the configuration .*32") as caught:
        assert_close(seen, reference(plus, x, y))
    assert caught.value.cause is Cause.WRONG_VALUES


def test_an_exception_in_the_call_is_the_students_with_its_line(subject: Subject) -> None:
    with pytest.raises(TraceError, match="not today") as caught:
        subject.raises(vector())
    assert caught.value.cause is Cause.EXCEPTION
    assert TEXT.split("\n")[(caught.value.line or 0) - 1].strip() == 'raise ValueError("not today")'


@pytest.mark.parametrize(("entry", "cause"), [("hangs", Cause.TIMEOUT), ("dies", Cause.CRASH)])
def test_after_a_process_was_lost_the_next_call_gets_a_new_one(subject: Subject, entry: str, cause: Cause) -> None:
    with pytest.raises(TraceError) as caught:
        subject.call(entry, (vector(),))
    assert caught.value.cause is cause
    assert torch.equal(subject.add(vector(), vector()).tensor, 2 * vector().tensor())
    assert CountingTracer.started == 2


def test_a_call_that_failed_is_remembered_and_a_submission_that_keeps_dying_left_alone(subject: Subject) -> None:
    for size in (1, *range(1, Limit.DEATHS + 4)):
        with pytest.raises(TraceError):
            subject.dies(vector(size))
    assert len(CountingTracer.traced) == Limit.DEATHS


def test_calls_are_evidence_until_they_are_forgotten(subject: Subject) -> None:
    with pytest.raises(TraceError):
        subject.raises(vector())
    seen = subject.add(vector(), vector())
    assert [(call.entry, call.observation) for call in subject.calls] == [("raises", None), ("add", seen)]
    subject.forget_calls()
    assert subject.calls == []


def test_with_a_substitution_the_judge_sees_the_trivial_result() -> None:
    subject = Subject(SUBMISSION, ASSIGNMENT, CountingTracer, lambda expected, inputs: [expected[0] * 0])
    x, y = vector(), vector(seed=1)
    seen = subject.add(x, y)
    assert torch.equal(seen.tensor, x.tensor() + y.tensor())  # the run itself is the submission's
    with pytest.raises(Failure):
        assert_close(seen, reference(plus, x, y))
    subject.close()


def test_after_a_kernel_that_never_ends_others_are_given_less(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []

    def run(*_: Any, budget: Budget, **__: Any) -> None:
        given.append(budget.work)
        raise OverBudget("work", budget.work, 12)

    monkeypatch.setattr(executor, "run", run)
    for seed in (1, 2, 3, 3, 3, 4):
        with pytest.raises(Failure, match="Does a loop in one never end") as caught:
            subject.add(vector(seed=seed), vector())
        assert (caught.value.cause, caught.value.line) == (Cause.BUDGET_EXCEEDED, 12)
    assert given == [Budget().work, *[Limit.HURRY] * 3], "what was stopped once is not run again"


def test_each_check_has_a_budget_of_its_own(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    subject.begin_check(Share())
    subject.add(vector(), vector())
    monkeypatch.setattr(subject._runs, "_most_work", subject.work)
    with pytest.raises(Failure, match="earlier calls have used up the"):
        subject.add(vector(seed=1), vector())
    subject.begin_check(Share())
    subject._runs._overdue = False
    subject.add(vector(seed=2), vector())


def test_a_call_that_an_earlier_check_made_counts_for_this_one_too(subject: Subject) -> None:
    shares = []
    for _ in range(2):
        subject.begin_check(Share())
        subject.add(vector(), vector())
        shares.append(subject.used)
    assert shares[0] == shares[1] > 0


@pytest.mark.parametrize("cause", [Cause.TIMEOUT, Cause.BUDGET_EXCEEDED])
def test_where_lowering_every_configuration_takes_too_much_the_speed_is_open(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, cause: Cause
) -> None:
    usual = CountingTracer.trace_form

    def lower(tracer: CountingTracer, form: Form) -> Program:
        if form.is_timed:
            raise TraceError(cause, "Too much.")
        return usual(tracer, form)

    monkeypatch.setattr(CountingTracer, "trace_form", lower)
    with pytest.raises(Unsupported, match="every configuration of tuned in one call"):
        subject.time("tuned", (vector(), vector()), plus, plus)
    with pytest.raises(TraceError, match="Too much"):
        subject.time("add", (vector(), vector()), plus, plus)


# --- a call that launches nothing is right where nothing is left to compute; calls with work decide who computes -------


def made_of(text: str, entry: str) -> Iterator[Subject]:
    submission = Submission("submission.py", HEAD + text, "0" * 64)
    with contextlib.closing(
        Subject(submission, Assignment(entry, "", entry, "", Path(".")), lambda: Tracer(submission))
    ) as subject:
        yield subject


@pytest.fixture
def sums() -> Iterator[Subject]:
    yield from made_of(TEXTS["sums"], "total")


@pytest.fixture(scope="module")
def products() -> Iterator[Subject]:
    yield from made_of(TEXTS["products"], "product")


def values(count: int) -> Input:
    return Input("float32", (count,), (1,), profile="positive")


def expected_total(x: Input):  # type: ignore[no-untyped-def]
    return reference(lambda x: torch.stack([x.sum(), x.new_zeros(()), x.new_zeros(())]), x)


def offence(sums: Subject, entry: str, *sizes: int, compares: bool = True) -> Failure | None:
    """What is wrong in a check that calls `entry` with so many values each."""
    try:
        for size in sizes:
            seen = getattr(sums, entry)(values(size))
            if compares:
                assert_close(seen, expected_total(values(size)))
            else:
                assert_memory_clean(seen)
        sums.assert_kernels_work()
    except Failure as failure:
        return failure
    return None


@pytest.mark.parametrize("entry", ["total", "total_of_parts"])
def test_where_there_are_no_elements_a_right_result_needs_no_launch(sums: Subject, entry: str) -> None:
    assert offence(sums, entry, 0) is None
    assert offence(sums, entry, 0, 5, compares=False) is None


def test_where_there_are_elements_it_is_wrong_and_the_missing_launch_is_why(sums: Subject) -> None:
    failure = offence(sums, "only_large", 100, 5)
    assert failure is not None and failure.cause is Cause.NO_KERNEL
    assert failure.message.startswith("only_large launches no Triton kernel. At shape [3], float32: 1 of 3")


def test_a_check_that_compares_nothing_still_asks_for_a_kernel(sums: Subject) -> None:
    failure = offence(sums, "never", 0, 5, compares=False)
    assert failure is not None and failure.cause is Cause.NO_KERNEL
    assert [call.args for call in sums.calls] == [(values(0),)]


def scaled(x: Input, p: float):  # type: ignore[no-untyped-def]
    return reference(lambda x, p: x * (1 - p), x, p)


def test_a_copy_is_right_where_another_number_makes_the_host_launch(sums: Subject) -> None:
    assert_close(sums.scaled(values(5), 0.0), scaled(values(5), 0.0))
    sums.assert_kernels_work()


@pytest.mark.parametrize("entry", ["copied", "handed_back"])
def test_a_copy_that_torch_makes_whatever_the_numbers_is_refused(sums: Subject, entry: str) -> None:
    with pytest.raises(Failure, match="no Triton kernel") as caught:
        getattr(sums, entry)(values(5), 0.0)
    assert caught.value.cause is Cause.NO_KERNEL


def test_what_depends_on_no_tensor_is_work_at_any_size(sums: Subject) -> None:
    seen = sums.ones(4)
    assert_close(seen, reference(lambda n: torch.ones(n), 4))
    with pytest.raises(Failure, match="ones launches no Triton kernel"):
        sums.assert_kernels_work()


# --- a function of a submission: its result, and the gradients of its arguments -----------------------------------------


X, Y = Input("float32", (3, 40), (40, 1), seed=1), Input("float32", (3, 40), (40, 1), seed=2)
UPSTREAM = Input("float32", (3, 40), (0, 1), seed=3)


def of_x(x: torch.Tensor, y: torch.Tensor, upstream: torch.Tensor) -> torch.Tensor:
    return upstream * y


def of_y(x: torch.Tensor, y: torch.Tensor, upstream: torch.Tensor) -> torch.Tensor:
    return upstream * x


def test_a_call_gives_the_result(products: Subject) -> None:
    assert_close(products.product(X, Y), reference(torch.mul, X, Y))


def test_the_gradients_come_in_the_order_wanted(products: Subject) -> None:
    found = products.product.gradient(X, Y, upstream=UPSTREAM, wanted=(1, 0))
    assert_close(found, [reference(of_y, X, Y, UPSTREAM), reference(of_x, X, Y, UPSTREAM)])


def test_one_gradient_alone_can_be_judged_and_the_backward_pass_runs_once_for_all(products: Subject) -> None:
    one, other = (products.product.gradient(X, Y, upstream=UPSTREAM, wanted=(0, 1), only=n) for n in (1, 0))
    assert_close(one, reference(of_y, X, Y, UPSTREAM))
    assert one.counters is other.counters


def test_a_call_is_not_mistaken_for_a_backward_pass(products: Subject) -> None:
    assert products.product(X, Y).counters.launches == 1
    assert products.product.gradient(X, Y, upstream=UPSTREAM).counters.launches == 3


def test_a_gradient_that_is_missing_is_named(products: Subject) -> None:
    with pytest.raises(Failure) as caught:
        products.without_y.gradient(X, Y, upstream=UPSTREAM, wanted=(0, 1))
    assert caught.value.cause is Cause.WRONG_TYPE
    assert "no gradient for y" in str(caught.value)


def test_torch_may_not_compute_in_the_backward_pass(products: Subject) -> None:
    with pytest.raises(Failure) as caught:
        products.by_torch.gradient(X, Y, upstream=UPSTREAM)
    assert caught.value.cause is Cause.FORBIDDEN_OP
