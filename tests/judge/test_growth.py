"""Memory that grows faster than the assignment declares is found, however small it is at the sizes of examples."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradekit import domain
from gradekit.findings import Cause
from gradekit.inputs.spec import Input, normal
from gradekit.judge.failure import Failure
from gradekit.judge.memory_checks import assert_growth
from gradekit.observations import Counters
from gradekit.program import Allocate, Launch, Program, Source

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
