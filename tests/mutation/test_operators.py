"""Each mutation operator makes the small mistake that it is named for, wherever it can be made, and nowhere else."""

import ast

import pytest

from gradekit.mutation.mutants import mutants, spread
from gradekit.mutation.operators import OPERATORS
from gradekit.submission.parsed_source import ParsedSource
from tests.beside import beside

CASES = beside(__file__)

KERNEL = "@triton.jit\ndef kernel(x_ptr, y_ptr, n, m, x_stride, y_stride, BLOCK: tl.constexpr):\n    {}\n"
HOST = "def run(x, p):\n    {}\n"


def made(operator: str, shape: str, line: str) -> list[str]:
    """What an operator makes of a line (or of several, indented like the first), as a tree."""
    source = ParsedSource(shape.format(line))
    return [ast.dump(ast.parse(source.after(edit))) for edit in OPERATORS[operator].find(source)]


def trees(shape: str, lines: list[str]) -> list[str]:
    """Lines in their function, as trees: brackets do not count."""
    return [ast.dump(ast.parse(shape.format(line))) for line in lines]


IN_KERNELS = CASES["in_kernels"]

ANYWHERE = CASES["anywhere"]

ON_HOST = CASES["on_host"]


@pytest.mark.parametrize(("operator", "line", "expected"), [*IN_KERNELS, *ANYWHERE])
def test_an_operator_of_kernels_makes_these_edits_in_a_kernel(operator: str, line: str, expected: list[str]) -> None:
    assert sorted(made(operator, KERNEL, line)) == sorted(trees(KERNEL, expected))


@pytest.mark.parametrize(("operator", "line", "expected"), [*ON_HOST, *ANYWHERE])
def test_an_operator_of_host_code_makes_these_edits_on_the_host(operator: str, line: str, expected: list[str]) -> None:
    assert sorted(made(operator, HOST, line)) == sorted(trees(HOST, expected))


def test_a_buffer_that_is_kept_is_the_same_for_the_same_shape_and_dtype_alone() -> None:
    source = ParsedSource(HOST.format("return torch.empty(x, dtype=p)"))
    (edit,) = OPERATORS["buffer kept"].find(source)
    allocated: list[tuple[object, object]] = []

    class torch:
        @staticmethod
        def empty(shape: object, dtype: object) -> object:
            allocated.append((shape, dtype))
            return allocated[-1]

    names: dict[str, object] = {"torch": torch}
    exec(source.after(edit), names)  # noqa: S102  (the line that the operator made)
    run = names["run"]
    calls = [(4, "float32"), (4, "float32"), (4, "float16"), (5, "float32")]
    results = [run(*call) for call in calls]  # type: ignore[operator]
    assert results == calls and results[0] is results[1]
    assert len({id(result) for result in results}) == 3


def test_every_operator_is_tried_here() -> None:
    assert {name for name, *_ in (*IN_KERNELS, *ANYWHERE, *ON_HOST)} | {"buffer kept"} == set(OPERATORS)


TEXT = KERNEL.format("tl.store(x_ptr + tl.arange(0, BLOCK) * x_stride, n, mask=tl.arange(0, BLOCK) < n)  # ünïcödé")


def test_mutants_are_python_each_different_from_the_text_and_from_each_other() -> None:
    trees = [ast.dump(ast.parse(mutant.text)) for mutant in mutants(TEXT)]
    assert len(trees) > 10
    assert len({*trees, ast.dump(ast.parse(TEXT))}) == len(trees) + 1


def test_the_same_text_has_the_same_mutants() -> None:
    assert mutants(TEXT) == mutants(TEXT)


def test_a_mutant_names_its_line_and_what_was_done() -> None:
    (mutant,) = [mutant for mutant in mutants(TEXT) if mutant.operator.name == "mask dropped"]
    assert str(mutant) == (
        "line 3, mask dropped: `tl.store(x_ptr + tl.arange(0, BLOCK) * x_stride, n, mask=...` becomes "
        "`tl.store(x_ptr + tl.arange(0, BLOCK) * x_stride, n)`"
    )
    assert mutant.text == TEXT.replace(", mask=tl.arange(0, BLOCK) < n", "")


def test_a_few_mutants_are_of_every_kind() -> None:
    every = mutants(TEXT)
    kinds = {mutant.operator.name for mutant in every}
    few = spread(every, len(kinds))
    assert {mutant.operator.name for mutant in few} == kinds
    assert few == [mutant for mutant in every if mutant in few]
    assert spread(every, 10_000) == every
