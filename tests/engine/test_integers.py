"""Integer arithmetic of the engine is that of the machine, in every width and every form that a value can have."""

import operator

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gradekit.engine import integers
from gradekit.engine.integers import OPERATIONS
from gradekit.engine.values import INTEGER, Affine, arange, dense, materialize, wrap

WIDTHS = (8, 16, 32, 64)
COUNT = 4


def _numbers(bits):
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return st.one_of(st.sampled_from([low, low + 1, -1, 0, 1, 2, high - 1, high]), st.integers(low, high))


@st.composite
def _operands(draw):
    """(bits, a, b): each a number for each of COUNT programs, held as an int, a tensor or an Affine."""
    bits = draw(st.sampled_from(WIDTHS))
    return bits, draw(_operand(bits)), draw(_operand(bits))


@st.composite
def _operand(draw, bits):
    form = draw(st.sampled_from(["int", "tensor", "affine"]))
    if form == "int":
        return draw(_numbers(bits))
    if form == "tensor":
        return torch.tensor([draw(_numbers(bits)) for _ in range(COUNT)], dtype=INTEGER[bits])
    base, step = draw(st.integers(-20, 20)), draw(st.integers(-5, 5))
    ends = (base, base + step * (COUNT - 1))
    return Affine(base, (step,), min(ends), max(ends))


def _plain(value, bits):
    """The COUNT numbers that a value stands for."""
    return dense(value, INTEGER[bits], (COUNT,)).expand(COUNT).tolist()


def _unsigned(value, bits):
    return value % (1 << bits)


def _quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


MACHINE = {
    "addi": operator.add, "subi": operator.sub, "muli": operator.mul, "divsi": _quotient, "remsi": lambda a, b: a - b * _quotient(a, b),
    "floordivsi": operator.floordiv, "minsi": min, "maxsi": max, "andi": operator.and_, "ori": operator.or_, "xori": operator.xor,
    "divui": operator.floordiv, "remui": operator.mod, "minui": min, "maxui": max,
}  # fmt: skip
"""What each operation computes; those that end in "ui" read their operands' bits as unsigned numbers."""
DIVISIONS = {"divsi", "remsi", "floordivsi", "divui", "remui"}


@pytest.mark.parametrize("name", MACHINE)
@settings(deadline=None, max_examples=40)
@given(operands=_operands())
def test_operations_are_python_s_modulo_the_width(name, operands):
    bits, a, b = operands
    read = _unsigned if name.endswith("ui") else lambda value, bits: value
    pairs = [(read(x, bits), read(y, bits)) for x, y in zip(_plain(a, bits), _plain(b, bits), strict=True)]
    if name in DIVISIONS and any(y == 0 for _, y in pairs):
        return
    result = _plain(OPERATIONS[f"arith.{name}"](a, b, bits, (COUNT,)), bits)
    assert result == [wrap(MACHINE[name](x, y), bits) for x, y in pairs]
    high = _plain(OPERATIONS["tt.mulhiui"](a, b, bits, (COUNT,)), bits)
    assert high == [wrap(_unsigned(x, bits) * _unsigned(y, bits) >> bits, bits) for x, y in pairs]


@example((64, torch.tensor([-(2**63)] * (COUNT - 1) + [-1]), Affine(0, (-1,), -3, 0)), "slt")
@settings(deadline=None)
@given(
    operands=_operands(),
    predicate=st.sampled_from(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]),
)
def test_comparisons_agree_in_every_form(operands, predicate):
    bits, a, b = operands
    compare = getattr(operator, predicate if predicate in ("eq", "ne") else predicate[1:])
    read = (lambda v: _unsigned(v, bits)) if predicate[0] == "u" else (lambda v: v)
    expected = [compare(read(x), read(y)) for x, y in zip(_plain(a, bits), _plain(b, bits), strict=True)]
    result = dense(integers.cmpi(predicate, a, b, bits, (COUNT,)), torch.bool, (COUNT,))
    assert result.expand(COUNT).tolist() == expected


@settings(deadline=None)
@given(bits=st.sampled_from(WIDTHS), data=st.data())
def test_shifts_by_the_width_or_more_leave_nothing_but_the_sign(bits, data):
    value = data.draw(_operand(bits))
    count = data.draw(st.integers(0, bits + 2))
    shape, numbers = (COUNT,), _plain(value, bits)
    left = [wrap(v << count, bits) if count < bits else 0 for v in numbers]
    logical = [wrap(_unsigned(v, bits) >> count, bits) if count < bits else 0 for v in numbers]
    assert _plain(integers.shli(value, count, bits, shape), bits) == left
    assert _plain(OPERATIONS["arith.shrui"](value, count, bits, shape), bits) == logical
    assert _plain(OPERATIONS["arith.shrsi"](value, count, bits, shape), bits) == [
        v >> min(count, bits - 1) for v in numbers
    ]


def test_dividing_by_zero_is_undefined_but_no_error():
    zeros = torch.zeros(COUNT, dtype=torch.int32)
    for name in DIVISIONS:
        assert len(_plain(OPERATIONS[f"arith.{name}"](arange(COUNT).to(torch.int32), zeros, 32, (COUNT,)), 32)) == COUNT


@pytest.mark.parametrize("bits", WIDTHS)
def test_the_smallest_number_by_minus_one_wraps_instead_of_stopping_the_grader(bits):
    smallest = torch.full((COUNT,), -(1 << (bits - 1)), dtype=INTEGER[bits])
    for divisor in (-1, torch.full((COUNT,), -1, dtype=INTEGER[bits])):
        assert _plain(integers.divsi(smallest, divisor, bits, (COUNT,)), bits) == smallest.tolist()
        assert _plain(integers.remsi(smallest, divisor, bits, (COUNT,)), bits) == [0] * COUNT


@settings(deadline=None)
@given(base=st.integers(-100, 100), program=st.integers(-9, 9), row=st.integers(-9, 9), size=st.integers(1, 6))
def test_sums_of_ranges_stay_lazy_and_right(base, program, row, size):
    """What `pid * a + arange * b + c` is: no tensor is made until somebody looks."""
    shape = (3, size)
    pid = Affine(0, (1, 0), 0, 2)
    lanes = Affine(0, (0, 1), 0, size - 1)
    total = integers.addi(
        integers.addi(integers.muli(pid, program, 32, shape), integers.muli(lanes, row, 32, shape), 32, shape), base,
        32, shape,
    )
    expected = base + torch.arange(3)[:, None] * program + torch.arange(size) * row
    assert not isinstance(total, torch.Tensor)
    found = torch.tensor([[total]]) if isinstance(total, int) else materialize(total, shape)
    assert torch.equal(found.expand(shape), expected)


def test_a_sum_that_leaves_the_width_wraps_as_the_hardware_does():
    near = Affine((1 << 31) - 2, (1,), (1 << 31) - 2, (1 << 31) - 1)
    assert _plain(integers.addi(Affine(0, (1,), 0, 3), (1 << 31) - 2, 32, (COUNT,)), 32)[2] == -(1 << 31)
    assert integers.addi(near, 0, 32, (2,)).high == (1 << 31) - 1
