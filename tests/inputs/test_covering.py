"""Claims about covering designs: every combination is there, what may not be combined is not, and levels come evenly."""

import itertools
import math
from collections import Counter

import pytest

from gradekit.inputs.covering import Rule, design

FACTORS = {"dtype": ["f32", "f16", "bf16"], "size ...": [1, 2, 3, 4], "layout": list("abcde"), "only": ["x"]}
RULE = Rule(("layout", "size ..."), lambda row: row["layout"] != "b" or row["size ..."] != 2)


@pytest.mark.parametrize("strength", [1, 2, 3])
def test_every_combination_that_is_allowed_is_there_and_no_other(strength: int) -> None:
    rows = design(FACTORS, strength, [RULE])
    for names in itertools.combinations(FACTORS, strength):
        every = itertools.product(*(FACTORS[name] for name in names))
        allowed = {c for c in every if not {("layout", "b"), ("size ...", 2)} <= set(zip(names, c, strict=True))}
        assert {tuple(row[name] for name in names) for row in rows} == allowed


def test_a_design_of_pairs_has_few_more_rows_than_its_two_largest_factors_need() -> None:
    factors = {name: list(range(levels)) for name, levels in {"a": 7, "b": 7, "c": 4, "d": 6, "e": 3}.items()}
    assert 49 <= len(design(factors)) <= 60


def test_a_design_of_which_much_is_forbidden_has_no_row_too_many() -> None:
    sizes = {"B": [1, 2], "H": [1], "G": [1], "S": [1000, 2048, 4000], "D": [16, 64]}
    factors = {"dtype": list("abc"), **sizes, "scale": [0, 1], "layout": [0], "values": list("abc")}
    fits = Rule(tuple(sizes), lambda row: math.prod(int(str(row[name])) for name in sizes) <= 1 << 18)
    assert len(design(factors, 2, [fits])) <= 12


def test_levels_come_evenly() -> None:
    seen = Counter(row["dtype"] for row in design(FACTORS))
    assert max(seen.values()) - min(seen.values()) <= 2


def test_a_design_is_the_same_each_time() -> None:
    assert design(FACTORS) == design(dict(FACTORS))


@pytest.mark.parametrize(("holds", "rows"), [(True, [{"a": 1, "b": 2}]), (False, [])])
def test_factors_with_one_level_are_one_row_or_none(holds: bool, rows: list[dict[str, int]]) -> None:
    assert design({"a": [1], "b": [2]}, 2, [Rule(("a", "b"), lambda row: holds)]) == rows
