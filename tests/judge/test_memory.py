"""Claims about memory checks: what passes, what fails, at which line, and memory that grows faster than is declared."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit import domain
from gradekit.assignment import get
from gradekit.findings import Cause, Finding
from gradekit.inputs.spec import Input, normal
from gradekit.judge.failure import Failure
from gradekit.judge.memory_checks import (
    assert_allocates,
    assert_bytes_moved,
    assert_growth,
    assert_inputs_unmodified,
    assert_launches,
    assert_memory_clean,
    least_bytes,
    sizes_of,
)
from gradekit.observations import Counters
from gradekit.program import Allocate, Choice, Kernel, Launch, Program, Source, View

X = Input("float32", (8, 16), (16, 1))
RESULT = View(1, "float32", (8, 16), (16, 1))


def launch(line: int) -> Launch:
    return Launch("k", (1, 1, 1), (), Source(line))


def program(*steps: Any) -> Program:
    return Program((X.view(0),), {0: 512}, steps, (RESULT,), "tensor", {"k": Kernel("k", "")})


def observed(*findings: Finding, steps: tuple = (), **counters: int) -> Any:
    """A run over X with a result like it; counters not named are 0."""
    counts = dict.fromkeys(("bytes_loaded", "bytes_stored", "bytes_allocated", "launches"), 0) | counters
    return SimpleNamespace(
        inputs=[X, 3], results=[torch.zeros(8, 16)], findings=findings, counters=SimpleNamespace(**counts),
        program=program(*steps) if steps else None,
    )


def failure(check: Any, *args: Any, **options: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        check(*args, **options)
    return caught.value


def test_a_run_without_findings_but_for_its_cost_is_clean() -> None:
    assert_memory_clean(observed())
    assert_memory_clean(observed(Finding(Cause.TOO_MANY_LAUNCHES, "two launches")))


def test_the_gravest_finding_is_shown_and_all_are_facts() -> None:
    late = Finding(Cause.UNWRITTEN_OUTPUT, "elements unwritten", tensor="the result", count=3)
    early = Finding(
        Cause.OUT_OF_BOUNDS_STORE, "stores past the end", line=12, elements=((128,),), programs=((1, 0, 0),)
    )
    wrong = failure(assert_memory_clean, observed(late, early))
    assert (wrong.cause, wrong.message, wrong.line) == (Cause.OUT_OF_BOUNDS_STORE, "Line 12: stores past the end.", 12)
    assert [f["cause"] for f in wrong.facts["findings"]] == ["out-of-bounds-store", "unwritten-output"]
    assert wrong.facts["findings"][0]["elements"] == [[128]]


def test_inputs_stay_as_they_are_and_the_result_is_a_new_tensor() -> None:
    assert_inputs_unmodified(observed(Finding(Cause.RACE, "a race"), steps=(launch(1),)))
    written = Finding(Cause.INPUT_MODIFIED, "changes 2 elements of the input x", line=7)
    wrong = failure(assert_inputs_unmodified, observed(written))
    assert (wrong.cause, wrong.line) == (Cause.INPUT_MODIFIED, 7)
    returned = observed(steps=(launch(1),))
    returned.program = Program((X.view(0),), {0: 512}, (), (X.view(0),), "tensor", {})
    assert failure(assert_inputs_unmodified, returned).cause is Cause.UNCHANGED_INPUT


def test_one_launch_is_allowed_and_the_second_is_named() -> None:
    steps = (launch(20), Choice(((launch(21),), (launch(22),)), ("a", "b"), Source(30)))
    assert_launches(observed(steps=steps, launches=1))
    assert_launches(observed(steps=steps, launches=2), at_most=2)
    wrong = failure(assert_launches, observed(steps=steps, launches=2))
    assert (wrong.cause, wrong.line) == (Cause.TOO_MANY_LAUNCHES, 21)
    assert wrong.message == "The call launches 2 kernels, and may launch 1 kernel at most."


def test_the_result_may_be_allocated_and_nothing_else() -> None:
    steps = (Allocate(1, 512, Source(4)), Choice(((Allocate(2, 64, Source(5)),),), ("a",)))
    assert_allocates(observed(steps=steps[:1], bytes_allocated=512))
    wrong = failure(assert_allocates, observed(steps=steps, bytes_allocated=576))
    assert (wrong.cause, wrong.line) == (Cause.TOO_MUCH_MEMORY, 5)
    assert wrong.message == "The call allocates 576 bytes, and may allocate 512 bytes: the result and nothing else."


def test_of_several_allocations_too_many_the_largest_is_to_blame() -> None:
    steps = (Allocate(1, 512, Source(4)), Allocate(2, 8, Source(65)), Allocate(3, 4096, Source(68)))
    assert failure(assert_allocates, observed(steps=steps, bytes_allocated=4616)).line == 68


def test_a_number_of_bytes_may_be_allowed_instead() -> None:
    assert_allocates(observed(bytes_allocated=576), at_most_bytes=600)
    wrong = failure(assert_allocates, observed(bytes_allocated=20 << 20), at_most_bytes=600)
    assert wrong.message == "The call allocates 20.0 MiB, and may allocate 600 bytes at most."
    with pytest.raises(ValueError, match="at_most_bytes"):
        assert_allocates(observed(), only_the_result=False)


def test_a_bound_below_the_result_itself_asks_for_no_less_than_the_result() -> None:
    assert_allocates(observed(bytes_allocated=512), at_most_bytes=8)
    wrong = failure(assert_allocates, observed(bytes_allocated=576), at_most_bytes=8)
    assert wrong.message == "The call allocates 576 bytes, and may allocate 512 bytes at most."


def test_the_least_traffic_reads_each_input_and_writes_each_result_once() -> None:
    assert least_bytes(observed()) == 2 * 8 * 16 * 4


def test_bytes_moved_are_counted_against_a_number_or_a_multiple_of_the_least() -> None:
    twice = observed(bytes_loaded=1024, bytes_stored=512)
    assert_bytes_moved(twice, at_most=1536)
    assert_bytes_moved(twice, times_least=1.5)
    wrong = failure(assert_bytes_moved, twice, times_least=1.1)
    assert wrong.cause is Cause.TOO_MANY_BYTES
    assert wrong.facts["bytes_loaded"] == 1024 and "may move 1126 bytes together" in wrong.message


# --- Growth -----------------------------------------------------------------------------------------------------------


ATTENTION = domain.load(Path(__file__).parents[2] / "assignments/flash_attention/domain.toml")["attention"]


class Costing:
    """An entry whose calls allocate, launch and move what functions of the shape say, and keep so many bytes."""

    def __init__(
        self, used: Callable[..., float] = lambda *shape: math.prod(shape),
        launched: Callable[..., int] = lambda *shape: 1, moved: Callable[..., float] = lambda *shape: math.prod(shape),
        kept: int = 0,
    ) -> None:
        self.used, self.launched, self.moved, self.kept = used, launched, moved, kept

    def __call__(self, *args: Any) -> Any:
        return SimpleNamespace(counters=Counters(bytes_loaded=int(self.moved(*args[0].shape))))

    def on_one_gpu(self) -> Any:
        return self

    def traced(self, *args: Any, upstream: Input | None = None, wanted: Sequence[int] = ()) -> Program:
        source = Source(12, "attention")
        own = Allocate(9, int(self.used(*args[0].shape)), source)
        launches = [Launch("kernel", (1, 1, 1), (), source)] * self.launched(*args[0].shape)
        before = [Allocate(8, self.kept, source)] if self.kept else []
        return Program((), {}, (*before, own, *launches), (), "tensor", {}, kept=len(before))


CALL = (normal((1, 2, 300, 32)), normal((1, 2, 300, 32)), normal((1, 2, 300, 32)), False, 0.2)


@pytest.mark.parametrize("used", [
    lambda B, H, S, D: B * H * S * D * 4, lambda B, H, S, D: B * H * ((S + 127) // 128) * 128 * D * 20 + 4096,
    lambda B, H, S, D: B * H * S * 4 + B * H * S * D * 2, lambda B, H, S, D: B * H * S * D * (4 if S < 128 else 40),
    lambda B, H, S, D: B * H * S * D * (136 + min(S, 128)),
])
def test_what_grows_as_declared_is_right(used: Callable[..., float]) -> None:
    assert_growth(ATTENTION, Costing(used), *CALL)


@pytest.mark.parametrize("used", [
    lambda B, H, S, D: B * H * S * D * 4 + B * H * S * S / 8,
    lambda B, H, S, D: B * H * S * D * 4 + (B * H * S * S * 4 if S <= 512 else 0),
    lambda B, H, S, D: B * H * S * D * 4 * H,
])
def test_what_grows_faster_fails_with_its_exponent_and_its_line(used: Callable[..., float]) -> None:
    with pytest.raises(Failure, match=r"grows too fast: .* as [SH] \*\* [12]\.\d\d") as failed:
        assert_growth(ATTENTION, Costing(used), *CALL)
    assert (failed.value.cause, failed.value.line) == (Cause.TOO_MUCH_MEMORY, 12)


def test_memory_that_is_kept_may_be_as_large_as_the_largest_call_allocates() -> None:
    assert_growth(ATTENTION, Costing(kept=1 << 10), *CALL)
    with pytest.raises(Failure, match="keeps 1,099,511,627,776 bytes from call to call"):
        assert_growth(ATTENTION, Costing(kept=1 << 40), *CALL)


def test_launches_and_what_kernels_move_have_laws_too() -> None:
    one_launch = replace(ATTENTION, grows={"launches": "1"})
    assert_growth(one_launch, Costing(launched=lambda B, H, S, D: 3), *CALL)
    with pytest.raises(Failure, match=r"launches grows too fast: .* launches where S is 64") as failed:
        assert_growth(one_launch, Costing(launched=lambda B, H, S, D: S // 16), *CALL)
    assert failed.value.cause is Cause.TOO_MANY_LAUNCHES
    with pytest.raises(Failure, match=r"load and store grows too fast: .* as S \*\* 3\.00. It may grow as") as failed:
        assert_growth(ATTENTION, Costing(moved=lambda B, H, S, D: B * H * D * S**3), *CALL)
    assert failed.value.cause is Cause.TOO_MANY_BYTES


COUNTS = domain.load(Path(__file__).parents[2] / "assignments/histogram/domain.toml")["histogram"]


class Counting(Costing):
    def traced(self, *args: Any, upstream: Input | None = None, wanted: Sequence[int] = ()) -> Program:
        own = Allocate(9, int(self.used(args[0].shape[0], args[1])), Source(12, "histogram"))
        return Program((), {}, (own,), (), "tensor", {})


CALL_OF_COUNTS = (Input("int32", (3000,), (1,)), 300)


@pytest.mark.parametrize("used", [lambda N, B: 64 * 4 * B, lambda N, B: 4 * N + 4 * B])
def test_what_is_bounded_may_have_any_part_of_it(used: Callable[..., float]) -> None:
    assert_growth(COUNTS, Counting(used), *CALL_OF_COUNTS)


@pytest.mark.parametrize(("used", "said"), [
    (lambda N, B: N * B / 256, "N = 2,145,386,495, B = 65,536"),  # within it where one of both is short
    (lambda N, B: 5 * N, "N = 2,145,386,495, B = 300"),
    (lambda N, B: 257 * B, "N = 3,000, B = 65,536"),
    (lambda N, B: min(N / 1024, 128) * 4 * B, "N = 262,144, B = 65,536"),  # within it at the ends of both
])
def test_the_largest_calls_of_one_size_and_of_all_are_held_against_a_bound(
    used: Callable[..., float], said: str
) -> None:
    with pytest.raises(Failure) as caught:
        assert_growth(COUNTS, Counting(used), *CALL_OF_COUNTS)
    assert said in caught.value.message and (caught.value.cause, caught.value.line) == (Cause.TOO_MUCH_MEMORY, 12)


def test_what_backward_is_given_is_taken_for_no_number_that_a_call_leaves_out() -> None:
    entry = get("layer_norm").domain["layer_norm"]
    x, line = Input("float32", (3, 8), (8, 1)), Input("float32", (8,), (1,))
    assert sizes_of(entry, [x, line, line, x]) == sizes_of(entry, [x, line, line, 1e-5]) == {"M": 3, "N": 8}
