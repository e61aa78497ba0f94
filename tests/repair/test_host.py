"""A first look at single changes of host code: it is walked as text, on the tensors of a call."""

import ast
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gradekit.assignment import discover
from gradekit.engine.executor import run
from gradekit.interpreter.shown_call import HostCall, HostReplay, ShownCall
from gradekit.interpreter.walked_call import WRONG, code_of
from gradekit.program import Allocate, Copy
from gradekit.repair.host_screen import HostScreen
from gradekit.repair.operators.host_changes import HostSite, host_changes
from gradekit.repair.survivor_mends import mends_of_host
from gradekit.source.draft import draft_of
from gradekit.submission.parsed_source import ParsedSource
from tests.beside import beside
from tests.gpu.programs import traced
from tests.texts import HEAD
from tests.tracer.styles import Text

MEAN = beside(__file__)["mean"]


def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(5)
    return torch.randn(3, 12, generator=drawn)[:, :10], torch.randn(3, 10, generator=drawn)


def expected() -> torch.Tensor:
    x, y = tensors()
    return (x * y * y).sum() / 10**0.5 / 3


def shown(text: str) -> ShownCall:
    """The call of a text on the tensors."""
    program, given = traced(Text(text), "entry", *tensors())

    def is_right(results: Sequence[torch.Tensor | None]) -> bool:
        return results[0] is not None and torch.allclose(results[0], expected(), rtol=1e-4, atol=1e-4)

    results = run(program, given, allow=("aten::sum", "aten::div")).results
    return ShownCall(program, given, results, is_right, host=HostCall("entry", tensors()))


def said_of(old: str, new: str) -> list[tuple[int, str, str]]:
    """Line, sentence and hint of the mends of a mistaken text."""
    assert MEAN.count(old) == 1
    source = ParsedSource(MEAN.replace(old, new))
    found = HostScreen(source, code_of(source)).survivors(shown(source.text), [])
    return [(mend.line, mend.sentence, mend.hint) for mend in mends_of_host(found, source)]


@pytest.mark.parametrize(("right", "wrong", "piece", "says"), [
    ("parts.sum() / rows", "parts.sum() / n", "return parts", "uses `n` in"),
    ("1.0 / math.sqrt(n)", "1.0 / n", "scale =", "a square root is missing"),
    ("1.0 / math.sqrt(n)", "1.0 / math.sqrt(rows)", "scale =", "uses `rows`"),
    ("1.0 / math.sqrt(n)", "math.sqrt(n)", "scale =", "has `math.sqrt(n)`"),
    ("x.stride(0), y.stride(0)", "y.stride(0), x.stride(0)", "sums_kernel[", "`y.stride(0)` and `x.stride(0)` in each other's place"),
    ("x.stride(0), y.stride(0)", "*y.stride()[:1], *x.stride()[:1]", "sums_kernel[", "`y.stride()[:1]` and `x.stride()[:1]` in each other's place"),
    ("](x, y, parts", "](y, x, parts", "sums_kernel[", "`y` and `x` in each other's place"),
    ("](x, y, parts", "](y, y, parts", "sums_kernel[", "uses `y` in"),
    ("x.stride(0), y.stride(0)", "x.stride(1), y.stride(0)", "sums_kernel[", "takes the dimension 1 in `x.stride(1)`"),
])
def test_one_wrong_expression_of_host_code_is_found_at_its_line(right: str, wrong: str, piece: str, says: str) -> None:
    found = said_of(right, wrong)
    lines = {number for number, text in enumerate(MEAN.splitlines(), 1) if piece in text}
    assert found and found[0][0] in lines
    assert any(says in f"{sentence} {hint}" for _, sentence, hint in found), found


DOUBLES = HEAD + """@triton.jit
def doubling(x_ptr, out_ptr, n, stride, TILE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + row * n + at, 2 * tl.load(x_ptr + row * stride + at, mask=at < n, other=0.0), mask=at < n)


def entry(x, y):
    rows, n = x.shape
    out = torch.empty((rows, n), dtype=x.dtype, device=x.device)
    doubling[(rows,)](x, out, n, x.stride(0), TILE=4)
    return out
"""


