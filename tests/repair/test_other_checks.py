"""A mend is tried on examples of other checks: what it makes fail in its kernel refutes it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradekit import assert_close, reference
from gradekit.engine.memory import POISON
from gradekit.findings import Cause, Kind
from gradekit.inputs.spec import Input
from gradekit.interpreter.tile_values import NotWalked, OutsideEverywhere
from gradekit.judge.evidence import Diagnosis
from gradekit.judge.failure import Failure
from gradekit.plugin.examples import raised_by
from gradekit.plugin.tutoring import apart
from gradekit.program import Program
from gradekit.repair.failed_check import Example, FailedCheck, WalkedExamples
from gradekit.repair.mend import Family, Mend
from gradekit.repair.other_checks import OtherChecks, alike, confirmed, with_a_mend
from gradekit.repair.tutor import Tutor
from gradekit.repair.work import Limit
from gradekit.subject.subject import Call
from tests.gpu.programs import normal, traced
from tests.graded import failed_checks
from tests.repair.corpora import ROOT, corpus
from tests.tracer.styles import Text


class Called:
    """A subject of which one call launched the kernel `add`."""

    def __init__(self) -> None:
        program = SimpleNamespace(
            kernels={"k": SimpleNamespace(name="add")}, launches=lambda: [SimpleNamespace(kernel="k")]
        )
        self._call = SimpleNamespace(observation=SimpleNamespace(program=program))
        self.calls: list[Any] = []

    def forget_calls(self) -> None:
        self.calls.clear()

    def call(self) -> None:
        self.calls.append(self._call)


def wrong_values(submission: Any, n: int) -> None:
    submission.call()
    if n > 3:
        raise Failure(Cause.WRONG_VALUES, "wrong", comparison=SimpleNamespace(actual="3"))  # type: ignore[arg-type]


def races(submission: Any, n: int) -> None:
    submission.call()
    raise Failure(Cause.RACE, "no comparison")


def takes_too_long(submission: Any, n: int) -> None:
    submission.call()
    raise Failure(Cause.BUDGET_EXCEEDED, "a try has less work than the submission")


def not_compiled(submission: Any, n: int) -> None:
    submission.calls.append(SimpleNamespace(observation=None))
    raise Failure(Cause.COMPILATION_ERROR, "no kernel, and so no program")


def not_traced(submission: Any, n: int) -> None:
    raise ValueError("unknown")


@pytest.mark.parametrize(("test", "n", "kernel", "fails"), [
    (wrong_values, 3, "add", False),
    (wrong_values, 4, "add", True),
    (wrong_values, 4, "", True),
    (wrong_values, 4, "another", False),
    (races, 4, "add", True),
    (takes_too_long, 4, "add", False),
    (not_compiled, 4, "add", True),
    (not_traced, 4, "add", True),
])
def test_an_example_fails_where_the_kernel_takes_part_and_had_the_time(
    test: Any, n: int, kernel: str, fails: bool
) -> None:
    held = Example("one", raised_by(lambda submission: test(submission, n)))
    assert (held.failure(Called(), kernel) is not None) is fails  # type: ignore[arg-type]


def compared(actual: str) -> Any:
    """A comparison with a wrong element, and with "2" another one."""
    return SimpleNamespace(actual=torch.tensor(float(actual)), wrong=torch.tensor([True, actual == "2"]))


def example(check: str, after: str | None) -> Example:
    """One that raises this with the mend, where it raises anything."""

    def test(submission: Any) -> None:
        submission.call()
        if after is not None:
            raise Failure(Cause.WRONG_VALUES, "wrong", comparison=compared(after))

    return Example(object(), raised_by(test), check)


@pytest.mark.parametrize(("examples", "found"), [
    ([("one", None, None), ("two", "1", None)], OtherChecks.ALL),
    ([("one", None, None), ("two", "1", "1")], OtherChecks.AS_BEFORE),
    ([("one", None, "1")], OtherChecks.NOT),
    ([("one", "1", None), ("two", "1", "2")], OtherChecks.IN_PART),
    ([("one", None, None), ("two", "1", "2")], OtherChecks.NOT),
    ([("one", "1", None), ("one", "1", "2")], OtherChecks.NOT),
    ([("one", "1", None), ("one", "1", "3")], OtherChecks.IN_PART),
])
def test_a_mend_may_be_one_of_two_if_it_breaks_nothing_and_makes_whole_checks_right(
    examples: list[tuple[str, str | None, str | None]], found: OtherChecks
) -> None:
    """Each example has its check, what was wrong before, and what is wrong with the mend."""
    held = [example(check, after) for check, _, after in examples]
    errors = {
        one: Failure(Cause.WRONG_VALUES, "wrong", comparison=compared(before))
        for one, (_, before, _) in zip(held, examples, strict=True) if before is not None
    }  # fmt: skip
    assert with_a_mend(held, Called(), "", errors.get) is found  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32])
def test_elements_that_nobody_has_written_are_no_difference(dtype: torch.dtype) -> None:
    unwritten = torch.full((1, 4), POISON, dtype=torch.uint8).view(torch.int32).view(dtype)[0]
    before, after = torch.cat([torch.tensor([5], dtype=dtype), unwritten]), torch.tensor([5, 7], dtype=dtype)
    assert alike(before, after) and not alike(after, after + 1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_results_are_held_against_each_other_whatever_their_strides(dtype: torch.dtype) -> None:
    before = torch.as_strided(torch.tensor([5, 6], dtype=dtype), (1, 2), (0, 0))
    assert alike(before, before.clone()) and not alike(before, before + 1)


def test_a_view_is_asked_for_with_a_gap_behind_each_dimension_too() -> None:
    turned = Input("float32", (3, 3, 16), (3, 1, 9))  # whose first two dimensions are one in memory
    assert apart({"call": (turned, 0.5)}) == {"call": (Input("float32", (3, 3, 16), (4, 1, 16)), 0.5)}
    spread = Input("float32", (2, 3, 4), (4, 0, 1))
    assert apart(spread) == Input("float32", (2, 3, 4), (5, 0, 1)), "what is expanded stays so"
    shared = Input("float32", (2, 3, 4), (24, 8, 2), base=48)
    assert apart(shared) == Input("float32", (2, 3, 4), (40, 10, 2)), "and needs a larger storage than it shared"
    for plain in (Input("float32", (2, 3, 4), (12, 4, 1)), Input("float32", (3, 4), (1, 3))):
        assert apart(plain) == plain


# --- examples of checks are answered by walks of a text, where that can be walked -------------------------------------


SOFTMAX = (ROOT / "solutions/softmax/right_one_row.py").read_text(encoding="utf-8")
X = normal(3, 5)


@pytest.fixture(scope="module")
def program() -> Program:
    return traced(Text(SOFTMAX), "softmax", X)[0]


def compares(submission: Any) -> BaseException | None:
    """An example of a check of results."""
    try:
        assert_close(submission.softmax(X), reference(lambda x: torch.softmax(x, -1), X))
    except Exception as error:  # noqa: BLE001  (whatever it is, it is the answer)
        return error
    return None


@pytest.mark.parametrize(("old", "new", "raised"), [
    ("e / total", "e / total", type(None)),
    ("e / total", "e * total", Failure),
    ("tl.sum(e, axis=0)", "tl.reduce(e, 0, add)", NotWalked),
    ("cols < N", "cols <= N", OutsideEverywhere),  # and what is there is not known
])
def test_a_walk_tells_right_from_wrong_or_that_it_does_not_know(
    program: Program, old: str, new: str, raised: type[BaseException]
) -> None:
    error = WalkedExamples(SOFTMAX.replace(old, new), program).error(Example("example", compares))
    assert type(error) is raised


def test_after_some_examples_in_vain_no_other_is_walked(program: Program) -> None:
    asked: list[int] = []
    walked = WalkedExamples(SOFTMAX, program)

    def unknown(submission: Any) -> BaseException:
        asked.append(1)
        return ValueError("unknown")

    for number in range(Limit.IN_VAIN + 2):
        assert walked.error(Example(number, unknown)) is not None
    assert len(asked) == Limit.IN_VAIN and walked.error(Example("another", compares)) is not None


class Answers:
    """In the place of walked examples: None is right, an error wrong or not known."""

    def __init__(self, known: dict[Any, BaseException | None]) -> None:
        self._known = known

    def error(self, example: Any) -> BaseException | None:
        return self._known.get(example, NotWalked(""))


def differs(value: float) -> Failure:
    return Failure(Cause.WRONG_VALUES, "wrong", comparison=SimpleNamespace(actual=torch.tensor(value)))  # type: ignore[arg-type]


def held(compares: bool, ran: list[str]) -> Example:
    """An example that is right where it is run."""
    return Example(object(), raised_by(lambda submission: ran.append("run")), "check", compares)


def test_what_a_walk_finds_right_is_not_run_and_of_the_rest_so_much_is() -> None:
    ran: list[str] = []
    known, memory, *others = held(True, ran), held(False, ran), *(held(True, ran) for _ in range(Limit.RUN_OF_OTHERS + 5))
    answers = Answers({known: None, memory: None, others[0]: differs(2.0)})
    found = with_a_mend([known, memory, *others], Called(), "", {}.get, answers)  # type: ignore[arg-type]
    assert found is OtherChecks.ALL and len(ran) == Limit.RUN_OF_OTHERS, "a check of memory among them, and what a walk blames"


@pytest.mark.parametrize(("own", "before", "after", "right"), [
    (None, None, None, Limit.LEAST_WALKED),
    (None, 1.0, None, Limit.LEAST_WALKED),
    (None, 1.0, 1.0, 2),
    (None, 1.0, 2.0, 0),
    (None, None, 2.0, 0),
    (2.0, None, None, 0),
])
def test_a_change_is_confirmed_where_all_is_right_or_wrong_as_before(
    own: float | None, before: float | None, after: float | None, right: int
) -> None:
    """Of `Limit.LEAST_WALKED` examples, one of the check itself and one of another are wrong like this"""
    errors = [differs(value) if value is not None else None for value in (own, after)]
    another = held(True, [])
    walked = Answers({"own": errors[0], "mine": None, another: errors[1]})
    known = {another: differs(before)} if before is not None else {}
    of_check = ["own", "mine"]
    found = confirmed(walked, of_check, [another, held(False, [])], known.get)  # type: ignore[arg-type]
    assert found == (right if right != 2 else None), "where too few are known, nothing is said"


def test_too_few_examples_that_can_be_walked_confirm_nothing() -> None:
    assert confirmed(Answers({"own": None}), ["own"], [held(True, [])], {}.get) is None  # type: ignore[arg-type,list-item]




@pytest.mark.slow
def test_a_mend_that_leaves_other_checks_as_they_were_is_not_in_the_report(tmp_path: Path) -> None:
    """The dimension 1 in a grid in place of 0: right for the first example, and too few programs for others."""
    mistake = next(one for one in corpus("giou_loss") if one.name == "scales_one_number_a_box")
    failed = failed_checks("giou_loss", mistake.text, tmp_path, keyword="gradient")
    assert failed and not any("dimension 1" in one["hint"] for one in failed)


def test_a_large_call_is_looked_at_when_no_other_check_has_shown_a_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    tutor, looked = Tutor.__new__(Tutor), list[str]()
    tutor._said, tutor._open = {}, {}
    mend = Mend(Family.SUM, 1, 3, (), "Line 3 sums nothing.", "")
    told = Diagnosis(Cause.WRONG_VALUES, mend.sentence, mend.line)
    monkeypatch.setattr(Tutor, "_mended", lambda self, check: (looked.append(check.name), (told, mend))[1])
    monkeypatch.setattr(Tutor, "_anew", lambda self, mend: {})
    error = Failure(Cause.WRONG_VALUES, "wrong", comparison=SimpleNamespace())
    check = lambda name, size: FailedCheck(name, Kind.CORRECTNESS, error, Call("f", (Input("float32", (size,), (1,)),)))
    assert tutor.diagnosis(check("large", Limit.WALKED_ELEMENTS + 1)) is None and looked == []
    assert tutor.at_the_end() == {"large": told}
    assert tutor.diagnosis(check("small", 8)) is told and looked == ["large", "small"]
