"""Each mutation operator makes the small mistake that it is named for, wherever it can be made, and nowhere else."""

from __future__ import annotations

import ast

import pytest

from gradekit.mutation.mutants import mutants, spread
from gradekit.mutation.operators import OPERATORS
from gradekit.submission.parsed_source import ParsedSource

KERNEL = "@triton.jit\ndef kernel(x_ptr, y_ptr, n, m, x_stride, y_stride, BLOCK: tl.constexpr):\n    {}\n"
HOST = "def run(x, p):\n    {}\n"


def made(operator: str, shape: str, line: str) -> list[str]:
    """What an operator makes of a line (or of several, indented like the first), as a tree."""
    source = ParsedSource(shape.format(line))
    return [ast.dump(ast.parse(source.after(edit))) for edit in OPERATORS[operator].find(source)]


def trees(shape: str, lines: list[str]) -> list[str]:
    """Lines in their function, as trees: brackets do not count."""
    return [ast.dump(ast.parse(shape.format(line))) for line in lines]


IN_KERNELS = [
    ("mask dropped", "tl.store(x_ptr + i, x, mask=i < n)", ["tl.store(x_ptr + i, x)"]),
    ("mask dropped", "x = tl.load(x_ptr, mask=i < n, other=0.0)", ["x = tl.load(x_ptr)"]),
    ("mask dropped", "x = tl.load(x_ptr)", []),
    ("half a mask", "mask = (i < n) & (j < m)", ["mask = (i < n)", "mask = (j < m)"]),
    ("other changed", "x = tl.load(p, mask=k, other=0.0)", ["x = tl.load(p, mask=k, other=1)", "x = tl.load(p, mask=k)"]),
    ("other changed", 'x = tl.load(p, other=-float("inf"))', ["x = tl.load(p, other=0.0)", "x = tl.load(p)"]),
    ("offset moved", "i = tl.arange(0, BLOCK)", ["i = (tl.arange(0, BLOCK) + 1)"]),
    ("offset moved", "end = tl.load(x_ptr + row + 1)", ["end = tl.load(x_ptr + row + 2)"]),
    ("program id", "i = tl.program_id(0)", ["i = tl.program_id(1)", "i = (tl.program_id(0) * 0)"]),
    ("program id", "i = tl.num_programs(0)", ["i = 1"]),
    ("factor dropped", "i = (j + 1) * x_stride", ["i = (j + 1)", "i = x_stride"]),
    ("argument swapped", "p = x_ptr + i * x_stride", ["p = y_ptr + i * x_stride", "p = x_ptr + i * y_stride"]),
    ("argument swapped", "mask = i < n", ["mask = i < m"]),
    ("argument swapped", "i = BLOCK", []),
    (
        "index swapped", "i = tl.arange(0, 4)\n    j = i + 1\n    k = i < 4\n    f(j)",
        ["i = tl.arange(0, 4)\n    j = i + 1\n    k = j < 4\n    f(j)", "i = tl.arange(0, 4)\n    j = i + 1\n    k = i < 4\n    f(i)"],
    ),
    ("index swapped", "i = tl.arange(0, 4)\n    f(i)", []),
    ("cast dropped", "i = (i + 1).to(tl.int64)", ["i = (i + 1)"]),
    ("dtype narrowed", "a = tl.zeros((4,), dtype=tl.float32)", ["a = tl.zeros((4,), dtype=tl.float16)"]),
    ("dtype narrowed", "i = i.to(tl.int64)", ["i = i.to(tl.int32)"]),
    ("other function", "x = tl.sum(x, axis=0)", ["x = tl.max(x, axis=0)"]),
    ("other function", "x = tl.maximum(x, y)", ["x = tl.minimum(x, y)"]),
    ("axis changed", "x = tl.sum(x, axis=1)", ["x = tl.sum(x, axis=0)"]),
    ("operation changed", "x = (a + b) - c", ["x = (a + b) + c", "x = (a - b) - c"]),
    ("operation changed", "x = i // n % m", ["x = i // n // m", "x = i % n % m"]),
    ("operation changed", "x = -y", ["x = y"]),
    ("sum overwritten", "total += x", ["total = x"]),
    ("loop runs once", "for i in range(n):\n        pass", ["for i in range(1):\n        pass"]),
    ("loop runs once", "for i in tl.range(a, b, 2 * c):\n        pass", ["for i in tl.range(a, a + (2 * c), 2 * c):\n        pass"]),
    ("one side of where", "x = tl.where(c, a + 1, b)", ["x = (a + 1)", "x = b"]),
    ("constant changed", "x = 0.5 * y", ["x = 0.505 * y"]),
    ("constant changed", "x = 0.0 * y + 3", []),
]  # fmt: skip

ANYWHERE = [
    ("comparison", "y = x < 2", ["y = x <= 2"]),
    ("comparison", "y = (x) == (2)", ["y = (x) != (2)"]),
    ("branch fixed", "y = 1 if x else 2", ["y = 1 if True else 2", "y = 1 if False else 2"]),
    ("branch fixed", "if x > 1:\n        pass", ["if True:\n        pass", "if False:\n        pass"]),
    ("rounded down", "y = tl.cdiv(x, a + b)", ["y = (x // (a + b))"]),
    ("rounded down", "y = triton.cdiv(x, 4)", ["y = max(1, x // 4)"]),
    ("minimum changed", "y = min(x, 4)", ["y = max(x, 4)"]),
    ("arguments exchanged", "y = f(a, b, *c)", ["y = f(b, a, *c)"]),
    ("arguments exchanged", "y = max(a, b)", []),
    ("statement dropped", "tl.store(p, 1)", ["pass"]),
    ("statement dropped", "y = 1\n    y = 2", ["y = 1\n    pass"]),
    ("statement dropped", "y = 1\n    y += 2", ["y = 1\n    pass"]),
    ("statement dropped", "y, z = x", []),
]

ON_HOST = [
    ("grid capped", "kernel[(n, m)](x)", ["kernel[(min(n, 64), m)](x)", "kernel[(n, min(m, 64))](x)"]),
    ("grid capped", "grid = (triton.cdiv(n, 4), 2)", ["grid = (min(triton.cdiv(n, 4), 64), 2)"]),
    ("grid capped", "y = (n, 2)", []),
    ("dimension swapped", "y = x.stride(0)", ["y = x.stride(1)"]),
    ("dimension swapped", "y = x.shape[-1]", ["y = x.shape[-2]"]),
    ("dimension swapped", "M, N = x.shape", ["M, N = x.shape[::-1]"]),
    ("dimension swapped", "run(*x.stride())", ["run(*x.stride()[::-1])"]),
    ("not zeroed", "y = torch.zeros(4)", ["y = torch.empty(4)"]),
    ("copy dropped", "y = x.contiguous()", ["y = x"]),
    ("torch computes", "y = torch.empty(4)\n    return y", ["y = torch.empty(4)\n    return y * 1"]),
    ("torch computes", "return x", []),
    ("dtype narrowed", "y = torch.empty(4, dtype=torch.float32)", ["y = torch.empty(4, dtype=torch.float16)"]),
]


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
    assert str(mutant) == "line 3, mask dropped: mask dropped"
    assert mutant.text == TEXT.replace(", mask=tl.arange(0, BLOCK) < n", "")


def test_a_few_mutants_are_of_every_kind() -> None:
    every = mutants(TEXT)
    kinds = {mutant.operator.name for mutant in every}
    few = spread(every, len(kinds))
    assert {mutant.operator.name for mutant in few} == kinds
    assert few == [mutant for mutant in every if mutant in few]
    assert spread(every, 10_000) == every
