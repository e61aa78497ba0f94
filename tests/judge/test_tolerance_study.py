"""The measurements behind the multiples in tolerance.py.

Right algorithms, in several orders and precisions and with the approximate exp and division of a GPU, stay inside the
allowance by a factor of MARGIN or more, before their results are rounded to 16 bits, and inside of what the assignments
allow; the trivial results and kernels of too little precision fall outside.
"""

import functools
import math
from collections.abc import Callable, Iterable

import pytest
import torch

from gradekit.assignment import beside, get
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import FLOATS, Input
from gradekit.judge import tolerance
from gradekit.judge.comparison import Comparison
from gradekit.judge.reference import Reference, reference
from gradekit.judge.trivial import TRIVIAL_RESULTS

MARGIN = 3.0
F32 = torch.float32


def plain(dtype: str, *shape: int, profile: str = "normal", seed: int = 0) -> Input:
    return Input(dtype, shape, row_major(shape), profile=profile, seed=seed)


def error(actual: torch.Tensor, expected: Reference) -> float:
    """The largest error in units of the allowance."""
    comparison = Comparison(actual.to(expected.native.dtype), expected)
    return comparison.error.max().item()


@functools.cache
def asked(assignment: str, *inputs: Input) -> Reference:
    """What an assignment compares a result with."""
    found: Reference = beside(get(assignment).tests, f"test_{assignment}").expected(*inputs)
    return found


def before_rounding(actual: torch.Tensor, expected: Reference) -> float:
    """The largest error of a float32 result, in units of what is allowed beside rounding it to the dtype asked for.

    Raises:
        AssertionError: it is not right, once it is rounded.
    """
    assert error(actual, expected) <= 1
    dtype = expected.native.dtype
    rounding = tolerance.ulp(expected.exact, dtype) * (tolerance.ROUNDED_ONCE if dtype != F32 else 0.0)
    off = (actual.double() - expected.exact).abs() / (expected.allowance - rounding)
    return off.nan_to_num(0.0, 0.0, 0.0).max().item()


