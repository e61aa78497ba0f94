"""A program becomes a row of actions that compute what the engine computes: on the CPU stand-in, so without a card."""

import pytest
import torch

from gradekit.engine.executor import option_count, run
from gradekit.gpu.cpu_emulation import CpuMachine
from gradekit.gpu.faults import CardFault
from gradekit.gpu.replay import Replay, peak_bytes, touched_bytes
from gradekit.program import Allocate, Aten, Choice, Copy, Fill, Launch, Literal, Scalar, Source, View, run_steps
from tests import zygote

from .programs import ALLOWED, AUTOTUNED, COPY, FAR_AWAY, MANY_STEPS, TABLE, entry, normal, program

X = View(0, "float32", (4,), (1,))
Y = View(1, "float32", (4,), (1,))


def replay(made, allow=()) -> Replay:
    return Replay(made, CpuMachine(), allow)


@pytest.mark.parametrize("body", [COPY, MANY_STEPS, TABLE, AUTOTUNED], ids=["copy", "steps", "table", "autotuned"])
def test_a_careful_run_gives_what_the_engine_gives(body: str) -> None:
    made, tensors = entry(body, normal(5, 40))
    for option in range(option_count(made)):
        ran = replay(made, ALLOWED).run(tensors, option)
        expected = run(made, tensors, option=option, allow=ALLOWED)
        assert ran.caught == []
        for mine, its in zip(ran.results, expected.results, strict=True):
            assert mine.dtype == its.dtype and torch.equal(mine, its)


@pytest.mark.parametrize("body", [COPY, MANY_STEPS, TABLE], ids=["copy", "steps", "table"])
def test_a_bound_program_gives_the_same_at_every_call(body: str) -> None:
    made, tensors = entry(body, normal(5, 40))
    expected = run(made, tensors, allow=ALLOWED).results
    bound = replay(made, ALLOWED).bind(tensors)
    for _ in range(2):
        for mine, its in zip(bound(), expected, strict=True):
            assert torch.equal(mine, its)


def test_two_bound_programs_have_results_of_their_own() -> None:
    made, (first,) = entry(COPY, normal(5, 40))
    same = replay(made)
    bound, other = same.bind([first]), same.bind([first + 1])
    bound(), other()
    assert torch.equal(bound.results[0], first) and torch.equal(other.results[0], first + 1)


def test_memory_that_is_no_result_is_shared() -> None:
    steps = [Allocate(1, 16), Copy(Y, X), Allocate(2, 16), Copy(View(2, "float32", (4,), (1,)), Y)]
    same = replay(program(steps, [View(2, "float32", (4,), (1,))], [X]))
    first, second = same.bind([torch.ones(4)]), same.bind([torch.zeros(4)])
    assert first.memory.storages[1].data_ptr() == second.memory.storages[1].data_ptr()
    assert first.memory.storages[2].data_ptr() != second.memory.storages[2].data_ptr()


def test_an_output_that_nobody_writes_is_nan() -> None:
    (result,) = replay(program([Allocate(1, 16)], [Y])).run([]).results
    assert result.isnan().all()


def test_inputs_keep_their_strides_and_offset() -> None:
    view = View(0, "float32", (2, 3), (1, 4), 2)
    steps = [Allocate(1, 24), Copy(View(1, "float32", (2, 3), (3, 1)), view)]
    given = torch.arange(20.0).as_strided((2, 3), (1, 4), 2)
    (result,) = replay(program(steps, [View(1, "float32", (2, 3), (3, 1))], [view])).run([given]).results
    assert torch.equal(result, given)


def test_inputs_of_another_layout_are_refused() -> None:
    with pytest.raises(CardFault, match="laid out"):
        replay(program([], [X], [X])).run([torch.ones(8)[::2]])


def test_one_tensor_given_twice_is_one_storage() -> None:
    x = normal(8)
    made, tensors = entry("def entry(x, y):\n    out = torch.empty_like(x)\n    return out.copy_(y)\n", x, x)
    (result,) = replay(made).run(tensors).results
    assert len(made.storages) == 1 and torch.equal(result, tensors[0])


def test_a_fault_names_the_kernel_and_the_line() -> None:
    made, tensors = entry(FAR_AWAY, normal(8))
    with pytest.raises(CardFault) as caught:
        replay(made).run(tensors)
    assert (caught.value.kind, caught.value.kernel) == ("illegal-access", "far_away")
    assert caught.value.line == next(step.source.line for step in made.steps if isinstance(step, Launch))


