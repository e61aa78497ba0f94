"""Sizes that only a submission's own host code makes special are found, and named with their line."""

from pathlib import Path

import pytest
import torch

from gradekit.assignment import get
from gradekit.findings import Cause, Check, Outcome
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.inputs.layouts import row_major
from gradekit.judge.failure import Failure
from gradekit.plugin import further_run
from gradekit.plugin.profiles import Limit
from gradekit.program import Scalar, View
from gradekit.prove.host_terms import described, leaves_in, polynomials, variable
from gradekit.prove.value_of import Evaluation, Undefined
from gradekit.subject.runs import Case, Observation, Runs
from gradekit.unseen.further import FurtherCall
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.host_inputs import HostInputs, of_one_memory, one_apart, one_size_apart
from tests.graded import graded
from tests.unseen.submissions import HOST_LINE, vector_add


def checked(folder: Path, text: str, keyword: str) -> Check:
    """A check of vector_add on this text."""
    (check,) = graded("vector_add", text, folder, keyword=keyword, shrink=False, diagnose=False).checks
    return check


def unseen(check: Check) -> set[tuple[int | None, str]]:
    """The ways that no call of a check has gone, with their lines."""
    decisions = check.details["coverage"]["branches"]["decisions"]
    return {(one["line"], what) for one in decisions for what in one["unseen"]}


@pytest.mark.sample(3)
@pytest.mark.parametrize("host", [
    "n = n - (n == 4099)", "if n % 1009 == 17 and n > 3000:\n    n = n - 1", "n = min(n, 19_999)",
    "if x.shape[0] // 3 == 2222:\n    n = n - 1", "if triton.next_power_of_2(n) == 32768:\n    n = n - 1",
    "n = n - 1 if n * n + n == 7000 * 7001 else n", "if n >= 1 << 17:\n    n = n - n % 4",
])
def test_a_size_that_the_submission_makes_special_is_found_by_its_line(host: str, tmp_path: Path) -> None:
    check = checked(tmp_path, vector_add(host), "contiguous_float32")
    assert check.outcome is Outcome.FAILED and check.counterexample is not None
    line = int(check.counterexample["origin"].split()[4])
    assert HOST_LINE <= line <= HOST_LINE + 1


def test_two_calls_that_differ_in_one_size_have_the_same_strides_where_a_layout_has_them() -> None:
    draws = draws_of(calls(domain_of(get("matmul").tests)["matmul"]))
    assert draws is not None
    form = TracedForm("", "matmul", (View(0, "float32", (7, 7), (7, 1)), View(1, "float32", (7, 7), (7, 1))))
    made = [[(one.shape, one.stride) for one in call.call] for call in one_size_apart(draws, form)]
    (m, turned, k, n) = ([made[place], made[place + 1]] for place in (0, 2, 6, 10))
    assert [a[0] for (a, _) in m] == [(64, 37), (75, 37)] and [b[0] for (_, b) in n] == [(47, 64), (47, 75)]
    assert [a[0] for (a, _) in k] == [(43, 64), (43, 75)] and [b[0] for (_, b) in k] == [(64, 43), (75, 43)]
    assert [a[0] for (a, _) in turned] == [(64, 75), (75, 64)]
    for first, second in zip(made[::2], made[1::2], strict=True):
        assert [stride for _, stride in first] == [stride for _, stride in second]


def test_each_tensor_alone_is_contiguous_and_alone_is_not_in_sizes_whose_strides_count() -> None:
    draws = draws_of(calls(domain_of(get("fused_chain").tests)["fused_chain"]))
    assert draws is not None
    form = TracedForm("", "fused_chain", (View(0, "float32", (1, 1), (1, 1)),) * 3)
    made = [call.call for call in one_apart(draws, form)]
    each = {tuple((n == place) is alone for n in range(3)) for place in range(3) for alone in (True, False)}
    assert {tuple(one.is_contiguous for one in call) for call in made} == each
    assert all(size > 1 for call in made for one in call for size in one.shape)


