"""Tiles that a kernel names by a descriptor or a block pointer, and not by pointers and masks, are walked like those."""

import pytest
import torch
import triton

from gradekit.engine.executor import run
from gradekit.interpreter.shown_call import HostCall, HostReplay
from gradekit.interpreter.walked_call import WalkedCall, code_of
from gradekit.submission.parsed_source import ParsedSource
from tests.gpu.programs import traced
from tests.tracer.styles import Text

HEAD = """import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def twice(x, y, out, M, N, sx, sy, B: tl.constexpr):
    row = tl.program_id(0) * B
"""

ON_HOST = """    for col in range(0, N, B):
        tile = x.load([row, col])
        out.store([row, col], (2 * tile).to(out.dtype))


def entry(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    of = TensorDescriptor(x, x.shape, x.stride(), [4, 4])
    M, N = x.shape
    twice[(triton.cdiv(M, 4),)](of, 0, TensorDescriptor.from_tensor(out, [4, 4]), M, N, 0, 0, B=4)
    return out
"""

IN_KERNEL = """    tiles = tl.make_tensor_descriptor(x, shape=[M, N], strides=[sx, 1], block_shape=[B, B])
    made = tl.make_tensor_descriptor(out, shape=[M, N], strides=[sy, 1], block_shape=[B, B])
    for col in range(0, N, B):
        made.store([row, col], 2 * tiles.load([row, col]))
"""

POINTERS = """    tiles = tl.make_block_ptr(x, (M, N), (sx, 1), (row, 0), (B, B), (1, 0))
    made = tl.make_block_ptr(out, (M, N), (sy, 1), (row, 0), (B, B), (1, 0))
    for _ in range(0, N, B):
        tl.store(made, 2 * tl.load(tiles, boundary_check=(0, 1)), boundary_check=(0, 1))
        tiles = tl.advance(tiles, (0, B))
        made = tl.advance(made, (0, B))
"""

PLAIN = """

def entry(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    M, N = x.shape
    twice[(triton.cdiv(M, 4),)](x, 0, out, M, N, x.stride(0), out.stride(0), B=4)
    return out
"""


GONE = pytest.mark.skipif(not triton.__version__.startswith("3.6"), reason="this Triton has no block pointers")


@pytest.mark.parametrize("rest", [ON_HOST, IN_KERNEL + PLAIN, pytest.param(POINTERS + PLAIN, marks=GONE)])
def test_a_walk_of_blocks_gives_what_the_engine_gives(rest: str) -> None:
    given = torch.arange(80, dtype=torch.float32).reshape(10, 8)[:7]
    text = HEAD + rest
    source = ParsedSource(text)
    program, tensors = traced(Text(text), "entry", given)
    expected = run(program, tensors).results[0]
    code = code_of(source)
    walked = WalkedCall(program, tensors, code, ()).run()[0]
    on_host = HostReplay(HostCall("entry", (given,)), program, source, code).run()[0]
    assert walked is not None and on_host is not None
    assert torch.equal(expected, 2 * given)
    assert torch.equal(walked, expected) and torch.equal(on_host, expected)


@GONE
def test_what_a_block_pointer_does_not_check_is_read_outside() -> None:
    given = torch.ones(7, 8)
    text = HEAD + POINTERS.replace("tl.load(tiles, boundary_check=(0, 1))", "tl.load(tiles)") + PLAIN
    program, tensors = traced(Text(text), "entry", given)
    call = WalkedCall(program, tensors, code_of(ParsedSource(text)), ())
    call.run()
    assert call.strays
