"""Traffic and arithmetic counted on a sample of the programs are those of the whole run."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from gradekit.engine import executor
from gradekit.engine.budget import Budget, OverBudget
from gradekit.engine.traffic import count, least_bytes
from gradekit.inputs.spec import Input, normal
from gradekit.program import Program, View
from gradekit.sandbox import Tracer
from gradekit.submission import Submission, read
from tests.beside import beside
from tests.texts import HEAD, ending

ROOT = Path(__file__).parents[2]

TEXT = HEAD + beside(__file__)["text"] + ending("x", "torch.empty_like(x)", "endless_kernel[(1,)](out)", "endless")

Trace = Callable[..., Program]


@pytest.fixture(scope="module")
def trace() -> Iterator[Trace]:
    with Tracer(Submission("submission.py", TEXT, "")) as tracer:
        yield lambda entry, *specs: tracer.trace(entry, [spec.view(i) for i, spec in enumerate(specs)])


def solution(id: str, entry: str, *specs: Input) -> Program:
    with Tracer(read(ROOT / "solutions" / id / "solution.py")) as tracer:
        return tracer.trace(entry, [spec.view(i) for i, spec in enumerate(specs)])


MEDIUM = [
    ("vector_add", "add", [normal((200_003,)), normal((200_003,))]),
    ("fused_chain", "fused_chain", [normal((300, 700)), normal((700,)), normal((300, 700))]),
    ("softmax", "softmax", [normal((777, 1000))]),
    ("softmax", "softmax", [normal((333, 4097))]),
    ("matmul", "matmul", [normal((900, 300), "float16"), normal((300, 1100), "float16")]),
]


@pytest.mark.parametrize(("id", "entry", "specs"), MEDIUM, ids=[f"{m[0]}-{m[2][0].shape}" for m in MEDIUM])
def test_a_sample_of_a_solution_comes_within_five_percent(id: str, entry: str, specs: list[Input]) -> None:
    program = solution(id, entry, *specs)
    whole = executor.run(program, [spec.tensor() for spec in specs]).counters
    sampled = count(program)
    assert sampled.bytes_loaded == pytest.approx(whole.bytes_loaded, rel=0.05)
    assert sampled.bytes_stored == pytest.approx(whole.bytes_stored, rel=0.05)
    assert sampled.flops == pytest.approx(whole.flops, rel=0.05)


def test_a_small_grid_is_counted_exactly() -> None:
    specs = [normal((7, 1000))]
    program = solution("softmax", "softmax", *specs)
    whole, counted = executor.run(program, [specs[0].tensor()]).counters, count(program)
    assert (counted.bytes_loaded, counted.bytes_stored, counted.flops) == (28_000, 28_000, whole.flops)
    assert counted.exact and counted.launches == 1


def test_a_size_that_no_cpu_would_run_is_counted_at_once() -> None:
    program = solution("matmul", "matmul", normal((4096, 4096), "float16"), normal((4096, 4096), "float16"))
    assert count(program).flops == pytest.approx(2 * 4096**3, rel=0.01)
    assert least_bytes(program) == 3 * 2 * 4096**2


def test_lengths_on_which_loops_depend_are_read(trace: Trace) -> None:
    lengths = torch.arange(20, dtype=torch.int32) * 16
    x = normal((20, 320))
    program = trace("sums", Input("int32", (20,), (1,)), x)
    exact = executor.run(program, [lengths, x.tensor()]).counters
    assert count(program, [lengths, None]).bytes_loaded == exact.bytes_loaded
    assert count(program).bytes_loaded == 20 * 4  # without them, every length is 0


def test_reading_what_nobody_wrote_is_noticed_with_its_line(trace: Trace) -> None:
    (line,) = set(count(trace("reads_what_is_left", normal((64,)))).unwritten)
    assert line is not None and "tl.load(out_ptr + i)" in TEXT.split("\n")[line - 1]
    assert count(trace("adds_to_zeros", normal((64,)))).unwritten == []


def test_a_loop_without_an_end_uses_up_the_budget(trace: Trace) -> None:
    with pytest.raises(OverBudget):
        count(trace("endless", normal((64,))), budget=Budget(work=100_000_000))


def test_least_bytes_count_an_element_once_however_often_it_is_shown() -> None:
    x = View(0, "float32", (8, 100), (0, 1))  # one row of 100, shown eight times
    program = Program((x, x), {0: 400}, (), (View(1, "float16", (8, 100), (100, 1)),), "tensor", {})
    assert least_bytes(program) == 400 + 1600