def test_a_grid_gets_the_axis_that_its_kernel_asks_for() -> None:
    program, given = traced(Text(DOUBLES), "entry", *tensors())
    is_right = lambda results: results[0] is not None and torch.equal(results[0], 2 * tensors()[0])
    call = ShownCall(program, given, run(program, given).results, is_right, host=HostCall("entry", tensors()))
    draft = draft_of(DOUBLES)
    assert draft is not None
    found = HostScreen(draft.source, code_of(draft.source)).survivors(call, [])
    assert [one.new for one in found] == ["(rows, triton.cdiv(n, 4))"]


@pytest.mark.parametrize(("access", "is_one"), [("tl.store", False), ("tl.atomic_add", True)])
def test_zeros_stand_where_a_kernel_adds_to_a_result_and_not_where_it_stores(access: str, is_one: bool) -> None:
    source = ParsedSource(DOUBLES.replace("tl.store", access))
    replay = HostReplay(HostCall("entry", tensors()), traced(Text(source.text), "entry", *tensors())[0], source, code_of(source))
    replay.run(10**9)
    assert replay.walk is not None and any("zeros" in one.new for one in host_changes(HostSite(source, replay.walk))) is is_one


SUMS = HEAD + """@triton.jit
def sums_kernel(x_ptr, out_ptr, n, TILE: tl.constexpr):
    at = tl.arange(0, TILE)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0), axis=0))


def entry(x):
    n, most, out = x.shape[0], 64, torch.empty((1,), device=x.device)
    sums_kernel[(1,)](x, out, n, TILE=triton.next_power_of_2(n - 1))
    return out
"""


def test_of_edits_that_are_right_that_is_told_with_which_right_calls_launch_what_they_did() -> None:
    """A tile of `most` lanes is right as well, and wider than it was in calls that nothing was wrong with."""

    def call(n: int) -> ShownCall:
        x = torch.arange(1.0, n + 1)
        program, given = traced(Text(SUMS), "entry", x)
        is_right = lambda results: results[0] is not None and torch.equal(results[0], x.sum()[None])
        return ShownCall(program, given, run(program, given).results, is_right, host=HostCall("entry", (x,)))

    source = ParsedSource(SUMS)
    screen = lambda more: HostScreen(source, code_of(source)).survivors(call(5), more)
    assert {"most", "n"} <= {change.new for change in screen([])}
    assert {change.new for change in screen([call(4), call(7)])} == {"n", "0"}



def test_host_code_that_is_right_is_left_alone_where_no_change_helps() -> None:
    assert said_of("tl.sum(x * y * y, axis=0)", "tl.sum(tl.exp(x * y), axis=0)") == []


IN_PLACE = HEAD + """@triton.jit
def add_kernel(x_ptr, y_ptr, n, x_step, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * x_step, mask=i < n)
    tl.store(x_ptr + i * x_step, x + tl.load(y_ptr + i, mask=i < n), mask=i < n)


def entry(x, y):
    add_kernel[(1,)](x, y, y.numel(), x.stride(0), BLOCK=16)
    x[:1] = 3
"""


def in_place(text: str, x: torch.Tensor, y: torch.Tensor) -> ShownCall:
    """The call entry(x, y), of which x is a result."""
    program, given = traced(Text(text), "entry", x, y)
    view, *others = program.inputs
    begin = replace(view, storage=9)
    steps = Allocate(view.storage, x.untyped_storage().nbytes()), Copy(view, begin), *program.steps
    program = replace(program, inputs=(begin, *others), steps=steps, results=(view,))
    right = x + y
    right[0] = 3
    is_right = lambda results: results[0] is not None and torch.equal(results[0], right)
    return ShownCall(program, given, run(program, given).results, is_right, host=HostCall("entry", (x, y)))


