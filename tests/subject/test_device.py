"""The card that may be used, why there is none, and whose fault a fault is."""

from typing import Any

import pytest
import torch

from gradekit.findings import Cause
from gradekit.gpu.faults import CardFault
from gradekit.judge.failure import Failure
from gradekit.program import Program
from gradekit.subject.device import Device, NeedsCard, judged
from tests.cards import FakeWorker, device

NOTHING = Program((), {}, (), (), "none", {})

needs_no_card = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a card")


@needs_no_card
def test_auto_is_no_card_where_there_is_none() -> None:
    assert Device().card is None
    with pytest.raises(NeedsCard, match="this machine has none"):
        Device().need()


def test_the_cpu_is_never_a_card() -> None:
    assert Device("cpu").card is None
    with pytest.raises(NeedsCard, match="--device cpu"):
        Device("cpu").need()


@needs_no_card
@pytest.mark.parametrize("wanted", ["cuda", "cuda:3", "tpu"])
def test_a_card_that_is_not_there_is_refused(wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        _ = Device(wanted).card


def test_the_worker_starts_when_it_is_needed_and_ends_with_the_device() -> None:
    worker = FakeWorker()
    here = device(worker)
    assert here.names == {}
    assert here.worker is here.worker is worker
    assert (here.names["gpu"], here.names["gpu_uuid"]) == ("Test Card", "GPU-0")
    here.close()
    assert worker.closed


@pytest.mark.parametrize(("kind", "cause", "said"), [
    ("illegal-access", Cause.ILLEGAL_ACCESS, "memory that is not its own"),
    ("hang", Cause.BUDGET_EXCEEDED, "does not end"),
    ("compile", Cause.COMPILATION_ERROR, "does not compile"),
    ("resources", Cause.OUT_OF_RESOURCES, "more than the card has"),
    ("out-of-memory", Cause.OUT_OF_MEMORY, "more memory than the card has"),
])
def test_what_a_students_kernel_did_is_their_failure(kind: Any, cause: Cause, said: str) -> None:
    found = judged(CardFault(kind, "CUDA's words", "softmax_kernel", 14), "softmax", "Test Card")
    assert isinstance(found, Failure)
    assert (found.cause, found.line, found.facts["detail"]) == (cause, 14, "CUDA's words")
    assert found.message.startswith("On Test Card, softmax_kernel in softmax ") and said in found.message


@pytest.mark.parametrize("kind", ["crash", "out-of-memory", "hang"])
def test_what_no_kernel_is_to_blame_for_is_nobodys_zero(kind: Any) -> None:
    found = judged(CardFault(kind, "something broke"), "softmax", "Test Card")
    assert isinstance(found, NeedsCard) and "something broke" in found.reason


def test_the_cards_own_trouble_is_kept_for_the_report() -> None:
    here = device(FakeWorker(fault=CardFault("crash", "something broke.")))
    with pytest.raises(NeedsCard):
        here.run(NOTHING, [], option=0, allow=(), entry="softmax")
    assert here.troubles == ["Test Card did not measure it (crash): something broke."]
