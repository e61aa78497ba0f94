"""Runs on a card: what the engine finds right is run there too, and what it does not know is judged by the card alone."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from gradekit.assignment import Assignment
from gradekit.engine.budget import Unsupported
from gradekit.findings import Cause, Finding
from gradekit.gpu.faults import CardFault
from gradekit.inputs.spec import Input, normal
from gradekit.judge.compare import assert_close
from gradekit.judge.diagnose import diagnose
from gradekit.judge.failure import Failure
from gradekit.judge.memory_checks import (
    assert_allocates,
    assert_bytes_moved,
    assert_inputs_unmodified,
    assert_launches,
    assert_memory_clean,
)
from gradekit.judge.reference import reference
from gradekit.sandbox import Tracer
from gradekit.subject import Limit
from gradekit.subject.runs import Share
from gradekit.subject.subject import Subject, part_of
from gradekit.submission import Submission
from tests.beside import beside
from tests.cards import FakeWorker, device
from tests.texts import HEAD, ending

TEXT = HEAD + beside(__file__)["text"] + ending(
    "x", "torch.empty_like(x)", "kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel() + 1, BLOCK=64)", "outside",
)
SUBMISSION = Submission("submission.py", TEXT, "")
ASSIGNMENT = Assignment("double", "Double", "double", "2x", Path("."))


@pytest.fixture(scope="module")
def tracer() -> Iterator[Tracer]:
    with Tracer(SUBMISSION) as tracer:
        yield tracer


Make = Callable[[FakeWorker], Subject]


@pytest.fixture
def subject(tracer: Tracer) -> Make:
    """Makes the submission on a machine with a card, of which each check gets eight runs."""

    def make(worker: FakeWorker) -> Subject:
        made = Subject(SUBMISSION, ASSIGNMENT, lambda: tracer, device=device(worker))
        made.begin_check(Share(8))
        return made

    return make


def vector(seed: int = 0, size: int = 100) -> Input:
    return normal((size,), seed=seed)


def expected(x: Input) -> object:
    return reference(lambda x: x + x, x)


def test_what_the_engine_finds_right_is_run_on_the_card_too(subject: Make) -> None:
    seen = subject(FakeWorker()).double(vector())
    (variant,) = seen.variants
    assert (variant.card, variant.circumstance) == ("Test Card", "on Test Card")
    assert_close(seen, expected(vector()))


def test_what_is_wrong_on_the_card_alone_fails_and_names_the_card(subject: Make) -> None:
    seen = subject(FakeWorker(offset=0.01)).double(vector())
    with pytest.raises(Failure, match="On Test Card: at shape") as caught:
        assert_close(seen, expected(vector()))
    assert caught.value.cause is Cause.WRONG_VALUES


def test_configurations_that_give_the_same_results_share_them(tracer: Tracer) -> None:
    seen = Subject(SUBMISSION, ASSIGNMENT, lambda: tracer).tuned(vector())
    assert [variant.results is seen.results for variant in seen.variants] == [True]


def test_results_that_differ_in_each_configuration_have_a_limit(tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(Subject(SUBMISSION, ASSIGNMENT, lambda: tracer).fickle(vector()).variants) == 2
    monkeypatch.setattr(Limit, "CONFIGURATION_BYTES", 1000)
    with pytest.raises(Failure, match="3 configurations") as caught:
        Subject(SUBMISSION, ASSIGNMENT, lambda: tracer).fickle(vector())
    assert caught.value.cause is Cause.BUDGET_EXCEEDED


def test_of_a_call_that_takes_too_much_with_all_programs_some_are_judged(
    tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, call = Subject(SUBMISSION, ASSIGNMENT, lambda: tracer), vector(size=128 * 400)
    monkeypatch.setattr(one._runs, "_most_work", 1)
    seen = one.double(call)
    assert_close(seen, expected(call))
    assert seen.counters.bytes_loaded == seen.counters.bytes_stored == 4 * 128 * 400
    with pytest.raises(Failure, match="because it takes more"):
        seen.results[0]
    wrong = one.fickle(call)
    with pytest.raises(Failure, match="wrong") as caught:
        assert_close(wrong, expected(call))
    diagnose(caught.value, wrong)  # a cause is looked for without the results that nobody may look at
    with pytest.raises(Failure, match="used up"):  # too few to leave some out
        one.double(vector(size=64 * 40))


@pytest.mark.parametrize("number", [0, 1])
def test_of_a_call_that_is_run_in_part_a_check_may_look_at_one_result(
    tracer: Tracer, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    one, call = Subject(SUBMISSION, ASSIGNMENT, lambda: tracer), vector(size=64 * 4000)
    monkeypatch.setattr(one._runs, "_most_work", 1)
    seen = part_of(one.doubled_twice(call), number)
    assert_close(seen, reference(lambda x: x * (2, 4)[number], call))
    if number == 1:  # the last launch wrote it
        with pytest.raises(Failure, match="wrong"):
            assert_close(seen, reference(lambda x: x * 2, call))


def test_what_is_run_in_part_may_be_copied_and_read_what_earlier_launches_made(
    tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, call, work = Subject(SUBMISSION, ASSIGNMENT, lambda: tracer), vector(size=64 * 4000), dict[str, int]()
    monkeypatch.setattr(one._runs, "_most_work", 1)
    for entry in ("cast", "own", "others", "zeroed"):
        seen = getattr(one, entry)(call)
        assert_close(seen, expected(call))
        with pytest.raises(Failure, match="wrong"):
            assert_close(seen, reference(lambda x: x + x + x, call))
        work[entry] = seen.counters.work
    assert work["own"] < work["others"] < work["zeroed"], "where each reads its own, some of the earlier launch serve"


def test_what_the_engine_finds_wrong_never_goes_to_the_card(subject: Make) -> None:
    worker = FakeWorker()
    assert subject(worker).outside(vector()).findings
    assert worker.asked == []


def test_each_configuration_gets_its_turn_on_the_card(subject: Make) -> None:
    worker = FakeWorker()
    one = subject(worker)
    labels = [one.tuned(vector(seed)).variants[-1].circumstance for seed in range(4)]
    assert len(set(worker.asked)) == 2
    assert all(label.startswith("on Test Card, with the configuration ") for label in labels)


def test_a_configuration_that_does_not_fit_on_the_card_is_left_out_as_triton_does(subject: Make) -> None:
    worker = FakeWorker(faults={0: CardFault("resources", "out of resource: shared memory", "tuned_kernel", 15)})
    (variant,) = [v for v in subject(worker).tuned(vector()).variants if v.card]
    assert "BLOCK: 32" in variant.label or "BLOCK=32" in variant.label


def test_a_kernel_of_which_no_configuration_fits_fails(subject: Make) -> None:
    fault = CardFault("resources", "out of resource: shared memory", "tuned_kernel", 15)
    with pytest.raises(Failure) as caught:
        subject(FakeWorker(faults={0: fault, 1: fault})).tuned(vector())
    assert caught.value.cause is Cause.OUT_OF_RESOURCES


def test_a_check_sends_no_more_runs_than_a_share_of_its_own(subject: Make) -> None:
    one = subject(FakeWorker())
    for first in (0, 10):
        one.begin_check(Share(2, stride=3))
        carded = [bool(one.double(vector(first + seed)).variants) for seed in range(10)]
        assert carded == [True, False, False, True, *[False] * 6]


def test_a_fault_on_the_card_is_the_students_failure_and_remembered(subject: Make) -> None:
    worker = FakeWorker(fault=CardFault("illegal-access", "an illegal memory access", "kernel", 9))
    one = subject(worker)
    for _ in range(2):
        with pytest.raises(Failure, match="On Test Card, kernel in double") as caught:
            one.double(vector())
        assert caught.value.line == 9
    assert len(worker.asked) == 1


def test_a_store_that_only_the_card_saw_is_a_finding_and_names_it(subject: Make) -> None:
    found = Finding(Cause.OUT_OF_BOUNDS_STORE, "stores past the end of the result", line=10)
    seen = subject(FakeWorker(findings=[found])).double(vector())
    with pytest.raises(Failure, match="Line 10: On Test Card: stores past the end"):
        assert_memory_clean(seen)


def test_the_cards_own_trouble_leaves_the_engines_word(subject: Make) -> None:
    one = subject(FakeWorker(fault=CardFault("crash", "gone")))
    seen = one.double(vector())
    assert seen.variants == ()
    assert_close(seen, expected(vector()))
    assert len(one.device.troubles) == 1


def test_with_a_substitution_nothing_runs_on_the_card(tracer: Tracer) -> None:
    worker = FakeWorker()
    substituted = Subject(SUBMISSION, ASSIGNMENT, lambda: tracer, lambda wanted, inputs: wanted, device=device(worker))
    substituted.begin_check(Share(8))
    substituted.double(vector())
    assert worker.asked == []


# --- what the engine does not know ------------------------------------------------------------------------------------


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine knows nothing; the worker of these tests, which uses it too, still does."""
    import gradekit.subject.runs

    def run(*_: object, **__: object) -> None:
        raise Unsupported("tt.elementwise_inline_asm", 9)

    monkeypatch.setattr(gradekit.subject.runs, "executor", SimpleNamespace(run=run))
    monkeypatch.setattr(gradekit.subject.runs, "run_with_trials", run)


