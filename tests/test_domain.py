"""Claims about the domain of an assignment: what is declared is read, and what makes no
sense is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit import domain
from gradekit.assignment import discover

ASSIGNMENTS = {id: assignment for id, assignment in discover().items() if not assignment.is_quiz}
SCALE = """
[scale]
arguments = ["x", "factor"]
result = { shape = ["M", "2 * N"], dtype = "T" }
limits = ["M * N <= 100"]
dtypes.T = ["float32", "float16"]
sizes.M = { most = 50 }
sizes.N = { least = 0, most = 30, drawn = 9 }
tensors.x = { shape = ["M", "N"], dtype = "T", values = ["normal"] }
scalars.factor = { type = "int", least = 1, most = 8, values = [1, "N + 1"] }
"""


def read(folder: Path, text: str) -> dict[str, domain.EntryDomain]:
    (folder / "domain.toml").write_text(text)
    return domain.load(folder / "domain.toml")


def test_an_entry_has_what_is_declared_in_the_order_of_its_signature(tmp_path: Path) -> None:
    scale = read(tmp_path, SCALE)["scale"]
    assert [argument.name for argument in scale.arguments] == ["x", "factor"]
    assert scale.sizes["N"] == domain.SizeDomain("N", least=0, most=30, drawn=9)
    assert scale.dtype_choices("T") == ("float32", "float16")
    assert scale.results == (domain.ResultDomain(("M", "2 * N"), "T"),)
    assert scale.relations.independent


@pytest.mark.parametrize(
    ("sizes", "promised"),
    [({"M": 10, "N": 10}, True), ({"M": 11, "N": 10}, False), ({"M": 0, "N": 1}, False), ({"M": 1, "N": 31}, False)],
)
def test_sizes_are_promised_within_ranges_and_limits(sizes: dict[str, int], promised: bool, tmp_path: Path) -> None:
    assert read(tmp_path, SCALE)["scale"].within(sizes) is promised


def test_no_tensor_is_promised_that_offsets_of_32_bits_do_not_reach(tmp_path: Path) -> None:
    scale = read(tmp_path, SCALE.replace("most = 50", "most = 2147483647").replace("<= 100", ">= 0"))["scale"]
    assert scale.within({"M": 2**26, "N": 15}) and not scale.within(
        {"M": 2**26, "N": 16}
    )  # the result has twice as many


@pytest.mark.parametrize(
    ("said", "instead", "told"),
    [
        ("limits", "limit", "did you mean limits"),
        ("most = 50", "most = 50, lest = 1", "did you mean least"),
        ("most = 50", "most = 0", "no sizes from 1 to 0"),
        ("limits =", 'aliases = ["x factor"]\nlimits =', "not two tensors of one shape and dtype"),
        ("limits =", 'relations = { alone = ["N"] }\nlimits =', "relations along N need it by itself in every shape"),
        ("M * N", "M * K", "'K'"),
        ("M * N <=", "M * * N <=", "no expression"),
        ('dtypes.T = ["float32"', 'dtypes.T = ["float31"', "no dtype"),
        ('["x", "factor"]', '["x"]', "arguments are"),
        ("sizes.M = { most = 50 }", "sizes.M = { least = 50 }", "most"),
        ("limits", 'gradients = ["y"]\nlimits', "'y'"),
        ("limits", "limits = [", "not valid TOML"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(said: str, instead: str, told: str, tmp_path: Path) -> None:
    assert said in SCALE
    with pytest.raises(domain.DomainError, match=told) as refused:
        read(tmp_path, SCALE.replace(said, instead, 1))
    assert "domain.toml" in str(refused.value)


def test_an_expression_has_the_value_that_python_would_give_it() -> None:
    names = {"M": 7, "N": 3}
    for text in ("M + 1", "M * N - 2", "M // N", "M ** -0.5", "M * N <= 2**24", "-M % N", "1 / N"):
        assert domain.evaluate(text, names) == eval(text, {}, names)


@pytest.mark.parametrize(
    "text", ["M.bit_length()", "print(1)", "M if N else 1", "[M]", "K", "M and N", "'a'", "lambda: 1"]
)
def test_nothing_but_arithmetic_is_an_expression(text: str) -> None:
    with pytest.raises(ValueError, match="no value"):
        domain.evaluate(text, {"M": 7, "N": 3})


@pytest.mark.parametrize("id", ASSIGNMENTS)
def test_every_assignment_declares_its_entry(id: str) -> None:
    entries = domain.load(ASSIGNMENTS[id].folder / "domain.toml")
    assert ASSIGNMENTS[id].entry in entries
