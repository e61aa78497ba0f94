"""What further calls may change: nothing that a check has fixed for itself."""

from pathlib import Path

from gradekit.assignment import get
from gradekit.domain import load
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.inputs.draws import Draws
from gradekit.program import View
from gradekit.unseen.further import made
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.scope import CallScope

DROPOUT = domain_of(get("dropout").tests)["dropout"]


def draws(**others: list[float]) -> Draws:
    """Draws of dropout with these values of its scalars."""
    found = draws_of(calls(DROPOUT, others=others))
    assert found is not None
    return found


def test_a_scalar_that_a_check_leaves_open_may_have_any_value_of_its_range() -> None:
    assert "seed" in CallScope(draws(), 1).names


def test_a_scalar_that_a_check_lists_keeps_to_its_values() -> None:
    assert "seed" not in CallScope(draws(seed=[0, 1]), 1).names


HISTOGRAM = """
[histogram]
arguments = ["x", "bins"]
result = { shape = ["B"], dtype = "int32" }
sizes.N = { most = 4096 }
sizes.B = { most = 65536, drawn = 40 }
tensors.x = { shape = ["N"], dtype = "int32", values = ["integers"], range = ["-8", "B + 7"] }
scalars.bins = { type = "int", least = 1, most = 65536, values = ["B"] }
"""


def test_a_scalar_that_sizes_decide_is_computed_and_never_chosen(tmp_path: Path) -> None:
    (tmp_path / "domain.toml").write_text(HISTOGRAM)
    found = draws_of(calls(load(tmp_path / "domain.toml")["histogram"]))
    assert found is not None
    scope, form = CallScope(found, 0, wide=True), TracedForm("", "histogram", (View(0, "int32", (8,), (1,)),))
    assert scope.names == ["N", "B"]
    assert scope.leaves({"N": 5, "B": 17})["scalar", 1] == 17
    assert made(found, form, {"N": 5, "B": 17}, 0, {})[1] == 17
