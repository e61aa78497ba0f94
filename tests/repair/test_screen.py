"""A first look at single changes of a kernel: the source is walked as text, and what makes a failing call right is kept."""

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from gradekit.engine.executor import run
from gradekit.interpreter.shown_call import ShownCall
from gradekit.interpreter.tile_values import kind_of
from gradekit.interpreter.walk import Substitution
from gradekit.interpreter.walked_call import WRONG, WalkedCall, code_of, has_effects
from gradekit.repair.mend import Clues
from gradekit.repair.operators.all_changes import changes_of
from gradekit.repair.operators.changes import Change, ChangeKind, ChangeSite
from gradekit.repair.screen import Screen, is_static, parsed
from gradekit.repair.search import RIGHT, diagnosis_of
from gradekit.repair.survivor_mends import mend_of, mends_of
from gradekit.source.draft import Draft
from gradekit.submission.parsed_source import ParsedSource
from tests.beside import beside
from tests.gpu.programs import traced
from tests.tracer.styles import Text

TEXTS = beside(__file__)

MEANS = TEXTS["means"]

WALKS = TEXTS["walks"]


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(3)
    return torch.randn(3, 10, generator=drawn), torch.randn(10, generator=drawn)


def shown(text: str, expected: torch.Tensor, *args: Any) -> tuple[ShownCall, Any]:
    """The call of a text, and what its results must be."""
    program, tensors = traced(Text(text), "entry", *args)

    def is_right(results: Sequence[torch.Tensor | None]) -> bool:
        return results[0] is not None and torch.allclose(results[0], expected, rtol=1e-4, atol=1e-4)

    return ShownCall(program, tensors, run(program, tensors).results, is_right), program


def survivors(old: str, new: str, block: int = 4) -> tuple[list[Change], str]:
    """The changes that make a mistaken text right, and that text."""
    assert MEANS.count(old) == 1
    x, w = inputs()
    text = MEANS.replace(old, new).replace("BLOCK=4", f"BLOCK={block}")
    call, _ = shown(text, torch.exp((x * w).sum(1) * 0.25), x, w)
    return Screen(Draft(text), ()).survivors([call], ["means_kernel"]), text


@pytest.mark.sample(3)
@pytest.mark.parametrize(("right", "wrong", "new", "line"), [
    ("range(0, n, BLOCK)", "range(0, n, 8)", "BLOCK", 10),
    ("x * w", "x + w", "(x * w)", 14),
    ("tl.sum(x", "tl.max(x", "tl.sum(x * w, axis=0)", 14),
    ("tl.exp(total * scale)", "tl.exp(total)", "(total * scale)", 15),
    ("total += tl", "total = tl", "total += tl.sum(x * w, axis=0)", 14),
    ("row * stride + cols", "row + cols", "(row * stride)", 12),
    ("cols, mask=cols < n, other=0.0)\n        w", "cols, mask=cols >= 0, other=0.0)\n        w", "((cols >= 0) & (cols < n))", 12),
    ("cols < n, other=0.0)\n        w", "cols < min(n, 4), other=0.0)\n        w", "n", 12),
])
def test_one_wrong_expression_is_found_at_its_line(right: str, wrong: str, new: str, line: int) -> None:
    found, _ = survivors(right, wrong)
    assert [change.new for change in found if change.new == new] == [new]
    assert any(change.sentence.startswith(f"Line {line} ") for change in found)


def test_what_is_out_of_bounds_or_changes_nothing_does_not_survive() -> None:
    x, w = inputs()
    call, _ = shown(MEANS, torch.full((3,), 7.0), x, w)
    assert Screen(Draft(MEANS), ()).survivors([call], ["means_kernel"]) == []


@pytest.mark.parametrize("seed", range(3))
def test_programs_that_go_different_ways_are_walked_as_the_engine_runs_them(seed: int) -> None:
    x = torch.randint(0, 6, (6,), generator=torch.Generator().manual_seed(seed)).float()
    program, tensors = traced(Text(WALKS), "entry", x)
    walked = WalkedCall(program, tensors, code_of(ParsedSource(WALKS)), ()).run()
    assert walked[0] is not None and torch.equal(walked[0], run(program, tensors).results[0])