def test_an_argument_that_host_code_may_write_to_is_a_result_and_stays_as_it_was() -> None:
    x, y = torch.arange(20.0)[::2], torch.ones(10)
    call, source = in_place(IN_PLACE, x, y), ParsedSource(IN_PLACE)
    assert call.host is not None
    results = HostReplay(call.host, call.program, source, code_of(source)).run()
    assert call.is_right(results) and call.is_right(call.results)
    assert x.tolist() == list(range(0, 20, 2))


def test_a_change_of_host_code_that_writes_in_place_is_found() -> None:
    text = IN_PLACE.replace("x.stride(0)", "y.stride(0)")
    source = ParsedSource(text)
    found = HostScreen(source, code_of(source)).survivors(in_place(text, torch.arange(20.0)[::2], torch.ones(10)), ())
    assert "x" in {change.new for change in found}


def test_the_number_of_multiprocessors_is_that_which_host_code_was_told() -> None:
    asked = "torch.cuda.get_device_properties(x.device).multi_processor_count"
    text = IN_PLACE.replace("add_kernel[(1,)](x,", f"x = x.clone()\n    add_kernel[({asked} - 131,)](x,").replace("x[:1] = 3", "return x")
    x, y = torch.zeros(10), torch.ones(10)
    program, _ = traced(Text(text), "entry", x, y)
    source = ParsedSource(text)
    (found,) = HostReplay(HostCall("entry", (x, y)), program, source, code_of(source)).run()
    assert program.multiprocessors == 132 and found is not None and torch.equal(found, y)


def test_gradients_come_by_the_backward_pass_of_the_source() -> None:
    x, y = tensors()
    program, _ = traced(Text(MEAN), "entry", x, y)
    source = ParsedSource(MEAN)
    call = HostCall("entry", (x, y, torch.tensor(3.0)), (0, 1))
    with pytest.raises(WRONG, match="gradients"):  # three are given for two arguments
        HostReplay(call, program, source, code_of(source)).run()
    source = ParsedSource(MEAN.replace(", None\n", "\n"))
    results = HostReplay(call, program, source, code_of(source)).run()
    assert results[0] is not None and torch.equal(results[0], 6 * y)
    assert results[1] is not None and torch.equal(results[1], 3 * x)


@pytest.mark.parametrize("host", [
    "x.__class__", "open('/etc/passwd')", "torch.load('x')", "torch.ops.aten.sum(x)", "x.numpy()",
    "torch.empty((1 << 40,))", "x.new_empty((1 << 40,))", "2 ** 2 ** 20", "[0] * (1 << 40)", "range(1 << 40)",
    "().__class__", "exec('1')", "getattr(x, 'data')", "x.fill_(0)", "x.storage", "eval('1')", "str(x)",
])
def test_what_is_not_in_the_vocabulary_is_not_walked(host: str) -> None:
    x, y = tensors()
    program, _ = traced(Text(MEAN), "entry", x, y)
    source = ParsedSource(MEAN.replace("return Mean.apply(x, y)", f"z = {host}\n    return Mean.apply(x, y)"))
    with pytest.raises(WRONG):
        HostReplay(HostCall("entry", (x, y)), program, source, code_of(source)).run()


LARGE = "x.reshape(-1)[:1].expand(1 << 21)"


