"""RunCache that an earlier submission has had: told of the next where everything is the same, and of no other."""

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest
import torch

from gradekit.engine.executor import RunResult
from gradekit.findings import Cause, Finding
from gradekit.inputs.spec import normal
from gradekit.judge.contents import LARGEST, Results, content
from gradekit.judge.failure import Failure
from gradekit.observations import Counters
from gradekit.program import Kernel, Launch, Program, Scalar, Source, View
from gradekit.sandbox import TraceError
from gradekit.subject import run_cache
from gradekit.subject.call_spec import call_spec
from gradekit.subject.rules import Soundness
from gradekit.subject.run_cache import RunCache, key_of
from gradekit.wire import ForkedCache

X = View(0, "float32", (4,), (1,), 0)
KERNEL = Kernel("kernel", 'tt.func @kernel() loc("submission.py":3:1)', {"num_warps": 4})
LAUNCH = Launch("k", (1, 1, 1), (X, Scalar(4)), Source(9))
PROGRAM = Program((X,), {0: 16}, (LAUNCH,), (X,), "tensor", {"k": KERNEL})
MOVED = replace(PROGRAM, kernels={"k": replace(KERNEL, ttir=KERNEL.ttir.replace(":3:", ":4:"))})
OTHER = replace(PROGRAM, steps=(replace(LAUNCH, grid=(2, 1, 1)),))


def key(seed: int = 0, program: Program = PROGRAM, option: int = 0, allow: Collection[str] = ("aten::sum",)) -> bytes:
    return key_of(program, option, call_spec("f", (normal((4,), seed=seed),)), allow)


def running(size: int = 4, **shown: Any) -> tuple[Callable[[], RunResult], list[int]]:
    """Gives a new run with each call, and counts them."""
    ran: list[int] = []

    def run() -> RunResult:
        ran.append(1)
        return replace(RunResult([torch.zeros(size), None, 7], [], Counters(launches=1)), **shown)

    return run, ran


SAID = {"prints": ["said"]}
FOUND = {"findings": [Finding(Cause.RACE, "races")]}


def test_the_same_question_is_answered_without_running_again() -> None:
    runs, (run, ran) = RunCache(), running()
    first, second = (runs.get_or_run(key(), run) for _ in range(2))
    assert isinstance(second.results, Results) and second.results._values == first.results._values  # type: ignore[attr-defined]
    assert first.counters == second.counters and ran == [1]


@pytest.mark.parametrize("other", [
    lambda: key(1), lambda: key(program=OTHER), lambda: key(option=1), lambda: key(allow=()),
    lambda: key(program=replace(PROGRAM, kept=1)),
])
def test_any_difference_is_another_question(other: Callable[[], bytes]) -> None:
    runs, (run, ran) = RunCache(), running()
    runs.get_or_run(key(), run)
    runs.get_or_run(other(), run)
    assert ran == [1, 1]


def test_names_and_places_do_not_matter() -> None:
    assert key(program=MOVED) == key()


@pytest.mark.parametrize("shown", [SAID, FOUND])
def test_where_something_is_to_be_told_each_is_run_itself(shown: Any) -> None:
    runs, (run, ran) = RunCache(), running(**shown)
    for _ in range(2):
        seen = runs.get_or_run(key(), run)
    assert ran == [1, 1] and (seen.prints or seen.findings)


def test_whoever_changes_a_result_or_counters_changes_them_for_nobody_else() -> None:
    runs, (run, _) = RunCache(), running()
    for _ in range(4):
        seen = runs.get_or_run(key(), run)
        assert not seen.results[0].any() and seen.counters.launches == 1
        seen.results[0].fill_(1)
        seen.counters.launches = 9


def test_small_results_of_an_earlier_run_are_there_when_somebody_looks() -> None:
    runs, (run, ran) = RunCache(), running()
    runs.get_or_run(key(), run)
    seen = runs.get_or_run(key(), run)
    assert torch.equal(seen.results[0], torch.zeros(4)) and seen.results[2] == 7
    assert ran == [1]


def test_large_results_of_an_earlier_run_are_made_again_when_somebody_looks() -> None:
    runs, (run, ran) = RunCache(), running(size=LARGEST)
    runs.get_or_run(key(), run)
    seen = runs.get_or_run(key(), run)
    assert ran == [1]
    assert torch.equal(seen.results[0], torch.zeros(LARGEST)) and seen.results[2] == 7
    assert ran == [1, 1]


def test_results_of_an_unshared_run_are_its_own() -> None:
    run, _ = running()
    made = run()
    assert run_cache.uncached(made).results[0] is made.results[0]


