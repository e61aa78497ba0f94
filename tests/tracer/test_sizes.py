"""Sizes that remember where they come from are the ints that they are, and say so of what is computed with them."""

import itertools
import math
import operator

import pytest

from gradekit.origins import Explored
from gradekit.program import View
from gradekit.sandbox import Form, Tracer
from gradekit.tracer.sizes import Table, plain

from .helpers import submission


def _table() -> Table:
    return Table("submission.py")


VALUES = [0, 1, 2, 37, 1023, 1024, 1025, 100_003]


@pytest.mark.parametrize(
    "apply",
    [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.truediv, operator.and_, operator.or_,
     operator.xor, operator.lt, operator.le, operator.eq, operator.ne, divmod, min, max, pow],
)  # fmt: skip
def test_arithmetic_is_that_of_ints(apply):
    for value, by in itertools.product(VALUES, [1, 3, 4] if apply is pow else [1, 3, 64]):
        size = _table().size(value, "size", 0, 0)
        assert apply(size, by) == apply(value, by)
        if value and apply is not pow:
            assert apply(by, size) == apply(by, value)


def test_a_size_is_an_int_to_whoever_asks_what_ints_are_asked():
    size = _table().size(37, "size", 0, 0)
    assert isinstance(size, int) and hash(size) == hash(37) and f"{size:>4}" == "  37" and str(size) == "37"
    assert {37: "found"}[size] == "found" and list(range(size))[-1] == 36 and [0] * size == [0] * 37
    assert type(plain(size)) is int and type(plain((size, [size]))[1][0]) is int


def test_a_size_that_an_earlier_call_has_left_is_a_number_of_unknown_origin_in_another():
    left, later = _table().size(37, "size", 0, 0), _table()
    together = left + later.size(40, "size", 0, 1)
    operation, *terms = later.term(together.term)
    assert (operation, [later.term(one) for one in terms]) == ("+", [("opaque", 37), ("size", 0, 1)])
    assert left < 100 and [later.term(one.left) for one in later.conditions] == [("opaque", 37)]


def _power_of_two(n):
    """As triton.next_power_of_2 has it."""
    n -= 1
    for shift in (1, 2, 4, 8, 16, 32):
        n |= n >> shift
    return n + 1


@pytest.mark.parametrize("value", [1, 2, 3, 37, 1024, 1025])
@pytest.mark.parametrize("compute", [_power_of_two, lambda n: 1 << (n - 1).bit_length()])
def test_the_next_power_of_two_is_recognized(value, compute):
    table = _table()
    found = compute(table.size(value, "size", 0, 0))
    assert found == compute(value)
    assert list(table.terms)[found.term][0] == "next_power_of_2"


def test_a_quotient_that_is_rounded_up_is_a_division():
    table = _table()
    found = math.ceil(table.size(1025, "size", 0, 0) / 64)
    assert found == 17 and list(table.terms)[found.term][0] == "-"


def test_comparisons_are_noted_with_what_came_of_them():
    table = _table()
    size = table.size(5, "size", 0, 0)
    assert not size > 7 and size != 3 and bool(size)
    assert [(c.relation, c.held) for c in table.conditions] == [("<", False), ("==", False), ("==", False)]


@pytest.mark.parametrize(
    "method",
    [lambda n: ~n, math.ceil, math.floor, math.trunc, round, lambda n: round(n, -1), lambda n: n.real, lambda n: n.numerator,
     lambda n: n.conjugate(), lambda n: n.to_bytes(4, "big"), lambda n: n.as_integer_ratio(), lambda n: n.bit_count(),
     lambda n: 1000 >> n, lambda n: (-8).__rpow__(n)],
)  # fmt: skip
def test_methods_of_ints_give_what_they_give(method):
    assert method(_table().size(7, "size", 0, 0)) == method(7)


def test_floats_that_are_made_of_sizes_are_those_floats():
    size = _table().size(37, "size", 0, 0)
    for made, true in [(size / 8 % 1, 0.625), (1 - size / 8, -3.625), (size**0.5, 37**0.5), (size**-0.5 * 2, 37**-0.5 * 2)]:
        assert made == true and isinstance(made, float) and hash(made) == hash(true) and repr(made) == repr(true)
        assert (int(made), round(made, 2), made < 1, bool(made)) == (int(true), round(true, 2), true < 1, True)


