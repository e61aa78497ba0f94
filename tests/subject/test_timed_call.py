"""What a test says about speed: which part of the points a ratio earns, who has the benefit of doubt, and what is told."""

from typing import Any

import pytest
import torch

from gradekit.credit import awarding
from gradekit.findings import Cause
from gradekit.gpu.faults import CardFault
from gradekit.inputs.spec import normal
from gradekit.judge.failure import Failure
from gradekit.judge.memory_checks import assert_launches
from gradekit.observations import Counters
from gradekit.program import Program
from gradekit.report.record import plain, schema
from gradekit.subject.device import Device, NeedsCard, judged
from gradekit.subject.timed_call import Timed, Work, assert_peak_memory, assert_speed, at_least, facts
from tests.cards import CEILINGS, FakeWorker, device, rounds

PROGRAM = Program((), {}, (), (), "tensor", {})


def timed(student: float = 1e-4, eager: float = 2e-4, compiled: float = 1e-4, **changes: Any) -> Timed:
    """A call on [1024, 1024] that took so many seconds."""
    noise = changes.pop("noise", 0.0)
    values: dict[str, Any] = {
        "entry": "softmax", "args": (normal((1024, 1024)),), "program": PROGRAM, "card": "Test Card",
        "rounds": rounds(student, eager=eager, compiled=compiled, noise=noise),
        "counters": Counters(launches=2, bytes_allocated=1 << 22), "work": Work(8 << 20, 16 << 20, 5e6, "float32"),
        "ceilings": CEILINGS,
    }
    return Timed(**values | changes)


def earned(call: Timed, *requirements: Any) -> tuple[float, str]:
    """The part of the points, and what is said of the rest."""
    with awarding() as award:
        assert_speed(call, *requirements)
    return award.fraction, award.cause


# --- which part of the points ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("requirement", "shares"), [
    (at_least(1.5, "eager"), {2.0: 1, 1.5: 1, 1.49: 0, 0.1: 0}),
    (at_least(0.95, "compiled", some_from=0.7), {0.95: 1, 0.825: 0.5, 0.7: 0, 0.3: 0}),
])
def test_partial_credit_grows_linearly_and_without_it_it_is_all_or_nothing(requirement: Any, shares: dict[float, float]) -> None:
    assert {value: requirement.share(value) for value in shares} == pytest.approx(shares)


@pytest.mark.parametrize(
    ("factor", "side", "some_from"), [(1.0, "numpy", None), (0.0, "eager", None), (0.9, "eager", 0.9)]
)
def test_a_requirement_that_makes_no_sense_is_refused(factor: float, side: str, some_from: float | None) -> None:
    with pytest.raises(ValueError, match="side|some_from"):
        at_least(factor, side, some_from=some_from)


def test_the_worst_requirement_decides() -> None:
    call = timed(eager=1.25e-4, compiled=1.0e-4)
    share, cause = earned(call, at_least(1.5, "eager", some_from=1.0), at_least(0.95, "compiled"))
    assert share == pytest.approx(0.5)
    assert cause == "too-slow"


def test_too_slow_says_both_figures_the_interval_the_threshold_and_the_card() -> None:
    with pytest.raises(Failure) as caught:
        assert_speed(timed(compiled=0.5e-4), at_least(0.95, "compiled", some_from=0.7))
    assert caught.value.cause is Cause.TOO_SLOW
    assert caught.value.message == (
        "At [1024, 1024] float32 on Test Card, softmax takes 100 µs where torch.compile takes 50 µs: it is 0.50 times "
        "as fast (between 0.50 and 0.50), and must be 0.95 times as fast; points begin at 0.7."
    )


def test_nothing_asked_for_is_a_mistake_of_the_test() -> None:
    with pytest.raises(ValueError, match="at_least"):
        assert_speed(timed())


# --- doubt ----------------------------------------------------------------------------------------------------------


def test_doubt_goes_to_the_student_and_is_recorded() -> None:
    call = timed(eager=1.0e-4, noise=0.02)
    assert earned(call, at_least(1.0, "eager")) == (1.0, "")
    assert [verdict["verdict"] for verdict in call.verdicts] == ["too close to call"]


