"""What is proved holds, what is refuted is seen by the engine, and nobody is accused by a formula alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from gradekit import domain
from gradekit.assignment import get
from gradekit.origins import LaunchOrigin, Origins
from gradekit.program import Program, View
from gradekit.prove.claims import BY_ORDER
from gradekit.prove.prover import CHECK, ProofBudget
from gradekit.prove.setting import calls_of, dense, may_lie_so, names_of, setting_of
from gradekit.prove.symbolic_host import NotFollowed, SymbolicHost
from gradekit.sandbox import Form, Tracer
from gradekit.subject.entry_proofs import NOT_RUN
from gradekit.submission import Submission, read
from tests.prove import submissions
from tests.prove.deciding import decided

ADD = domain.load(get("vector_add").folder / "domain.toml")["add"]


@pytest.fixture
def decide(tmp_path: Path):
    """What is proved of a submission of vector_add."""
    return lambda text, budget=CHECK: decided(tmp_path, text, get("vector_add"), ADD, budget)


def _submission(folder: Path, text: str) -> Submission:
    file = folder / "submission.py"
    file.write_text(text)
    return read(file)


def test_every_claim_about_a_right_submission_is_proved(decide):
    found = decide(submissions.RIGHT)
    assert found.counts["refuted"] == found.counts["open"] == 0
    assert found.counts["proved"] >= 6


@pytest.mark.parametrize("text", [submissions.DESCRIBED, submissions.DESCRIBED_BY_HOST], ids=["by the kernel", "by host code"])
def test_what_is_stored_by_a_tensor_descriptor_is_followed(decide, text):
    assert (found := decide(text)).counts["refuted"] == found.counts["open"] == 0
    assert "never written, first [0]" in str(decide(text.replace("* BLOCK],", "* BLOCK + 1],")).failures[0])


@pytest.mark.sample(2)
@pytest.mark.parametrize(("text", "sizes", "said"), [
    (submissions.CAPPED, {"N": 2_048_001}, "never written"),
    (submissions.ROUNDED_DOWN, {"N": 1025}, "never written"),
    (submissions.UNMASKED, {"N": 1}, "outside of the result"),
    (submissions.ONE_TOO_MANY, {"N": 1}, "outside of the result"),
    (submissions.OVERLAPPING, {"N": 513}, "write"),
], ids=["capped grid", "grid rounded down", "no mask", "mask one too far", "programs overlap"])
def test_a_mistake_is_refuted_with_sizes_at_which_the_engine_sees_it(decide, text, sizes, said):
    found = decide(text)
    assert found.failures, found.as_data()
    assert said in str(found.failures[0])
    refuted = [verdict for verdict in found.verdicts if verdict.verdict == "refuted"]
    assert all(verdict.finding for verdict in refuted)
    assert any(dict(verdict.sizes)["N"] <= sizes["N"] + 1024 for verdict in refuted)


def test_a_result_in_the_memory_order_of_its_input_can_be_asked_about(decide):
    assert decide(submissions.LIKE_ITS_INPUT, ProofBudget()).counts["proved"] >= 6


def test_every_element_of_rows_of_one_element_is_written_and_a_check_says_what_prove_does(tmp_path):
    """Where a row has one element, a step to the next row and one to the next column are as long"""
    chain = get("fused_chain")
    for budget in (CHECK, ProofBudget()):
        found = decided(tmp_path, submissions.ROWS, chain, chain.domain["fused_chain"], budget)
        assert {verdict.kind: verdict.verdict for verdict in found.verdicts}["covered"] == "proved", budget
        assert found.counts["open"] == found.counts["refuted"] == 0


def test_sizes_that_are_computed_out_of_sight_prove_nothing(decide):
    found = decide(submissions.FROM_OUTSIDE)
    assert not found.failures
    assert found.counts["proved"] == 0
    assert any("not followed" in gap for gap in found.gaps)


def test_a_block_that_depends_on_sizes_out_of_sight_is_not_taken_for_a_constant(decide):
    proofs = decide(submissions.TEXT_BLOCK)
    assert proofs.counts["proved"] == 0
    assert any("a constant of the kernel is computed in a way that is not followed" in gap for gap in proofs.gaps)


def test_a_submission_that_looks_at_the_type_of_a_size_is_accused_of_nothing(decide):
    assert not decide(submissions.EXACT_TYPE).failures


def test_what_the_engine_does_not_see_is_open(decide, monkeypatch):
    monkeypatch.setattr("gradekit.subject.entry_proofs.assert_memory_clean", lambda seen: None)
    found = decide(submissions.UNMASKED)
    assert not found.failures
    assert found.counts["refuted"] == 0 < found.counts["open"]
    assert "line 8" in found.faults[0]
    assert "and the engine finds nothing there" in found.as_data()["faults"][0]


def test_what_atomics_of_two_kinds_leave_is_not_proved(decide):
    verdicts = decide(submissions.MIXED_ATOMICS).verdicts
    assert [v.why for v in verdicts if v.kind == "one-writer" and v.verdict == "open"] == [BY_ORDER]
    assert {v.verdict for v in decide(submissions.ADDED_ALONE).verdicts} == {"proved"}


def test_nothing_is_proved_where_a_tuner_prunes_by_what_its_key_lacks(decide):
    found = decide(submissions.TUNED.replace("KEY", "[]"))
    assert found.counts["proved"] == 0 and "pruned by n, which the tuning key lacks" in found.gaps[0]
    assert decide(submissions.TUNED.replace("KEY", "['n']")).counts["proved"] > 0


def test_what_cannot_be_run_is_open_and_no_fault(decide, monkeypatch):
    monkeypatch.setattr("gradekit.subject.entry_proofs._looked_at", lambda *_: NOT_RUN)
    found = decide(submissions.UNMASKED)
    assert found.counts["refuted"] == 0 < found.counts["open"]
    assert not found.faults
    assert any("cannot run that" in verdict.why for verdict in found.verdicts)


def test_where_no_values_can_be_made_up_the_program_to_blame_is_run_alone(decide, monkeypatch):
    monkeypatch.setattr("gradekit.subject.entry_proofs._specs", lambda *_: None)
    found = decide(submissions.UNMASKED)
    assert "program (0, 0, 0) stores to element" in str(found.failures[0])


def test_a_tile_as_large_as_the_tensor_is_too_large_for_triton_beyond_a_size(decide):
    found = decide(submissions.ONE_TILE)
    tile = next(verdict for verdict in found.verdicts if verdict.kind == "tile-limit")
    assert (tile.verdict, not found.failures) == ("refuted", True)
    assert dict(tile.sizes)["N"] > 1 << 20
    assert "1048576" in tile.finding


def test_without_steps_everything_is_open_and_nothing_wrong(decide):
    found = decide(submissions.UNMASKED, replace(CHECK, steps=-1))
    assert not found.failures
    assert found.counts["refuted"] == 0


def test_no_call_lies_as_the_domain_does_not_promise() -> None:
    """A right kernel for contiguous tensors is not told that it ignores strides"""
    plain = replace(ADD, arguments=tuple(replace(x, layouts=("contiguous",)) for x in ADD.tensors))
    assert all(dense(view) for call in calls_of(plain) for view in call)
    assert len(calls_of(plain)) * 2 == len(calls_of(ADD))
    x, shared = ADD.tensors[0], View(0, "float32", (1, 3, 4), (12, 0, 1))
    assert may_lie_so(x, shared) and not may_lie_so(plain.tensors[0], shared)
    allowed = {
        ("offset", "stepped"): False,
        ("expanded:0",): False,
        ("expanded:1", "offset"): True,
        ("expanded",): True,
    }
    assert {names: may_lie_so(replace(x, layouts=names), shared) for names in allowed} == allowed


# --- origins are not to be trusted ------------------------------------------------------------------------------------


@pytest.fixture
def followed(tmp_path: Path) -> tuple[Program, Origins, tuple[View, ...]]:
    """A call's program and origins, and its arguments."""
    call = calls_of(ADD)[0]
    with Tracer(_submission(tmp_path, submissions.RIGHT)) as tracer:
        program, origins = tracer.follow(Form("add", call))
    return program, origins, call


