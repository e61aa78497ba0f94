"""Steps of the host on the engine's memory, for every dtype that torch has a name for."""

import torch

from gradekit.engine.run import run
from gradekit.program import Allocate, Copy, Program, View


def test_a_complex_view_of_real_numbers_is_read_as_torch_reads_it():
    pairs = torch.arange(8.0).view(4, 2)
    given, made = View(0, "complex64", (4,), (1,)), View(1, "complex64", (4,), (1,))
    program = Program((View(0, "float32", (4, 2), (2, 1)),), {}, (Allocate(1, 32), Copy(made, given)), (made,), "tensor", {})
    result = run(program, [pairs])
    assert not result.findings
    assert torch.equal(result.results[0], torch.view_as_complex(pairs))