def test_in_doubt_more_is_measured_and_that_decides() -> None:
    asked: list[Any] = []

    def longer(before: Any, thresholds: Any) -> Any:
        asked.append(dict(thresholds))
        return rounds(1.1e-4, eager=1e-4, compiled=1e-4)

    call = timed(eager=1e-4, noise=0.02, longer=longer)
    with pytest.raises(Failure):
        assert_speed(call, at_least(1.0, "eager"))
    assert asked == [{"eager": [1.0]}]
    assert [verdict["verdict"] for verdict in call.verdicts] == ["fail"]


def test_without_doubt_nothing_more_is_measured() -> None:
    def longer(before: Any, thresholds: Any) -> Any:
        raise AssertionError("asked for more")

    assert earned(timed(longer=longer), at_least(1.5, "eager")) == (1.0, "")


# --- memory and launches --------------------------------------------------------------------------------------------


def test_memory_within_the_limit_passes_and_above_fails() -> None:
    assert_peak_memory(timed(), at_most=1 << 22)
    with pytest.raises(Failure, match=r"holds 4\.0 MiB beside its inputs, and may hold 1\.0 MiB") as caught:
        assert_peak_memory(timed(), at_most=1 << 20)
    assert caught.value.cause is Cause.TOO_MUCH_MEMORY


def test_launches_of_what_was_timed_can_be_counted() -> None:
    assert_launches(timed(), at_most=2)
    with pytest.raises(Failure, match="launches 2 kernels"):
        assert_launches(timed(), at_most=1)


# --- the record -----------------------------------------------------------------------------------------------------


def test_the_facts_are_what_the_schema_describes() -> None:
    import jsonschema

    call = timed(configuration="BLOCK: 64", choices={"BLOCK: 64": 1e-4, "BLOCK: 32": 2e-4}, notes=("eager: so",))
    earned(call, at_least(1.5, "eager"))
    described = {"$ref": "#/$defs/speed", "$defs": schema()["$defs"]}
    jsonschema.Draft202012Validator(described).validate(plain(facts(call)))


def test_the_facts_hold_times_ratios_clocks_and_the_roofline() -> None:
    found = facts(timed())
    assert found["microseconds"] == pytest.approx({"student": 100, "eager": 200, "compiled": 100})
    assert found["ratios"]["eager"]["value"] == pytest.approx(2)
    assert (found["rounds"], found["discarded"], found["sm_mhz"]) == (12, 0, {"lowest": 1800, "highest": 1811})
    roofline = found["roofline"]
    assert roofline["bytes_per_second"] == pytest.approx((8 << 20) / 1e-4)
    assert roofline["of_bytes"] == pytest.approx((8 << 20) / 1e-4 / 4e12)
    assert roofline["binds"] == "memory"


def test_arithmetic_binds_where_its_least_time_is_longer_and_a_dtype_without_a_ceiling_leaves_the_rate_open() -> None:
    roofs = [facts(timed(work=Work(8 << 20, 8 << 20, 4e9, dtype)))["roofline"] for dtype in ("float32", "int32")]
    assert roofs[0]["binds"] == "arithmetic" and roofs[1]["of_flops"] is None




# --- cards -----------------------------------------------------------------------------------------------------------

ROWS = {"cards": {"test card": {"compiled": 0.5}}}


def test_a_card_with_a_row_asks_for_its_share_of_what_the_test_asks_for() -> None:
    slow = {"compiled": 0.6e-4}  # 0.6 times as fast as torch.compile
    asked = (at_least(1.5, "eager"), at_least(1.0, "compiled", some_from=0.7))
    with pytest.raises(Failure, match="must be 1 times as fast"):
        assert_speed(timed(**slow), *asked)
    call = timed(**slow, **ROWS)
    assert earned(call, *asked) == (1.0, "")
    assert [(verdict["side"], verdict["at_least"], verdict["some_from"]) for verdict in call.verdicts] == [
        ("eager", 1.5, None), ("compiled", 0.5, 0.35),
    ]  # fmt: skip
    assert call.notes == ()


