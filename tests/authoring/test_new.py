"""A new assignment is whole from the beginning: lint finds nothing, and a solution is all that verify asks for."""

import contextlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradekit.assignment import UsageError, load
from gradekit.authoring.lint import lint
from gradekit.authoring.signature import signature
from gradekit.cli import main
from gradekit.course.release import stale
from gradekit.domain import load as domain_of
from gradekit.findings import Cause, Outcome
from tests.beside import beside
from tests.graded import grade

TEXTS = beside(__file__)

REFERENCES = TEXTS["references"]


def asked(question: str) -> str:
    raise AssertionError(question)


def new(folder: Path, *args: str, typed: str = "") -> str:
    (folder / "refs.py").write_text(REFERENCES)
    with contextlib.chdir(folder):
        result = CliRunner().invoke(main, ["new", *args], input=typed, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", ["embedding", "histogram", "scaled_", "topk", "first", "kept", "normed"])
def test_an_assignment_from_a_reference_has_nothing_to_mend(tmp_path: Path, name: str) -> None:
    output = new(tmp_path, name, "--reference", f"{tmp_path / 'refs.py'}:{name}")
    assert "left to do" not in output
    assert lint(tmp_path / "assignments" / name) == []
    page = (tmp_path / "assignments" / name / "README.md").read_text()
    assert "@" not in page and "| Stays inside its tensors, writes its whole result, no races | 15 |" in page


def test_ranges_and_numbers_of_sizes_come_from_annotations(tmp_path: Path) -> None:
    for name in ("embedding", "histogram", "scaled_"):
        new(tmp_path, name, "--reference", f"{tmp_path / 'refs.py'}:{name}")
    entries = {
        name: domain_of(tmp_path / "assignments" / name / "domain.toml")[name]
        for name in ("embedding", "histogram", "scaled_")
    }
    assert entries["embedding"].tensors[1].range == ("0", "V - 1")
    assert entries["histogram"].scalars[0].is_computed
    assert entries["scaled_"].results[0].argument == "x"
    assert [s.values for s in entries["scaled_"].scalars] == [(2.0,), (True, False)]


def test_limits_defaults_what_may_be_missing_and_what_is_left_free_come_from_annotations(tmp_path: Path) -> None:
    for name in ("topk", "first", "kept", "scaled_"):
        new(tmp_path, name, "--reference", f"{tmp_path / 'refs.py'}:{name}")
    folder = tmp_path / "assignments"
    topk, kept = (domain_of(folder / name / "domain.toml")[name] for name in ("topk", "kept"))
    assert topk.limits == ("K <= N",) and topk.scalars[0].values == ("K",)
    assert kept.optional == ("bias",) and "| `bias` | [N] or None |" in (folder / "kept" / "README.md").read_text()
    assert (folder / "topk" / "test_topk.py").read_text().count("up_to=ties(call[0])") == 4
    assert "up_to=ties(call[0], dim=0, result=0)" in (folder / "first" / "test_first.py").read_text()
    assert (folder / "kept" / "test_kept.py").read_text().count("up_to=any_order()") == 4
    assert "def scaled_(x, factor=2.0, negative=False):" in (folder / "scaled_" / "starter.py").read_text()


def test_dimensions_without_a_name_are_none_to_three_and_the_checks_are_about_each_size_with_one(tmp_path: Path) -> None:
    for name in ("normed", "scaled_"):
        new(tmp_path, name, "--reference", f"{tmp_path / 'refs.py'}:{name}")
    folder = tmp_path / "assignments"
    normed = domain_of(folder / "normed" / "domain.toml")["normed"]
    assert normed.sizes["..."].dims == (0, 3) and normed.sizes["..."].drawn > 1
    assert 'sizes={"N": AROUND_POWERS}' in (folder / "normed" / "test_normed.py").read_text()
    assert 'sizes={"N": AROUND_POWERS, "M": AROUND_POWERS}' in (folder / "scaled_" / "test_scaled_.py").read_text()
    hidden = tmp_path / "solutions" / "scaled_" / "test_scaled__hidden.py"
    assert 'sizes={"N": [511, 513, 1000, 2049]}' in hidden.read_text()


@pytest.mark.sample(1)
def test_a_kernel_that_leaves_all_rows_but_the_first_fails_where_dimensions_have_no_name(tmp_path: Path) -> None:
    new(tmp_path, "normed", "--reference", f"{tmp_path / 'refs.py'}:normed")
    (path := tmp_path / "submission.py").write_text(TEXTS["first_row_alone"])
    (check,) = grade(load(tmp_path / "assignments" / "normed"), path, keyword="test_contiguous", shrink=False).checks
    assert check.outcome is Outcome.FAILED


def test_a_number_is_of_the_type_that_is_said_or_that_it_has(tmp_path: Path) -> None:
    eps = signature(REFERENCES, "normed", asked).scalars["eps"]
    assert eps == {"type": "float", "values": [1e-5]}
    for typed in ("= 1", "0.5", "N // 2"):
        assert signature(REFERENCES, "moved", lambda question, typed=typed: typed).scalars["by"]["type"] == "float"
    (tmp_path / "refs.py").write_text(REFERENCES)
    result = CliRunner().invoke(main, ["new", "moved", "--reference", f"{tmp_path / 'refs.py'}:moved"])
    assert result.exit_code == 2 and "does not say by: a number that calls pass" in result.output


HISTOGRAM = TEXTS["histogram"]

REQUANTIZED = TEXTS["requantized"]

PRODUCT = TEXTS["product"]

SOLUTIONS = {"histogram": HISTOGRAM, "requantized": REQUANTIZED, "product": PRODUCT}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_right_solution_of_a_new_assignment_earns_everything(tmp_path: Path, name: str) -> None:
    new(tmp_path, name, "--reference", f"{tmp_path / 'refs.py'}:{name}")
    solution = tmp_path / "solutions" / name / "solution.py"
    solution.write_text(SOLUTIONS[name])
    report = grade(load(tmp_path / "assignments" / name), solution, profile="quick")
    assert {check.outcome for check in report.checks} == {Outcome.PASSED}, [c.message for c in report.checks]
    assert report.score.possible == 100


def test_what_annotations_leave_out_is_asked_for() -> None:
    questions = []

    def answer(question: str) -> str:
        questions.append(question)
        return "[N]"

    found = signature(REFERENCES, "plain", answer)
    assert found.tensors["y"] == {"shape": ["N"], "dtype": "T"} and found.results == [{"shape": ["N"], "dtype": "T"}]
    assert [question.partition(":")[0] for question in questions] == ["x", "y", "what plain returns"]


@pytest.mark.parametrize(("text", "told"), [
    ("def g(x): pass", "it defines no function f; it has g"),
    ('def f(x: "M, N") -> "[M]": pass', 'x: .M, N. is no tensor; write one as "'),
    ("def f(x:", "line 1"),
    ('def f(x: "[M]") -> "[M], int64 [M] places in y": pass', "places in 'y', which is no argument"),
    ('def f(x: "[N]", eps: "= 1e-") -> "[N]": pass', "eps: '1e-' is no expression"),
    ('def f(x: "int64 [N] 0..B - 1", bins: "= B") -> "[B]": pass', "the result: say its dtype"),
])
def test_a_reference_that_cannot_be_read_is_told(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        signature(text, "f", asked)


@pytest.mark.parametrize(("signature", "told"), [
    ('x: "int32 [M, N] 0..B", n: int = 3) -> "int32 [M, B]"', "f.sizes.B stands in the result's shape alone"),
    ('x: "[M, N+]") -> "[M]"', "'N+' is no expression"),
    ('x: "[M] if Z > 3") -> "[M]"', "'Z' in 'Z > 3', which is no size"),
    ('x: "[M]", y: "[M] or None", z: "[M]") -> "[M]"', "a tensor that must be there comes after it"),
    ('x: "[M]", n: int = -(-a)) -> "[M]"', "the reference does not say n: a number"),
    ('x: "[M]", n: "= 1 // 0") -> "[M]"', "division or modulo by zero"),
    ('x: "[M]", *, n: int = 3) -> "[M]"', "calls pass arguments by position"),
    ('\udcff) -> "[M]"', "'utf-8' codec can't decode byte 0xff"),
])
def test_an_authors_mistake_is_told_as_wrong_usage_and_leaves_no_file(signature: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_bytes(f"def f({signature}: ...\n".encode("utf-8", "surrogateescape"))
    with contextlib.chdir(tmp_path):
        result = CliRunner().invoke(main, ["new", "f", "--reference", "ref.py:f"])
    assert result.exit_code == 2 and told in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["ref.py"]


def test_students_get_of_a_references_file_what_the_reference_needs(tmp_path: Path) -> None:
    kept = 'import torch\n\nTWO = 2\n\n\ndef half(x):\n    return x / TWO\n\n\ndef f(x: "[N]") -> "[N]":\n    return half(x)\n'
    others = "\n\n# that of another assignment\n@torch.no_grad()\ndef g(x):\n    return Also\n\n\nclass Also: ...\n"
    (tmp_path / "own.py").write_text(kept.replace("\n\n\ndef f", f"{others}\n\ndef f") + others.replace("g(", "h("))
    new(tmp_path, "f", "--reference", str(tmp_path / "own.py"))
    assert (tmp_path / "assignments" / "f" / "reference.py").read_text() == kept


def test_a_new_assignment_that_stands_in_the_place_of_another_says_so(tmp_path: Path) -> None:
    assert "note: here, it takes the place of " in new(tmp_path, "softmax", "--like", "vector_add")
    assert "takes the place" not in new(tmp_path, "row_weights", "--like", "vector_add")


def test_the_starter_of_a_new_assignment_is_what_its_solution_holds(tmp_path: Path) -> None:
    new(tmp_path, "kept", "--reference", f"{tmp_path / 'refs.py'}:kept")
    assert stale(load(tmp_path / "assignments" / "kept")) == ""


def test_a_summary_ends_with_one_full_stop_where_it_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text('def counts(x: "[N]") -> "[N]":\n    """Counts.\n\n    More."""\n')
    new(tmp_path, "counts", "--reference", str(tmp_path / "counts.py"))
    folder = tmp_path / "assignments" / "counts"
    assert load(folder).summary == "Counts" and "Counts.\n" in (folder / "README.md").read_text()
    assert '"""Checks of counts: Counts."""' in (folder / "test_counts.py").read_text()


def test_a_copy_of_an_assignment_has_its_own_entry(tmp_path: Path) -> None:
    new(tmp_path, "row_weights", "--like", "softmax")
    folder = tmp_path / "assignments" / "row_weights"
    assert load(folder).entry == "row_weights" and lint(folder) == []
    tests = (folder / "test_row_weights.py").read_text()
    assert "torch.softmax(x, dim=-1)" in tests and "submission.row_weights(" in tests


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    new(tmp_path, "row_weights", "--like", "softmax")
    with contextlib.chdir(tmp_path):
        again = CliRunner().invoke(main, ["new", "row_weights", "--like", "softmax"])
    assert again.exit_code == 2 and "is there already" in again.output


NARROW = TEXTS["narrow"]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "formula"), [("running", "tl.cumsum(x, 0)"), ("by_size", "x * tl.rsqrt(tl.sum(x * x) / N + 1e-5)")]
)
def test_a_dtype_that_is_too_narrow_is_told_where_no_place_alone_is_why(tmp_path: Path, name: str, formula: str) -> None:
    """Sums that lose bits at each step, and squares that grow past the largest float16"""
    new(tmp_path, name, "--reference", f"{tmp_path / 'refs.py'}:{name}")
    path = tmp_path / "submission.py"
    path.write_text(NARROW.replace("FORMULA", formula).replace("ENTRY", name))
    assignment = load(tmp_path / "assignments" / name)
    (check,) = grade(assignment, path, device="cpu", keyword="test_contiguous", shrink=False).checks
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.LOW_PRECISION), check.message
    assert "Without any rounding, this call is right" in check.message
