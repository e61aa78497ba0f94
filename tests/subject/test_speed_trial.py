"""A call is timed beside torch, and no figure counts before what the timed calls returned has been judged."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gradekit.assignment import Assignment
from gradekit.findings import Cause
from gradekit.gpu import baselines, ceilings
from gradekit.gpu.baselines import Baseline, BaselineError
from gradekit.gpu.faults import CardFault
from gradekit.gpu.timing import Turn
from gradekit.inputs.spec import normal
from gradekit.judge.failure import Failure
from gradekit.judge.reference import reference
from gradekit.judge.speed import Ceilings, Ratio
from gradekit.sandbox import TraceError, Tracer
from gradekit.subject import timed_call
from gradekit.subject.device import NeedsCard
from gradekit.subject.subject import Subject
from gradekit.subject.timed_call import assert_speed, at_least, facts
from gradekit.submission import Submission
from tests.cards import CEILINGS, FakePrepared, FakeWorker, device
from tests.texts import HEAD

TEXT = HEAD + """@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, i < n), i < n)


def double(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


def raises(x):
    raise ValueError("not today")
"""

X = normal((1000,), seed=3)


def twice(x: Any) -> Any:
    return x + x


def expected(x: Any) -> Any:
    return reference(twice, x)


class FakeClock:
    """Every turn takes `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.why = ""

    def close(self) -> None:
        pass

    def turn(self, milliseconds: float) -> Turn:
        return Turn((self.seconds,) * 3)


@pytest.fixture(autouse=True)
def torchs_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager torch takes 200 µs, compiled 90; the card moves 4 TB/s."""
    monkeypatch.setattr(baselines, "eager", lambda f, sets, card: Baseline("eager", FakeClock(2e-4)))  # type: ignore[arg-type]
    monkeypatch.setattr(baselines, "compiled", lambda f, sets, card: Baseline("compiled", FakeClock(9e-5), 3.5))  # type: ignore[arg-type]
    monkeypatch.setattr(ceilings, "measure", lambda card: CEILINGS)


@pytest.fixture(scope="module")
def tracer() -> Iterator[Tracer]:
    with Tracer(Submission("submission.py", TEXT, "")) as tracer:
        yield tracer


@pytest.fixture
def subject(tracer: Tracer) -> Callable[[FakeWorker], Subject]:
    """Makes the submission on a machine whose card has this worker."""

    def make(worker: FakeWorker) -> Subject:
        assignment = Assignment("double", "Double", "double", "2x", Path("."))
        return Subject(Submission("submission.py", TEXT, ""), assignment, lambda: tracer, device=device(worker))

    return make


Make = Callable[[FakeWorker], Subject]


def test_a_right_call_is_timed_beside_both_sides(subject: Make) -> None:
    timed = subject(FakeWorker()).double.timed(X, against=twice, expected=expected)
    assert timed.ratio("eager").value == pytest.approx(2)
    assert timed.ratio("compiled").value == pytest.approx(0.9)
    assert (timed.card, timed.size) == ("Test Card", "[1000] float32")
    assert timed.compile_seconds["compiled"] == 3.5
    assert_speed(timed, at_least(1.5, "eager"))


def test_the_work_is_counted_on_the_program_that_is_timed(subject: Make) -> None:
    work = subject(FakeWorker()).double.timed(X, against=twice, expected=expected).work
    assert (work.least_bytes, work.bytes_moved, work.flops) == (8000, 8000, 1024)


def test_a_wrong_result_of_a_timed_call_fails_whatever_its_speed(subject: Make) -> None:
    with pytest.raises(Failure, match="On Test Card, in a call that was timed: at shape") as caught:
        subject(FakeWorker(offset=0.01)).double.timed(X, against=twice, expected=expected)
    assert caught.value.cause is Cause.WRONG_VALUES


def test_every_set_of_inputs_is_judged_by_its_own_values(subject: Make) -> None:
    seen: list[torch.Tensor] = []

    def noting(x: Any) -> Any:
        seen.append(x.tensor())
        return expected(x)

    subject(FakeWorker(prepared=FakePrepared(sets=3))).double.timed(X, against=twice, expected=noting)
    assert len(seen) == 3 and not torch.equal(seen[0], seen[1])


def test_what_fails_on_every_machine_fails_before_a_card_is_asked_for_without_which_the_rest_is_open(tracer: Tracer) -> None:
    assignment = Assignment("double", "Double", "double", "2x", Path("."))
    bare = Subject(Submission("submission.py", TEXT, ""), assignment, lambda: tracer)
    with pytest.raises(TraceError, match="not today"):
        bare.raises.timed(X, against=twice, expected=expected)
    with pytest.raises(NeedsCard, match="GPU"):
        bare.double.timed(X, against=twice, expected=expected)


def test_a_fault_of_the_students_kernel_is_theirs(subject: Make) -> None:
    fault = CardFault("illegal-access", "an illegal memory access was encountered", "kernel", 9)
    with pytest.raises(Failure, match="On Test Card, kernel in double reads or writes memory") as caught:
        subject(FakeWorker(fault=fault)).double.timed(X, against=twice, expected=expected)
    assert (caught.value.cause, caught.value.line) == (Cause.ILLEGAL_ACCESS, 9)


def test_a_reference_that_torch_cannot_compile_leaves_it_open(subject: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Baseline:
        raise BaselineError("compiled: no C compiler")

    monkeypatch.setattr(baselines, "compiled", broken)
    with pytest.raises(NeedsCard, match="no C compiler"):
        subject(FakeWorker()).double.timed(X, against=twice, expected=expected)


def test_a_figure_that_no_card_can_reach_is_refused(subject: Make) -> None:
    with pytest.raises(timed_call.Impossible, match="cannot be true"):
        subject(FakeWorker(seconds=1e-10)).double.timed(X, against=twice, expected=expected)


def test_two_checks_of_one_call_share_its_figures_and_not_their_verdicts(subject: Make) -> None:
    worker = FakeWorker()
    one = subject(worker)
    first = one.double.timed(X, against=twice, expected=expected)
    assert_speed(first, at_least(1.5, "eager"))
    turns = worker.turns
    second = one.double.timed(X, against=twice, expected=expected)
    assert worker.turns == turns
    assert (len(first.verdicts), len(second.verdicts)) == (1, 0)


def test_what_the_card_holds_is_given_back_for_the_next_call(subject: Make) -> None:
    worker = FakeWorker()
    one = subject(worker)
    one.double.timed(X, against=twice, expected=expected)
    one.double.timed(normal((2000,)), against=twice, expected=expected)
    assert worker.forgotten == [0]


def test_a_call_that_could_not_be_captured_is_noted(subject: Make) -> None:
    prepared = FakePrepared(how="stream", why="operation not permitted")
    timed = subject(FakeWorker(prepared=prepared)).double.timed(X, against=twice, expected=expected)
    assert timed.notes == (
        "The submission was timed without a CUDA graph, launches included (operation not permitted).",
    )


def test_more_rounds_are_added_to_those_that_there_are(subject: Make) -> None:
    timed = subject(FakeWorker()).double.timed(X, against=twice, expected=expected)
    before = len(timed.rounds)
    timed.measure_longer({"eager": [1.5]})
    assert len(timed.rounds) > before


@pytest.fixture
def known_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled function was 2.2 times as fast as eager torch on this card."""
    found = Ratio(2.2, 2.18, 2.22, rounds=16, discarded=0)
    monkeypatch.setattr(baselines.Comparison, "found", found)


@pytest.mark.usefixtures("known_before")
def test_what_is_known_of_a_card_meets_a_requirement_without_another_measurement(subject: Make) -> None:
    timed = subject(FakeWorker()).double.timed(X, against=twice, expected=expected)
    assert_speed(timed, at_least(1.5, "eager"), at_least(0.8, "compiled"))
    assert "compiled" not in timed.rounds[0].seconds
    said = facts(timed)
    assert said["ratios"]["compiled"]["value"] == pytest.approx(2 / 2.2)
    assert said["microseconds"]["compiled"] == pytest.approx(200 / 2.2)
    assert said["notes"] == ["torch.compile was measured on this card before: 2.20 times as fast as eager torch."]


@pytest.mark.usefixtures("known_before")
@pytest.mark.parametrize("factor", [2 / 2.2, 0.95])
def test_what_is_known_of_a_card_costs_no_point(subject: Make, factor: float) -> None:
    timed = subject(FakeWorker()).double.timed(X, against=twice, expected=expected)
    with pytest.raises(Failure, match="torch.compile takes 90 µs"):
        assert_speed(timed, at_least(factor, "compiled"))
    assert facts(timed)["notes"] == []


@pytest.mark.usefixtures("known_before")
def test_a_side_that_cannot_be_measured_after_all_leaves_it_open(subject: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Baseline:
        raise BaselineError("compiled: no C compiler")

    monkeypatch.setattr(baselines, "compiled", broken)
    timed = subject(FakeWorker()).double.timed(X, against=twice, expected=expected)
    with pytest.raises(NeedsCard, match="no C compiler"):
        assert_speed(timed, at_least(0.95, "compiled"))


@pytest.mark.usefixtures("known_before")
def test_a_sweep_measures_all_sides_though_one_is_known(subject: Make) -> None:
    one = subject(FakeWorker())
    one.device.fresh = True
    assert one.double.timed(X, against=twice, expected=expected).is_measured("compiled")


def test_ceilings_that_a_time_exceeds_are_measured_again_before_it_is_called_impossible(
    subject: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = Ceilings(CEILINGS.bytes_per_second / 1e9, {})
    monkeypatch.setattr(ceilings, "measure", lambda card: low)
    monkeypatch.setattr(ceilings, "raised", lambda card, before: CEILINGS)
    timed = subject(FakeWorker()).double.timed(X, against=twice, expected=expected)
    assert timed.ceilings == CEILINGS


def test_a_card_without_memory_leaves_the_check_pending(subject: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(card: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(ceilings, "measure", full)
    with pytest.raises(NeedsCard, match="too little memory left"):
        subject(FakeWorker()).double.timed(X, against=twice, expected=expected)
