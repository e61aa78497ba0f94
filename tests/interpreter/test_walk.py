"""One walk reads kernels and host code: the same statements and expressions, on tiles and on numbers and tensors."""

import ast
from typing import Any

import pytest
import torch

from gradekit.engine.budget import Budget, Meter, OverBudget
from gradekit.engine.memory import Memory
from gradekit.interpreter.host_walk import HostWalk, Launches
from gradekit.interpreter.kernel_walk import KernelWalk
from gradekit.interpreter.tile_values import NotWalked, TileMemory
from gradekit.interpreter.walk import Code, Returned, Substitution, Walk, Watched, bound
from gradekit.interpreter.walked_call import WRONG
from gradekit.submission.parsed_source import ParsedSource
from tests.beside import beside


def kernel_walk(substitution: Substitution | None = None, watched: Watched | None = None, most: int = 10**9) -> KernelWalk:
    copies = max(substitution.copies if substitution else 0, 1)
    return KernelWalk(Code({}, {}), (1, 1, 1), TileMemory(Memory(), copies, 1), Meter(Budget(most)), substitution, watched)


def host_walk(news: dict[ast.AST, ast.AST] | None = None, most: int = 10**9) -> HostWalk:
    return HostWalk(ParsedSource(""), Launches(Code({}, {}), {}, (), lenient=False), Meter(Budget(most)), news)


def returned(walk: Walk, text: str, **names: Any) -> Any:
    """What a function with the statements of `text` returns."""
    return walk.returned(ast.parse(text).body, names)


BOTH = pytest.mark.parametrize("walk", [kernel_walk, host_walk], ids=["kernel", "host"])


def test_a_histogram_counts_numbers_by_their_low_bits_and_under_its_mask() -> None:
    walk = kernel_walk()
    counts = returned(walk, "return tl.histogram(x, 4)", x=torch.tensor([[0, 3, 3, 7, -1]]))
    masked = returned(walk, "return tl.histogram(x, 4, mask=x > 0)", x=torch.tensor([[0, 3, 3, 7, -1]]))
    assert (counts.tolist(), masked.tolist()) == ([[1, 0, 0, 4]], [[0, 0, 0, 3]])
    mask = torch.tensor([[True, True], [True, False]])
    of_each = returned(walk, "return tl.histogram(x, 4, mask=mask)", x=torch.tensor([[0, 3]]), mask=mask)
    assert of_each.tolist() == [[1, 0, 0, 1], [1, 0, 0, 0]], "one tile, and a mask for each program"


def test_a_name_of_two_loops_may_be_a_tile_of_another_size_in_each() -> None:
    walk = KernelWalk(Code({}, {}), (2, 1, 1), TileMemory(Memory(), 1, 2), Meter(Budget(10**9)))
    loop = "for i in range(n):\n    part = tl.arange(0, {})\n    total += tl.sum(part, axis=0)\n"
    total = returned(walk, f"total = 0\n{loop.format(4)}{loop.format(8)}return total", n=torch.tensor([1, 2]))
    assert total.tolist() == [6 + 28, 2 * (6 + 28)]


def test_what_a_loop_names_first_is_not_known_behind_it_unless_triton_unrolls_the_loop() -> None:
    text = "for i in {}(2):\n    a = i\nreturn a"
    assert returned(kernel_walk(), text.format("tl.static_range")) == 1
    assert returned(kernel_walk(), "a = 5\n" + text.format("range")) == 1
    with pytest.raises(NotWalked, match="the name a"):
        returned(kernel_walk(), text.format("range"))