DECISIONS = ["(n / 1024) % 1 == 0", "(n / 1000).is_integer()", "n ** 0.5 > 30", "n * 0.5 > 30.0", "round(n ** 0.5) > 3", "bool(n * 0.1)", "2 ** n > 3",
             "n.bit_count() > 3"]  # fmt: skip


@pytest.mark.parametrize("text", [*DECISIONS, "1 / n ** 0.5 * 2 + n / 8 + n * 0.1"])
def test_what_a_float_of_sizes_decides_is_noted_and_nothing_else(text):
    table = _table()
    eval(compile(text, "submission.py", "eval"), {"n": table.size(37, "size", 0, 0)})
    terms = [*table.terms]
    asked = [{terms[one.left][0], terms[one.right][0]} for one in table.conditions]
    assert asked == ([{"opaque", "number"}] if text in DECISIONS else [])


# --- what host code compares is known by the sizes of the inputs, through views and copies, however -------------------


EXPANDED = View(0, "float32", (2, 1, 1, 16), (16, 16, 1, 1), 0)
"""Contiguous, for strides of a single element do not matter; a copy of it has other strides."""


def explored(body: str, view: View) -> Explored:
    """A call of `entry(x)` with such a body."""
    with Tracer(submission(f"def entry(x):\n    {body}\n    return x\n")) as tracer:
        return tracer.explore(Form("entry", (view,)))


@pytest.mark.parametrize("made", [
    "x.contiguous().clone().view(-1, *x.shape[2:])", "x.clone().reshape(-1, *x.shape[2:])", "x.view(-1, x.shape[3])",
    "torch.empty_like(x)",
])
def test_a_size_of_a_view_or_copy_is_that_of_the_input(made: str) -> None:
    found = explored(f"found = ({made}).shape[-1] <= 64", EXPANDED)
    terms = found.origins.terms
    asked = [
        (terms[one.left], one.relation, terms[one.right]) for one in found.origins.conditions if one.source is not None
    ]
    assert asked == [(("size", 0, 3), "<=", ("number", 64))]


@pytest.mark.parametrize("made", [
    "x.t()", "x.mT", "x.transpose(0, 1)", "x.permute(1, 0)", "x.expand(3, -1, -1)[1]", "x.unsqueeze(1).squeeze(1)", "x[1:, ::2]", "x[..., 2:]",
    "x[-2:, :-1]", "x.narrow(0, 1, 2)", "x.select(0, 1)", "x.flatten()", "torch.empty_strided(x.shape, x.stride(), device=x.device)",
])
def test_sizes_strides_and_offset_of_a_view_come_from_those_of_the_input(made: str) -> None:
    found = explored(f"v = {made}; found = v.numel() + sum(v.stride()) + v.storage_offset() <= 64", View(0, "float32", (4, 6), (8, 1), 2))
    assert any(one.source for one in found.origins.conditions) and ("opaque",) not in found.origins.terms


@pytest.mark.parametrize("way", [
    "x.shape.numel()", "x.size().numel()", "x.numel()", "torch.numel(x)", "math.prod(x.shape)", "x.nbytes // 4", "x.shape[1:].numel() * 2",
    "(x.shape + (1,)).numel()", "len(x) * x[0].numel()",
])
def test_however_the_elements_are_counted_the_number_is_followed(way: str) -> None:
    found = explored(f"import math; found = {way} <= 64", EXPANDED)
    kinds = {kind for kind, *_ in found.origins.terms}
    assert [one.held for one in found.origins.conditions if one.source] == [True] and {"size", "*"} <= kinds and "opaque" not in kinds


@pytest.mark.parametrize("way", [
    "math.gcd(x.shape[3], 48)", "math.isqrt(x.numel())", "np.prod(x.shape)", "torch.tensor(x.shape).prod().item()",
    "x.untyped_storage().nbytes()", "x.storage().size() * 2", "math.log2(x.shape[3])",
])
def test_what_a_size_decides_is_told_where_it_is_not_followed(way: str) -> None:
    found = explored(f"import math, numpy as np; found = {way} <= 64", EXPANDED)
    terms = found.origins.terms
    asked = [terms[one.left] for one in found.origins.conditions if one.source]
    assert {kind for kind, *_ in asked} & {"opaque", "*"}
