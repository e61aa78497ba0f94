"""What the solver proves of products no number contradicts."""

import itertools
import random

import pytest

from gradekit import reuse
from gradekit.prove.solve import Solver
from gradekit.prove.terms import Atom, Truth, equal, greatest, least, of_atom, var
from gradekit.prove.value_of import Evaluation

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
