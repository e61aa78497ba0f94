"""Claims about a clock that need no card: how many sets there are, and how many samples a turn takes."""

from __future__ import annotations

import itertools

import pytest

from gradekit.gpu.card import Card
from gradekit.gpu.timing import FOOTPRINT, LEAST_REPLAYS, LEAST_SETS, MOST_BYTES, MOST_SETS, samples, sets_for

H200 = Card("NVIDIA H200", "GPU-1", 0, (9, 0), 132, 62_914_560, 150 << 30)
T4 = Card("Tesla T4", "GPU-2", 0, (7, 5), 40, 4 << 20, 15 << 30)


@pytest.mark.parametrize("card", [H200, T4])
@pytest.mark.parametrize("megabytes", [8, 32, 64])
def test_the_sets_together_are_many_times_the_cache(card: Card, megabytes: int) -> None:
    sets = sets_for(card, megabytes << 20)
    assert sets * (megabytes << 20) >= FOOTPRINT * card.l2_bytes or sets == MOST_SETS


def test_tiny_calls_have_as_many_sets_as_there_may_be() -> None:
    assert sets_for(H200, 1000) == sets_for(H200, 0) == MOST_SETS


def test_large_calls_have_two_sets_so_that_inputs_differ() -> None:
    assert sets_for(H200, 3 << 30) == LEAST_SETS


def test_sets_never_take_more_memory_than_a_part_of_the_card_unless_two_do() -> None:
    for card, nbytes in itertools.product((H200, T4), (1 << 10, 1 << 20, 100 << 20, 1 << 30)):
        taken = sets_for(card, nbytes) * nbytes
        assert taken <= max(min(MOST_BYTES, card.memory_bytes // 8), LEAST_SETS * nbytes)


def test_a_turn_takes_samples_until_they_fill_its_time() -> None:
    assert samples(lambda: 1e-3, 10e-3) == (1e-3,) * 10


def test_a_turn_of_a_slow_call_takes_a_few_samples_all_the_same() -> None:
    assert samples(lambda: 2.0, 10e-3) == (2.0,) * LEAST_REPLAYS
