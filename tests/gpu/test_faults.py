"""What torch, Triton and CUDA say becomes one of six kinds."""

import pytest

from gradekit.gpu.faults import CardFault, fault_of


class OutOfResources(Exception):
    """As Triton's."""


@pytest.mark.parametrize(("error", "kind"), [
    (RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with"), "illegal-access"),
    (RuntimeError("Triton Error [CUDA]: misaligned address"), "illegal-access"),
    (RuntimeError("CUDA error: device-side assert triggered"), "illegal-access"),
    (RuntimeError("Triton Error [CUDA]: out of memory"), "out-of-memory"),
    (RuntimeError("Triton Error [CUDA]: invalid argument"), "resources"),
    (OutOfResources("out of resource: shared memory"), "resources"),
    (RuntimeError("CUDA error: the launch timed out and was terminated"), "hang"),
    (RuntimeError("something else"), "crash"),
    (KeyError(3), "crash"),
])
def test_an_error_has_a_kind(error: Exception, kind: str) -> None:
    assert fault_of(error).kind == kind


def test_only_a_kernel_that_broke_the_rules_ends_the_process() -> None:
    assert fault_of(RuntimeError("CUDA error: an illegal memory access was encountered")).deadly
    assert not fault_of(RuntimeError("CUDA out of memory. Tried to allocate")).deadly


ASSEMBLER = ("PTXAS error: codegen error", "`ptxas` stderr:", "ptxas fatal   : Insufficient registers (64)", "Repro")


@pytest.mark.parametrize(
    ("lines", "words"),
    [(("CUDA error: misaligned address", "CUDA kernel errors might be reported later"), "misaligned address"), (ASSEMBLER, ASSEMBLER[2])],
)
def test_the_words_are_the_first_line_without_the_speaker_or_what_the_assembler_says(lines: tuple[str, ...], words: str) -> None:
    assert fault_of(RuntimeError("\n".join(lines))).message == words


def test_a_fault_travels_as_json() -> None:
    fault = CardFault("hang", "endless", "kernel", 7)
    again = CardFault.from_json(fault.to_json())
    assert (again.kind, again.message, again.kernel, again.line) == ("hang", "endless", "kernel", 7)


@pytest.mark.parametrize("data", [None, {}, {"kind": "mystery"}, [1]])
def test_what_is_no_fault_is_a_crash(data: object) -> None:
    assert CardFault.from_json(data).kind == "crash"
