"""Entries that write to their arguments: what the domain lets them write is their result, and everything else an input."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradekit import domain
from gradekit.findings import Cause, Outcome
from tests.beside import beside
from tests.graded import grade
from tests.small import laid_out

TEXTS = beside(__file__)

DOMAIN = TEXTS["domain"]
TESTS = TEXTS["tests"]
KERNEL = TEXTS["kernel"]
ADD_ = KERNEL.replace("VALUE", "x + y").replace("MASK", "i < n")
COPY_OUT = (
    KERNEL.replace("    x = tl.load(x_ptr + i * x_stride, mask=i < n)\n", "")
    .replace("VALUE", "y")
    .replace("MASK", "i < n")
)


@pytest.fixture
def graded(tmp_path: Path) -> Callable[[str, str, str], dict[str, Any]]:
    """Grades a submission of f under a contract."""

    def run(text: str, how: str, reference: str) -> dict[str, Any]:
        files = {"domain.toml": DOMAIN.replace("HOW", how), "test_f.py": TESTS.replace("REFERENCE", reference)}
        (tmp_path / "submission.py").write_text(text)
        report = grade(laid_out(tmp_path, "f", "f", files, "seed = 7\n"), tmp_path / "submission.py", profile="quick")
        return {check.id: check for check in report.checks}

    return run


@pytest.mark.parametrize(("text", "how", "reference", "outcomes"), [
    *((ADD_.replace("RETURN", returned), "in place", "lambda x, y: x + y", {Outcome.PASSED}) for returned in ("return x", "return None", "pass")),
    (COPY_OUT.replace("RETURN", "return x"), "out", "lambda x, y: y.clone()", {Outcome.PASSED}),
    (ADD_.replace("RETURN", "return x"), "out", "lambda x, y: x + y", {Outcome.FAILED}),
], ids=["returned", "none", "nothing returned", "to out", "out may not be read"])
def test_an_entry_may_work_in_place_or_write_to_out_whatever_it_returns(
    graded: Any, text: str, how: str, reference: str, outcomes: set[Outcome]
) -> None:
    checks = graded(text, how, reference)
    assert {check.outcome for check in checks.values()} == outcomes, [c.message for c in checks.values()]
    assert outcomes == {Outcome.PASSED} or checks["test_memory"].cause is Cause.UNINITIALIZED_READ


def test_elements_that_are_not_written_to_out_are_missed(graded: Any) -> None:
    checks = graded(
        COPY_OUT.replace("mask=i < n)\n\n", "mask=i < n - 1)\n\n").replace("RETURN", "pass"), "out",
        "lambda x, y: y.clone()",
    )
    assert {check.outcome for check in checks.values()} == {Outcome.FAILED}


@pytest.mark.usefixtures("without_mends")
@pytest.mark.parametrize(("text", "cause"), [
    (ADD_.replace("tl.store(x_ptr + i * x_stride", "tl.store(y_ptr + i * y_stride"), Cause.INPUT_MODIFIED),
    (ADD_.replace("tl.store(x_ptr + i * x_stride", "tl.store(x_ptr + i"), Cause.OUT_OF_BOUNDS_STORE),
    (ADD_.replace("mask=i < n)\n\n\ndef", "mask=i <= n)\n\n\ndef"), Cause.OUT_OF_BOUNDS_STORE),
], ids=["another input", "between elements", "past the end"])
def test_nothing_but_what_the_contract_names_may_be_written(graded: Any, text: str, cause: Cause) -> None:
    checks = graded(text.replace("RETURN", "return x"), "in place", "lambda x, y: x + y")
    check = checks["test_memory"]
    assert cause in (check.cause, check.details.get("observed_cause")), check.message


@pytest.mark.usefixtures("without_mends")
def test_what_lies_between_the_elements_of_an_argument_is_no_result_that_is_read_before_it_is_written(graded: Any) -> None:
    """Where a result is right by luck, too: what is told names the argument, and no allocation."""
    text = ADD_.replace("tl.load(x_ptr + i * x_stride", "tl.load(x_ptr + i").replace("RETURN", "return x")
    checks = graded(text, "in place", "lambda x, y: x + y")
    assert {check.cause for check in checks.values()} <= {Cause.IGNORES_STRIDES, Cause.OUT_OF_BOUNDS_LOAD}
    assert all("loads from x" in check.message and "nothing has written" not in check.message for check in checks.values())


def test_torch_may_not_do_the_work_in_place(graded: Any) -> None:
    checks = graded("import torch\ndef f(x, y):\n    x.copy_(y)\n    return x\n", "in place", "lambda x, y: y.clone()")
    assert checks["test_values"].outcome is Outcome.FAILED and checks["test_values"].cause is Cause.NO_KERNEL


def entry(folder: Path, text: str) -> domain.EntryDomain:
    (folder / "domain.toml").write_text(text)
    return domain.load(folder / "domain.toml")["f"]


def test_what_is_written_is_the_result_and_shares_no_memory(tmp_path: Path) -> None:
    found = entry(tmp_path, DOMAIN.replace("HOW", "in place"))
    assert found.results == (domain.ResultDomain(("N",), "T", "x"),)
    assert "expanded" not in found.tensors[0].layouts and found.tensors[1].layouts == ()


@pytest.mark.parametrize(("change", "told"), [
    (('written = "HOW"', "ascending = false"), "has no result"),
    (('"HOW"', '"inplace"'), "did you mean in place?"),
    (('"HOW"', '"out", layouts = ["expanded"]'), "has expanded, in which elements of what is written share memory"),
    (("arguments", 'result = { argument = "y" }\narguments'), "'y', which is no tensor that is written (there is x)"),
    (("arguments", 'result = { shape = ["N"] }\narguments'), "has neither shape and dtype nor the argument"),
])
def test_a_contract_that_makes_no_sense_is_refused(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    with pytest.raises(domain.DomainError) as refused:
        entry(tmp_path, DOMAIN.replace(*change, 1).replace("HOW", "out"))
    assert told in str(refused.value)


def test_who_writes_a_copy_is_told_to_write_the_argument(graded: Callable[..., dict[str, Any]]) -> None:
    copying = ADD_.replace("n = x.numel()", "n = x.numel(); x = x.clone()").replace("RETURN", "return x")
    check = graded(copying, "in place", "lambda x, y: x + y")["test_values"]
    assert (check.outcome, check.cause) == (Outcome.FAILED, Cause.NO_KERNEL)
    assert "No kernel of f has stored to the argument that it must write: store there, not to a copy." in check.message


ALLOCATING = TEXTS["allocating"]


@pytest.mark.parametrize(("host", "outcome"), [("", Outcome.PASSED), ("torch.empty(3, device=x.device)", Outcome.FAILED)])
def test_what_may_be_written_is_no_memory_of_the_calls_own(
    graded: Any, host: str, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(graded.__globals__, "TESTS", TESTS + ALLOCATING)
    text = ADD_.replace("n = x.numel()", f"n = x.numel(); {host}").replace("RETURN", "return x")
    check = graded(text, "in place", "lambda x, y: x + y")["test_allocates"]
    assert check.outcome is outcome, check.message