# --- a class: what one fork has run, the others need not run ---------------------------------------------------------

WAYS = {"ways": {(0, 3): 2, (1, 0): 7}, "in_place": True}


def in_fork(work: Callable[[], object]) -> None:
    """Does it in a fork of this process, which must not fail."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_fork_is_told_of_what_another_fork_has_run() -> None:
    runs, (run, ran) = RunCache(), running(**WAYS)
    runs.in_class = ForkedCache(1 << 20)
    in_fork(lambda: runs.get_or_run(key(), run))
    told, own = runs.get_or_run(key(), run), run()
    assert ran == [1], "the one of this test's own"
    assert (told.ways, told.in_place, told.counters) == (own.ways, own.in_place, own.counters)
    assert isinstance(told.results, Results) and told.results.contents is None, "not all of them are tensors"
    assert told.results._values[0] == content(own.results[0]) and list(told.results._values[1:]) == [None, 7]


@pytest.mark.parametrize("shown", [SAID, FOUND])
def test_a_run_with_something_to_be_told_is_no_fork_s_but_its_own(shown: Any) -> None:
    runs, (run, ran) = RunCache(), running(**shown)
    runs.in_class = ForkedCache(1 << 20)
    in_fork(lambda: runs.get_or_run(key(), run))
    runs.get_or_run(key(), run)
    assert ran == [1]


@pytest.mark.parametrize("torn", [b"\n", b"\n%(key)s", b"\n%(key)s [[1", b"\n%(key)s [[1]", b"\n%(key)s nonsense\n"])
def test_what_a_killed_fork_has_left_of_an_entry_is_no_answer(torn: bytes) -> None:
    cache, name = ForkedCache(1 << 20), b"key"
    os.write(cache._file, torn % {b"key": name.hex().encode()})
    assert cache.get(name) is None
    cache.put(b"other", [2])
    assert cache.get(b"other") == [2] and cache.get(name) is None


def test_a_class_keeps_no_more_than_it_may() -> None:
    cache = ForkedCache(64)
    for number in range(9):
        cache.put(bytes([number]), [number])
    assert cache.get(b"\x00") == [0] and cache.get(b"\x08") is None
    assert os.fstat(cache._file).st_size <= 64


def test_a_program_that_is_started_does_not_inherit_what_a_class_shares() -> None:
    assert not os.get_inheritable(ForkedCache(64)._file)


# --- triton is asked about each kernel once ---------------------------------------------------------------------------


class Reader:
    """Stands in for Triton's parser: it refuses what says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def signature(self, ttir: str) -> list[str]:
        """No arguments."""
        self.asked.append(ttir)
        if "refused" in ttir:
            raise TraceError(Cause.CRASH, "not a kernel")
        return []


def soundness(reader: Reader) -> Soundness:
    made = Soundness()
    made._reader = reader  # type: ignore[assignment]
    return made


def program(ttir: str) -> Program:
    return Program((), {}, (), (), "none", {"k": Kernel("k", ttir)})


def hold(judge: Soundness, ttir: str) -> None:
    with judge.answers_for(program(ttir), "add"):
        pass


def test_a_kernel_that_was_accepted_is_not_read_again_for_another_submission() -> None:
    reader = Reader()
    for _ in range(2):
        hold(soundness(reader), "fine")
    assert reader.asked == ["fine"]


def test_a_kernel_is_read_where_more_than_names_and_places_differ_from_one_that_was_accepted() -> None:
    reader, texts = Reader(), [f'%{name} = "{op}"() : () -> i32 loc("f":{line}:1)' for name, op, line in
                               (("a", "x", 1), ("b", "x", 2), ("a", "y", 1))]  # fmt: skip
    for text in texts:
        hold(soundness(reader), text)
    assert reader.asked == [texts[0], texts[2]]


def test_a_kernel_that_was_refused_is_refused_every_time() -> None:
    reader, causes = Reader(), list[Any]()
    for _ in range(2):
        with pytest.raises(Failure) as caught:
            hold(soundness(reader), "refused")
        causes.append(caught.value.cause)
    assert reader.asked == ["refused"] * 2 and causes == [Cause.CRASH] * 2


def test_an_engine_that_breaks_down_over_a_sound_program_is_to_blame_itself() -> None:
    reader = Reader()
    hold(soundness(reader), "fine")
    with pytest.raises(KeyError), soundness(reader).answers_for(program("fine"), "add"):
        raise KeyError("the engine breaks down")
