"""What the solver knows of products, quotients and remainders, and of scalars that sizes decide, no number contradicts."""

import itertools
import random
from dataclasses import replace
from pathlib import Path

import pytest

from gradekit import domain, reuse
from gradekit.assignment import get
from gradekit.prove import solve
from gradekit.prove.prover import Proofs
from gradekit.prove.solve import Solver
from gradekit.prove.terms import ONE, Atom, Term, Truth, equal, greatest, least, of_atom, power, term, var
from gradekit.prove.value_of import Evaluation, value_of
from gradekit.prove.walk import OTHER, RULES
from tests.beside import beside
from tests.prove.deciding import decided
from tests.unseen.test_layouts import HISTOGRAM

TEXTS = beside(__file__)

SIZES = [var(name, 1, 6) for name in "mnk"]
COUNTERS = [var("i", 0, 5), var("j", 0, 5), var("d", -3, 3)]
ALL = [*SIZES, *COUNTERS]
KEYS = [next(iter(one.parts))[0].key for one in ALL]


def _numbers(seed: int) -> dict[str, int]:
    chosen = random.Random(seed)
    return {key: chosen.randint(*one.range) for key, one in zip(KEYS, ALL, strict=True)}  # type: ignore[arg-type]


def _atoms() -> list[Atom]:
    m, n, _, i, j, d = ALL
    made = [(i * 3 + j) // n, (i + j) % m, least(d, n), greatest(d, i), *ALL]
    return [mono[0] for one in made for mono in one.parts if len(mono) == 1]


def _conditions(seed: int, numbers: dict[str, int]) -> list[Truth]:
    """Some that hold for these numbers."""
    chosen = random.Random(seed)
    terms = [of_atom(atom) for atom in _atoms()]
    found = [a * chosen.choice((1, 2)) - b <= c for a, b, c in (chosen.sample(terms, 3) for _ in range(12))]
    return [c for c in found if Evaluation(numbers, unknown=False).truth(c)]


def _question(seed: int) -> tuple[list[Truth], Truth]:
    """Hypotheses and a goal as addresses have them: counters below sizes, and what they reach."""
    chosen = random.Random(seed)
    m, n, k, i, j, d = ALL
    hypotheses = [i < m, j < n, *chosen.sample([d < k, 0 <= d, m < n, equal(k, m)], 2)]
    address = i * chosen.choice((n, m, k)) + j * chosen.choice((1, 1, k)) + chosen.choice((0, 0, d, -1))
    high = chosen.choice((m * n, m * n * k, m * m, n * m - 1, m * n * 2 // k))
    return hypotheses, chosen.choice((address < high, 0 <= address))


def _holds_for_all(hypotheses: list[Truth], goal: Truth) -> bool:
    ranges = [range(one.range[0], one.range[1] + 1) for one in ALL]  # type: ignore[arg-type, operator]
    for values in itertools.product(*ranges):
        numbers = dict(zip(KEYS, values, strict=True))
        known = Evaluation(numbers, unknown=False)
        if all(map(known.truth, hypotheses)) and not known.truth(goal):
            return False
    return True


def _disagrees(seed: int) -> bool:
    hypotheses, goal = _question(seed)
    answer = Solver().ask(hypotheses, goal)
    if answer.verdict == "refuted":
        known = Evaluation(answer.values, unknown=False)
        return not all(map(known.truth, hypotheses)) or known.truth(goal)
    return answer.verdict == "proved" and not _holds_for_all(hypotheses, goal)


def test_what_the_solver_says_of_products_is_so():
    verdicts = [Solver().ask(*_question(seed)).verdict for seed in range(12)]
    assert {"proved", "refuted"} <= set(verdicts)
    assert not any(_disagrees(seed) for seed in range(12))


@pytest.mark.slow
def test_what_the_solver_says_of_many_products_is_so():
    assert not any(_disagrees(seed) for seed in range(12, 400))


def test_a_program_for_each_row_of_a_batch_stays_inside():
    """What a kernel with one program for two dimensions asks: pid < B * H, in strides that nobody knows."""
    b, h, s0, s1 = var("B", 1, 10**6), var("H", 1, 10**6), var("s0", 0, 2**31), var("s1", 0, 2**31)
    pid = var("program x", 0, 2**31)
    extent = (b - 1) * s0 + (h - 1) * s1
    solver = Solver(2_000_000)
    answer = solver.ask([pid < b * h, extent <= 2**31 - 1],
                        pid // h * s0 + pid % h * s1 <= 2**31 - 1)  # fmt: skip
    assert answer.verdict == "proved"


def _questions(seed: int) -> list[tuple[list[Truth], Truth]]:
    found = []
    for each in range(seed, seed + 4):
        *hypotheses, goal = _conditions(each, _numbers(each))
        found.append((hypotheses, goal))
    return found


def test_what_is_remembered_of_other_questions_changes_no_answer_that_comes_after_them() -> None:
    def answers(questions: list[tuple[list[Truth], Truth]]) -> list[tuple[object, int]]:
        solver = Solver()
        return [(solver.ask(hypotheses, goal), solver.steps) for hypotheses, goal in questions]

    first, other = _questions(1) + _questions(5), _questions(1) + _questions(9)
    with reuse.kept(False), reuse.per_submission():
        expected = answers(other)
    with reuse.kept():
        answers(first)
        assert answers(other) == expected == answers(other)
    assert len({steps for _, steps in expected}) > 4  # z3 was asked


def test_a_question_of_the_same_words_about_other_ranges_is_another() -> None:
    with reuse.kept():
        assert Solver().ask([], var("n", 1, 6) <= 6).verdict == "proved"
        assert Solver().ask([], var("n", 1, 7) <= 6).verdict == "refuted"


# --- Quotients and remainders -----------------------------------------------------------------------------------------


NAMES = [var(named, 0, 9) for named in "abcd"]
FACTORS = [next(iter(unit.parts))[0].key for unit in NAMES]


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
    numbers = {key: chosen.randint(0, 9) for key in FACTORS}
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
    assert {named: RULES[f"arith.{named}"](None, None, a, b) for named in expected} == expected


# --- Scalars that sizes decide ----------------------------------------------------------------------------------------


RIGHT = TEXTS["right"]


def of_histogram(folder: Path, text: str) -> Proofs:
    """What is proved of a histogram whose values are in the range that `text` has."""
    (folder / "domain.toml").write_text(text)
    return decided(folder, RIGHT, replace(get("vector_add"), entry="histogram"), domain.load(folder / "domain.toml")["histogram"])


WITHIN = HISTOGRAM.replace('["-8", "B + 7"]', '["0", "B - 1"]')


@pytest.mark.parametrize("text", [WITHIN, WITHIN.replace("least = 1, most = 65536, ", "")], ids=["range", "no range"])
def test_values_below_a_number_of_bins_stay_inside_of_them(tmp_path: Path, text: str) -> None:
    found = of_histogram(tmp_path, text)
    assert not found.failures, found.as_data()
    assert found.counts["refuted"] == 0 and found.counts["proved"] >= 3, found.as_data()


def test_values_beyond_the_number_of_bins_are_refuted(tmp_path: Path) -> None:
    found = of_histogram(tmp_path, WITHIN.replace('"B - 1"', '"B"').replace("integers", "chosen:cells:1:{B}"))
    assert found.counts["refuted"] > 0