@pytest.mark.parametrize(("text", "value"), [
    ("return tl.sort(x)", [1, 2, 3, 4]), ("return tl.sort(x, descending=True)", [4, 3, 2, 1]), ("return tl.flip(x)", [2, 4, 1, 3]),
    ("return tl.gather(x, tl.arange(0, 4) // 2, 0)", [3, 3, 1, 1]),
    ("return tl.associative_scan(x, 0, earlier)", [3, 3, 3, 3]),
    ("return tl.associative_scan(x, 0, largest)", [3, 3, 4, 4]),
    ("return tl.associative_scan(x, 0, largest, reverse=True)", [4, 4, 4, 2]),
])
def test_what_goes_along_a_tile_gives_what_triton_does(text: str, value: list[int]) -> None:
    functions = ast.parse("def largest(a, b): return tl.maximum(a, b)\ndef earlier(a, b): return a").body
    code = Code({one.name: one for one in functions if isinstance(one, ast.FunctionDef)}, {})
    walk = KernelWalk(code, (1, 1, 1), TileMemory(Memory(), 1, 1), Meter(Budget(10**9)))
    assert returned(walk, text, x=torch.tensor([[3, 1, 4, 2]])).tolist() == [value]


def test_words_of_32_bits_overflow_and_other_integers_do_not() -> None:
    x = torch.tensor([[0xFFFFFFFF, 5]])
    text = "a = x.to(tl.uint32)\nreturn ((a + 2) << 31) ^ (a >> 1), a < 6, (a >> 31).to(tl.float32) * 0.5, x + 2"
    mixed, less, half, wide = returned(kernel_walk(), text, x=x)
    assert mixed.tolist() == [[0x80000000 ^ 0x7FFFFFFF, 0x80000000 ^ 2]]
    assert (less.tolist(), half.tolist(), wide.tolist()) == ([[False, True]], [[0.5, 0.0]], [[0x100000001, 7]])


def test_an_index_that_a_tile_lacks_is_not_walked() -> None:
    with pytest.raises(WRONG):
        returned(kernel_walk(), "return tl.gather(x, x, 0)", x=torch.tensor([[0, 2]]))


def test_words_of_a_counter_are_those_of_the_generator() -> None:
    own = returned(kernel_walk(), "return tl.uint_to_uniform_float(tl.philox(7, x, 0, 0, 0)[0])", x=torch.arange(4)[None])
    assert torch.equal(own, returned(kernel_walk(), "return tl.rand(7, x)", x=torch.arange(4)[None]))


@pytest.mark.parametrize(("more", "is_exact"), [
    ("", False), (', input_precision="tf32"', False), (', input_precision="ieee"', True), (", allow_tf32=False", True),
])
def test_a_product_of_matrices_is_rounded_as_the_engine_does(more: str, is_exact: bool) -> None:
    x = torch.full((1, 16, 16), 1 + 2.0**-12)
    found = returned(kernel_walk(), f"return tl.dot(x, x{more})", x=x)
    assert bool((found == torch.matmul(x, x)).all()) is is_exact and (is_exact or found.unique().tolist() == [16.0])


@pytest.mark.parametrize("text", ["return -7 // 2", "return -7 % 2", "return tl.arange(0, 6)", "return tl.zeros((3,))"])
def test_what_depends_on_constants_and_what_no_tile_has_is_not_walked(text: str) -> None:
    with pytest.raises(NotWalked):
        returned(kernel_walk(), text)


@BOTH
@pytest.mark.parametrize(("text", "value"), [
    ("return 7 // 2 * 2 + 7 % 2", 7),
    ("return 1 < 2 < 3", True),
    ("return 1 < 3 < 2", False),
    ("return 2 if n > 3 else 5", 2),
    ("return n > 3 and n < 4", False),
    ("return not n or n", 4),
    ("a, (b, c) = 1, (2, 3)\nreturn a + b * c", 7),
    ("first, *rest = (1, 2, 3)\nreturn rest[1] - first", 2),
    ("total = 0\nfor i in range(n):\n    total += i\nreturn total", 6),
    ("if n == 4:\n    found = 'four'\nelse:\n    found = 'other'\nreturn found", "four"),
    ("'a docstring'\npass\nassert n\nreturn", None),
    ("x: int = 3\nreturn -x", -3),
    ("return (*(1, 2), 3)[2]", 3),
])
def test_kernels_and_host_code_mean_the_same_where_values_are_numbers(walk: Any, text: str, value: Any) -> None:
    names = {"n": 4} | ({"range": walk().outside("range")} if walk is host_walk else {})
    assert returned(walk(), text, **names) == value