def test_where_survivors_blame_several_lines_only_a_plain_exchange_is_told() -> None:
    """`exp(-t)` for `exp(t)` may be made good where t is made; `exp2` for `exp` may not"""
    found, text = survivors("tl.exp(total * scale)", "tl.exp(-total * scale)")
    assert len({change.sentence.split()[1] for change in found}) > 1
    assert mends_of(found, ParsedSource(text)) == []
    found, text = survivors("tl.exp(total", "tl.exp2(total")
    (mend,) = mends_of(found, ParsedSource(text))
    assert mend.sentence == "Line 15 calls `tl.exp2`." and mend.hint == "write `tl.exp`"


def test_of_equal_repairs_in_two_lines_that_of_a_division_by_1_is_told() -> None:
    """`x * scale` for `scale = 1 / 1 - p`: nobody divides by 1, and `x / scale` would be right as well"""
    source = ParsedSource("scale = 1 / 1 - p\ny = x * scale")
    wrong, used = (one.value for one in source.tree.body if isinstance(one, ast.Assign))
    made = Change(ChangeKind.IDLE_SIDE, "f", wrong, "(1 / (1 - p))", "Line 1 computes it.", "")
    first, *_ = mends_of([Change(ChangeKind.OPERATOR, "f", used, "(x / scale)", "Line 2 does.", ""), made], source)
    assert first.line == 1


def test_of_one_more_and_a_quotient_that_is_rounded_up_this_is_told() -> None:
    source = ParsedSource("rounds = n // b\nfor r in range(rounds): pass")
    (quotient, loop) = source.tree.body[0].value, source.tree.body[1].iter.args[0]  # type: ignore[attr-defined]
    news = [f"({source.of(one)} + 1)" for one in (quotient, loop)]
    made = [Change(ChangeKind.TERM, "f", one, new, "It lacks 1.", "", lacks="1") for one, new in zip((quotient, loop), news, strict=True)]
    more = [replace(one, built=ast.parse(one.new, mode="eval").body) for one in made]
    up = Change(ChangeKind.OPERATOR, "f", quotient, "tl.cdiv(n, b)", "Line 1 rounds down.", "")
    assert [mend.sentence for mend in mends_of([*more, up], source)] == ["Line 1 rounds down."]
    assert "is missing as a term" in mends_of(more, source)[0].sentence


def test_where_one_name_is_missing_in_every_mend_it_is_named_with_the_likeliest_line() -> None:
    """`total * scale` would do, and so would `x * scale`, two lines before"""
    found, text = survivors("tl.exp(total * scale)", "tl.exp(total)", block=8)
    assert len({line for change in found for line in change.lines}) > 2
    every = mends_of(found, ParsedSource(text))
    says = "`scale`, which the kernel never uses, is missing as a factor, most likely in line 14."
    assert {mend.sentence for mend in every} == {says} and len({mend.edits for mend in every}) == len(every)


@pytest.mark.parametrize("is_of_the_module", [True, False])
def test_a_number_of_the_handout_is_told_before_a_factor_and_where_it_stands(is_of_the_module: bool) -> None:
    """Half of the number would do as well wherever it goes"""
    right = MEANS.replace("total * scale", f"total * {'SCALE' if is_of_the_module else '0.4442883'} * scale")
    right = right.replace("@triton.jit", "SCALE = tl.constexpr(0.4442883)\n\n\n@triton.jit", 1)
    text, (x, w) = right.replace("0.4442883", "0.8885766"), inputs()
    call, _ = shown(text, torch.exp((x * w).sum(1) * 0.4442883 * 0.25), x, w)
    screen = Screen(Draft(text, ["0.4442883"]), ())
    (mend,) = mends_of(screen.survivors([call], ["means_kernel"]), ParsedSource(text))
    line = mend.applied(text).splitlines()[mend.line - 1]
    assert ("SCALE = " in line) is is_of_the_module and "0.4442883" in line


def test_a_hint_has_all_that_its_mend_puts_in() -> None:
    text = "y = tl.exp(v - tl.max(v))"
    source = ParsedSource(text)
    (node,) = (one for one in ast.walk(source.tree) if getattr(one, "lineno", 0) and ast.unparse(one) == "tl.max(v)")
    change = Change(ChangeKind.AXIS, "f", node, "tl.max(v, axis=1)[:, None]", "Line 1 reduces `v` by `tl.max`.", "name the axis: axis=1")
    mend = mend_of(change, source)
    assert mend is not None
    said = diagnosis_of(mend, text, mend.applied(text), Clues(frozenset(), ()), RIGHT)
    assert "tl.max(v, axis=1)[:, None]" in said.hint


