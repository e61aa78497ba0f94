"""What is replayed on a card is what a direct call computes there, bit for bit."""

import dataclasses
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import triton

from gradekit.assignment import discover
from gradekit.engine.executor import option_count
from gradekit.gpu.card import find
from gradekit.gpu.replay import Replay
from gradekit.inputs.spec import Input
from gradekit.program import Program
from tests import right

from ..tracer.styles import Text
from .programs import AUTOTUNED, MANY_STEPS, TABLE, entry, normal, traced

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from corpus import CASES
from corpus.compile import program as corpus_program

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore::UserWarning"),  # Triton announces what its next version will drop
]

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = discover(ROOT / "assignments")
ATOMIC = ("split_k.py", "right_atomics.py", "locks.py")


def half(*shape: int) -> Input:
    return normal(*shape, dtype="float16")


CALLS: dict[str, tuple[str, list[list[Input]]]] = {
    "softmax": ("softmax", [[normal(33, 1000)], [half(7, 129)]]),
    "vector_add": ("add", [[normal(5000), normal(5000)], [half(777), half(777)]]),
    "fused_chain": ("fused_chain", [[normal(65, 300), normal(300), normal(65, 300)]]),
    "matmul": ("matmul", [[normal(65, 130), normal(130, 70)], [half(256, 128), half(128, 192)]]),
    "layer_norm": ("layer_norm", [[normal(33, 500), normal(500), normal(500)]]),
}
SUBMISSIONS = [
    path
    for name in CALLS
    for path in [
        ROOT / "solutions" / name / "solution.py", *sorted((ROOT / "solutions" / name).glob("right_*.py")),
        *right.files(name),
    ]
    if path.name not in ATOMIC
]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from gradekit.gpu.cuda_machine import CudaMachine

    found = find("cuda")
    assert found is not None
    yield CudaMachine(found, tmp_path_factory.mktemp("kernels"))


def direct(path: Path) -> ModuleType:
    """The submission as an ordinary module, as its author would call it; the seed that it sets ends with its import."""
    spec = importlib.util.spec_from_file_location(f"direct_{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    with torch.random.fork_rng():
        spec.loader.exec_module(module)
    return module


def on_card(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor on the card, with its strides and offset."""
    whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    return whole.cuda().as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8)


def same(mine: Sequence[Any], its: Sequence[torch.Tensor], made: Program | None = None) -> bool:
    """Bit for bit; where programs of `made` add floats by atomics, whose order is nobody's to choose, within rounding."""
    sums = made is not None and any("tt.atomic_rmw fadd" in kernel.ttir for kernel in made.kernels.values())
    pairs = list(zip(mine, its, strict=True))
    equal = within_rounding if sums else lambda a, b: torch.equal(bits(a), bits(b))
    return all((a.dtype, a.shape) == (b.dtype, b.shape) and equal(a, b) for a, b in pairs)


def within_rounding(mine: torch.Tensor, its: torch.Tensor) -> bool:
    try:
        torch.testing.assert_close(mine, its, equal_nan=True)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("path", SUBMISSIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_replay_is_what_a_direct_call_gives(path: Path, machine: Any) -> None:
    """For an autotuned kernel, one of the configurations is the one that Triton has picked"""
    name, calls = CALLS[path.parent.name]
    allow = ASSIGNMENTS[path.parent.name].allow
    for specs in calls:
        made, tensors = traced(Text(path.read_text()), name, *specs)
        expected = getattr(direct(path), name)(*map(on_card, tensors))
        replay = Replay(made, machine, allow)
        runs = [replay.run(tensors, option) for option in range(option_count(made))]
        assert [ran.caught for ran in runs] == [[]] * len(runs)
        assert any(same(ran.results, [expected], made) for ran in runs)
        bounds = [replay.bind([on_card(t) for t in tensors], [option]) for option in range(option_count(made))]
        assert any(same(bound(), [expected], made) for bound in bounds)


def as_general_as_the_program(kernel: Any) -> Any:
    """The kernel, compiled as the corpus is, without a word on the alignment of its arguments: the order in which a sum
    is taken depends on it."""
    names = [parameter.name for parameter in kernel.params if not parameter.is_constexpr]
    return triton.jit(kernel.fn, do_not_specialize=names, do_not_specialize_on_alignment=names)


@pytest.mark.parametrize("name", CASES)
def test_the_whole_corpus_is_replayed_bit_for_bit(name: str, machine: Any) -> None:
    case = CASES[name]
    made = corpus_program(case)
    kernel = dataclasses.replace(made.kernels["kernel"], options=case.options)
    made = dataclasses.replace(made, kernels={"kernel": kernel})
    arguments = {k: v.cuda() if isinstance(v, torch.Tensor) else v for k, v in case.arguments().items()}
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    try:
        as_general_as_the_program(case.kernel)[case.grid](**arguments, **case.options)
    except triton.runtime.errors.PTXASError as error:
        pytest.skip(f"this card's assembler does not know it: {error}")
    expected = [value for value in arguments.values() if isinstance(value, torch.Tensor)]
    ran = Replay(made, machine).run([v for v in case.arguments().values() if isinstance(v, torch.Tensor)])
    assert ran.caught == []
    for mine, its in zip(ran.results, expected, strict=True):
        if "tt.atomic" in kernel.ttir and its.dtype.is_floating_point:  # the order of additions is nobody's to choose
            torch.testing.assert_close(mine, its, equal_nan=True)
        else:
            assert mine is not None and torch.equal(bits(mine), bits(its)), (mine.cpu(), its.cpu())


def test_a_table_of_pointers_leads_to_the_cards_memory(machine: Any) -> None:
    made, (x,) = entry(TABLE, normal(5, 40))
    assert made.addresses
    (result,) = Replay(made, machine).run([x]).results
    assert torch.equal(result.cpu(), torch.cat([torch.full((8,), 3.0), x.reshape(-1)[4:12]]))


def test_steps_of_torch_are_those_of_a_direct_call(machine: Any) -> None:
    made, (x,) = entry(MANY_STEPS, normal(50, 1000))
    weights = torch.arange(x.numel(), device="cuda", dtype=x.dtype).view(x.shape)
    expected = [(x.cuda() + weights).sum(), torch.tensor([1, 2, 3]), x.cuda().sum(-1)]
    replay = Replay(made, machine, ("aten::sum", "aten::add"))
    assert same(replay.run([x]).results, expected)
    assert same(replay.bind([x.cuda()])(), expected)


def test_a_bound_program_can_be_captured(machine: Any) -> None:
    made, (x,) = entry(AUTOTUNED, normal(50, 1000))
    given = x.cuda()
    bound = Replay(made, machine).bind([given], [1])
    bound()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        bound()
    given += 1
    graph.replay()
    assert torch.equal(bound.results[0].cpu(), (x + 1) * 2)


@pytest.mark.parametrize("name", ["host_descriptors", "device_descriptors"])
def test_descriptors_can_be_captured(name: str, machine: Any) -> None:
    path = ROOT / "tests/course/right/matmul" / f"{name}.py"
    made, tensors = traced(Text(path.read_text()), "matmul", half(64, 40), half(40, 48))
    bound = Replay(made, machine).bind([on_card(t) for t in tensors])
    expected = bound()[0].clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        bound()
    bound.results[0].zero_()
    graph.replay()
    assert same(bound.results, [expected])
    assert torch.allclose(expected.cpu().float(), tensors[0].float() @ tensors[1].float(), atol=0.1)