def test_whoever_watches_sees_each_action_before_it_begins() -> None:
    made, tensors = entry(COPY, normal(8))
    seen: list[tuple[str, str]] = []
    replay(made).run(tensors, watch=lambda what, kernel, line: seen.append((what, kernel)))
    assert seen == [("compile", "copy_kernel"), ("run", "copy_kernel")]


def test_an_operation_that_is_not_allowed_does_not_run() -> None:
    steps = [Allocate(1, 16), Aten("aten::matmul", (X, X), {}, (Y,))]
    with pytest.raises(CardFault, match="matmul"):
        replay(program(steps, [Y], [X]), ["aten::matmul"]).run([torch.ones(4)])


@pytest.mark.parametrize(
    "steps",
    [[Fill(Y, 1.0)], [Allocate(1, 8), Fill(Y, 1.0)], [Allocate(1, -1)], [Launch("k", (1, 1, 1), ())],
     [Allocate(1, 16), Literal(Y, (1.0,))]],
    ids=["no storage", "too small", "negative", "no kernel", "too few numbers"],
)  # fmt: skip
def test_a_program_that_makes_no_sense_is_a_fault(steps) -> None:
    with pytest.raises(CardFault):
        replay(program(steps, [])).run([])


def test_memory_that_cannot_be_had_is_a_fault_at_its_line() -> None:
    with pytest.raises(CardFault) as caught:
        replay(program([Allocate(1, 1 << 60, Source(3))], [])).run([])
    assert (caught.value.kind, caught.value.line) == ("out-of-memory", 3)


@pytest.mark.parametrize("op", ["aten::sum", "aten::mean"])
def test_a_whole_reduction_writes_to_its_result_itself(op: str) -> None:
    steps = [Allocate(1, 4), Aten(op, (X,), {}, (View(1, "float32", (), ()),))]
    bound = replay(program(steps, [View(1, "float32", (), ())], [X]), [op]).bind([torch.arange(4.0)])
    assert bound()[0].item() == {"aten::sum": 6.0, "aten::mean": 1.5}[op]
    assert "out" in bound.actions[0].call.keywords


def test_a_result_of_another_dtype_is_converted() -> None:
    target = View(1, "float16", (4,), (1,))
    steps = [Allocate(1, 8), Aten("aten::add", (X, Scalar(1.0)), {}, (target,))]
    bound = replay(program(steps, [target], [X]), ["aten::add"]).bind([torch.arange(4.0)])
    assert bound()[0].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_an_operation_in_place_happens_once_a_call() -> None:
    steps = [Allocate(1, 16), Copy(Y, X), Aten("aten::add_", (Y, Scalar(1.0)), {}, (Y,))]
    bound = replay(program(steps, [Y], [X]), ["aten::add_"]).bind([torch.zeros(4)])
    bound()
    assert bound()[0].tolist() == [1.0] * 4


# --- what a program is -----------------------------------------------------------------------------------------------


def test_choices_take_the_options_that_they_are_told() -> None:
    pick = Choice(((Fill(Y, 0.0),), (Fill(Y, 1.0),)), ("zero", "one"))
    made = program([Allocate(1, 16), pick, pick], [Y])
    values = [step.value for step in run_steps(made.steps, [1]) if isinstance(step, Fill)]
    assert values == [1.0, 0.0]


def test_memory_is_free_after_the_last_step_that_needs_it() -> None:
    z = View(2, "float32", (4,), (1,))
    steps = [Allocate(1, 16), Fill(Y, 1.0), Allocate(2, 16), Copy(z, Y), Allocate(3, 16)]
    assert peak_bytes(steps, [z]) == 32
    assert peak_bytes([*steps, Copy(View(3, "float32", (4,), (1,)), Y)], [z]) == 48


def test_everything_that_a_call_touches_is_counted() -> None:
    assert touched_bytes(program([Allocate(1, 16)], [Y], [X])) == 32


def test_the_worker_has_nothing_that_judges() -> None:
    """What the worker's process imports neither compares nor expects"""
    code = "import sys, gradekit.gpu.server, gradekit.gpu.cpu_emulation, gradekit.gpu.cuda_machine, gradekit.gpu.inputs, gradekit.gpu.worker; print(*sys.modules)"
    done = zygote.ran(["-c", code])
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert "gradekit.gpu.replay" in loaded
    wrong = ("gradekit.judge", "gradekit.plugin", "pytest", "hypothesis")
    assert [name for name in loaded if name.startswith(wrong)] == []