@pytest.mark.usefixtures("unknown")
def test_what_the_engine_does_not_know_is_judged_by_the_card_in_every_configuration(subject: Make) -> None:
    assert_close(subject(FakeWorker()).double(vector()), expected(vector()))
    with pytest.raises(Failure):
        assert_close(subject(FakeWorker(offset=0.01)).double(vector()), expected(vector()))
    worker = FakeWorker()
    assert len(subject(worker).tuned(vector()).variants) == 1 and sorted(worker.asked) == [0, 1]


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize("claim", [assert_memory_clean, assert_inputs_unmodified, assert_bytes_moved])
def test_nobody_watched_its_memory_so_that_stays_open(subject: Make, claim: Callable[[object], None]) -> None:
    with pytest.raises(Unsupported, match="inline_asm"):
        claim(subject(FakeWorker()).double(vector()))


@pytest.mark.usefixtures("unknown")
def test_what_the_card_itself_saw_it_do_is_known(subject: Make) -> None:
    found = Finding(Cause.OUT_OF_BOUNDS_STORE, "stores past the end of the result", line=10)
    with pytest.raises(Failure):
        assert_memory_clean(subject(FakeWorker(findings=[found])).double(vector()))


@pytest.mark.usefixtures("unknown")
def test_launches_and_allocations_are_known_from_the_program(subject: Make) -> None:
    seen = subject(FakeWorker()).double(vector())
    assert_launches(seen, at_most=1)
    assert_allocates(seen)
    assert (seen.counters.launches, seen.counters.bytes_allocated) == (1, 400)


@pytest.mark.usefixtures("unknown")
def test_without_a_card_it_is_left_open(tracer: Tracer) -> None:
    with pytest.raises(Unsupported):
        Subject(SUBMISSION, ASSIGNMENT, lambda: tracer).double(vector())