@BOTH
@pytest.mark.parametrize("text", ["import os", "async def a(): pass", "return await_()", "return (yield)", "n.a = 1"])
def test_what_is_not_understood_is_refused(walk: Any, text: str) -> None:
    with pytest.raises(WRONG):
        returned(walk(), text, n=4)


PLAN = beside(__file__)["plan"]
SHAPE = "@dataclass\nclass Shape:\n    rows: int\n    cols: int = 3\n\n    def size(self):\n        return self.rows * self.cols\n"


@pytest.mark.parametrize(("text", "value"), [
    (PLAN + "return Plan(n, step=3)(1)", 7),
    (PLAN + "return Plan.double(n) + Plan.LEAST", 10),
    (PLAN + "plan = Plan(n)\nplan.n = 20\nreturn plan.tiles", 10),
    (SHAPE + "return Shape(n).size() + Shape(1, cols=n).size()", 16),
])
def test_host_code_may_have_classes_of_its_own(text: str, value: int) -> None:
    assert returned(host_walk(), text, n=4) == value


def test_what_a_logger_is_told_changes_nothing_and_what_torch_is_told_may() -> None:
    assert returned(host_walk(), "log.debug('%s', n)\nprint(n)\nreturn n.bit_length()", n=4) == 3
    with pytest.raises(NotWalked):
        returned(host_walk(), "torch.manual_seed(n)\nreturn n", n=4)
    with pytest.raises(NotWalked):
        returned(host_walk(), "return log.level(n)", n=4)


@pytest.mark.parametrize("text", ["return Plan()", "return Plan(n).other", "return Plan(n).tiles(1)"])
def test_what_a_class_does_not_have_is_no_value(text: str) -> None:
    with pytest.raises((NotWalked, KeyError)):
        returned(host_walk(), PLAN + text, n=4)


@pytest.mark.parametrize("text", ["TIMES * (n, 1)", "(n, 1) * TIMES"])
def test_a_list_is_repeated_from_either_side_where_it_stays_short(text: str) -> None:
    assert returned(host_walk(), f"return {text.replace('TIMES', '2')}", n=4) == (4, 1, 4, 1)
    with pytest.raises(NotWalked):
        returned(host_walk(), f"return {text.replace('TIMES', str(10**12))}", n=4)


def test_a_list_may_be_of_several_loops_where_it_stays_short() -> None:
    text = "return [a * b for a in n if a > 1 for b in range(a)]"
    assert returned(host_walk(), text, n=(1, 2, 3), range=host_walk().outside("range")) == [0, 2, 0, 3, 6]
    with pytest.raises(OverBudget):
        returned(host_walk(most=10**6), text, n=(2000,) * 2000, range=host_walk().outside("range"))


@BOTH
def test_another_node_is_evaluated_in_the_place_of_one_and_may_contain_it(walk: Any) -> None:
    (statement,) = tree = ast.parse("return n + 1").body
    assert isinstance(statement, ast.Return) and isinstance(statement.value, ast.BinOp)
    old = statement.value.left
    new = ast.BinOp(old, ast.Mult(), ast.Constant(10))
    given = Substitution.of([[(old, new)]]) if walk is kernel_walk else {old: new}
    assert walk(given).returned(tree, {"n": 4}) == 41