@pytest.mark.parametrize(("kind", "share"), [("normal", True), ("cut:{S}:{seed}:{own}", False)])
def test_tensors_whose_values_hang_together_with_those_of_others_do_not_share_memory(kind: str, share: bool) -> None:
    caches = {name: [kind] for name in ("k_cache", "v_cache")}
    draws = draws_of(calls(domain_of(get("decode_attention").tests)["decode_attention"], values={"q": ["normal"], "lengths": ["full:1"], **caches}))
    assert draws is not None
    shapes = [(1, 1, 16), (1, 1, 8, 16), (1, 1, 8, 16), (1,)]
    views = (View(n, "float32" if n < 3 else "int32", shape, row_major(shape)) for n, shape in enumerate(shapes))
    whys = {call.why for call in of_one_memory(draws, TracedForm("", "decode_attention", (*views, Scalar(0.5))))}
    assert whys == ({"k_cache and v_cache share memory"} if share else set())


def test_what_stays_unseen_is_named(tmp_path: Path) -> None:
    check = checked(tmp_path, vector_add("n = n if n < 1 << 30 else n - 1"), "contiguous_float32")
    assert check.outcome is Outcome.PASSED
    assert (HOST_LINE, "x.shape[0] < 1073741824 is false") in unseen(check)


def test_what_no_promised_size_decides_otherwise_is_not_named(tmp_path: Path) -> None:
    texts = (
        "n = n if n >= 0 else 1", "n = n if n * n + 1 != 0 else 1", "n = n if n < 1 << 31 else 1",
        "n = n if n < 1 or n != 0 else 1", "n = max(n, 0)",
    )
    for text in texts:
        check = checked(tmp_path, vector_add(text), "contiguous_float32")
        assert check.outcome is Outcome.PASSED and not [one for one in unseen(check) if one[0] == HOST_LINE], text


def test_a_submission_that_compares_nothing_unseen_gets_no_further_examples(tmp_path: Path) -> None:
    check = checked(tmp_path, vector_add(), "contiguous_float32")
    assert check.outcome is Outcome.PASSED and check.details["coverage"]["solved"] == 0


def test_a_mask_that_was_never_false_for_a_whole_tile_is_so_in_a_further_call(tmp_path: Path) -> None:
    """... where programs beyond the last tile are launched for some sizes that no example has"""
    text = vector_add("pass").replace("triton.cdiv(n, 256),", "triton.cdiv(n, 256) + n // 20000,")
    check = checked(tmp_path, text, "contiguous_float32")
    assert check.outcome is Outcome.PASSED and check.details["coverage"]["solved"] > 0
    assert not check.details["coverage"]["branches"].get("untried")


def test_a_mask_whose_tiles_are_never_false_is_not_named(tmp_path: Path) -> None:
    check = checked(tmp_path, vector_add(), "contiguous_float32")
    said = {what for one in check.details["coverage"]["branches"]["decisions"] for what in one["seen"]}
    assert {f"the mask of a load is true for a {what} (column 9)" for what in ("whole tile", "part of a tile")} <= said
    assert not [what for _, what in unseen(check) if "mask" in what]


def test_a_condition_of_two_masks_goes_the_ways_that_their_elements_go(tmp_path: Path) -> None:
    check = checked(tmp_path, vector_add(kernel="m = m & (i % 7 != 7)"), "contiguous_float32")
    said = {what for one in check.details["coverage"]["branches"]["decisions"] for what in one["seen"]}
    assert check.outcome is Outcome.PASSED and not [what for _, what in unseen(check) if "a condition" in what]
    assert {f"a condition is {way} (column 9)" for way in ("true", "false")} <= said, said


def test_terms_are_evaluated_for_many_calls_at_once() -> None:
    terms = [
        ("size", 0, 0),
        ("number", 128),
        ("+", 0, 1),
        ("//", 2, 1),
        ("next_power_of_2", 0),
        ("%", 0, 1),
        ("opaque", 3),
    ]
    known = polynomials(terms, variable)
    worked = Evaluation({variable(("size", 0, 0)).atom: torch.tensor([1, 128, 300])})
    assert [worked.term(one).tolist() for one in known[3:6]] == [[1, 2, 3], [1, 128, 512], [1, 0, 44]]
    with pytest.raises(Undefined):
        worked.term(known[6])
    assert described(terms, 3, lambda leaf: "n") == "(n + 128) // 128"
    assert leaves_in(terms, 3) == {("size", 0, 0)}


