"""The engine writes what Triton's interpreter writes, and what torch says where the interpreter is wrong or silent.

The interpreter needs numpy, computes bfloat16 on bit patterns and has no libdevice; such entries bring an oracle.
"""

import fcntl
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from corpus import CASES
from corpus.compile import program, ttir

from gradekit.engine.executor import run
from gradekit.engine.ttir import Region, parse

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Triton announces what its next version will drop

INTERPRET = Path(__file__).parent / "corpus" / "interpret.py"


@pytest.fixture(scope="session")
def interpreted(tmp_path_factory):
    """What the interpreter wrote, for every entry: tensors by argument name, or the reason why it could not."""
    if importlib.util.find_spec("numpy") is None:
        return dict.fromkeys(CASES, "Triton's interpreter needs numpy, which is not installed")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all workers: the first that comes runs it for the others
    path = folder / "interpreted.pt"
    with (folder / "interpreted.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            made = path.with_suffix(".new")
            subprocess.run([sys.executable, str(INTERPRET), str(made)], check=True, timeout=300, stdout=subprocess.DEVNULL)
            made.rename(path)
    return torch.load(path)


@pytest.mark.parametrize("name", CASES)
def test_the_engine_agrees(name, interpreted):
    case = CASES[name]
    assert_writes(case, program(case), interpreted[name])


@pytest.mark.sample(24)
@pytest.mark.parametrize("name", [name for name in CASES if "[" not in name and "block_pointer" not in name])
def test_the_engine_agrees_before_triton_simplifies(name, interpreted):
    """Helper functions are calls here, and every access is examined; block pointers, which Triton alone reads, are left out."""
    case = CASES[name]
    assert_writes(case, program(case, ttir(case, simplified=False), copies=False), interpreted[name])


def assert_writes(case, launch, interpreted):
    arguments = case.arguments()
    expected = {} if isinstance(interpreted, str) else dict(interpreted)
    if case.oracle is not None:
        expected |= case.oracle(case.arguments())
    if not expected:
        pytest.skip(interpreted)
    tensors = {key: value for key, value in arguments.items() if isinstance(value, torch.Tensor)}
    results = run(launch, list(tensors.values())).results
    for key, actual in zip(tensors, results, strict=True):
        if key in expected:
            assert_agrees(actual, expected[key], case.tolerance, key)


def assert_agrees(actual, expected, tolerance, key):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), key
    if tolerance == 0 and not expected.is_floating_point():
        assert torch.equal(actual, expected), difference(key, actual, expected, actual == expected)
        return
    a, e = actual.double(), expected.double()
    largest = e[e.isfinite()].abs().max().item() if bool(e.isfinite().any()) else 1.0
    same = (a == e) | (a.isnan() & e.isnan()) | ((a - e).abs() <= tolerance * largest)
    assert bool(same.all()), difference(key, actual, expected, same)


def difference(key, actual, expected, same):
    wrong = (~same).sum().item()
    return f"{key}: {wrong} of {same.numel()}, {actual[~same][:4].tolist()} instead of {expected[~same][:4].tolist()}"


def test_what_a_kernel_prints_is_kept():
    case = CASES["prints_and_asserts"]
    printed = run(
        program(case), [value for value in case.arguments().values() if isinstance(value, torch.Tensor)]
    ).prints
    assert printed == ["pid: 0, 1, 2", "two of them: 0, 2, 4", "two of them: 0.5, 1.5, 2.5"]


def names_in(region: Region) -> set[str]:
    names: set[str] = set()
    for block in region.blocks:
        names |= {op.name for op in block.ops}.union(*(names_in(inner) for op in block.ops for inner in op.regions))
    return names


def test_the_corpus_uses_what_the_front_end_emits():
    used: set[str] = set()
    for case in CASES.values():
        used |= set().union(*(names_in(function.body) for function in parse(ttir(case)).functions.values()))
    assert set(EMITTED.split()) <= used


EMITTED = """
arith.addf arith.addi arith.andi arith.cmpf arith.cmpi arith.constant arith.divf arith.divsi arith.divui arith.extf
arith.extsi arith.extui arith.fptosi arith.fptoui arith.maximumf arith.maxnumf arith.maxsi arith.maxui arith.minimumf
arith.minnumf arith.minsi arith.minui arith.mulf arith.muli arith.ori arith.remf arith.remsi arith.remui arith.select
arith.shli arith.shrsi arith.shrui arith.sitofp arith.subf arith.subi arith.truncf arith.trunci arith.uitofp arith.xori
cf.cond_br math.absf math.absi math.ceil math.cos math.erf math.exp math.exp2 math.floor math.fma math.log math.log2
math.rsqrt math.sin math.sqrt scf.condition scf.for scf.if scf.while scf.yield tt.addptr tt.assert tt.atomic_cas
tt.atomic_rmw tt.bitcast tt.broadcast tt.call tt.cat tt.clampf tt.descriptor_load
tt.descriptor_reduce tt.descriptor_store tt.dot tt.expand_dims
tt.extern_elementwise tt.fp_to_fp tt.gather tt.get_num_programs tt.get_program_id tt.histogram tt.join tt.load
tt.make_range tt.make_tensor_descriptor tt.map_elementwise tt.mulhiui tt.precise_divf tt.precise_sqrt tt.print
tt.ptr_to_int tt.reduce tt.reshape tt.return tt.scan tt.splat tt.split tt.store tt.trans
"""
"""What Triton 3.6 and 3.9 both emit, except tt.elementwise_inline_asm, tt.dot_scaled, tt.descriptor_gather and
tt.descriptor_scatter, which the engine does not evaluate."""