def test_of_failing_calls_the_one_with_more_elements_decides() -> None:
    """Of one element, the sum is its largest, and much else is right"""
    text = MEANS.replace("tl.sum(x", "tl.max(x").replace("x * w", "x - w")
    x, w = inputs()
    one, _ = shown(text, torch.exp((x * w)[:1, :1].sum(1) * 0.25), x[:1, :1], w[:1])
    more, _ = shown(text, torch.exp((x * w).sum(1) * 0.25), x, w)
    screen = Screen(Draft(text), ())
    assert "(x * w)" in {change.new for change in screen.survivors([one], ["means_kernel"])}
    assert screen.survivors([one, more], ["means_kernel"]) == []


GATHERS = TEXTS["gathers"]


def test_a_change_survives_beside_others_that_read_outside() -> None:
    """The text as it is reads outside of x: so does whatever is changed around that load."""
    places, x = torch.tensor([1, 0, 1, 1]), torch.tensor([3.0, 5.0])
    call, _ = shown(GATHERS, x[places] * 2, places, x)
    found = Screen(Draft(GATHERS), ()).survivors([call], ["gathers_kernel"])
    mends = [mend for change in found if (mend := mend_of(change, ParsedSource(GATHERS))) is not None]
    assert GATHERS.replace("x_ptr + row", "x_ptr + place") in [mend.applied(GATHERS) for mend in mends]


def test_a_kernel_that_is_not_understood_is_left_alone() -> None:
    x, w = inputs()
    text = MEANS.replace("total * scale", "tl.interleave(total * scale + tl.zeros((2,), tl.float32), tl.zeros((2,), tl.float32))")
    text = text.replace("out_ptr + row, tl", "out_ptr + row + tl.arange(0, 4) * 0, tl")
    call, _ = shown(text, torch.zeros(3), x, w)
    assert Screen(Draft(text), ()).survivors([call], ["means_kernel"]) == []


def test_a_change_is_named_if_it_is_the_only_one_and_else_the_line_is_told_alone() -> None:
    found, text = survivors("x_ptr + row * stride", "x_ptr + start * stride")
    (mend,) = mends_of(found, ParsedSource(text))
    assert mend.applied(text) == MEANS and mend.kernel == "means_kernel" and mend.line == 12
    assert mend.sentence.startswith("Line 12 uses `start` in `x_ptr + start * stride + cols`.")
    assert "`row`" in mend.hint
    few = mends_of([*found, replace(found[0], new="n")], ParsedSource(text))
    assert few[0].sentence == mend.sentence and few[0].hint == mend.hint
    mends = mends_of([replace(found[0], new=name) for name in "abcde"], ParsedSource(text))
    says = "Something is wrong where line 12 has `x = tl.load(x_ptr + start * stride + cols, mask=cols < n,...`."
    assert {mend.sentence for mend in mends} == {says} and not any("row" in mend.hint for mend in mends)


@pytest.mark.parametrize(
    ("old", "new"),
    [("x_ptr + row * stride", "x_ptr + (row + 1) * stride"), ("total * scale", "total - scale")],
)
def test_changes_that_are_tried_side_by_side_give_what_each_gives_alone(old: str, new: str) -> None:
    """The first text reads outside of x, and so does whatever is changed elsewhere."""
    text = MEANS.replace(old, new)
    call, _ = shown(text, torch.zeros(3), *inputs())
    draft = Draft(text)
    replay = WalkedCall(call.program, call.inputs, code_of(draft.source), ())
    replay.run()
    site = ChangeSite(draft.kernels[0], replay.begun["means_kernel"].watched)
    trees = [(change.node, tree) for change in changes_of(site) if not change.also and (tree := parsed(change))]
    fitting = [pair for pair in trees if _gives_the_same_kind(site, replay, *pair)]
    assert len(fitting) > 200
    fitting = fitting[::3]
    together = replay.changed("means_kernel", Substitution.of([[pair] for pair in fitting]), 0)
    for number, pair in enumerate(fitting):
        assert _same(together.of(number), _alone(replay, pair)), ast.unparse(pair[1])


