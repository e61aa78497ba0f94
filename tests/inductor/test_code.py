"""torch.compile's module taken apart, and had without a card."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.inductor import NotGenerated, generated
from gradekit.inductor.code import parse_generated
from gradekit.inspector.targets import target

MODULE = """\
import torch
triton_red_fused_0 = async_compile.triton('triton_red_fused_0', '''
import triton
@triton_heuristics.reduction(size_hints={'x': 8192})
@triton.jit
def triton_red_fused_0(in_ptr0, out_ptr0, xnumel):
    pass
''', device_str='cuda')

def call(self, args):
        triton_red_fused_0.run(arg0_1, buf0, 8192, stream=raw_stream0)
        extern_kernels.mm(buf0, arg1_1, out=buf1)
        triton_red_fused_0.run(arg0_1, buf0, 8192, stream=raw_stream0)
"""


def test_kernels_come_without_the_decorator_that_picks_a_configuration() -> None:
    ((name, source),) = parse_generated(MODULE).kernels
    assert name == "triton_red_fused_0" and source.startswith("@triton.jit\ndef triton_red_fused_0(")


def test_calls_come_in_order_and_each_once() -> None:
    assert parse_generated(MODULE).calls == ("triton_red_fused_0(arg0_1, buf0, 8192)", "extern_kernels.mm")


def test_torch_writes_a_kernel_for_softmax_on_a_machine_without_a_card() -> None:
    found = generated(get("softmax"), (), target("sm_80"))
    ((name, source),) = found.kernels
    assert "online" in name and "tl.load" in source and len(found.calls) == 1  # as with a card: in one pass and a half


def test_tests_that_time_nothing_leave_nothing_to_compare_with(tmp_path: Path) -> None:
    folder = tmp_path / "double"
    folder.mkdir()
    (folder / "assignment.toml").write_text('title = "T"\nentry = "double"\nsummary = "s"\n')
    from gradekit.assignment import load

    with pytest.raises(NotGenerated, match="time nothing"):
        generated(load(folder), (), target("sm_80"))
