"""Claims about what a card allows."""

from __future__ import annotations

import pytest

from gradekit.judge.speed import Ceilings, impossible

CARD = Ceilings(4e12, {"float16": 8e14, "float32": 5e13, "tf32": 4e14}, l2_bytes=60_000_000)


def test_a_time_above_the_physical_floor_is_possible() -> None:
    assert impossible(100e-6, 300e6, 1e9, CARD) is None


def test_more_bytes_than_the_card_can_move_in_the_time_are_impossible() -> None:
    said = impossible(40e-6, 300e6, 0, CARD)
    assert said == (
        "the call must read and write 300 MB at least; in 40 us that is 7.5 TB/s, and this card moves 4 TB/s"
    )


def test_more_operations_than_the_card_can_do_in_the_time_are_impossible() -> None:
    said = impossible(1e-3, 1e6, 1.2e12, CARD, dtype="float16")
    assert said == "the call needs 1.2 TFLOP; in 1 ms that is 1.2 PFLOP/s, and this card does 800 TFLOP/s in float16"


def test_a_ceiling_may_be_beaten_by_a_little() -> None:
    assert impossible(75e-6 / 1.04, 300e6, 0, Ceilings(4e12, {})) is None
    assert impossible(75e-6 / 1.06, 300e6, 0, Ceilings(4e12, {})) is not None


def test_what_may_still_lie_in_the_cache_is_forgiven_once_for_all_calls() -> None:
    fast = 300e6 / 4.6e12
    assert impossible(fast, 300e6, 0, CARD, calls=1) is None
    assert impossible(fast, 300e6, 0, CARD, calls=4) is not None


def test_small_calls_that_fit_into_the_cache_are_never_impossible() -> None:
    assert impossible(1e-6, 1e6, 0, CARD, calls=4) is None


def test_float32_may_be_multiplied_as_tf32() -> None:
    assert CARD.rate("float32") == 4e14
    assert impossible(1e-3, 0, 3e11, CARD, dtype="float32") is None


def test_a_dtype_whose_ceiling_was_not_measured_is_not_judged() -> None:
    assert CARD.rate("int8") is None
    assert impossible(1e-9, 0, 1e15, CARD, dtype="int8") is None


@pytest.mark.parametrize("seconds", [1e-6, 1e-3, 1.0])
def test_a_call_that_moves_and_computes_nothing_may_take_any_time(seconds: float) -> None:
    assert impossible(seconds, 0, 0, CARD) is None
