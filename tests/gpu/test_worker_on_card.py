"""Whatever a kernel does to the card, the grader gets a result or a fault, and the card is usable afterwards."""

from collections.abc import Iterator

import pytest
import torch

from gradekit.findings import Cause
from gradekit.gpu import card
from gradekit.gpu.worker import CardFault, Worker
from gradekit.inputs.spec import Input
from gradekit.program import Launch, Program

from .programs import AUTOTUNED, COPY, ENDLESS, FAR_AWAY, NEXT_TO_IT, answers_awaited_once_it_runs, entry, normal

pytestmark = pytest.mark.gpu

TOO_LARGE = """
    @triton.jit
    def too_large(x_ptr, out_ptr, M: tl.constexpr, K: tl.constexpr):
        i, k = tl.arange(0, M), tl.arange(0, K)
        a = tl.load(x_ptr + i[:, None] * K + k[None, :])
        b = tl.load(x_ptr + k[:, None] * M + i[None, :])
        tl.store(out_ptr + i[:, None] * M + i[None, :], tl.dot(a, b))

    def entry(x):
        out = torch.empty((128, 128), device=x.device)
        too_large[(1,)](x, out, M=128, K=512, num_warps=8)
        return out
"""

PRINTS = """
    @triton.jit
    def prints(x_ptr, out_ptr):
        tl.device_print("value", tl.load(x_ptr).to(tl.int32))
        tl.store(out_ptr, 1.0)

    def entry(x):
        out = torch.empty_like(x)
        prints[(1,)](x, out)
        return out
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(card.find()) as found:
        yield found


def line_of(program: Program) -> int | None:
    return next((step.source.line for step in program.steps if isinstance(step, Launch) and step.source), None)


def usable(worker: Worker) -> bool:
    made, tensors = entry(COPY, normal(500))
    mine = torch.ones(5, device="cuda").sum().item() == 5.0
    return mine and torch.equal(worker.run(made, tensors).results[0], tensors[0])


def test_a_run_on_the_card_comes_back(worker: Worker) -> None:
    assert usable(worker)


@pytest.mark.parametrize(("text", "spec", "kind", "kernel", "said"), [
    (FAR_AWAY, normal(8), "illegal-access", "far_away", "."),
    (TOO_LARGE, normal(128, 512, dtype="float16"), "resources", "too_large", "shared memory"),
], ids=["an illegal access", "more than there is"])
def test_a_fault_is_one_of_its_kernel(worker: Worker, text: str, spec: Input, kind: str, kernel: str, said: str) -> None:
    made, tensors = entry(text, spec)
    with pytest.raises(CardFault, match=said) as caught:
        worker.run(made, tensors)
    assert (caught.value.kind, caught.value.kernel, caught.value.line) == (kind, kernel, line_of(made))
    assert usable(worker)


def test_a_kernel_that_does_not_end_is_a_fault_of_its_own(worker: Worker) -> None:
    made, tensors = entry(ENDLESS, normal(8))
    assert usable(worker)
    with answers_awaited_once_it_runs(worker, "endless"), pytest.raises(CardFault) as caught:
        worker.run(made, tensors, seconds=5)
    assert (caught.value.kind, caught.value.kernel, caught.value.line) == ("hang", "endless", line_of(made))
    assert usable(worker)


def test_an_endless_kernel_cannot_be_prepared(worker: Worker) -> None:
    made, _ = entry(ENDLESS, normal(8))
    assert usable(worker)
    with answers_awaited_once_it_runs(worker, "endless"), pytest.raises(CardFault) as caught:
        worker.prepare(made, [normal(8)], seconds=5)
    assert (caught.value.kind, caught.value.kernel) == ("hang", "endless")
    assert usable(worker)


def test_a_store_next_to_a_tensor_is_seen(worker: Worker) -> None:
    made, tensors = entry(NEXT_TO_IT, normal(60))
    (finding,) = worker.run(made, tensors, names=["x"]).findings
    assert (finding.cause, finding.tensor, finding.kernel) == (Cause.OUT_OF_BOUNDS_STORE, "the result", "no_mask")
    assert finding.count <= 16 and finding.line == line_of(made)


def test_what_kernels_print_is_kept(worker: Worker) -> None:
    made, tensors = entry(PRINTS, normal(8))
    assert any("value" in line for line in worker.run(made, tensors).prints)
    made, tensors = entry(COPY, normal(8))
    assert worker.run(made, tensors).prints == ()


def test_the_fastest_configuration_is_found_by_the_workers_clock(worker: Worker) -> None:
    spec = normal(1 << 22)
    made, _ = entry(AUTOTUNED, spec)
    prepared = worker.prepare(made, [spec])
    assert prepared.how == "graph", prepared.why
    assert len(prepared.choices) == 3 and "BLOCK=32," not in prepared.option_label
    assert prepared.choices[prepared.option_label] == min(prepared.choices.values())
    worker.forget(prepared.id)


def test_every_output_of_the_timed_calls_is_right(worker: Worker) -> None:
    from gradekit.gpu.inputs import make_set

    spec = normal(1 << 20)
    made, _ = entry(AUTOTUNED, spec)
    prepared = worker.prepare(made, [spec])
    turn = worker.turn(prepared.id, milliseconds=5)
    assert 0 < min(turn.seconds) < 1e-3
    results = list(worker.results(prepared.id))
    assert len(results) == prepared.sets > 2
    for number, (result,) in enumerate(results):
        (x,) = make_set([spec], number, "cuda")
        assert torch.equal(result, (x * 2).cpu())
    worker.forget(prepared.id)
