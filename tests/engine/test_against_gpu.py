"""The engine writes what a GPU writes, over the whole corpus: needs a CUDA device, and is skipped without one."""

import pytest
import torch
import triton
from corpus import CASES
from corpus.compile import program

from gradekit.engine.executor import run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore::UserWarning"),  # Triton announces what its next version will drop
]

APPROXIMATE = 2e-3
"""Of a tensor's largest element, for floats: the card's exp, log, division and tensor cores round in their own way."""

DIFFERS = {
    "convert[float8_e5m2 to bfloat16]": "Triton 3.6 turns inf and NaN into numbers from 65536 on; the engine keeps them",
}


def on_gpu(case):
    arguments = {k: v.cuda() if isinstance(v, torch.Tensor) else v for k, v in case.arguments().items()}
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    try:
        case.kernel[case.grid](**arguments, **case.options)
    except triton.runtime.errors.PTXASError as error:
        pytest.skip(f"this card's assembler does not know it: {error}")
    torch.cuda.synchronize()
    return {name: value.cpu() for name, value in arguments.items() if isinstance(value, torch.Tensor)}


@pytest.mark.parametrize("name", CASES)
def test_the_engine_agrees_with_the_card(name):
    if name in DIFFERS:
        pytest.xfail(DIFFERS[name])
    case = CASES[name]
    expected = on_gpu(case)
    tensors = [value for value in case.arguments().values() if isinstance(value, torch.Tensor)]
    for (key, card), actual in zip(expected.items(), run(program(case), tensors).results, strict=True):
        assert (actual.dtype, actual.shape) == (card.dtype, card.shape), key
        if not card.dtype.is_floating_point:
            assert torch.equal(actual, card), (key, actual[actual != card][:4], card[actual != card][:4])
            continue
        a, c = actual.double(), card.double()
        largest = c[c.isfinite()].abs().max().item() if bool(c.isfinite().any()) else 1.0
        same = (a == c) | (a.isnan() & c.isnan()) | ((a - c).abs() <= max(case.tolerance, APPROXIMATE) * largest)
        assert bool(same.all()), (key, a[~same][:4].tolist(), c[~same][:4].tolist(), int((~same).sum()))
