"""Values far from those that checks draw, and on both sides of the numbers in a kernel's text; tests/hostile/undeserved has what fails
there alone."""


import pytest
import torch

from gradekit.exact.borders import borders
from gradekit.inputs.value_kinds import make


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["far:0", "far:1", "scaled:-4096"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 3), (1,), (2, 4, 5)])
def test_far_values_are_finite_in_any_shape(shape: tuple[int, ...], kind: str, dtype: torch.dtype) -> None:
    values = make(kind, shape, dtype, torch.Generator().manual_seed(0))
    assert values.shape == shape and bool(values.to(dtype).isfinite().all())


def test_rows_are_far_in_two_ways_by_turns() -> None:
    first, second = (make(f"far:{n}", (2, 50), torch.float32, torch.Generator().manual_seed(0)) for n in (0, 1))
    for beside, around in ((first[0], first[1]), (second[1], second[0])):
        assert 1e6 < float(beside.min()) and 1 < float(beside.max() - beside.min()) < 10
        assert float(around[0]) == 65536 and float(around[1:].abs().max()) < 10


def test_a_number_is_met_by_what_is_loaded_compared_chosen_or_added() -> None:
    ttir = """
module {
  tt.func public @kernel(%p: !tt.ptr<f32>, %m: i1) {
    %big = arith.constant 1.000000e+06 : f32
    %none = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.000000e+00 : f32
    %half = arith.constant 5.000000e-01 : f32
    %x = tt.load %p, %m, %big : !tt.ptr<f32>
    %y = arith.maxnumf %x, %none : f32
    %z = arith.mulf %y, %half : f32
    %c = arith.select %m, %zero, %big : f32
    %w = arith.addf %c, %z : f32
    tt.store %p, %w : !tt.ptr<f32>
    tt.return
  }
}
"""
    assert [(one.met, one.size) for one in borders(ttir)] == [("x", 1e6), ("z", 1e6)]