def test_a_product_of_too_many_parts_is_a_number_whose_origin_is_lost() -> None:
    """Host code may square a sum again and again: each time a polynomial would have as many parts, squared."""
    terms: list[tuple[str | int, ...]] = [("size", 0, axis) for axis in range(33)]
    terms += [("+", 0, 1), *(("+", 31 + axis, axis) for axis in range(2, 33))]
    terms += [("*", len(terms) - 1, len(terms) - 1)]
    *_, together, squared = polynomials(terms, variable)
    assert together is not None and len(together.parts) == 33
    assert squared is not None and str(squared.atom).startswith("var('opaque ")


def test_terms_that_make_no_sense_have_no_value() -> None:
    terms = [("size", 0, 0), ("//", 0, 7), ("number", 0), ("%", 0, 2), ("+", 5, 0), ("what", 1)]
    assert polynomials(terms, variable)[3:] == [None, None, None]


@pytest.mark.parametrize("raised", [StopIteration(), RuntimeError("no sizes")])
def test_an_error_while_further_calls_are_made_up_is_named_and_no_fault(
    raised: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def further(*arguments: object) -> list[FurtherCall]:
        raise raised

    monkeypatch.setattr(HostInputs, "further", further)
    check = checked(tmp_path, vector_add("n = n + 0"), "contiguous_float32")
    assert check.outcome is Outcome.PASSED
    (told,) = check.details["coverage"]["branches"]["untried"]
    said = "further calls could not be worked out, by no fault of yours ("
    assert told["what"].startswith(said) and type(raised).__name__ in told["what"]


@pytest.mark.sample(1)
def test_where_one_kind_of_further_calls_cannot_be_made_the_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long calls find what calls for the comparison would have found"""
    monkeypatch.setattr(HostInputs, "further", lambda *arguments: 1 // 0)
    assert checked(tmp_path, vector_add("n = min(n, 19_999)"), "contiguous_float32").outcome is Outcome.FAILED


def test_an_error_of_the_grader_in_a_further_call_is_named_and_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Runs.run

    def run_small(runs: Runs, case: Case) -> Observation:
        if case.tensors[0].numel() >= 2**18:
            raise StopIteration
        return run(runs, case)

    monkeypatch.setattr(Runs, "run", run_small)
    text = vector_add("n = n if n < 2**18 else n + 0")
    check = checked(tmp_path, text, "contiguous_float32")
    assert check.outcome is Outcome.PASSED
    said = [one["what"] for one in check.details["coverage"]["branches"]["untried"] if one["line"] == HOST_LINE]
    assert any("is false: the grader failed (" in what for what in said)


@pytest.mark.sample(1)
@pytest.mark.parametrize("limit", ["FURTHER_WORK", "MOST_HERE"])
def test_what_a_call_that_is_left_out_would_show_is_named(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if limit == "MOST_HERE":
        monkeypatch.setattr(further_run, limit, dict.fromkeys(further_run.MOST_HERE, 0))
    else:
        monkeypatch.setattr(Limit, limit, 0)
    check = checked(tmp_path, vector_add("n = n - (n == 4321)"), "contiguous_float32")
    assert check.outcome is Outcome.PASSED and check.details["coverage"]["solved"] == 0
    assert (HOST_LINE, "x.shape[0] == 4321 is true") in unseen(check)


def test_what_a_call_has_met_whose_result_nobody_compared_stays_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Runs.run

    def run_small(runs: Runs, case: Case) -> Observation:
        if case.tensors[0].numel() >= 2**18:
            raise Failure(Cause.BUDGET_EXCEEDED, "too much")
        return run(runs, case)

    monkeypatch.setattr(Runs, "run", run_small)
    check = checked(tmp_path, vector_add("n = n if n < 2**18 else n - 1"), "contiguous_float32")
    assert check.outcome is Outcome.PASSED and (HOST_LINE, "x.shape[0] < 262144 is false") in unseen(check)


@pytest.mark.sample(1)
@pytest.mark.parametrize("host", [
    "x.view(-1, *x.shape[1:])",
    "from triton.tools.tensor_descriptor import TensorDescriptor\nif x.dim() == 1 and n * x.element_size() % 16 == 0:"
    + " TensorDescriptor(x.view(-1, n), [1, n], [n, 1], [1, 16])",
])
def test_what_torch_and_triton_ask_of_sizes_is_no_branch_of_the_submission(host: str, tmp_path: Path) -> None:
    check = checked(tmp_path, vector_add(host), "ranks")
    assert check.outcome is Outcome.PASSED
    told = [what for line, what in unseen(check) if line != HOST_LINE - 2]
    assert not [what for what in told if "shape" in what], told