def _gives_the_same_kind(site: ChangeSite, replay: WalkedCall, old: ast.AST, new: ast.AST) -> bool:
    if is_static(site, old, ()) or has_effects(new, replay.code):
        return False
    try:
        known = site.watched.names[site.kernel.statement(old)]
        return isinstance(new, ast.expr) and kind_of(replay.alone("means_kernel").value(new, known)) == site.kind(old)
    except WRONG:
        return False


def _alone(replay: WalkedCall, pair: tuple[ast.AST, ast.AST]) -> list[torch.Tensor | None] | None:
    try:
        return replay.changed("means_kernel", Substitution.of([[pair]]), 0).of(0)
    except WRONG:
        return None


def _same(one: list[torch.Tensor | None] | None, other: list[torch.Tensor | None] | None) -> bool:
    if one is None or other is None:
        return one is other
    (first,), (second,) = one, other
    return first is not None and second is not None and torch.equal(first.nan_to_num(), second.nan_to_num())


TILES = TEXTS["tiles"]


@pytest.mark.parametrize(("replaced", "says"), [
    ({"[:, None] < M": "[:, None] < N", "cols[None, :] < N": "cols[None, :] < M"}, "has `N` and `M` in each other's place."),
    ({"tl.minimum": "tl.maximum"}, "calls `tl.maximum`, and line 14 does the same."),
])
def test_one_thought_that_went_wrong_in_several_places_is_found(replaced: dict[str, str], says: str) -> None:
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(4))
    expected = torch.softmax(x, 1)
    e = (x - x.amax(1, keepdim=True)).exp()
    expected = expected + e.clamp(max=0.5) * x.clamp(max=0.5)
    wrong = TILES
    for old, new in replaced.items():
        assert old in wrong
        wrong = wrong.replace(old, new)
    call, _ = shown(wrong, expected, x)
    assert not call.is_right(call.results)
    found = Screen(Draft(wrong), ()).survivors([call], ["softmax_kernel"])
    mends = [mend for change in found if (mend := mend_of(change, ParsedSource(wrong))) is not None]
    assert [mend.sentence for mend in mends if mend.applied(wrong) == TILES and says in mend.sentence]


COUNTS = TEXTS["counts"]


def test_changes_are_looked_at_in_memory_that_no_other_has_added_to() -> None:
    x = torch.arange(1.0, 11.0)
    call, _ = shown(COUNTS, (x * x).sum(), x)
    found = Screen(Draft(COUNTS), ()).survivors([call], ["counts_kernel"])
    assert "(x * x)" in {change.new for change in found}


FEEDS = TEXTS["feeds"]


def test_an_index_of_a_kernel_that_only_feeds_the_result_is_changed_too() -> None:
    x, text = torch.arange(1.0, 5.0), FEEDS.replace("at // times", "at % times")
    call, _ = shown(text, 2 * x.repeat_interleave(3), x)
    found = Screen(Draft(text), ()).survivors([call], ["doubles_kernel"], ["repeats_kernel"])
    assert [change.new for change in found] == ["(at // times)"]


COLUMNS = TEXTS["columns"]


def test_a_change_survives_that_matters_in_the_second_launch_of_a_kernel_alone() -> None:
    x, text = torch.arange(8.0), COLUMNS.replace("at * stride", "at * step")
    call, _ = shown(text, x[::2], x)
    assert "stride" in {change.new for change in Screen(Draft(text), ()).survivors([call], ["column_kernel"])}


STEPS = TEXTS["steps"]


def test_a_mask_that_was_made_before_a_loop_is_made_anew_in_its_steps() -> None:
    x = torch.arange(10.0)
    call, _ = shown(STEPS, x.sum(), x)
    (found,) = Screen(Draft(STEPS), ()).survivors([call], ["sums_kernel"])
    assert found.new == "x_ptrs += BLOCK; at += BLOCK; mask = at < n" and "(mask)" in found.sentence