def test_copies_of_a_kernel_differ_in_their_own_nodes_alone() -> None:
    tree = ast.parse("return (n + 1) * 2").body
    one = next(node for node in ast.walk(tree[0]) if isinstance(node, ast.Constant) and node.value == 1)
    two = next(node for node in ast.walk(tree[0]) if isinstance(node, ast.Constant) and node.value == 2)
    walk = kernel_walk(Substitution.of([[(one, ast.Constant(5))], [(two, ast.Constant(3))], []]))
    assert walk.returned(tree, {"n": torch.tensor([4])}).tolist() == [18, 15, 10]


def test_a_statement_is_not_replaced_in_several_copies_at_once() -> None:
    tree = ast.parse("n += 1\nreturn n").body
    with pytest.raises(NotWalked, match="several copies"):
        kernel_walk(Substitution.of([[(tree[0], ast.Pass())], []])).returned(tree, {"n": 4})


def test_values_and_names_are_recorded_when_they_are_first_met() -> None:
    watched = Watched()
    tree = ast.parse("for i in range(3):\n    n += i\nreturn n").body
    loop = tree[0]
    assert isinstance(loop, ast.For) and isinstance(loop.body[0], ast.AugAssign)
    assert kernel_walk(watched=watched).returned(tree, {"n": 4}) == 7
    assert (watched.values[loop.body[0].value], watched.names[loop.body[0]]) == (0, {"n": 4, "i": 0})


@BOTH
def test_a_walk_ends_where_it_would_cost_more_than_it_may(walk: Any) -> None:
    text = "\n".join(["n = n + 1"] * 2000)
    with pytest.raises(OverBudget):
        walk(most=1000).body(ast.parse(text).body, {"n": 4})


@BOTH
def test_functions_that_call_each_other_without_an_end_are_refused(walk: Any) -> None:
    one, node = walk(), ast.parse("def f(n):\n    return f(n)").body[0]
    assert isinstance(node, ast.FunctionDef)
    names: dict[str, Any] = {"n": 1}
    if isinstance(one, KernelWalk):
        one.code = Code({"f": node}, {})
    else:
        one.statement(node, names)
    with pytest.raises(NotWalked, match="call each other"):
        one.returned(node.body, names)


def test_a_function_returns_where_all_programs_are_that_called_it() -> None:
    walk, function = kernel_walk(), ast.parse("def twice(n):\n    return 2 * n").body[0]
    assert isinstance(function, ast.FunctionDef)
    walk.code, walk.grid, walk.programs, walk.count = Code({"twice": function}, {}), (2, 1, 1), 2, 2
    text = "found = tl.program_id(0) + 5\nif tl.program_id(0) > 0:\n    found = twice(found)\nreturn found"
    assert returned(walk, text).tolist() == [5, 12]


@pytest.mark.parametrize(("head", "args", "given", "names"), [
    ("a, b=2", (1,), {}, {"a": 1, "b": 2}),
    ("a, b=2", (1, 3), {}, {"a": 1, "b": 3}),
    ("a, /, b", (1,), {"b": 3}, {"a": 1, "b": 3}),
    ("a, *rest", (1, 2, 3), {}, {"a": 1, "rest": (2, 3)}),
    ("*, a, b=2", (), {"a": 1}, {"a": 1, "b": 2}),
])
def test_parameters_take_arguments_as_python_gives_them(
    head: str, args: tuple[Any, ...], given: dict[str, Any], names: dict[str, Any]
) -> None:
    assert bound(_parameters(head), args, given) == names


@pytest.mark.parametrize(("head", "args"), [("a, b", (1,)), ("a", (1, 2)), ("*, a", ()), ("a=other", ())])
def test_arguments_that_do_not_fit_are_refused(head: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(NotWalked, match="do not fit"):
        bound(_parameters(head), args, {})


def _parameters(head: str) -> ast.arguments:
    function = ast.parse(f"def f({head}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    return function.args


def test_a_return_leaves_a_function_with_its_value() -> None:
    with pytest.raises(Returned) as left:
        kernel_walk().body(ast.parse("return 3\nreturn 4").body, {})
    assert left.value.value == 3
