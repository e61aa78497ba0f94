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
from gradekit.repair.operators.insertions import insertions
from gradekit.repair.survivor_mends import mend_of
from gradekit.source.draft import Draft
from gradekit.submission.parsed_source import ParsedSource
from tests.beside import beside
from tests.gpu.programs import traced
from tests.texts import HEAD
from tests.tracer.styles import Text

CASES = beside(__file__)

WEIGHTS = HEAD + CASES["weights"]

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


@pytest.mark.parametrize(("value", "hint"), [
    ("tl.zeros((BM,), dtype=tl.float32)", "`late` begins before the loop: leave this line out"), ("share * 1.0", "add it up, with +="),
])  # fmt: skip
def test_a_sum_that_is_set_back_in_a_loop_is_told_apart_from_one_that_is_overwritten(value: str, hint: str) -> None:
    draft = Draft(WEIGHTS.replace("        late = tl.zeros((BM,), dtype=tl.float32)", f"        late = {value}"))
    site = ChangeSite(draft.kernels[0], replay(draft.source).begun["weights_kernel"].watched)
    assert {one.hint for one in changes_of(site) if one.new == f"late += {value}"} == {hint}


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


TILES = HEAD + '''
@triton.jit
def tiles_kernel(x_ptr, v_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.arange(0, BM)
    n = tl.arange(0, BN)
    rows = m[:, None] < M
    x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=m[:, None] < N, other=0.0)
    v = tl.load(v_ptr + m[:, None] * N + n[None, :], mask=rows, other=0.0)
    tl.store(out_ptr + m[:, None] * N + n[None, :], x * v, mask=rows & (n[None, :] < N))


def entry(x, v):
    out = torch.empty_like(v)
    tiles_kernel[(1,)](x, v, out, v.shape[0], v.shape[1], BM=8, BN=8)
    return out
'''


@pytest.mark.parametrize("together", [
    ["((m[:, None] < N) & (n[None, :] < N))", "((m[:, None] < M) & (n[None, :] < N))"],
    ["((m[:, None] < M) & (n[None, :] < N))"], ["tl.dot(x, v)"],
])  # fmt: skip
def test_masks_of_tiles_get_the_bound_that_they_lack_alone_and_together(together: list[str]) -> None:
    draft = Draft(TILES)
    site = ChangeSite(draft.kernels[0], replay(draft.source).begun["tiles_kernel"].watched)
    assert together in [[part.new for part in change.parts] for change in changes_of(site)]


RESET = HEAD + '''
@triton.jit
def tiles_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    n = tl.arange(0, BLOCK)
    for start in range(0, N, BLOCK):
        total = tl.zeros((BLOCK,), tl.float32)
        squares = tl.zeros((BLOCK,), tl.float32)
        x = tl.load(x_ptr + start + n, mask=start + n < N, other=0.0)
        total += x
        squares += x * x
        tl.store(out_ptr + n, total + squares)


def entry(x, v):
    out = torch.empty((4,), dtype=x.dtype, device=x.device)
    tiles_kernel[(1,)](x, out, x.numel(), BLOCK=4)
    return out
'''


def test_what_begins_anew_in_each_step_begins_before_the_loop_each_and_all() -> None:
    draft = Draft(RESET)
    site = ChangeSite(draft.kernels[0], replay(draft.source).begun["tiles_kernel"].watched)
    moved = [change for change in insertions(site) if change.new == "pass"]
    assert [len(change.parts) for change in moved] == [2, 2, 3]
    assert moved[2].parts[-1].new.endswith("; total = tl.zeros((BLOCK,), tl.float32); squares = tl.zeros((BLOCK,), tl.float32)")
    assert moved[2].hint == "begin `total` and `squares` once, before the loop in line 10"


ONCE = RESET.replace("    for start", "    total = tl.zeros((BLOCK,), tl.float32)\n    squares = tl.zeros((BLOCK,), tl.float32)\n    for start").replace(
    "        total = tl.zeros((BLOCK,), tl.float32)\n        squares = tl.zeros((BLOCK,), tl.float32)\n", ""
)


def test_what_goes_on_in_each_step_begins_anew_there_each_and_all() -> None:
    draft = Draft(ONCE)
    site = ChangeSite(draft.kernels[0], replay(draft.source).begun["tiles_kernel"].watched)
    anew = [change for change in insertions(site) if "anew there" in change.hint]
    assert [(change.line, change.hint) for change in anew] == [
        (10, "begin `total` anew there"), (11, "begin `squares` anew there"), (10, "begin `total` and `squares` anew there"),
    ]
    assert anew[2].new.startswith("total = tl.zeros((BLOCK,), tl.float32); squares = tl.zeros((BLOCK,), tl.float32); x = ")


STALE = HEAD + '''
@triton.jit
def tiles_kernel(x_ptr, v_ptr, out_ptr, N, M, BLOCK: tl.constexpr):
    n = tl.arange(0, BLOCK)
    v = tl.load(v_ptr + n, mask=n < M, other=0.0)
    i = tl.program_id(0) * BLOCK + n
    inside = i < N
    for start in range(0, N, BLOCK):
        place = start + n
        tl.store(out_ptr + place, tl.load(x_ptr + i, mask=inside) + v, mask=place < N)
        i += BLOCK


def entry(x, v):
    out = torch.empty_like(x)
    tiles_kernel[(1,)](x, v, out, x.numel(), v.numel(), BLOCK=4)
    return out
'''


def test_what_stands_before_a_loop_is_computed_in_each_step_from_the_place_of_that_step() -> None:
    draft = Draft(STALE)
    site = ChangeSite(draft.kernels[0], replay(draft.source).begun["tiles_kernel"].watched)
    stale = {change.new: change.sentence for change in insertions(site) if "in each step, from" in change.hint}
    says = "Line {} computes `{}` once, before the loop in line 13, whose steps go on to other places."
    assert stale == {
        "place = start + n; v = tl.load(v_ptr + place, mask=place < M, other=0.0)": says.format(10, "v"),
        "inside = i < N; place = start + n": says.format(12, "inside"),
    }


def test_what_only_gives_a_name_its_next_value_is_no_use_of_it() -> None:
    (kernel,) = Draft(HEAD + "@triton.jit\ndef wide(a, b, c):\n    a, b = a.to(tl.int64), tl.cast(b, tl.int64)\n    c = c + b\n").kernels
    assert [kernel.uses[name] for name in "abc"] == [0, 1, 0]