def _host(program: Program, origins: Origins, call: tuple[View, ...]) -> SymbolicHost:
    return SymbolicHost(program, origins, setting_of(call, names_of(ADD), ADD))


def test_origins_give_the_numbers_of_the_program(followed):
    host = _host(*followed)
    assert host.launches[0].grid[0].number is None
    assert len(host.regions) == 3


@pytest.mark.parametrize("terms", [
    (("number", 7),),
    (("size", 99, 0),),
    (("+", 5, 6),),
    (("//", 0, 1),),
    (("number", "seven"),),
    (("size", -1, -1),),
])
def test_terms_that_are_wrong_or_make_no_sense_are_not_believed(followed, terms):
    program, origins, call = followed
    launch = LaunchOrigin((0, 0, 0), tuple(-1 for _ in origins.launches[0].args))
    with pytest.raises(NotFollowed):
        _host(program, Origins(terms, launches=(launch,)), call)


def test_a_launch_that_is_left_out_is_noticed(followed):
    program, origins, call = followed
    with pytest.raises(NotFollowed, match="not every launch"):
        _host(program, replace(origins, launches=()), call)


def test_following_a_call_leaves_its_program_as_it_is(tmp_path):
    call = calls_of(ADD)[1]
    with Tracer(_submission(tmp_path, submissions.RIGHT)) as tracer:
        before = tracer.trace("add", call)
        followed, _ = tracer.follow(Form("add", call))
        assert tracer.trace("add", call) == before == followed


def test_the_evidence_of_a_load_is_a_load_and_huge_views_are_followed(decide):
    """A solver's tensors repeat their elements as often as a size says: the submission is not to blame for that"""
    found = decide(submissions.UNMASKED_LOAD)
    refuted = {verdict.subject: verdict.finding for verdict in found.verdicts if verdict.verdict == "refuted"}
    assert any(subject.startswith("load") for subject in refuted)
    assert all(("loads" in seen) == subject.startswith("load") for subject, seen in refuted.items()), refuted
    assert not any("does not run" in gap for gap in found.gaps), found.gaps
