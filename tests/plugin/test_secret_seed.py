"""Under a secret seed, nothing that was prepared for the public examples earns a point, and no report names the seed."""

import contextlib
import gc
import json
import re
import shlex
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from gradekit.assignment import Assignment
from gradekit.findings import Outcome
from gradekit.inputs import as_text
from gradekit.inputs.spec import Input, normal, overlapping, salted
from gradekit.plugin.check_run import CheckRun
from gradekit.plugin.run_state import GradingRun
from gradekit.report.record import to_dict
from gradekit.reuse import kept
from tests.beside import beside
from tests.graded import by_id, grade
from tests.plugin.samples import RIGHT, TRIPLES

TEXTS = beside(__file__)

Make = Callable[..., Assignment]
Write = Callable[[str], Path]

SECRET = 8461023745

TESTS = TEXTS["tests"]

TABLE = TEXTS["table"]


def test_what_a_grader_keeps_does_not_keep_the_run(
    assignment: Make, submitted: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The references of a class lead to the tests that asked for them, which pytest has loaded"""
    runs, opened = [], GradingRun.opened

    def noted(run: GradingRun) -> AbstractContextManager[None]:
        runs.append(weakref.ref(run))
        return opened(run)

    monkeypatch.setattr(GradingRun, "opened", noted)
    with kept():
        grade(assignment(TESTS), submitted(RIGHT), profile="quick", secret_seed=SECRET)
        gc.collect()
        assert [run() for run in runs] == [None]


def test_a_right_submission_earns_everything_under_a_secret_seed_too(assignment: Make, submitted: Write) -> None:
    report = grade(assignment(TESTS), submitted(RIGHT), profile="quick", secret_seed=SECRET)
    assert (report.score.earned, report.score.possible) == (50, 50)
    assert 14 < by_id(report)["test_doubles"].details["examples"] <= 20  # what is drawn twice is run once


def test_results_that_were_computed_from_the_public_values_earn_nothing(assignment: Make, submitted: Write) -> None:
    table = {24: normal((24,)).tensor().mul(2).tolist()}
    path, made = submitted(TABLE.format(table=table)), assignment(TESTS)
    assert by_id(grade(made, path, profile="quick", keyword="fixed"))["test_fixed"].outcome is Outcome.PASSED
    secret = by_id(grade(made, path, profile="quick", keyword="fixed", secret_seed=SECRET))["test_fixed"]
    assert (secret.outcome, secret.earned) == (Outcome.FAILED, 0)


def test_a_failure_under_the_secret_seed_replays_without_it(assignment: Make, submitted: Write) -> None:
    """The inputs stand in the command, with the seeds of their values"""
    made, path = assignment(TESTS), submitted(TRIPLES)
    with pytest.MonkeyPatch.context() as patch:  # only what the secret seed draws is tried
        patch.setattr("gradekit.plugin.lifecycle.CheckRun", _Nothing)
        found = by_id(grade(made, path, profile="quick", keyword="doubles", secret_seed=SECRET))["test_doubles"]
    assert found.counterexample is not None
    words = shlex.split(found.counterexample["replay"])
    assert words[:3] == ["gradekit", "check", str(path)] and "--seed" not in words
    again = by_id(grade(made, path, keyword="doubles", inputs=words[words.index("--inputs") + 1], profile="quick"))
    assert (again["test_doubles"].message, again["test_doubles"].details["examples"]) == (found.message, 1)
    assert again["test_doubles"].counterexample == found.counterexample


class _Nothing(CheckRun):
    """In place of a check's run under the public seed: its examples are left out."""

    def running(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def ran_planned(self) -> bool:
        return True


@pytest.mark.parametrize("text", [RIGHT, TRIPLES, "def double(x:\n"])
def test_no_report_names_the_secret_seed(assignment: Make, submitted: Write, text: str) -> None:
    report = grade(assignment(TESTS), submitted(text), profile="quick", secret_seed=SECRET)
    assert report.seed == 7 and str(SECRET) not in json.dumps(to_dict(report))


def test_a_salt_gives_other_values_that_need_no_salt_to_be_had_again() -> None:
    plain = normal((8,), seed=3)
    with salted(SECRET):
        salty, again, other = normal((8,), seed=3), normal((8,), seed=3), normal((8,), seed=4)
        renamed = salty.named("x")
    assert salty == again != other and renamed == salty
    assert plain.tensor().tolist() != salty.tensor().tolist()
    assert Input.from_json(salty.to_json()).tensor().tolist() == salty.tensor().tolist()
    with salted(SECRET + 1):
        assert normal((8,), seed=3) != salty


def test_the_seed_of_one_tensor_tells_nothing_of_tensors_of_other_shapes_and_kinds() -> None:
    """A report shows it with what failed, and most examples have a tensor of seed 0"""
    with salted(SECRET):
        seeds = [normal(shape).seed for shape in ((8,), (9,), (8, 1))]
        seeds += [Input("float32", (8,), (1,), profile="positive").seed]
        transposed, other = Input("float32", (3, 4), (1, 3)), Input("float16", (3, 4), (4, 1))
        one, two = overlapping(normal((8,)), 2)
    assert len({*seeds}) == 4
    assert transposed.seed == other.seed and one.seed == two.seed == seeds[0]


@pytest.mark.parametrize("given", [
    {"x": normal((3,)), "n": 4, "p": 0.5, "dim": None},
    {"call": (Input("float16", (2, 3), (1, 2), 5, "ones", 9), normal((0,)), -1, [True, "mean"])},
    {"x": Input("bfloat16", (4,), (2,), 0, "normal", 0)},
])
def test_arguments_survive_a_journey_as_text(given: dict[str, object]) -> None:
    text = as_text.dumps(given)
    one, pair = normal((3,)), overlapping(normal((4,)), 2)
    again = as_text.loads(as_text.dumps({"call": (one, one, *pair)}) or "")["call"]
    assert again == (one, one, *pair) and again[0] is again[1] and again[2].base == 6
    assert text is not None and as_text.loads(text) == given and not re.search(r"\s", text.replace('"mean"', ""))


@pytest.mark.parametrize("text", ["", "[]", "3", '{"x": {"input": ["float32"]}}', '{"x": {"odd": 1}}'])
def test_text_that_describes_no_example_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="replay line"):
        as_text.loads(text)