@pytest.mark.parametrize("host", [
    "x.unsqueeze(-1).expand(*x.shape, 1 << 24).contiguous()", f"{LARGE}[:, None] + {LARGE}",
    f"torch.where({LARGE}[:, None] > 0, {LARGE}, 0)", f"({LARGE}[:, None] < {LARGE}).sum()", "x[[0] * 4000, :]",
    "torch.full(size=(1 << 36,), fill_value=0)", "torch.arange(0, 1e12)", "torch.arange(end=1 << 40)",
    "torch.empty_strided((2, 2), (1 << 36, 1))", "torch.tensor([[[[0] * 64] * 64] * 64] * 64)",
    "[[[[0] * 64] * 64] * 64] * 64", "[0 for a in r for b in r]", "[[[0 for a in r] for b in r] for c in r]",
    "[b for b in [a for a in r]] and [[c for c in r] for d in r]", f"list({LARGE})", f"sum({LARGE})", f"[*{LARGE}]",
    f"[one for one in {LARGE}]", f"{LARGE}.unbind(0)", f"{LARGE}.split(1)", "round(5, -(10 ** 9))",
    "'%900000000d' % 5", "torch.clamp(x, 0, 1, out=x)", "x.new_full(size=(1 << 36,), fill_value=0)",
    "torch.zeros((4,), out=x)", "sum([1 for a in r]) + sum([sum([1 for a in r]) for b in r])",
])
def test_host_code_gets_no_more_than_a_call_needs(host: str) -> None:
    x, y = tensors()
    before = x.clone()
    source = ParsedSource(f"r = range(4000)\n{MEAN}".replace("return Mean.apply(x, y)", f"z = {host}\n    return x"))
    program, _ = traced(Text(MEAN), "entry", x, y)
    started = time.process_time()
    with pytest.raises(WRONG):
        HostReplay(HostCall("entry", (x, y)), program, source, code_of(source)).run()
    assert torch.equal(x, before)
    assert time.process_time() - started < 2  # 20 million units of work are 20 ms


def test_no_change_returns_one_tensor_for_two_results() -> None:
    text = MEAN.replace("return Mean.apply(x, y)", "z = x\n    return x, y")
    source = ParsedSource(text)
    replay = HostReplay(HostCall("entry", tensors()), shown(MEAN).program, source, code_of(source))
    replay.run()
    assert replay.walk is not None
    last = source.text.count("\n")
    alone = (one for one in host_changes(HostSite(source, replay.walk)) if one.line == last and not one.also)
    news = {(source.of(one.node), one.new) for one in alone}
    assert ("y", "z") in news and not {("x", "y"), ("y", "x")} & news


def test_every_change_of_host_code_is_python_and_of_one_line_that_is_there() -> None:
    source = ParsedSource(MEAN)
    replay = HostReplay(HostCall("entry", tensors()), shown(MEAN).program, source, code_of(source))
    replay.run()
    assert replay.walk is not None
    changes = list(host_changes(HostSite(source, replay.walk)))
    assert len(changes) > 100
    for change in changes:
        ast.parse(f"({change.new})", mode="eval")
        assert (f"ine {change.line} " in change.sentence or ".contiguous()" in change.sentence) and change.hint


RIGHT = [
    "custom_op/right_around_a_function.py", "giou_loss/right_by_sample.py", "custom_op/right_flat.py",
    "decode_attention/right_grouped_dot.py", "layer_norm/right_atomics.py", "flash_attention/right_tutorial_pointers.py",
    "spmm/right_row_and_tile.py",
]  # fmt: skip


@pytest.mark.sample(1)
@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.replace("/", "-"))
def test_a_walk_of_host_code_gives_what_a_call_gave(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradekit.inputs.spec import Input
    from gradekit.interpreter.shown_call import is_like
    from gradekit.subject.subject import Subject
    from tests.graded import grade

    text = Path("solutions", path).read_text()
    source, call, walked = ParsedSource(text), Subject.call, list[bool]()

    def watched(subject: Any, entry: str, args: Sequence[Any], wanted: tuple[int, ...] = (), on_one_gpu: bool = False) -> Any:
        seen = call(subject, entry, args, wanted, on_one_gpu)
        if sum(one.numel for one in args if isinstance(one, Input)) < 5000 and len(walked) < 40:
            given = tuple(one.tensor() if isinstance(one, Input) else one for one in args)
            replay = HostReplay(HostCall(entry, given, tuple(wanted)), seen.program, source, code_of(source))
            tensors = [one for one in given if isinstance(one, torch.Tensor)]
            if not any((one.float().abs() > 1000).any() for one in tensors):  # large ones show how factors are rounded
                walked.append(is_like(replay.run(), seen.results) and not replay.strays)
        return seen

    monkeypatch.setattr(Subject, "call", watched)
    assignment = discover(Path("assignments"))[Path(path).parent.name]
    grade(assignment, Path("solutions", path), device="cpu", profile="quick", keyword="contiguous_float32 or whole_caches or gradient")
    assert len(walked) > 3 and all(walked)
