"""Formulas say of a kernel's addresses and masks what the engine computes, and each rule is needed for that."""

import pytest

from gradekit.prove import walk
from gradekit.prove.symbolic_values import SymbolicPointer
from gradekit.prove.terms import ONE, ZERO, Term, Truth, choose, least
from gradekit.prove.walk import COMPARE, RULES
from tests.prove.kernels import STEPS, compare, kernel

EACH = 8
"""Kernels for each operation."""


@pytest.mark.parametrize("name", STEPS)
def test_formulas_are_what_the_engine_computes(name):
    compared = 0
    for seed in range(EACH):
        k = kernel(seed, name, "addi", name)
        count, difference = compare(k)
        assert difference is None, f"{difference}\n{k.text}"
        compared += count
    assert compared > 50, "too few lanes say anything"


def test_random_kernels_are_what_the_engine_computes():
    compared = 0
    for seed in range(100, 200):
        k = kernel(seed, *(STEPS[(seed * 7 + n * 11) % len(STEPS)] for n in range(5)))
        count, difference = compare(k)
        assert difference is None, f"{difference}\n{k.text}"
        compared += count
    assert compared > 400


def _off_by_one(rule):
    def broken(*args):
        value = rule(*args)
        if isinstance(value, Term):
            return value + 1
        if isinstance(value, SymbolicPointer):
            return SymbolicPointer(value.base, value.offset + 1, value.itemsize)
        return ~value if isinstance(value, Truth) else value

    return broken


RIGHT = dict(RULES)
BROKEN = {
    "arith.divsi": lambda walk, op, a, b: a // b,  # rounds down
    "arith.remsi": lambda walk, op, a, b: a % b,  # is never negative
    "arith.minsi": lambda walk, op, a, b: a,
    "arith.maxsi": lambda walk, op, a, b: least(a, b),
    "arith.subi": lambda walk, op, a, b: b - a,
    "arith.muli": lambda walk, op, a, b: a + b,
    "arith.extsi": lambda walk, op, a: choose(a, ONE, ZERO) if isinstance(a, Truth) else a,
    "arith.select": lambda walk, op, c, a, b: RIGHT["arith.select"](walk, op, ~c, a, b),
    "arith.ceildivsi": lambda walk, op, a, b: a // b,
    "tt.trans": lambda walk, op, a: a,
}
"""Rules as somebody might get them wrong."""

SHOWN_BY = {"tt.trans": "trans", "tt.reshape": "trans", "arith.extui": "extui", "arith.extsi": "extsi",
            "arith.ori": "mask ori", "arith.cmpi": "cmpi"}  # fmt: skip
WITHOUT = {"tt.unsplat", "ttg.convert_layout", "tt.join", "arith.index_cast"}
"""Operations that these kernels do not have."""


def _differs(name):
    step = SHOWN_BY.get(name, name.partition(".")[2])
    wanted = (step, "addi", step) if step in STEPS else ("addi", "muli")
    return any(compare(kernel(seed, *wanted))[1] is not None for seed in range(4 * EACH))


@pytest.mark.parametrize("name", sorted(set(RULES) - WITHOUT))
def test_a_rule_that_is_off_by_one_is_found_out(name, monkeypatch):
    monkeypatch.setitem(RULES, name, _off_by_one(RULES[name]))
    assert _differs(name)


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_rule_that_is_nearly_right_is_found_out(name, monkeypatch):
    monkeypatch.setitem(RULES, name, BROKEN[name])
    assert _differs(name)


@pytest.mark.parametrize("name", sorted(COMPARE))
def test_a_comparison_that_is_turned_round_is_found_out(name, monkeypatch):
    right = COMPARE[name]
    monkeypatch.setitem(COMPARE, name, lambda a, b: ~right(a, b))
    assert any(compare(kernel(seed, "cmpi", "cmpi", "cmpi"))[1] is not None for seed in range(4 * EACH))


@pytest.mark.parametrize("trips", [lambda a, b: a // b, lambda a, b: a // b + 2])
def test_a_loop_with_another_number_of_turns_is_found_out(trips, monkeypatch):
    monkeypatch.setattr(walk, "ceil_div", trips)
    assert any(compare(kernel(seed, "for"))[1] is not None for seed in range(4 * EACH))


def test_a_loop_that_carries_what_does_not_rise_evenly_is_not_guessed(monkeypatch):
    monkeypatch.setattr(walk._Carried, "_check", lambda carried, yielded: True)
    monkeypatch.setattr(walk, "_difference", lambda before, after: ONE if isinstance(before, Term) else ZERO)
    assert any(compare(kernel(seed, "for"))[1] is not None for seed in range(4 * EACH))
