"""What further calls may change: nothing that a check has fixed for itself."""

from __future__ import annotations

from gradekit.assignment import get
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.inputs.draws import Draws
from gradekit.unseen.scope import CallScope, fraction_choices

DROPOUT = domain_of(get("dropout").tests)["dropout"]


def draws(**others: list[float]) -> Draws:
    """Draws of dropout with these values of its scalars."""
    found = draws_of(calls(DROPOUT, others=others))
    assert found is not None
    return found


def test_a_scalar_that_a_check_leaves_open_may_have_any_value_of_its_range() -> None:
    assert {"p": 0.35} in fraction_choices(draws(), [0.35])
    assert "seed" in CallScope(draws(), 1).names


def test_a_scalar_that_a_check_lists_keeps_to_its_values() -> None:
    assert not fraction_choices(draws(p=[0.5]), [0.35])
    assert "seed" not in CallScope(draws(seed=[0, 1]), 1).names
