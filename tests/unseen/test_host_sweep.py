"""Host code is run alone for many sizes, as far out as an entry promises, and within a budget of instructions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gradekit.assignment import get
from gradekit.findings import Outcome
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.inputs.draws import Draws
from gradekit.program import Argument, View
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.host_sweep import CALL, MOST_WORK, SHARE, TOGETHER, HostSweep
from gradekit.unseen.laid_out import each_layout
from gradekit.unseen.source_hints import hints
from tests.graded import grade
from tests.unseen.attacks import PLAIN, Attack

FORM = TracedForm("", "softmax", (View(0, "float32", (7, 7), (7, 1)),))


def softmax_draws() -> Draws:
    draws = draws_of(calls(domain_of(get("softmax").tests)["softmax"]))
    assert draws is not None
    return draws


def test_a_limit_that_no_comparison_shows_is_gone_beyond() -> None:
    def ask(entry: str, many: Sequence[Sequence[Argument]]) -> Sequence[tuple[str, int]]:
        views = [args[0] for args in many if isinstance(args[0], View)]
        return [("large" if view.numel > 600_000 else "small", 50) for view in views]

    (call,) = HostSweep(ask, hints("")).further(softmax_draws(), [FORM], [1], strided=[])
    assert call.call[0].numel > 600_000


def test_a_check_asks_for_no_more_than_its_share_of_instructions() -> None:
    asked: list[int] = []

    def ask(entry: str, many: Sequence[Sequence[Argument]]) -> Sequence[tuple[str, int]]:
        asked.append(len(many))
        return [("", 40_000)] * len(many)

    sweep = HostSweep(ask, hints(""))
    for _ in range(2 * SHARE):
        sweep.further(softmax_draws(), [FORM], [1], strided=[])
        assert sweep.left_out.startswith("host code was not run for ")
    groups_and_forms = 5 * 2 * SHARE
    assert sum(asked) * (40_000 + CALL) < MOST_WORK + groups_and_forms * TOGETHER * (40_000 + CALL)


def test_nothing_is_left_out_where_host_code_is_short() -> None:
    sweep = HostSweep(lambda entry, many: [("", 20)] * len(many), hints(""))
    sweep.further(softmax_draws(), [FORM], [1], strided=[])
    assert not sweep.left_out


def test_layouts_of_two_tensors_meet_each_other() -> None:
    draws = draws_of(calls(domain_of(get("matmul").tests)["matmul"]))
    assert draws is not None
    form = TracedForm("", "matmul", tuple(View(n, "float32", (7, 5), (9, 1)) for n in (0, 1)))
    pairs = [(a, b) for a, b in each_layout(draws, form)]
    assert len({a for a, _ in pairs}) > 3 and len(set(pairs)) == len({a for a, _ in pairs}) * len({b for _, b in pairs})


@pytest.mark.usefixtures("without_mends")
@pytest.mark.parametrize(
    "condition",
    ["x.nbytes > 3_000_000", pytest.param("len(str(n)) > 5", marks=pytest.mark.slow)],
)
def test_a_size_that_host_code_takes_in_bytes_or_as_text_is_followed_far_out(condition: str, tmp_path: Path) -> None:
    (tmp_path / "submission.py").write_text(Attack("vector_add", PLAIN, condition).text)
    (check,) = grade(get("vector_add"), tmp_path / "submission.py", keyword=PLAIN).checks
    assert check.outcome is Outcome.FAILED