def test_where_accesses_go_astray_only_what_leads_to_them_is_changed() -> None:
    x, w = inputs()
    text = MEANS.replace("x_ptr + row * stride", "x_ptr + (row + 1) * stride")
    call, _ = shown(text, torch.exp((x * w).sum(1) * 0.25), x, w)
    everywhere, there = Screen(Draft(text), ()), Screen(Draft(text), ())
    everywhere.survivors([call], ["means_kernel"])
    found = there.survivors([call], ["means_kernel"], astray=[12])
    assert {change.lines for change in found} == {(12,)} and 0 < there.tried < everywhere.tried


def test_what_nobody_uses_is_told_alone_and_where_it_may_be_missing() -> None:
    found, text = survivors("x * w", "x")
    assert {(change.kind, change.lacks) for change in found} == {(ChangeKind.IDLE, "w")}
    (mend,) = mends_of(found, ParsedSource(text))
    assert mend.sentence == "Line 14 has `x` in `tl.sum(x, axis=0)`, and the kernel never uses `w`."
    elsewhere = next(node for node in Draft(text).kernels[0].statements if node.lineno == 15)
    (mend,) = mends_of([*found, replace(found[0], node=elsewhere)], ParsedSource(text))
    assert mend.sentence == "`w`, which the kernel never uses, is missing as a factor, in line 15 or in line 14." and mend.line == 15


def test_of_changes_that_leave_other_calls_wrong_those_go_that_leave_more_of_them_wrong() -> None:
    found, text = survivors("x * w", "x")
    x, w = inputs()
    call, _ = shown(text, torch.exp((x * w).sum(1) * 0.25), x, w)
    other, _ = shown(text, torch.exp((2 * x * w).sum(1) * 0.25), 2 * x, w)
    anything = replace(other, is_right=lambda results: True, mended=other.is_right)
    kept = Screen(Draft(text), ()).survivors([call], ["means_kernel"], more=[anything])
    assert {change.new for change in kept} <= {change.new for change in found} and kept
    none_right = replace(other, is_right=lambda results: True, mended=lambda results: False)
    same = Screen(Draft(text), ()).survivors([call], ["means_kernel"], more=[none_right])
    assert {change.new for change in same} == {change.new for change in found}


CURVE = TEXTS["curve"]


@pytest.mark.parametrize(("right", "wrong", "says"), [
    ("z + 0.25 * z * z * z", "x + 0.25 * x * x * x", "Line 16 uses `x`, in 4 places."),
    ("0.5 * z * (1", "z * (1", "`0.5` is missing as a factor, in line 17 or in line 18."),
    ("(1.0 + curve(inner))", "curve(inner)", "`1.0` is missing as a term, in line 8 or in line 17."),
    ("z = x + tl.load(b_ptr + i, mask=i < n, other=0.0)", "z = x + tl.load(b_ptr + i, mask=i < n, other=0.0) + x",
     "Line 15 has `+ x`"),
])
def test_of_changes_that_do_the_same_the_one_is_told_that_a_tutor_would_tell(right: str, wrong: str, says: str) -> None:
    drawn = torch.Generator().manual_seed(4)
    x, b = torch.randn(10, generator=drawn), torch.randn(10, generator=drawn)
    x[0], x[1] = 60.0, -60.0
    z = (x + b).double()
    expected = (0.5 * z * (1 + torch.tanh(z + 0.25 * z**3)) + x).float()
    assert CURVE.count(right) == 1
    text = CURVE.replace(right, wrong)
    call, _ = shown(text, expected, x, b)
    found = Screen(Draft(text), ()).survivors([call], ["curve_kernel"])
    assert says in mends_of(found, ParsedSource(text))[0].sentence


LANES = TEXTS["lanes"]


@pytest.mark.parametrize(("right", "wrong", "says"), [
    ("tl.where(real, tl.log(x), 0.0)", "tl.log(x)", "in all lanes, also where `real` is False."),
    ("w_ptr + cols * sw", "w_ptr + cols * sx", "`sx`"),
])
def test_a_condition_that_is_left_out_is_found(right: str, wrong: str, says: str) -> None:
    w = torch.tensor([1.0, 0.0, 2.0, -1.0, 3.0, 0.0])
    x = torch.where(w > 0, torch.arange(1.0, 7.0), -1.0)
    strided = torch.stack([w, -w], 1)[:, 0]
    call, _ = shown(LANES.replace(right, wrong), torch.where(w > 0, x.log(), 0.0).sum().reshape(1), x, strided)
    text = LANES.replace(right, wrong)
    found = Screen(Draft(text), ()).survivors([call], ["squares_kernel"])
    mends = [mend for change in found if (mend := mend_of(change, ParsedSource(text))) is not None]
    assert [mend.sentence for mend in mends if says in mend.sentence]


