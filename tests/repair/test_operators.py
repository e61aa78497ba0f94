"""Each operator by examples: what it makes of a mistaken text restores the right one."""

import ast
import re
from collections.abc import Iterator

import pytest
import torch

from gradekit.interpreter.shown_call import HostCall, HostReplay
from gradekit.interpreter.walked_call import WalkedCall, code_of
from gradekit.repair.operators.all_changes import changes_of
from gradekit.repair.operators.changes import Change, ChangeSite
from gradekit.repair.operators.host_changes import HostSite, host_changes
from gradekit.repair.survivor_mends import mend_of
from gradekit.source.draft import Draft
from gradekit.submission.parsed_source import ParsedSource
from tests.beside import beside
from tests.gpu.programs import traced
from tests.texts import HEAD
from tests.tracer.styles import Text

CASES = beside(__file__)

WEIGHTS = HEAD + '''@triton.jit
def weights_kernel(x_ptr, v_ptr, w_ptr, out_ptr, N, heads, sx, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    tile = tl.program_id(0)
    head = tl.program_id(1) % heads
    part = tl.program_id(1) // heads
    first = tile % heads
    rest = tile // heads
    second = rest % BN
    rest = rest // BN
    m = tile * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    x_ptrs = x_ptr + m[:, None] * sx + n[None, :]
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, N, BN):
        s = tl.load(x_ptrs, mask=(m[:, None] < N) & (start + n[None, :] < N), other=0.0).to(tl.float32)
        s = tl.where(start + n[None, :] < N, s, float("-inf"))
        s = tl.minimum(s, tl.max(s, axis=1)[:, None])
        new_top = tl.maximum(top, tl.max(s, axis=1))
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(tl.exp(s - new_top[:, None]), axis=1)
        x_ptrs += BN
        top = new_top
    total = total + 1.0
    bias = tl.load(v_ptr + m, mask=m < N, other=0.0)
    width = tl.maximum(top - total, 0.0) + (part + 1) + ((top - total) + head)
    share = top * 0.044715 / tl.maximum(width, 1e-5)
    low = tl.minimum(bias, share)
    high = tl.maximum(top, width)
    late = tl.zeros((BM,), dtype=tl.float32)
    for turn in range(0, 2):
        late = tl.zeros((BM,), dtype=tl.float32)
        late += turn * share
    gap = (bias - width) * top + tl.load(w_ptr + m, mask=m < N, other=0.0)
    centre = tl.sum(bias * share, axis=0) / tl.sum(share, axis=0)
    e = tl.exp(-tl.abs(bias))
    curve = tl.where(bias < 0, -((1.0 - e) / (1.0 + e)), (1.0 - e) / (1.0 + e))
    tl.store(out_ptr + tl.program_id(1) * N + m, share + (curve + centre) + gap + (bias - width) + low * high + late + (first + second + rest), mask=m < N)


def entry(x, v):
    N = x.shape[0]
    out = torch.empty(v.shape, dtype=v.dtype, device=v.device)
    grid = (triton.cdiv(N, 4), 4)
    weights_kernel[grid](x, v, v, out, N, 2, x.stride(0), CAUSAL=0, BM=4, BN=4)
    return out.reshape(-1, N).sum(0)
'''

EXAMPLES = CASES["in_kernels"]
"""What is right, and a beginner's mistake in its place."""

ON_HOST = CASES["on_host"]


def names(text: str) -> list[str]:
    """The names in a text, in their order: told sooner than its meaning, and the same for texts that mean the same."""
    return [name for name in re.findall(r"\b[A-Za-z_]\w*", text) if name != "pass"]


def meaning(text: str) -> str:
    """Equal for texts that mean the same, but for how numbers and statements are written."""
    lines = ast.unparse(ast.parse(text)).replace("'-inf'", "'inf'").splitlines()
    return "\n".join(line for line in lines if line.strip() != "pass")


def replay(source: ParsedSource) -> WalkedCall:
    program, tensors = traced(Text(source.text), "entry", torch.ones(6, 6), torch.ones(4, 6))
    walked = WalkedCall(program, tensors, code_of(source), ("aten::sum",))
    walked.run()
    return walked


def restored(text: str, changes: Iterator[Change]) -> Iterator[str]:
    """The texts that changes make of one, one after another."""
    source = ParsedSource(text)
    mends = (mend_of(change, source) for change in changes)
    return (mend.applied(text) for mend in mends if mend is not None)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_operator_restores_its_example(name: str) -> None:
    right, wrong = EXAMPLES[name]
    base = WEIGHTS if right in WEIGHTS else WEIGHTS.replace('tl.full((BM,), float("-inf"), tl.float32)', right[6:])
    assert base.count(right) == 1
    text = base.replace(right, wrong)
    draft = Draft(text)
    site = ChangeSite(draft.kernels[0], replay(draft.source).begun["weights_kernel"].watched, numbers=("0.044715", "1e-5"))
    first = base[: base.index(right)].count("\n") + 1
    here = range(first, first + wrong.count("\n") + 1)
    near = (one for one in changes_of(site) if all(line in here for line in one.lines))
    assert meaning(base) in (meaning(one) for one in restored(text, near) if names(one) == names(base))


@pytest.mark.parametrize("name", ON_HOST)
def test_an_operator_of_host_code_restores_its_example(name: str) -> None:
    right, wrong = ON_HOST[name]
    assert WEIGHTS.count(right) == 1
    text = WEIGHTS.replace(right, wrong)
    source = ParsedSource(text)
    program, _ = traced(Text(text), "entry", torch.ones(6, 6), torch.ones(4, 6))
    walked = HostReplay(HostCall("entry", (torch.ones(6, 6), torch.ones(4, 6))), program, source, code_of(source))
    walked.run()
    assert walked.walk is not None
    made = restored(text, host_changes(HostSite(source, walked.walk)))
    assert meaning(WEIGHTS) in map(meaning, made)
