"""Claims about diagnoses: each speaks where the evidence is clear, and is silent at a near miss."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit.engine.budget import OverBudget
from gradekit.findings import Cause, Finding
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input
from gradekit.judge.by_finding import other_strides
from gradekit.judge.compare import assert_close
from gradekit.judge.comparison import Comparison
from gradekit.judge.diagnose import diagnose, evidence_of
from gradekit.judge.evidence import Diagnosis, Evidence
from gradekit.judge.failure import Failure
from gradekit.judge.reference import reference
from gradekit.program import Kernel, Launch, Program, Source
from gradekit.subject import Limit
from gradekit.subject.rules import within_budget

GIVEN = (
    "%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %o: tensor<64xf32>, %q: tensor<64x!tt.ptr<f32>>, %s: !tt.ptr<f32>, "
    "%b: !tt.ptr<tensor<4x4xf32>>, %h: f16, %n: tensor<64xi32>, %t: tensor<16x16xf16>, %i: i32"
)
PLACES = """
#loc1 = loc("/s/submission.py":14:9)
#loc2 = loc("/s/submission.py":15:9)
#loc3 = loc("/lib/standard.py":16:9)
#loc5 = loc(callsite(#loc3 at #loc1))
#loc6 = loc("/s/submission.py":18:5)
#loc9 = loc("/s/submission.py":16:5)
#loc17 = loc("x"(#loc1))
"""


def kernel_of(*operations: str) -> str:
    """The TTIR of a kernel with these operations."""
    lines = "".join(f"    {operation}\n" for operation in operations)
    return f"module {{\n  tt.func public @k({GIVEN}) {{\n{lines}    tt.return\n  }}\n}}{PLACES}"


OPERATIONS = (
    "%pid = tt.get_program_id x : i32 loc(#loc9)",
    "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32> loc(#loc9)",
    "%x = tt.load %p : tensor<64x!tt.ptr<f32>> loc(#loc17)",
    "%y = tt.load %p, %m, %o cacheModifier = ca : tensor<64x!tt.ptr<f32>> loc(#loc2)",
    "tt.store %q, %o : tensor<64x!tt.ptr<f32>> loc(#loc9)",
    'tt.store %q, %o, %m : tensor<64x!tt.ptr<f32>> loc("/s/submission.py":17:5)',
    "%z = tt.load %b, %m : !tt.ptr<tensor<4x4xf32>> loc(#loc5)",
    "%w = tt.load %b : !tt.ptr<tensor<4x4xf32>> loc(#loc6)", "%e = math.exp %x : tensor<64xf32> loc(#loc2)",
)
TTIR = kernel_of(*OPERATIONS)


def program(ttir: str = TTIR, grid: tuple[int, int, int] = (1, 1, 1)) -> Program:
    launch = Launch("k", grid, (), Source(30))
    return Program((), {}, (launch,), (), "tensor", {"k": Kernel("k", ttir)}, path="/s/submission.py")


def plain(*shape: int, dtype: str = "float32", profile: str = "normal", seed: int = 0, name: str = "") -> Input:
    return Input(dtype, shape, row_major(shape), profile=profile, seed=seed, name=name)


def noise(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


class Run:
    """An observation made by hand."""

    def __init__(self, inputs: Sequence[Any], result: Any, findings: Sequence[Finding] = (), ttir: str = TTIR,
                 grid: tuple[int, int, int] = (1, 1, 1)) -> None:  # fmt: skip
        self.inputs, self.results, self.findings = list(inputs), [result], list(findings)
        self.program = program(ttir, grid)


def judged(
    function: Callable[..., torch.Tensor], inputs: Sequence[Input], wrong: torch.Tensor | Callable[..., torch.Tensor],
    *findings: Finding, **run: Any,
) -> Diagnosis | None:
    """The diagnosis of a submission that gives `wrong` (a tensor, or a function of the inputs) for `function`."""
    result = wrong if isinstance(wrong, torch.Tensor) else wrong(*(i.tensor() for i in inputs))
    observation = Run(inputs, result, findings, **run)
    with pytest.raises(Failure) as caught:
        assert_close(observation, reference(function, *inputs))
    return diagnose(caught.value, observation, inputs)


def found(finding: Finding, inputs: Sequence[Input], result: torch.Tensor, **run: Any) -> Diagnosis | None:
    """The diagnosis of a memory check that failed by `finding`."""
    failure = Failure(finding.cause, finding.message, line=finding.line)
    return diagnose(failure, Run(inputs, result, [finding], **run), inputs)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def said(diagnosis: Diagnosis | None) -> tuple[Cause, str]:
    assert diagnosis is not None, "silent"
    return diagnosis.cause, diagnosis.sentence


# --- what the TTIR tells ---------------------------------------------------------------------------------------------


def test_operations_are_told_with_the_lines_of_the_submission_that_they_stand_in() -> None:
    evidence = Evidence(Failure(Cause.WRONG_VALUES, ""), program=program())
    seen = [(op.name, sorted(evidence.lines_of(op))) for op in evidence.operations]
    assert [one for one in seen if one[0] in ("tt.load", "tt.store")] == [
        ("tt.load", [14]), ("tt.load", [15]), ("tt.store", [16]), ("tt.store", [17]), ("tt.load", [14]), ("tt.load", [18]),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "tt.load\n#loc1 = loc(#loc1)"])
def test_a_text_that_is_no_ttir_tells_nothing(text: str) -> None:
    assert Evidence(Failure(Cause.WRONG_VALUES, ""), program=program(text)).operations == []


# --- missing mask ----------------------------------------------------------------------------------------------------


def out_of_bounds(first: int, line: int = 18, cause: Cause = Cause.OUT_OF_BOUNDS_LOAD) -> Finding:
    return Finding(cause, "loads outside of x", line, "k", tensor="x", elements=((first,), (first + 1,)), count=2)


def wrong_at_the_end(x: torch.Tensor) -> torch.Tensor:
    result = softmax(x)
    result[:, -1] = 7
    return result


def test_an_unmasked_load_that_runs_off_the_end_is_a_missing_mask() -> None:
    diagnosis = judged(softmax, [plain(1, 33, name="x")], wrong_at_the_end, out_of_bounds(33))
    assert diagnosis == Diagnosis(
        Cause.MISSING_MASK,
        "The last, partial block is not masked: line 18 loads without a mask.",
        18,
    )


def test_a_missing_mask_is_named_also_where_the_result_happens_to_be_right() -> None:
    cause, sentence = said(found(out_of_bounds(33), [plain(33)], torch.zeros(33)))
    assert (cause, sentence) == (
        Cause.MISSING_MASK, "The last, partial block is not masked: line 18 loads without a mask.",
    )


def test_an_unmasked_store_that_runs_off_the_end_of_the_result_is_a_missing_mask() -> None:
    finding = out_of_bounds(40, 16, Cause.OUT_OF_BOUNDS_STORE)
    assert said(found(finding, [plain(33)], torch.zeros(40)))[0] is Cause.MISSING_MASK


def test_of_a_matrix_the_mask_is_missing_where_blocks_lie_one_behind_the_other() -> None:
    finding = out_of_bounds(40, 16, Cause.OUT_OF_BOUNDS_STORE)
    tail = replace(finding, count=64 - 40)
    assert said(found(tail, [plain(33)], torch.zeros(5, 8)))[0] is Cause.MISSING_MASK
    cause, sentence = said(found(finding, [plain(33)], torch.zeros(5, 8)))  # strides may be swapped as well
    assert cause is Cause.OUT_OF_BOUNDS_STORE and "goes past the end of x" in sentence


@pytest.mark.parametrize(("finding", "x"), [
    (out_of_bounds(40), plain(33)),  # begins elsewhere: wrong offsets
    (out_of_bounds(-3), plain(33)),
    (out_of_bounds(33, line=99), plain(33)),  # nothing is known of that line
    (out_of_bounds(33, line=14), plain(33)),  # one load there has a mask, another has not
    (out_of_bounds(33, line=15), plain(33)),  # it has a mask
    (out_of_bounds(33), Input("float32", (33,), (2,))),  # strided: its end is elsewhere
    (Finding(Cause.OUT_OF_BOUNDS_LOAD, "loads outside of x", None, elements=((33,),)), plain(33)),
    (Finding(Cause.RACE, "a race", 18, elements=((33,),)), plain(33)),
])
def test_other_accesses_out_of_bounds_are_no_missing_mask(finding: Finding, x: Input) -> None:
    assert found(finding, [x], torch.zeros(33)) is None


FAR = Input("float32", (3, 4), (1 << 30, 1), name="x")


@pytest.mark.parametrize(("place", "is_wrapped"), [
    ((1 << 31) - (1 << 32), True), ((1 << 31) + 3 - (1 << 32), True), ((1 << 31) + 4 - (1 << 32), False), (-3, False), (1 << 31, False),
])
def test_offsets_that_are_just_2_to_the_32_too_small_have_been_wrapped(place: int, is_wrapped: bool) -> None:
    diagnosis = found(replace(out_of_bounds(0), elements=((place,),)), [FAR], torch.zeros(3, 4))
    assert (diagnosis is not None and "just 2**32 elements in front" in diagnosis.sentence) == is_wrapped


def test_a_wrong_result_of_a_tensor_that_no_memory_holds_as_it_lies_is_no_stride_bug() -> None:
    with pytest.raises(Failure) as caught:
        assert_close(Run([FAR], torch.ones(3, 4)), reference(lambda x: x, FAR))
    assert diagnose(caught.value, Run([FAR], torch.ones(3, 4)), [FAR]) is None


def test_a_mask_in_the_source_is_a_mask_though_triton_has_folded_it_away() -> None:
    body = "    x = 1\n" * 15 + "    y = tl.load(p,\n        mask=m, other=0)\n"
    text = "@triton.jit\ndef kernel(p, m):\n" + body
    finding = out_of_bounds(33)
    failure, run = Failure(finding.cause, "", line=18), Run([plain(33)], torch.zeros(33), [finding])
    assert diagnose(failure, run, [plain(33)], text) is None
    bare = diagnose(failure, run, [plain(33)], text.replace("mask=m, other=0", "cache_modifier=c"))
    assert "line 18 loads without a mask" in said(bare)[1]


def test_an_atomic_without_a_mask_is_called_by_its_name() -> None:
    of = "(tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> tensor<64xf32> loc(#loc9)"
    ttir = kernel_of(f"%a = tt.atomic_rmw fadd, acq_rel, gpu, %q, %o, %m : {of}")
    text = "@triton.jit\ndef kernel(q):\n" + "    x = 1\n" * 13 + "    tl.atomic_add(q, x)\n"
    finding = out_of_bounds(33, 16, Cause.OUT_OF_BOUNDS_STORE)
    failure, run = Failure(finding.cause, "", line=16), Run([plain(33)], torch.zeros(33), [finding], ttir=ttir)
    bare, masked = (diagnose(failure, run, [plain(33)], one) for one in (text, text.replace("q, x", "q, x, mask=m")))
    assert "line 16 calls tl.atomic_add without a mask" in said(bare)[1] and masked is None
    assert bare is not None and bare.hint.endswith("pass it to tl.atomic_add")


def test_what_was_seen_in_memory_goes_before_the_work_that_stopped_a_run() -> None:
    over, x = OverBudget("work", Limit.HURRY), Input("int32", (3,), (2,), name="crow")
    over.findings = [Finding(Cause.OUT_OF_BOUNDS_LOAD, "loads outside of crow", 17, tensor="crow", elements=((1,),), count=1)]
    with pytest.raises(Failure) as caught, within_budget("spmm"):
        raise over
    assert caught.value.message.startswith("Line 17: loads outside of crow. spmm was stopped because")
    assert caught.value.told is Cause.OUT_OF_BOUNDS_LOAD and caught.value.cause is Cause.BUDGET_EXCEEDED
    little = OverBudget("work", 1e6)  # what other calls have left is not what stopped it
    little.findings = over.findings
    with pytest.raises(Failure) as alone, within_budget("spmm"):
        raise little
    assert alone.value.message == "Line 17: loads outside of crow."
    diagnosis = diagnose(caught.value, None, [x])
    assert diagnosis is not None and (diagnosis.cause, diagnosis.line) == (Cause.IGNORES_STRIDES, 17)


def test_a_load_of_one_element_has_no_lanes_past_the_end() -> None:
    scalar = TTIR.replace("%w = tt.load %b : !tt.ptr<tensor<4x4xf32>>", "%w = tt.load %s : !tt.ptr<f32>")
    assert scalar != TTIR and found(out_of_bounds(33), [plain(33)], torch.zeros(33), ttir=scalar) is None


def test_memory_that_nobody_set_is_named_and_no_division_by_zero() -> None:
    finding = Finding(Cause.UNINITIALIZED_READ, "reads", 9, "k", tensor="dw")
    cause, sentence = said(judged(double, [plain(8)], torch.full((8,), torch.nan), finding))
    assert cause is Cause.UNINITIALIZED_READ and sentence == "Line 9 reads dw before anything is written there."
    clean = Failure(finding.cause, finding.message, line=9)
    assert diagnose(clean, Run([plain(8)], torch.zeros(8), [finding]), [plain(8)]) is None


# --- unwritten -------------------------------------------------------------------------------------------------------


def unwritten(first: tuple[int, ...], count: int) -> Finding:
    return Finding(Cause.UNWRITTEN_OUTPUT, "never written", tensor="the result", elements=(first,), count=count)


@pytest.mark.parametrize(("finding", "shape", "grid", "sentence"), [
    (unwritten((1, 0), 5), (2, 5), (4, 1, 1), "Only the first 1 of 2 rows of the result are ever written."),
    (unwritten((128, 0), 72 * 5), (200, 5), (4, 1, 1),
     "Only the first 128 of 200 rows of the result are ever written."),
    (unwritten((0, 4), 200), (200, 5), (4, 1, 1),
     "Only the first 4 of 5 columns of the result are ever written."),
    (unwritten((0, 2), 600), (200, 5), (4, 1, 1),
     "Only the first 2 of 5 columns of the result are ever written."),
    (unwritten((192,), 8), (200,), (3, 1, 1), "Only the first 192 of 200 elements of the result are ever written."),
    (unwritten((64,), 136), (200,), (4, 1, 1), "Only the first 64 of 200 elements of the result are ever written."),
    (unwritten((0,), 200), (200,), (1, 1, 1), "No element of the result is ever written."),
])
def test_a_result_unwritten_from_some_place_on_is_named(
    finding: Finding, shape: tuple[int, ...], grid: tuple[int, int, int], sentence: str
) -> None:
    assert said(found(finding, [plain(3)], torch.zeros(shape), grid=grid)) == (Cause.UNWRITTEN_OUTPUT, sentence)


def test_elements_that_are_nan_are_told_to_be_never_written_where_there_are_as_many() -> None:
    holes = torch.ones(200, 5)
    holes[::2, 1] = torch.nan
    right = lambda x: torch.ones(200, 5)
    told = judged(right, [plain(3)], holes, unwritten((0, 1), 100))
    assert said(told) == (Cause.UNWRITTEN_OUTPUT, "Just those elements are NaN that nothing is ever written to.")
    assert judged(right, [plain(3)], holes, unwritten((0, 1), 99)) is None


@pytest.mark.parametrize("finding", [unwritten((128, 0), 71 * 5), unwritten((128, 0, 0), 360), unwritten((), 0)])
def test_holes_in_a_result_are_not_called_its_end(finding: Finding) -> None:
    assert found(finding, [plain(3)], torch.zeros(200, 5)) is None


# --- strides ---------------------------------------------------------------------------------------------------------


def test_a_tensor_read_with_the_strides_of_another_is_told_with_whose() -> None:
    """By loads outside that are just those of other strides."""
    k = Input("float32", (3, 4), (0, 1), name="k")
    for first, count, told in ((4, 8, "as if it had the strides of q"), (4, 7, None), (12, 8, None)):
        places = tuple((place,) for place in range(first, first + 8))
        finding = Finding(Cause.OUT_OF_BOUNDS_LOAD, "loads", 15, "k", tensor="k", elements=places, count=count)
        failure, q = Failure(finding.cause, ""), plain(3, 4, name="q")
        cause, sentence = said(diagnose(failure, Run([q, k], q.tensor(), [finding]), [q, k]) or Diagnosis(Cause.CRASH, ""))
        assert (cause is Cause.IGNORES_STRIDES) is (told is not None) and (told or "") in sentence
        assert told is None or "but its own are (0, 1)." in sentence


@pytest.mark.parametrize(("tensor", "count", "told"), [
    ("the result", 8, "Line 15 stores to the result as if it had the strides of x, but its own are (1,)."), ("the result", 7, ""),
    ("result 1 (`y_ptr`)", 8, "Line 15 stores to result 1 (`y_ptr`) as if it had the strides of x, but its own are (1,)."),
    ("buffer 3", 8, ""),
])  # fmt: skip
def test_a_result_stored_with_the_strides_of_an_input_is_told_with_whose(tensor: str, count: int, told: str) -> None:
    x, y = Input("float32", (16,), (2,), name="x"), torch.zeros(16)
    places = tuple((place,) for place in range(16, 32, 2))
    finding = Finding(Cause.OUT_OF_BOUNDS_STORE, "stores", 15, "k", tensor=tensor, elements=places, count=count)
    found = other_strides(evidence_of(Failure(finding.cause, ""), SimpleNamespace(findings=[finding], results=(y, y)), [x]))
    assert (found.sentence if found is not None else "") == told


def test_one_nan_is_no_stride_bug_for_any_address_that_is_too_large_brings_it() -> None:
    x = Input("float32", (2, 1), (0, 1), name="x")
    nan = x.tensor().clone() * 2
    nan[1, 0] = torch.nan
    gap = Finding(Cause.OUT_OF_BOUNDS_LOAD, "loads outside of x", 9, "k", tensor="x", elements=((1,),), count=1)
    found = judged(double, [x], nan, gap)
    assert found is None or found.cause is not Cause.IGNORES_STRIDES


@pytest.mark.parametrize(
    ("strides", "place", "ignored"),
    [((64, 2), 1, True), ((64, 2), 6, False), ((7, 2), 7, False), ((9, 3), 4, True), ((0, 1), 1, False)],
)
def test_a_load_between_elements_where_no_stride_leads_ignores_them(strides: Any, place: int, ignored: bool) -> None:
    x = Input("float32", (1, 32), strides, name="x")
    gap = Finding(Cause.OUT_OF_BOUNDS_LOAD, "loads outside of x", 18, "k", tensor="x", elements=((place,),), count=1)
    found = diagnose(Failure(Cause.OUT_OF_BOUNDS_LOAD, "loads outside of x"), Run([x], x.tensor(), (gap,)), [x])
    assert (found is not None and found.cause is Cause.IGNORES_STRIDES) is ignored


def test_nan_everywhere_is_no_stride_bug_where_the_kernel_reads_nothing_but_its_inputs() -> None:
    x, nan = Input("float32", (1, 2), (4, 2)), torch.full((1, 2), torch.nan)
    assert judged(softmax, [x], nan) is None


def test_a_strided_input_with_another_bug_is_no_stride_bug() -> None:
    x = Input("float32", (3, 5), (1, 3))
    assert judged(softmax, [x], lambda x: softmax(x) + noise(3, 5)) is None
    other_dimension = judged(softmax, [x], lambda x: torch.softmax(x, 0))
    assert other_dimension is None or other_dimension.cause is not Cause.IGNORES_STRIDES


def stored_as_contiguous(x: torch.Tensor) -> torch.Tensor:
    return (2 * x).contiguous().view(-1).as_strided(x.shape, x.stride())


def test_a_result_stored_as_if_it_were_contiguous_is_named() -> None:
    x = Input("float32", (3, 5), (1, 3))
    cause, sentence = said(judged(double, [x], stored_as_contiguous))
    assert cause is Cause.IGNORES_STRIDES and "stores the result as if it were contiguous" in sentence
    assert judged(double, [x], lambda x: stored_as_contiguous(x) + 1) is None
    small = Input("float32", (3, 5), (0, 0))
    assert judged(double, [small], lambda x: torch.ones(1).expand(3, 5)) is None


# --- the whole result is something else ------------------------------------------------------------------------------


def test_all_zeros_are_named_and_a_single_zero_is_not() -> None:
    assert said(judged(softmax, [plain(3, 5)], torch.zeros(3, 5)))[0] is Cause.ALL_ZEROS
    assert judged(softmax, [plain(1, 1)], torch.zeros(1, 1)) is None
    almost = torch.zeros(3, 5)
    almost[0, 0] = 9
    assert judged(softmax, [plain(3, 5)], almost) is None


@pytest.mark.parametrize(("wrong", "says"), [
    (lambda y: -y, "Every element is -1 times what it must be."),
    (lambda y: y / math.log(2), "Every element is 1.443 times what it must be. That is log2(e)."),
    (lambda y: y * 33**-0.5, "Every element is 0.1741 times what it must be. That is 1 / sqrt(33)."),
    (lambda y: y * 1.7, "Every element is 1.7 times what it must be."),
    (lambda y: y * torch.tensor([[0.5], [2.0], [3.0]]), "Within a row all elements are off by one factor, and each row has its own."),
    (lambda y: y * torch.linspace(0.5, 4, 33), "Within a column all elements are off by one factor, and each column has its own."),
])
def test_one_factor_of_all_elements_or_of_each_row_is_told_by_its_name(wrong: Callable[..., torch.Tensor], says: str) -> None:
    assert said(judged(double, [plain(3, 33)], lambda x: wrong(double(x))))[1] == says


@pytest.mark.parametrize("wrong", [
    lambda y: y + 1, lambda y: torch.cat([2 * y[:, :20], 3 * y[:, 20:]], 1) + y.sum(), lambda y: y * (torch.arange(33) < 20),
])
def test_elements_that_are_off_by_factors_of_their_own_have_none_in_common(wrong: Callable[..., torch.Tensor]) -> None:
    assert judged(double, [plain(3, 33)], lambda x: wrong(double(x))) is None


Wrong = Callable[[torch.Tensor, float], torch.Tensor]


@pytest.mark.parametrize(("first", "other", "says"), [
    (lambda y, p: y * (1 - p), lambda y, p: y * (1 - p), "Every element is 0.75 times what it must be. That is (1 - `p`)."),
    (lambda y, p: 3 * y, lambda y, p: 3 * y, "Every element is 3 times what it must be."),
    (lambda y, p: 3 * y, lambda y, p: 4 * y, None),  # the one is no factor of the other
    (lambda y, p: 3 * y, lambda y, p: y + 1, None),
    (lambda y, p: 0 * y, lambda y, p: 0 * y, "Every element is 0."),
    (lambda y, p: 0 * y, lambda y, p: y + 1, None),
])
def test_a_factor_is_that_of_every_call_that_is_wrong(first: Wrong, other: Wrong, says: str | None) -> None:
    calls, errors = list[tuple[dict[str, Any], Comparison]](), list[Failure]()
    for wrong, p, x in ((first, 0.25, plain(3, 33)), (other, 0.5, plain(1))):
        with pytest.raises(Failure) as caught:
            assert_close(Run([x], wrong(double(x.tensor()), p)), reference(double, x))
        comparison = caught.value.comparison
        assert comparison is not None
        errors.append(caught.value)
        calls.append(({"x": x, "p": p}, comparison))
    found = diagnose(errors[0], None, [plain(3, 33)], "", calls)
    assert (found and found.sentence) == says


def test_elements_wrong_here_and_there_are_not_diagnosed() -> None:
    def scattered(x: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.arange(x.numel()).view(x.shape) % 7 == 3, 9.0, 2 * x)

    assert judged(double, [plain(9, 20)], scattered) is None


# --- precision -------------------------------------------------------------------------------------------------------


def halved(operation: str) -> str:
    return kernel_of(f"{operation} loc(#loc2)")


def half_of(x: torch.Tensor) -> torch.Tensor:
    return x // 2


def half_as_float32(x: torch.Tensor) -> torch.Tensor:
    return (x.float() / 2).int()


@pytest.mark.parametrize("converted", ["arith.sitofp", "arith.uitofp"])
def test_whole_numbers_that_went_through_float32_are_told_by_the_line(converted: str) -> None:
    x = plain(9, dtype="int32", profile="large")
    diagnosis = judged(
        half_of, [x], half_as_float32, ttir=halved(f"%1 = {converted} %n : tensor<64xi32> to tensor<64xf32>")
    )
    cause, sentence = said(diagnosis)
    assert cause is Cause.WRONG_VALUES
    assert sentence.startswith("Line 15 converts whole numbers to float32, which holds them exactly only up to 2**24.")


def test_a_sum_that_stays_at_the_largest_integer_went_through_float32() -> None:
    x = plain(9, dtype="int32", profile="large")
    ttir = halved("%1 = arith.sitofp %n : tensor<64xi32> to tensor<64xf32>")
    ends = torch.iinfo(torch.int32)

    def doubled_as_float32(x: torch.Tensor) -> torch.Tensor:
        return (2 * x.double()).clamp(ends.min, ends.max).to(torch.int32)

    assert "converts whole numbers to float32" in said(judged(double, [x], doubled_as_float32, ttir=ttir))[1]
    small = plain(9, dtype="int32", profile="integers")
    assert judged(double, [small], lambda x: torch.full_like(x, ends.max), ttir=ttir) is None


# --- silence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", [Cause.WRONG_SHAPE, Cause.WRONG_DTYPE, Cause.WRONG_TYPE, Cause.TOO_MANY_LAUNCHES])
def test_failures_that_say_all_themselves_are_not_diagnosed(cause: Cause) -> None:
    finding = out_of_bounds(33)
    assert diagnose(Failure(cause, "as it says"), Run([plain(33)], torch.zeros(33), [finding]), [plain(33)]) is None


def test_a_failure_without_any_evidence_is_not_diagnosed() -> None:
    assert diagnose(Failure(Cause.WRONG_VALUES, "the student's own assertion")) is None


def test_plain_tensors_as_inputs_are_no_obstacle() -> None:
    x = noise(3, 4)
    with pytest.raises(Failure) as caught:
        assert_close(torch.zeros(3, 4), reference(softmax, x))
    assert said(diagnose(caught.value, None, [x]))[0] is Cause.ALL_ZEROS
