"""Claims about the domain of an assignment: what is declared is read, and what makes no
sense is refused with its place."""

from pathlib import Path

import pytest

from gradekit import domain
from gradekit.assignment import discover
from tests.beside import beside

CASES = beside(__file__)

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


@pytest.mark.parametrize(("said", "instead", "line", "told"), CASES["refused"])
def test_what_makes_no_sense_is_refused_with_its_line(
    said: str, instead: str, line: int, told: str, tmp_path: Path
) -> None:
    assert said in SCALE
    with pytest.raises(domain.DomainError) as refused:
        read(tmp_path, SCALE.replace(said, instead, 1))
    assert f"domain.toml:{line}: " in str(refused.value) and told in str(refused.value)


def test_a_size_that_the_result_alone_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(domain.DomainError, match="sizes.B stands in the result's shape alone"):
        read(tmp_path, SCALE.replace('"2 * N"', '"2 * N", "B"').replace("sizes.N", "sizes.B = { most = 9 }\nsizes.N"))


def test_a_shape_with_dimensions_that_have_no_name_needs_their_number(tmp_path: Path) -> None:
    unnamed = SCALE.replace('shape = ["M", "N"]', 'shape = ["...", "M", "N"]')
    for sizes in ("", 'sizes."..." = { most = 9 }\n'):
        with pytest.raises(domain.DomainError, match=r'scale.sizes do not say how many dimensions "..." is; write'):
            read(tmp_path, unnamed.replace("sizes.M", f"{sizes}sizes.M"))
    told = unnamed.replace("sizes.M", 'sizes."..." = { dims = [0, 2], most = 9 }\nsizes.M')
    assert read(tmp_path, told)["scale"].sizes["..."].dims == (0, 2)


def test_what_is_no_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(domain.DomainError, match="not valid TOML"):
        read(tmp_path, SCALE.replace("limits", "limits = ["))


def test_a_scalar_is_free_where_a_number_says_so_and_computed_where_sizes_decide_it(tmp_path: Path) -> None:
    (factor,) = read(tmp_path, SCALE)["scale"].scalars
    (bins,) = read(tmp_path, SCALE.replace('[1, "N + 1"]', '["N + 1"]'))["scale"].scalars
    assert (factor.is_free, factor.is_computed) == (True, False)
    assert (bins.is_free, bins.is_computed) == (False, True)


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


OPTIONAL = """
[shifted]
arguments = ["x", "bias"]
result = { shape = ["M", "N"], dtype = "float32" }
sizes.M = { most = 50 }
sizes.N = { most = 50 }
tensors.x = { shape = ["M", "N"], dtype = "float32" }
tensors.bias = { shape = ["N"], dtype = "float32", optional = true }
"""


@pytest.mark.parametrize(("before", "after", "told"), [
    ('["x", "bias"]', '["bias", "x"]', "cannot be: a tensor that must be there comes after it"),
    ('bias = { shape = ["N"]', 'bias = { shape = ["N", "K"]', "cannot be: K stands in no tensor that is always there"),
    ("sizes.M", 'gradients = ["x"]\nsizes.M', "cannot be: gradients, relations, aliases or writing need it"),
    ("optional = true", 'optional = true, written = "out"', "cannot be: gradients, relations, aliases or writing"),
])
def test_an_optional_tensor_comes_last_and_nothing_else_needs_it(
    before: str, after: str, told: str, tmp_path: Path
) -> None:
    assert read(tmp_path, OPTIONAL)["shifted"].optional == ("bias",)
    text = OPTIONAL.replace(before, after).replace(
        "sizes.N", "sizes.K = { most = 9 }\nsizes.N" if '"K"' in after else "sizes.N"
    )
    with pytest.raises(domain.DomainError, match=told):
        read(tmp_path, text)


def test_tensors_of_a_list_are_arguments_one_by_one(tmp_path: Path) -> None:
    text = SCALE.replace('["x", "factor"]', '[["x", "y"], "factor"]') + 'tensors.y = { shape = ["M"], dtype = "T" }\n'
    scale = read(tmp_path, text)["scale"]
    assert [argument.name for argument in scale.arguments] == ["x", "y", "factor"] and scale.lists == ((0, 2),)
    with pytest.raises(domain.DomainError, match=r"has 'factor', which is no tensor, and lists are of tensors"):
        read(tmp_path, SCALE.replace('["x", "factor"]', '["x", ["factor"]]'))
