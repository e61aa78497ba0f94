"""Registers, stack and shared memory of a kernel are those that Triton and NVIDIA's tools tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradekit import sandbox
from gradekit.program import Launch
from tests import zygote

from .helpers import X, kinds, only, submission, tensor, traced


def compared(step: int, cache: Path) -> dict[str, Any]:
    """What tests/tracer/compiled.py says."""
    words = [Path(__file__).with_name("compiled.py"), str(step)]
    done = zygote.ran(words, environment=sandbox.clean_environment(str(cache)))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_sample_of_kernels_has_the_figures_of_triton_and_cuobjdump(tmp_path: Path) -> None:
    found = compared(100, tmp_path)
    assert found["compared"] > 6 and found["spilled"] > 0 and found["different"] == []


@pytest.mark.slow
def test_all_kernels_of_the_corpus_have_the_figures_of_triton_and_cuobjdump(tmp_path: Path) -> None:
    found = compared(1, tmp_path)
    assert found["compared"] > 300 and found["different"] == []


OCCUPANCY = """
    def entry(x):
        out = torch.empty_like(x)
        kernel = copy_kernel.warmup(x, out, 100, BLOCK=128, grid=(1,))
        programs = 132 * min(65536 // (kernel.n_regs * 128), 16)
        kernel[(min(programs, x.shape[0]), 1, 1)](x, out, 100, 128)
        return out
    """


@pytest.mark.parametrize(("rows", "programs"), [(100, 100), (132, 132), (5000, 132 * 16)])
def test_a_grid_that_depends_on_registers_is_that_of_a_gpu(rows: int, programs: int) -> None:
    assert only(traced(OCCUPANCY, tensor(0, rows)).steps, Launch).grid == (programs, 1, 1)


def test_a_kernels_registers_may_be_an_argument_or_a_size() -> None:
    body = """
        def entry(x):
            kernel = copy_kernel.warmup(x, x, 100, BLOCK=128, grid=(1,))
            copy_kernel[(1,)](x, torch.empty(x.shape[0] + kernel.n_regs, device="cuda"), kernel.n_regs, BLOCK=128)
        """
    with sandbox.Tracer(submission(body)) as tracer:
        program = tracer.trace("entry", [X])
        assert kinds(program.steps) == ["Allocate", "Launch"]
    registers = only(program.steps, Launch).args[2].value
    assert 8 <= registers <= 255 and only(program.steps, Launch).args[1].shape == (100 + registers,)
