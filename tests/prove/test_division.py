"""Quotients and remainders of sums are those of numbers, and powers of two are what they are though the solver hears of them late."""

import random

import pytest

from gradekit.prove import solve
from gradekit.prove.solve import Solver
from gradekit.prove.terms import ONE, Term, equal, power, term, var
from gradekit.prove.value_of import value_of
from gradekit.prove.walk import OTHER, RULES

NAMES = [var(name, 0, 9) for name in "abcd"]
KEYS = [next(iter(one.parts))[0].key for one in NAMES]


def _sum(chosen: random.Random, parts: int) -> Term:
    found = term(chosen.choice((0, 0, 1, 3)))
    for _ in range(parts):
        factors = chosen.sample(NAMES, chosen.choice((1, 1, 2)))
        product = term(chosen.choice((1, 1, 2, 4)))
        for factor in factors:
            product = product * factor
        found = found + product
    return found


@pytest.mark.parametrize("seed", range(40))
def test_what_is_taken_out_of_a_sum_is_put_back(seed):
    chosen = random.Random(seed)
    divisor = _sum(chosen, 2) + 1
    value = _sum(chosen, 2) + divisor * chosen.choice(NAMES)
    numbers = {key: chosen.randint(0, 9) for key in KEYS}
    a, b = value_of(value, numbers), value_of(divisor, numbers)
    assert value_of(value // divisor, numbers) == a // b
    assert value_of(value % divisor, numbers) == a % b


def test_a_multiple_of_a_sum_is_seen():
    """program + turn * grid, with a grid of ceil(rows / 4): the remainder is the program."""
    program, turn, rows = var("p", 0), var("t", 0), var("rows", 1)
    grid = ONE + (rows - 1) // 4
    assert (program + turn * grid) % grid == program % grid


N, BLOCK = var("n", 1, 1 << 40), power(var("n", 1, 1 << 40))


@pytest.mark.parametrize(("goal", "verdict"), [
    (N <= BLOCK, "proved"),
    (BLOCK < 2 * N, "proved"),
    (BLOCK <= N, "refuted"),
    (2 * BLOCK < 3 * N + 5, "refuted"),
    (equal(BLOCK % 16, 0), "refuted"),
    (BLOCK % 16 <= 8, "proved"),
    (BLOCK <= 1 << 39, "refuted"),
    (BLOCK <= 1 << 40, "proved"),
])
def test_powers_of_two(goal, verdict):
    assert Solver().ask([], goal).verdict == verdict


def test_an_answer_with_a_number_that_is_no_power_is_none(monkeypatch):
    goal = BLOCK % 16 <= 8
    monkeypatch.setattr(solve.Query, "powers_missed", lambda query, values: "")
    assert Solver().ask([], goal, tries=1).verdict == "open"


def test_an_element_below_a_size_lies_in_a_tile_below_their_number():
    size, element, factor = var("n", 1), var("e", 0), var("f", 0)
    tiles = (size + 31) // 32
    goal = element // 32 * factor < tiles * factor + 1 - factor
    assert Solver().follows([element < size], goal)
    assert not Solver().follows([element <= size], goal)


def test_the_smaller_of_two_masks_is_both_and_a_quotient_of_masks_is_not_known():
    a, b = NAMES[0] < 3, NAMES[1] < 3
    expected = {"minui": a & b, "maxui": a | b, "minsi": a | b, "maxsi": a & b, "divui": OTHER, "remui": OTHER}
    assert {name: RULES[f"arith.{name}"](None, None, a, b) for name in expected} == expected