LOG_SUM = TEXTS["log_sum"]


def test_the_logarithm_of_a_sum_of_powers_may_be_missing_from_what_is_stored() -> None:
    x = torch.linspace(-2, 3, 18).sin().reshape(3, 6)
    call, _ = shown(LOG_SUM, torch.logsumexp(x, 1), x)
    everywhere, there = Screen(Draft(LOG_SUM), ()), Screen(Draft(LOG_SUM), ())
    wanted = "(top + tl.log(total))"
    assert wanted in {change.new for change in everywhere.survivors([call], ["log_sum_kernel"])}
    settled = {"log_sum_kernel": range(1, 13)}
    found = there.survivors([call], ["log_sum_kernel"], settled=settled)
    assert [change.new for change in found] == [wanted] and there.tried < everywhere.tried / 2


PARTS = TEXTS["parts"]

BY_TILES = """    top = tl.load(top_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    part = tl.load(sum_ptr + row * n + cols, mask=cols < n, other=0.0)
    highest = tl.max(top, axis=0)
    tl.store(out_ptr + row, tl.log(tl.sum(part, axis=0)) + highest)"""


def test_a_sum_of_parts_is_brought_to_their_maximum() -> None:
    text = PARTS.format(merge=BY_TILES)
    top, part = torch.linspace(-2, 3, 18).sin().reshape(3, 6), torch.linspace(1, 2, 18).reshape(3, 6)
    call, _ = shown(text, (part * top.exp()).sum(1).log(), top, part)
    assert "(part * tl.exp(top - highest))" in {change.new for change in Screen(Draft(text), ()).survivors([call], ["parts_kernel"])}


def test_what_all_of_a_result_lacks_is_found_as_a_factor_without_a_look_at_the_late_changes() -> None:
    x, w = inputs()
    call, _ = shown(MEANS, torch.exp((x * w).sum(1) * 0.25) * 0.25, x, w)
    found = Screen(Draft(MEANS), ()).survivors([replace(call, lacks=0.25)], ["means_kernel"])
    assert {one.turn for one in found if one.new == "(tl.exp(total * scale) * scale)"} == {1}


BY_ROWS = TEXTS["by_rows"]


@pytest.mark.parametrize(("holes", "new"), [
    ({"row": "(h // 2)", "of_y": "h * xa + cols * xb", "begin": "-9.0"}, "ya"),
    ({"row": "(h // 2)", "of_y": "h * ya + cols * yb", "begin": "0.0"}, 'float("-inf")'),
    ({"row": "(h // 2)", "of_y": "h * ya + cols * yb", "begin": "-9.0"}, "-1"),
])
def test_what_beginners_take_for_strides_and_first_values_is_found(holes: dict[str, str], new: str) -> None:
    x, y = torch.linspace(-5, -1, 10).reshape(2, 5).flip(1), torch.arange(4 * 12).reshape(4, 12)[:, :10:2] % 3
    expected = x.amax(1).repeat_interleave(2) + (y == 0).sum(1)
    text = BY_ROWS
    for hole, piece in holes.items():
        text = text.replace(f"{{{hole}}}", piece)
    if new != "-1":
        text = text.replace("other=0)", "other=-1)")
    call, _ = shown(text, expected, x, y)
    assert new in {change.new for change in Screen(Draft(text), ()).survivors([call], ["kernel"])}


def test_a_name_that_nothing_uses_comes_first_also_where_it_is_what_a_result_lacks() -> None:
    text = MEANS.replace("tl.exp(total * scale)", "total")
    x, w = inputs()
    call, _ = shown(text, (x * w).sum(1) * 0.25, x, w)
    found = Screen(Draft(text), ()).survivors([replace(call, lacks=0.25)], ["means_kernel"])
    assert {(one.kind, one.lacks, one.turn) for one in found} == {(ChangeKind.IDLE, "scale", -1)}