def test_on_a_card_without_a_row_eager_torch_decides_alone_and_it_is_said() -> None:
    call = timed(compiled=0.1e-4, **ROWS, card="Another")
    assert earned(call, at_least(1.5, "eager"), at_least(1.0, "compiled")) == (1.0, "")
    assert facts(call)["notes"] == ["No thresholds are known for Another: the ratio to eager torch decides alone."]
    with pytest.raises(Failure, match="eager torch"):
        assert_speed(timed(eager=1e-4, **ROWS, card="Another"), at_least(1.5, "eager"), at_least(1.0, "compiled"))
    alone = timed(**ROWS, card="Another")
    assert earned(alone, at_least(1.5, "eager")) == (1.0, "") and facts(alone)["notes"] == facts(call)["notes"]


def test_without_rows_or_without_eager_the_tests_own_numbers_hold_on_every_card() -> None:
    with pytest.raises(Failure):
        assert_speed(timed(compiled=0.1e-4, card="Another"), at_least(1.5, "eager"), at_least(1.0, "compiled"))
    with pytest.raises(Failure):
        assert_speed(timed(compiled=0.1e-4, **ROWS, card="Another"), at_least(1.0, "compiled"))


# --- The card that may be used ----------------------------------------------------------------------------------------


NOTHING = Program((), {}, (), (), "none", {})

needs_no_card = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a card")


@needs_no_card
def test_auto_is_no_card_where_there_is_none() -> None:
    assert Device().card is None
    with pytest.raises(NeedsCard, match="this machine has none"):
        Device().need()


def test_the_cpu_is_never_a_card() -> None:
    assert Device("cpu").card is None
    with pytest.raises(NeedsCard, match="--device cpu"):
        Device("cpu").need()


@needs_no_card
@pytest.mark.parametrize("wanted", ["cuda", "cuda:3", "tpu"])
def test_a_card_that_is_not_there_is_refused(wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        _ = Device(wanted).card


def test_the_worker_starts_when_it_is_needed_and_ends_with_the_device() -> None:
    worker = FakeWorker()
    here = device(worker)
    assert here.names == {}
    assert here.worker is here.worker is worker
    assert (here.names["gpu"], here.names["gpu_uuid"]) == ("Test Card", "GPU-0")
    here.close()
    assert worker.closed


@pytest.mark.parametrize(("kind", "cause", "said"), [
    ("illegal-access", Cause.ILLEGAL_ACCESS, "memory that is not its own"),
    ("hang", Cause.BUDGET_EXCEEDED, "does not end"),
    ("compile", Cause.COMPILATION_ERROR, "does not compile"),
    ("resources", Cause.OUT_OF_RESOURCES, "more than the card has"),
    ("out-of-memory", Cause.OUT_OF_MEMORY, "more memory than the card has"),
])
def test_what_a_students_kernel_did_is_their_failure(kind: Any, cause: Cause, said: str) -> None:
    found = judged(CardFault(kind, "CUDA's words", "softmax_kernel", 14), "softmax", "Test Card")
    assert isinstance(found, Failure)
    assert (found.cause, found.line, found.facts["detail"]) == (cause, 14, "CUDA's words")
    assert found.message.startswith("On Test Card, softmax_kernel in softmax ") and said in found.message


@pytest.mark.parametrize("kind", ["crash", "out-of-memory", "hang"])
def test_what_no_kernel_is_to_blame_for_is_nobodys_zero(kind: Any) -> None:
    found = judged(CardFault(kind, "something broke"), "softmax", "Test Card")
    assert isinstance(found, NeedsCard) and "something broke" in found.reason


def test_the_cards_own_trouble_is_kept_for_the_report() -> None:
    here = device(FakeWorker(fault=CardFault("crash", "something broke.")))
    with pytest.raises(NeedsCard):
        here.run(NOTHING, [], option=0, allow=(), entry="softmax")
    assert here.troubles == ["Test Card did not measure it (crash): something broke."]
