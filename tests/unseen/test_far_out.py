"""How far sizes that no drawn example reaches are gone; tests/hostile/undeserved has what fails there alone."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradekit import beside, reuse
from gradekit.assignment import get
from gradekit.engine.budget import OverBudget
from gradekit.findings import Outcome
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.inputs.draws import Draws
from gradekit.inputs.layouts import row_major
from gradekit.origins import Condition, Explored, Origins
from gradekit.program import Source, View
from gradekit.subject.runs import SomePrograms
from gradekit.unseen import Limit, host_branches, search
from gradekit.unseen.host_branches import HostBranch, TracedForm
from gradekit.unseen.long_dimensions import LongDimensions
from gradekit.unseen.scope import CallScope
from gradekit.unseen.search import OtherWay, Search
from tests import right
from tests.gpu.programs import normal, traced
from tests.graded import graded
from tests.tracer.styles import Text


@pytest.mark.parametrize(("power", "longest"), [(0, 524_288), (1, 12_000), (2, 257)])
def test_lengths_grow_to_the_end_or_as_far_as_the_work_allows(power: int, longest: int) -> None:
    draws = draws_of(calls(domain_of(get("softmax").tests)["softmax"]))
    assert draws is not None
    form = TracedForm("", "softmax", (View(0, "float32", (7, 7), (7, 1)),))
    stretch = next(LongDimensions([("", draws)]).begun("", draws, [form]))
    lengths, in_part = [], []
    while call := stretch.next():
        (in_part if call.in_part else lengths).append(call.call[0].shape[0])
        stretch.spent(5000 * call.call[0].shape[0] ** power)
    assert lengths[-1] == longest and in_part == ([524_288] if power else [])


def test_what_every_call_takes_does_not_grow_with_its_length() -> None:
    """As the programs of a grid of a fixed size, most of which have nothing to do."""
    draws = draws_of(calls(domain_of(get("softmax").tests)["softmax"]))
    assert draws is not None
    form = TracedForm("", "softmax", (View(0, "float32", (7, 7), (7, 1)),))
    stretch = next(LongDimensions([("", draws)]).begun("", draws, [form]))
    while call := stretch.next():
        assert not call.in_part
        stretch.spent(40_000_000 + 16 * call.call[0].shape[0])
    assert stretch.reached == 524_288


def test_some_programs_of_a_call_that_took_too_much_are_run_at_the_end() -> None:
    draws = draws_of(calls(domain_of(get("softmax").tests)["softmax"]))
    assert draws is not None
    form = TracedForm("", "softmax", (View(0, "float32", (7, 7), (7, 1)),))
    stretch = next(LongDimensions([("", draws)]).begun("", draws, [form]))
    first = stretch.next()
    stretch.spent(None)
    second = stretch.next()
    assert first and not first.in_part and second and second.in_part and stretch.next() is None


def test_what_is_summed_is_not_run_in_part() -> None:
    draws = draws_of(calls(domain_of(get("matmul").tests)["matmul"]))
    assert draws is not None
    form = TracedForm("", "matmul", tuple(View(number, "float32", (7, 7), (7, 1)) for number in range(2)))
    by_name = {one.name: one for one in LongDimensions([("", draws)]).begun("", draws, [form]) if one.other == Limit.OTHERS[0]}
    for name, is_run in (("K", False), ("M", True)):
        assert by_name[name].next()
        by_name[name].spent(None)
        last = by_name[name].next()
        assert (last is not None and last.in_part) is is_run


def test_a_dimension_is_stretched_in_the_first_check_of_it_whichever_runs_first() -> None:
    draws = draws_of(calls(domain_of(get("softmax").tests)["softmax"]))
    assert draws is not None
    form, long = TracedForm("", "softmax", (View(0, "float32", (7, 7), (7, 1)),)), stretches(draws, draws)
    assert not [*long.begun("b", draws, [form])]
    assert {one.name for one in long.begun("a", draws, [form])} == {"M", "N"}


def stretches(*draws: Draws | None) -> LongDimensions:
    """Of checks that are called a, b and so on."""
    return LongDimensions([(name, one) for name, one in zip("abc", draws, strict=False) if one is not None])


def spmm_draws(*patterns: str) -> Draws:
    beside(get("spmm").tests, "sparse")  # its kinds of values
    how = {"derive": {"nnz": lambda names: 4}}
    draws = draws_of(calls(domain_of(get("spmm").tests)["spmm"], how=how, others={"pattern": patterns}))
    assert draws is not None
    return draws


def form_of(entry: str, *shapes: tuple[int, ...]) -> TracedForm:
    return TracedForm("", entry, tuple(View(n, "float32", shape, row_major(shape)) for n, shape in enumerate(shapes)))


def test_a_dimension_is_stretched_once_more_with_each_other_choice() -> None:
    form, even, both = form_of("spmm", (3,), (4,), (4,), (5, 6)), spmm_draws("even"), spmm_draws("even", "few")
    further = {one.name: one.next() for one in stretches(even, both).begun("b", both, [form])}
    assert {*further} == {"M", "K", "N"} and all(call and ":few:" in call.call[0].profile for call in further.values())
    assert not [*stretches(even, both, both).begun("c", both, [form])]


def test_a_dimension_is_stretched_again_for_other_lengths_of_sequences() -> None:
    decode = domain_of(get("decode_attention").tests)["decode_attention"]
    form = form_of("decode_attention", (2, 2, 16), (2, 2, 9, 16), (2, 2, 9, 16), (2,))
    kinds = ("lengths:{S}:-1", "lengths:{S}:{seed}", "lengths:{S}:{seed}")
    draws = [one for kind in kinds if (one := draws_of(calls(decode, values={"lengths": [kind]}))) is not None]
    long = stretches(*draws)
    assert [*long.begun("a", draws[0], [form])] and not [*long.begun("c", draws[2], [form])]
    assert {stretch.name for stretch in long.begun("b", draws[1], [form])} == {"B", "H", "G", "S", "D"}


def test_a_dimension_is_stretched_for_each_check_of_gradients() -> None:
    draws = draws_of(calls(domain_of(get("custom_op").tests)["bias_gelu"], upstream=["normal"]))
    assert draws is not None
    shapes = [(5,), (5,), (5,)], [(4, 5), (5,), (4, 5)]
    forms = [replace(form_of("bias_gelu", *each), wanted=(0, 1)) for each in shapes]
    checks = ("gradient_of_x", "gradient_of_bias[float16]", "gradient_of_bias[float32]")
    found = [len([*LongDimensions([(one, draws) for one in checks]).begun(name, draws, forms)]) for name in checks]
    assert found == [4, 2, 0]


def test_a_grid_as_large_as_its_limit_is_not_beyond_it() -> None:
    terms = (("size", 0, 0), ("number", 4096))
    condition = Condition(0, "<", 1, held=True)
    form = TracedForm("", "f", (View(0, "float32", (7,), (1,)),))
    explored = Explored(Origins(terms, (condition,)), (), (), whole=True)
    path = host_branches.Path(form, explored, ((condition, HostBranch(1, "")),))
    sizes = {("size", 0, 0): torch.tensor([4095, 4096, 4097])}
    values = path.values(sizes)
    assert path.held(values)[0].tolist() == [True, False, False]
    assert path.gaps(values)[0].tolist() == [0, -1, -2]


def matmul_path(*compared: tuple[int, int, int]) -> tuple[OtherWay, CallScope]:
    """The last of some comparisons that has not held, on a path of matmul's: a number is less than a product of two
    sizes of a [M, K] and b [K, N], by numbers of terms."""
    draws = draws_of(calls(domain_of(get("matmul").tests)["matmul"]))
    assert draws is not None
    terms: list[tuple[str | int, ...]] = [("number", 1), ("size", 0, 0), ("size", 0, 1), ("size", 1, 1)]
    terms += [("number", 16 * n) for n in range(1, 30)]  # of tiles, which nothing is compared with
    steps = []
    for number, (least, a, b) in enumerate(compared, 1):
        terms += [("number", least), ("*", a, b)]
        held = number < len(compared)
        steps.append((Condition(len(terms) - 2, "<", len(terms) - 1, held), HostBranch(number, "")))
    form = TracedForm("", "matmul", (View(0, "float32", (7, 7), (7, 1)), View(1, "float32", (7, 7), (7, 1))))
    explored = Explored(Origins(tuple(terms), tuple(step for step, _ in steps)), (), (), whole=True)
    return OtherWay(host_branches.Path(form, explored, tuple(steps)), len(steps) - 1), CallScope(draws, 0, True, Limit.FAR)


def test_of_the_smallest_calls_that_is_made_whose_sizes_are_alike() -> None:
    """One row of a million would be the smallest by a little, and costs a tile of rows as much as a hundred do."""
    wanted, scope = matmul_path((1 << 20, 1, 3))
    first = Search().solutions(wanted, wanted.path, scope)[0]
    assert first["M"] * first["N"] > 1 << 20 and max(first["M"], first["N"]) < 1100 and first["K"] == 1


def test_several_long_sizes_are_found_together() -> None:
    wanted, scope = matmul_path((3000, 0, 2), (40, 0, 3))
    first = Search().solutions(wanted, wanted.path, scope)[0]
    assert first["K"] == 3001 and first["N"] == 41


def test_sizes_are_looked_for_once_for_host_code_that_stands_on_other_lines_of_another_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with reuse.kept():
        wanted, scope = matmul_path((3000, 0, 2), (40, 0, 3))
        found = Search().solutions(wanted, wanted.path, scope)
        monkeypatch.setattr(search, "possible_sizes", None)
        steps = tuple((replace(one, source=Source(9, "matmul")), branch) for one, branch in wanted.path.steps)
        moved = replace(wanted, path=replace(wanted.path, steps=steps))
        assert found and Search().solutions(moved, moved.path, scope) == found
        other, _ = matmul_path((3000, 0, 2), (41, 0, 3))
        with pytest.raises(TypeError):
            Search().solutions(other, other.path, scope)


def test_a_test_that_looks_at_a_result_itself_is_not_asked_about_some_programs(tmp_path: Path) -> None:
    """Of dropout's configurations each writes other elements then, and the first's say which were kept"""
    (check,) = graded("dropout", right.text("tests/course/right/dropout/autotuned.py"), tmp_path, keyword="test_scales_what_it_keeps").checks
    assert check.outcome is Outcome.PASSED, check.message


ALONE = """
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr):
    i = tl.program_id(0)
    tl.store(out_ptr + i, tl.load(x_ptr + i))

def entry(x):
    out = torch.zeros_like(x)
    kernel[(x.numel(),)](x, out)
    return out
"""


def test_programs_that_depend_on_each_other_are_told_from_those_that_are_too_few() -> None:
    limits = []
    for store in ("tl.store(out_ptr + i,", "tl.atomic_add(out_ptr + i,"):
        with pytest.raises(OverBudget) as stopped:
            SomePrograms.of(traced(Text(ALONE.replace("tl.store(out_ptr + i,", store)), "entry", normal(20))[0], 0)
        limits.append(stopped.value.limit)
    assert limits[0] > 0 and limits[1] == 0


def test_some_programs_of_the_largest_grid_are_picked_without_going_through_it() -> None:
    text = Text(ALONE.replace("(x.numel(),)", "(2**31 - 1,)"))
    picked = SomePrograms.of(traced(text, "entry", normal(20))[0], 0).ids
    assert {0, 1, 2**31 - 3, 2**31 - 2} <= {*picked} and len(picked) < 100
