"""Claims about how the sides take turns, with a clock that the test moves."""

import itertools
from collections.abc import Callable, Sequence

import pytest

from gradekit.gpu import Limit
from gradekit.gpu.card import Card, Reading
from gradekit.gpu.contest import TakeTurn, interleave, order, to_round
from gradekit.gpu.timing import Turn, samples, sets_for
from gradekit.judge.speed import LEAST_ROUNDS, Round, Verdict, decide, ratio, settled

COOL, HOT = Reading(1980, False), Reading(900, True, ("too hot (hardware)", "power limit"))


class Table:
    """A table at which sides play: their turns take wall time, and are remembered."""

    def __init__(self, **seconds: float) -> None:
        self.now = 0.0
        self.played: list[str] = []
        self.sides: dict[str, TakeTurn] = {name: self._side(name, s) for name, s in seconds.items()}

    def clock(self) -> float:
        return self.now

    def _side(self, name: str, seconds: float) -> TakeTurn:
        def turn() -> Turn:
            self.now += 1.0
            self.played.append(name)
            return Turn((seconds,) * 3, COOL, COOL)

        return turn

    def rounds(self) -> list[list[str]]:
        """Who played in which order, without the first round, which does not count."""
        several = len(self.sides)
        return [self.played[i : i + several] for i in range(several, len(self.played), several)]


def always(answer: bool) -> Callable[[Sequence[Round]], bool]:
    return lambda rounds: answer


def test_a_contest_ends_after_the_usual_rounds_once_they_are_enough() -> None:
    table = Table(student=1e-5, eager=2e-5)
    rounds = interleave(table.sides, always(True), budget=1e9, clock=table.clock)
    assert len(rounds) == Limit.ROUNDS


def test_a_contest_that_is_never_settled_ends_with_its_budget() -> None:
    table = Table(student=1e-5, eager=2e-5)
    interleave(table.sides, always(False), budget=100, clock=table.clock)
    assert 100 <= table.now <= 104  # a turn takes a second, and no lap begins after the budget


def test_slow_sides_are_given_what_the_judge_needs_whatever_the_budget() -> None:
    table = Table(student=1.0, eager=2.0)
    assert len(interleave(table.sides, always(False), budget=0.5, clock=table.clock)) == LEAST_ROUNDS


def test_the_first_round_does_not_count() -> None:
    table = Table(student=1e-5, eager=2e-5)
    rounds = interleave(table.sides, always(True), rounds=4, clock=lambda: 0.0)
    assert len(table.played) == 2 * (len(rounds) + 1)


def test_measuring_longer_keeps_what_was_taken_before_and_takes_a_lap_at_least() -> None:
    table = Table(student=1e-5, eager=2e-5)
    first = interleave(table.sides, always(True), rounds=6, clock=lambda: 0.0)
    longer, least = (interleave(table.sides, always(True), before=first, rounds=n, clock=lambda: 0.0) for n in (10, 6))
    assert longer[:6] == first
    assert (len(longer), len(least)) == (10, 8)


def test_the_judge_looks_less_often_the_longer_it_takes() -> None:
    table, seen = Table(student=1e-5, eager=2e-5), list[int]()
    interleave(table.sides, lambda r: bool(seen.append(len(r))), budget=200, clock=table.clock)
    steps = [later - earlier for earlier, later in itertools.pairwise(seen)]
    assert steps == sorted(steps)
    assert steps[-1] > steps[0]


def test_every_side_plays_once_in_every_round_and_every_second_round_goes_the_opposite_way() -> None:
    table = Table(student=1e-5, eager=2e-5, compiled=1e-5)
    interleave(table.sides, always(True), clock=lambda: 0.0)
    played = table.rounds()
    assert all(sorted(each) == ["compiled", "eager", "student"] for each in played)
    assert [back[::-1] for back in played[1::2]] == played[::2]


def test_each_side_begins_equally_often() -> None:
    firsts = [way[0] for lap in range(6) for way in order(["student", "eager", "compiled"], lap)]
    assert [firsts.count(side) for side in ("student", "eager", "compiled")] == [4, 4, 4]


def test_each_side_follows_each_other_one_equally_often() -> None:
    pairs = [pair for lap in range(3) for way in order("abc", lap) for pair in itertools.pairwise(way)]
    assert {pairs.count(pair) for pair in itertools.permutations("abc", 2)} == {2}


def test_a_round_knows_the_lowest_clock_if_any_and_why_the_card_was_throttled_but_by_a_power_limit_alone() -> None:
    seen = to_round({"student": Turn((1e-5,), COOL, HOT), "eager": Turn((2e-5,), COOL, None)})
    assert seen.sm_mhz == {"student": 900, "eager": 1980}
    assert seen.throttled == ("power limit", "too hot (hardware)")
    limited = Reading(1400, False, ("power limit",))
    assert to_round({"student": Turn((1e-5,), limited, limited)}).throttled == ()
    assert to_round({"student": Turn((1e-5,))}).sm_mhz == {"student": None}


def test_a_contest_and_the_judge_together_decide_what_is_clear() -> None:
    table = Table(student=1e-5, eager=1.6e-5)
    rounds = interleave(table.sides, settled({"eager": [1.5]}), clock=lambda: 0.0)
    assert len(rounds) == Limit.ROUNDS
    assert decide(ratio(rounds, "eager"), 1.5) is Verdict.PASS


def test_a_contest_about_a_threshold_that_is_met_exactly_is_never_settled() -> None:
    table = Table(student=1e-5, eager=1.5e-5)
    rounds = interleave(table.sides, settled({"eager": [1.5]}), budget=60, clock=table.clock)
    assert table.now >= 60
    assert decide(ratio(rounds, "eager"), 1.5) is Verdict.TOO_CLOSE


# --- claims about a clock that need no card ---------------------------------------------------------------------------


H200 = Card("NVIDIA H200", "GPU-1", 0, (9, 0), 132, 62_914_560, 150 << 30)
T4 = Card("Tesla T4", "GPU-2", 0, (7, 5), 40, 4 << 20, 15 << 30)


@pytest.mark.parametrize("card", [H200, T4])
@pytest.mark.parametrize("megabytes", [8, 32, 64])
def test_the_sets_together_are_many_times_the_cache(card: Card, megabytes: int) -> None:
    sets = sets_for(card, megabytes << 20)
    assert sets * (megabytes << 20) >= Limit.FOOTPRINT * card.l2_bytes or sets == Limit.SETS


def test_tiny_calls_have_as_many_sets_as_there_may_be_and_large_ones_two_so_that_inputs_differ() -> None:
    assert sets_for(H200, 1000) == sets_for(H200, 0) == Limit.SETS
    assert sets_for(H200, 3 << 30) == Limit.LEAST_SETS


def test_sets_never_take_more_memory_than_a_part_of_the_card_unless_two_do() -> None:
    for card, nbytes in itertools.product((H200, T4), (1 << 10, 1 << 20, 100 << 20, 1 << 30)):
        taken = sets_for(card, nbytes) * nbytes
        assert taken <= max(min(Limit.SET_BYTES, card.memory_bytes // 8), Limit.LEAST_SETS * nbytes)


def test_a_turn_takes_samples_until_they_fill_its_time_and_a_few_all_the_same_of_a_slow_call() -> None:
    assert samples(lambda: 1e-3, 10e-3) == (1e-3,) * 10
    assert samples(lambda: 2.0, 10e-3) == (2.0,) * Limit.LEAST_REPLAYS