def approximately(value: torch.Tensor, ulps: float = 2.0) -> torch.Tensor:
    """A float32 result of a GPU's approximate exp or division: off by up to `ulps`, differently for each element."""
    noise = torch.rand(value.shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
    return (value.double() * (1 + noise.double() * ulps * 2**-23)).float()


def exp(x: torch.Tensor) -> torch.Tensor:
    """How a GPU does it: multiply by log2(e) in float32, then ex2.approx (which is exact at 0)."""
    value = torch.exp2(x * F32_LOG2E)
    return torch.where(x == 0, value, approximately(value))


F32_LOG2E = torch.tensor(math.log2(math.e), dtype=F32)


def divide(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return approximately(a / b)


def truncated_tf32(x: torch.Tensor) -> torch.Tensor:
    return (x.contiguous().view(torch.int32) & ~0x1FFF).view(F32)


def rounded_tf32(x: torch.Tensor) -> torch.Tensor:
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(F32)


# --- softmax: row reductions -----------------------------------------------------------------------------------------


def softmax_scale(x: torch.Tensor) -> torch.Tensor:
    """exp turns an error of its argument into a relative error of its result."""
    return torch.softmax(x, -1) * (x.amax(-1, keepdim=True) - x + 1)


softmax_scale.signed = True  # type: ignore[attr-defined]


@functools.cache
def softmax_reference(x: Input) -> Reference:
    return reference(lambda x: torch.softmax(x, -1), x, scale=softmax_scale)


def softmax_whole_row(x: torch.Tensor) -> torch.Tensor:
    e = exp(x - x.amax(-1, keepdim=True))
    return divide(e, e.sum(-1, keepdim=True))


def softmax_exp2(x: torch.Tensor) -> torch.Tensor:
    """Scales by log2(e) and takes the maximum after that, as flash attention does."""
    e = approximately(torch.exp2((x - x.amax(-1, keepdim=True)) * F32_LOG2E))
    return e * divide(torch.ones(()), e.sum(-1, keepdim=True))


def softmax_online(x: torch.Tensor, block: int = 64) -> torch.Tensor:
    """One pass over blocks with a running maximum and a sum that is rescaled, one accumulator for each row."""
    top, total = torch.full(x.shape[:-1], -math.inf), torch.zeros(x.shape[:-1])
    for part in x.split(block, -1):
        new = torch.maximum(top, part.amax(-1))
        safe = torch.where(new.isinf(), 0.0, new)
        total = total * exp(top - safe) + exp(part - safe[..., None]).sum(-1)
        top = new
    return divide(exp(x - top[..., None]), total[..., None])


def softmax_one_by_one(x: torch.Tensor) -> torch.Tensor:
    e = exp(x - x.amax(-1, keepdim=True))
    return divide(e, e.flip(-1).cumsum(-1)[..., -1:])


SOFTMAXES = (softmax_whole_row, softmax_exp2, softmax_online, softmax_one_by_one)


def softmax_inputs(dtype: str) -> Iterable[Input]:
    for profile in ("ones", "integers", "grid", "normal", "mixed", "neg_inf", "neg_inf_first", "tiny", "large"):
        for rows, columns in ((4, 1), (5, 3), (7, 127), (3, 1025)):
            yield plain(dtype, rows, columns, profile=profile, seed=rows)
    yield plain(dtype, 1, 32768, profile="normal")
    yield plain(dtype, 1, 32768, profile="mixed")


@pytest.mark.sample(4)
@pytest.mark.parametrize("algorithm", SOFTMAXES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", FLOATS)
def test_right_softmaxes_stay_inside(dtype: str, algorithm: Callable) -> None:
    for x in softmax_inputs(dtype):
        actual = algorithm(x.tensor().float())
        assert before_rounding(actual, softmax_reference(x)) <= 1 / MARGIN, x
        assert error(actual, asked("softmax", x)) <= 1, x


# --- matmul: sums of products, with cancellation -----------------------------------------------------------------------


@functools.cache
def matmul_reference(a: Input, b: Input) -> Reference:
    return reference(torch.matmul, a, b, scale=torch.matmul, input_precision="tf32")


def matmul_blocks(a: torch.Tensor, b: torch.Tensor, block: int = 32) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for left, right in zip(a.split(block, 1), b.split(block, 0), strict=True):
        total = total + left @ right
    return total


def matmul_one_by_one(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return matmul_blocks(a, b, 1)


def matmul_backwards(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return matmul_blocks(a.flip(1), b.flip(0), 16)


def matmul_tensor_core(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Sums of 16 products, added to an accumulator that is cut off, not rounded, at 24 bits."""
    total = torch.zeros(a.shape[0], b.shape[1], dtype=torch.float64)
    for left, right in zip(a.double().split(16, 1), b.double().split(16, 0), strict=True):
        exact = total + left @ right
        mantissa, _ = torch.frexp(exact)
        power = torch.where(exact == 0, 1.0, exact / mantissa)
        total = (exact / power * 2**24).trunc() / 2**24 * power
    return total.float()


def matmul_tf32_truncated(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return matmul_tensor_core(truncated_tf32(a), truncated_tf32(b))


def matmul_tf32_rounded(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return matmul_blocks(rounded_tf32(a), rounded_tf32(b))


MATMULS = (matmul_blocks, matmul_one_by_one, matmul_backwards, matmul_tensor_core)
TF32_MATMULS = (matmul_tf32_truncated, matmul_tf32_rounded)


def matmul_inputs(dtype: str) -> Iterable[tuple[Input, Input]]:
    for profile in ("ones", "integers", "grid", "normal", "positive", "mixed"):
        for m, k, n in ((1, 1, 1), (3, 33, 5), (33, 130, 17), (8, 1024, 8)):
            yield plain(dtype, m, k, profile=profile), plain(dtype, k, n, profile=profile, seed=1)
    yield plain(dtype, 4, 8192, profile="normal"), plain(dtype, 8192, 4, profile="positive")
    yield plain(dtype, 4, 8192, profile="positive"), plain(dtype, 8192, 4, profile="positive", seed=1)


@pytest.mark.sample(4)
@pytest.mark.parametrize("algorithm", MATMULS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", FLOATS)
def test_right_matmuls_stay_inside(dtype: str, algorithm: Callable) -> None:
    for a, b in matmul_inputs(dtype):
        actual = algorithm(a.tensor().float(), b.tensor().float())
        assert before_rounding(actual, matmul_reference(a, b)) <= 1 / MARGIN, (a, b)
        assert error(actual, asked("matmul", a, b)) <= 1, (a, b)


@pytest.mark.parametrize("algorithm", TF32_MATMULS, ids=lambda f: f.__name__)
def test_tf32_matmuls_stay_inside(algorithm: Callable) -> None:
    """What truncation loses has a strict bound, which sums of positive terms reach; the factor in tolerance.py is 2."""
    for a, b in matmul_inputs("float32"):
        actual = algorithm(a.tensor(), b.tensor())
        assert error(actual, matmul_reference(a, b)) <= 1 / tolerance.TF32, (a, b)
        assert error(actual, asked("matmul", a, b)) <= 1, (a, b)


# --- a chain of element-wise operations ----------------------------------------------------------------------------------


def chain(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    h = x + bias
    return 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h**3))) + residual


@functools.cache
def chain_reference(*inputs: Input) -> Reference:
    return reference(chain, *inputs, scale=lambda x, b, r: x + b + r, steps="native")


def chain_with(tanh: Callable) -> Callable:
    def run(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        h = x + bias
        return 0.5 * h * (1 + tanh(0.7978845608 * (h + 0.044715 * h * h * h))) + residual

    return run


def chain_sigmoid(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    h = x + bias
    return h * divide(torch.ones(()), 1 + exp(-1.5957691216 * h * (1 + 0.044715 * h * h))) + residual


CHAINS = {
    "tanh": chain_with(lambda y: approximately(torch.tanh(y))),
    "one quotient": chain_with(lambda y: 1 - divide(torch.tensor(2.0), 1 + exp(2 * y))),
    "both exponentials": chain_with(lambda y: torch.sign(y) * divide(1 - exp(-2 * y.abs()), 1 + exp(-2 * y.abs()))),
    "sigmoid": chain_sigmoid,
}


def chain_inputs(dtype: str) -> Iterable[tuple[Input, Input, Input]]:
    for seed, profile in enumerate(("ones", "integers", "grid", "normal", "positive", "tiny", "mixed")):
        for m, n in ((1, 1), (3, 33), (40, 129)):
            shapes = ((m, n), (n,), (m, n))
            x, bias, residual = (plain(dtype, *s, profile=profile, seed=seed + i) for i, s in enumerate(shapes))
            yield x, bias, residual


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_right_chains_stay_inside(dtype: str, name: str) -> None:
    for inputs in chain_inputs(dtype):
        actual = CHAINS[name](*(i.tensor().float() for i in inputs))
        assert error(actual, chain_reference(*inputs)) <= 1 / MARGIN, inputs


EXACT_CHAINS = {
    "tanh": chain_with(torch.tanh),
    "one quotient": chain_with(lambda y: 2 / (1 + torch.exp(-2 * y)) - 1),
    "sigmoid": lambda x, b, r: (x + b) * torch.sigmoid(1.5957691216 * (x + b) * (1 + 0.044715 * (x + b) ** 2)) + r,
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", EXACT_CHAINS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_assignment_allows_a_chain_in_float32_whose_sum_may_be_rounded_to_the_inputs_dtype(
    dtype: str, name: str
) -> None:
    large = plain(dtype, 5, 1025, profile="large"), plain(dtype, 1025, seed=1), plain(dtype, 5, 1025, seed=2)
    for inputs in (*chain_inputs(dtype), large):
        x, bias, residual = (i.tensor() for i in inputs)
        for h in (x.float() + bias.float(), (x + bias).float()):
            assert error(EXACT_CHAINS[name](h, torch.zeros(()), residual.float()), asked("fused_chain", *inputs)) <= 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_chain_that_rounds_every_step_to_the_inputs_dtype_is_right(dtype: str) -> None:
    for inputs in chain_inputs(dtype):
        x, bias, residual = (i.tensor() for i in inputs)
        h = residual.new_tensor(0.5) * (x + bias)
        gelu = h + h * torch.tanh(x.new_tensor(0.7978845608) * (2 * h) * (1 + 0.044715 * (2 * h) * (2 * h)))
        assert error(residual + gelu, chain_reference(*inputs)) <= 1, inputs


# --- sums, plain -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_an_addition_in_float32_or_in_the_own_dtype_stays_inside(dtype: str) -> None:
    for profile in ("ones", "normal", "mixed", "tiny", "large"):
        x, y = plain(dtype, 500, profile=profile), plain(dtype, 500, profile=profile, seed=1)
        expected = reference(torch.add, x, y)
        assert error(x.tensor() + y.tensor(), expected) <= 1
        assert before_rounding(x.tensor().float() + y.tensor().float(), expected) <= 1 / MARGIN


# --- what must fall outside ----------------------------------------------------------------------------------------------

CASES = {
    "add": lambda d: [((x, y), reference(torch.add, x, y)) for x, y in [(plain(d, 300), plain(d, 300, seed=1))]],
    "softmax": lambda d: [((x,), softmax_reference(x)) for x in softmax_inputs(d)],
    "matmul": lambda d: [(pair, matmul_reference(*pair)) for pair in matmul_inputs(d)],
    "chain": lambda d: [(inputs, chain_reference(*inputs)) for inputs in chain_inputs(d)],
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("trivial", TRIVIAL_RESULTS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", CASES)
def test_trivial_results_fall_outside(case: str, dtype: str, trivial: str) -> None:
    """Not on every input (a row of one element gives 1 in any precision), but on a good part of them.

    The exception: when each of a chain's ten steps may round to bfloat16, its result may be as far off as 4 bits are.
    """
    caught = [
        error(TRIVIAL_RESULTS[trivial]([expected.rounded], [i.tensor() for i in inputs])[0], expected) > 1
        for inputs, expected in CASES[case](dtype)
    ]
    rounds_anyway = (case, dtype, trivial) == ("chain", "bfloat16", "lower_precision")
    assert rounds_anyway or sum(caught) >= len(caught) / 4


def test_a_float32_matmul_of_bfloat16_or_float16_inputs_falls_outside() -> None:
    """Also where TF32 is allowed: there the profile "grid" tells them apart from bfloat16."""
    pairs = [(plain("float32", 33, 130, profile="grid"), plain("float32", 130, 17, profile="grid", seed=1))]
    for a, b in pairs:
        rounded = [i.tensor().to(torch.bfloat16).float() for i in (a, b)]
        assert error(rounded[0] @ rounded[1], matmul_reference(a, b)) > 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_reciprocal_that_is_rounded_before_the_product_falls_outside(dtype: str) -> None:
    """It moves a result by half an ulp more, which is no more than its own rounding does."""
    x = plain(dtype, 7, 127)
    e = torch.exp(x.tensor().float() - x.tensor().float().amax(-1, keepdim=True))
    rounded = (1 / e.sum(-1, keepdim=True)).to(x.tensor().dtype).float()
    assert error(e * rounded, softmax_reference(x)) > 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_accumulating_in_half_precision_falls_outside(dtype: str) -> None:
    a, b = plain(dtype, 8, 1024), plain(dtype, 1024, 8, seed=1)
    total = torch.zeros(8, 8, dtype=a.tensor().dtype)
    for k in range(0, 1024, 32):
        total = total + a.tensor()[:, k : k + 32] @ b.tensor()[k : k + 32]
    assert error(total, matmul_reference(a, b)) > 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_softmax_that_sums_in_half_precision_falls_outside(dtype: str) -> None:
    x = plain(dtype, 4, 4096)
    e = (x.tensor() - x.tensor().amax(-1, keepdim=True)).float().exp().to(x.tensor().dtype)
    assert error(e / e.sum(-1, keepdim=True, dtype=e.dtype).to(e.dtype), softmax_reference(x)) > 1


def test_what_is_allowed_for_many_elements_is_what_each_of_them_is_allowed() -> None:
    x = torch.randn(1 << 17, generator=torch.Generator().manual_seed(0)).bfloat16()
    whole = reference(torch.exp, x).allowance
    assert torch.equal(whole, torch.cat([reference(torch.exp, part).allowance for part in x.split(1000)]))


def test_what_is_allowed_is_worked_out_where_the_results_are() -> None:
    there = torch.empty(1 << 17, dtype=torch.float64, device="meta")  # as on a card, which few machines have
    assert tolerance.in_pieces(lambda one: one, there).device == there.device
