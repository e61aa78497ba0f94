"""Triton is asked about each kernel once; what it refused it is asked again, for the next submission too."""

from typing import Any

import pytest

from gradekit.findings import Cause
from gradekit.judge.failure import Failure
from gradekit.program import Kernel, Program
from gradekit.sandbox import TraceError
from gradekit.subject.soundness import Soundness


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
    with judge.held(program(ttir), "add"):
        pass


def test_a_kernel_that_was_accepted_is_not_read_again_for_another_submission() -> None:
    reader = Reader()
    for _ in range(2):
        hold(soundness(reader), "fine")
    assert reader.asked == ["fine"]


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
    with pytest.raises(KeyError), soundness(reader).held(program("fine"), "add"):
        raise KeyError("the engine breaks down")
