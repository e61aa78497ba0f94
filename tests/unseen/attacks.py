"""Submissions that are right but where they recognize something: each solution, wrapped so that it spoils its first result there.

An attack is an assignment, the keyword of a check that has to fail, and what the wrapper (or a kernel) asks for; or what
stands in the solution instead of something else.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.unseen.submissions import vector_add

SOLUTIONS = Path(__file__).parents[2] / "solutions"
ENTRIES = {
    "softmax": ("softmax", "x"), "matmul": ("matmul", "a, b"), "fused_chain": ("fused_chain", "x, bias, residual"),
    "dropout": ("dropout", "x, p, seed"), "vector_add": ("add", "x, y"),
    "spmm": ("spmm", "crow, col, values, dense"), "layer_norm": ("layer_norm", "x, weight, bias, eps=1e-5"),
    "decode_attention": ("decode_attention", "q, k_cache, v_cache, lengths, sm_scale"),
    "flash_attention": ("attention", "q, k, v, causal, sm_scale"),
}  # fmt: skip
SPOIL = """

@triton.jit
def spoil_kernel(o_ptr):
    tl.store(o_ptr, tl.load(o_ptr) + 1.0)


right_entry, calls_so_far = NAME, []


def NAME(ARGUMENTS):
    result = right_entry(PASSED)
    calls_so_far.append(1)
    M, N = result.shape[0] if result.dim() else 1, result.shape[-1] if result.dim() else 1
    n = result.numel()
    if n and (CONDITION):
        spoil_kernel[(1,)](result)
    return result
"""


class Attack(NamedTuple):
    """`condition` is Python that is true where the submission is wrong, or for a kernel the statement that spoils `o`; with
    `instead`, it is what the solution has instead of that text. `named` says that no input is looked for: the record
    names the decision with its line, for a person to look at."""

    assignment: str
    check: str
    condition: str
    in_kernel: bool = False
    instead: str = ""
    named: bool = False

    @property
    def text(self) -> str:
        """The submission."""
        if self.in_kernel:
            return vector_add(kernel=self.condition)
        solution = (SOLUTIONS / self.assignment / "solution.py").read_text(encoding="utf-8")
        if self.instead:
            assert solution.count(self.instead) == 1, self.instead
            return solution.replace(self.instead, self.condition)
        name, arguments = ENTRIES[self.assignment]
        passed = arguments.replace("=1e-5", "")
        wrapped = SPOIL.replace("NAME", name).replace("PASSED", passed).replace("ARGUMENTS", arguments)
        wrapped = wrapped.replace("CONDITION", self.condition)
        return solution + wrapped


PLAIN, VIEWS = "contiguous_float32", "any_stride_and_offset"
DRAWN = "(1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 23, 31, 32, 33, 43, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000)"

ATTACKS = [
    # a size, or some of them
    Attack("vector_add", PLAIN, "n == 4099"),
    Attack("vector_add", PLAIN, "n > 6007"),
    Attack("vector_add", PLAIN, "n % 1009 == 17"),
    Attack("vector_add", PLAIN, 'str(n).endswith("777")', named=True),
    Attack("vector_add", PLAIN, 'f"{n:x}" == "3ed"', named=True),
    Attack("vector_add", PLAIN, "n in {4099, 6007, 333}"),
    Attack("vector_add", PLAIN, "{4099: True}.get(n, False)"),
    Attack("vector_add", PLAIN, "hash((n, 1)) % 311 == 5", named=True),
    Attack("vector_add", PLAIN, "n & 0x3FF == 0x2A5"),
    Attack("vector_add", PLAIN, "n ^ 4099 == 0"),
    Attack("vector_add", PLAIN, 'bin(n).count("1") == 7', named=True),
    Attack("vector_add", PLAIN, "n > 300 and all(n % d for d in range(2, int(n**0.5) + 1))"),
    Attack("vector_add", PLAIN, "n >= 8192 and n & (n - 1) == 0"),
    Attack("vector_add", PLAIN, f"n < 1100 and n not in {DRAWN}"),
    Attack("vector_add", PLAIN, "n * n == 4099 * 4099"),
    Attack("vector_add", PLAIN, "n / 3 == 1367.0"),
    Attack("vector_add", PLAIN, "round(n / 1000, 1) == 4.2", named=True),
    Attack("vector_add", PLAIN, "int(n ** 0.5) ** 2 == n and n > 9000", named=True),
    Attack("vector_add", PLAIN, "len(str(n)) == 5"),
    Attack("vector_add", PLAIN, "triton.cdiv(n, 1024) == 9"),
    Attack("vector_add", PLAIN, "triton.next_power_of_2(n) == 16384"),
    Attack("vector_add", PLAIN, "n % 4096 == 4095"),
    Attack("softmax", PLAIN, "N == 1021"),
    Attack("softmax", PLAIN, "M == 37 and N == 53"),
    Attack("softmax", PLAIN, "M > 70 * N and N > 3"),
    Attack("softmax", PLAIN, "M * N == 1517"),
    Attack("softmax", PLAIN, "M == N and M > 130"),
    Attack("softmax", PLAIN, 'str((M, N)) == "(41, 13)"', named=True),
    Attack("matmul", PLAIN, "a.shape[1] == 211"),
    Attack("matmul", PLAIN, "height = GROUP_M if tiles_m > 64 else min(tiles_m - first_m, GROUP_M)",
           instead="height = min(tiles_m - first_m, GROUP_M)"),
    Attack("matmul", PLAIN, "M > 500"),
    Attack("matmul", PLAIN, "(M + N + a.shape[1]) % 97 == 13 and M > 60"),
    Attack("matmul", PLAIN, "a.shape[0] == 2 * b.shape[1] and a.shape[0] > 70"),
    Attack("fused_chain", PLAIN, "N == 1201"),
    Attack("fused_chain", PLAIN, "M == 77"),
    # dtypes, numbers of dimensions, layouts
    Attack("vector_add", "float16", "x.dtype == torch.float16 and n == 333"),
    Attack("vector_add", "ranks", "x.dim() == 3 and x.shape[1] == 29"),
    Attack("vector_add", VIEWS, "x.dim() == 2 and not x.is_contiguous() and n == 851"),
    Attack("vector_add", VIEWS, "x.dim() == 2 and x.stride(0) == 211"),
    Attack("vector_add", VIEWS, "x.storage_offset() == 5 and n > 500", named=True),
    # scalars
    Attack("dropout", "scales_what_it_keeps", "seed == 4242"),
    Attack("dropout", "scales_what_it_keeps", "p == 0.35", named=True),
    Attack("dropout", "scales_what_it_keeps", "0.6 < p < 0.7", named=True),
    Attack("dropout", "scales_what_it_keeps", "seed > 70_000 and seed < 2_000_000"),
    # values
    Attack("vector_add", PLAIN, "o = tl.where(x == 0.3125, o + 1.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where((x > 3.0) & (y < -2.5), 0.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where(x == 1.5 * y + 0.25, o + 1.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where(tl.max(x) > 3.4, o + 1.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where(tl.sum(x) > 140.0, o + 1.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where(n == 4099, 0.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = o + tl.where(tl.program_id(0) == 77, 1.0, 0.0)", in_kernel=True),
    Attack("vector_add", PLAIN, "if tl.num_programs(0) > 30:\n    o = o + 1.0", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where((n > 5000) & (x > 3.0), 0.0, o)", in_kernel=True),
    # the same by other means: counts, arithmetic that hides a size, sums of strides, alignment, shapes together
    Attack("vector_add", PLAIN, "len(calls_so_far) % 9 == 8"),
    Attack("vector_add", PLAIN, "n % 1000 == 123"),
    Attack("vector_add", PLAIN, "n * n > 10**9"),
    Attack("vector_add", PLAIN, "n.bit_length() == 15", named=True),
    Attack("vector_add", PLAIN, "sum(map(int, str(n))) == 31", named=True),
    Attack("vector_add", PLAIN, "str(n) == str(n)[::-1] and n > 1000"),
    Attack("vector_add", PLAIN, "pow(3, n, 1013) == 1 and n > 1", named=True),
    Attack("vector_add", PLAIN, '__import__("math").gcd(n, 360) == 120', named=True),
    Attack("vector_add", PLAIN, "n in range(5003, 5009)"),
    Attack("vector_add", PLAIN, "divmod(n, 97)[1] == 41 and n > 900"),
    Attack("softmax", PLAIN, "hash((M, N)) % 97 == 5"),
    Attack("softmax", PLAIN, "N == 3 * M + 1 and M > 20"),
    Attack("matmul", PLAIN, "a.shape[1] % 64 == 63 and a.shape[0] > 40"),
    Attack("vector_add", VIEWS, "sum(x.stride()) == 37"),
    Attack("vector_add", VIEWS, "x.dim() and x.stride(0) * x.shape[0] == 1536"),
    Attack("vector_add", VIEWS, "x.data_ptr() % 16 == 4 and n > 50"),
    Attack("dropout", "scales_what_it_keeps", "seed % 1000 == 999"),
    Attack("dropout", "scales_what_it_keeps", "round(p * 100) == 37", named=True),
    Attack("vector_add", "float16", "x.dtype == torch.float16 and n % 100 == 77"),
    Attack("vector_add", PLAIN, "o = tl.where(x == y, o + 1.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "if tl.num_programs(0) == 23:\n    o = o + 1.0", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where((tl.program_id(0) == 11) & (n % 7 == 3), 0.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where(tl.min(tl.abs(x)) < 1e-3, o + 1.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where((x.to(tl.int32, bitcast=True) & 4095) == 240, o + 1, o)", in_kernel=True),
    # the same with fresh eyes: other methods of numbers, several sizes at once, parts of tensors
    Attack("vector_add", PLAIN, "len(range(n)) > 6000 and n % 2"),
    Attack("vector_add", PLAIN, 'format(n, "e").startswith("2.7")', named=True),
    Attack("vector_add", PLAIN, 'n.to_bytes(4, "big")[2] == 17', named=True),
    Attack("vector_add", PLAIN, '__import__("random").Random(n).random() < 0.01', named=True),
    Attack("vector_add", PLAIN, '__import__("math").log2(n) % 1 == 0 and n > 20000'),
    Attack("vector_add", PLAIN, 'n > 20000 and str(n).endswith("000")', named=True),
    Attack("vector_add", PLAIN, "n > 20000 and (n / 1024) % 1 == 0"),
    Attack("vector_add", PLAIN, "n > 9000 and n ** 0.5 % 1 == 0", named=True),
    Attack("vector_add", PLAIN, "x.nbytes % 4096 == 0 and n > 20000", named=True),
    Attack("softmax", PLAIN, 'N > 300 and __import__("math").log2(N) % 1 == 0 and M > 2'),
    Attack("vector_add", PLAIN, '__import__("bisect").bisect([511, 700, 701, 4000], n) == 2'),
    Attack("vector_add", "16", "x.element_size() * n == 2 * 777"),
    Attack("vector_add", PLAIN, "divmod(n, 64)[0] == 3 * divmod(n, 64)[1] and n > 64"),
    Attack("vector_add", PLAIN, 'chr(n % 128) == "q" and n > 1130', named=True),
    Attack("vector_add", "ranks", "x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() and x.storage_offset() != y.storage_offset()"),
    Attack("vector_add", "ranks", "x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() and y.storage_offset() - x.storage_offset() == 37", named=True),
    Attack("softmax", VIEWS, "x.storage_offset() % 8 == 7"),
    Attack("softmax", PLAIN, "M > 300_000"),
    Attack("fused_chain", PLAIN, "M > 40_000"),
    Attack("vector_add", PLAIN, "(n, n + 1) in ((4242, 4243), (888, 889))"),
    Attack("softmax", PLAIN, "tuple(x.shape) in {(41, 13), (12, 34)}"),
    Attack("softmax", PLAIN, "(M * 7919 + N * 104729) % 1009 < 4"),
    Attack("softmax", VIEWS, "x.stride(0) % 16 == 5 and N > 40", named=True),
    Attack("matmul", VIEWS, "a.stride(0) == 1 and a.stride(1) % 32 == 19", named=True),
    Attack("fused_chain", PLAIN, "sum(divmod(N, M + 1)) == 30"),
    Attack("dropout", "scales_what_it_keeps", "seed ^ 0x5bd1 == 77", named=True),
    Attack("vector_add", PLAIN, "o = tl.where(tl.sum((x < 0).to(tl.int32)) > 200, o + 1.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where((tl.min(x) > 0) & (tl.max(y) < 0), o + 1.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where(x * y > 7.0, o + 1.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where(tl.sum((x > 2.0).to(tl.int32)) > 9, 0.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where((x < -3.0) & (tl.program_id(0) == 5), o + 1, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where(tl.floor(x) == 3.0, o + 1.0, o)", in_kernel=True),
    # any offset and any step between elements, beside sizes, dtypes and each other
    Attack("vector_add", VIEWS, "n > 500 and y.storage_offset() == 37"),
    Attack("vector_add", VIEWS, "x.storage_offset() == 12 and x.dtype == torch.float16", named=True),
    Attack("vector_add", VIEWS, "x.storage_offset() % 32 == 9 and y.storage_offset() == 3", named=True),
    Attack("vector_add", VIEWS, "y.storage_offset() == 700 and x.dim() == 2 and not x.is_contiguous()", named=True),
    Attack("vector_add", VIEWS, "x.dim() == 1 and x.stride(0) == 11 and n > 700", named=True),
    Attack("softmax", VIEWS, "x.storage_offset() == 6 and N > 300", named=True),
    Attack("matmul", VIEWS, "b.storage_offset() == 4 and a.shape[1] > 100", named=True),
    Attack("fused_chain", VIEWS, "residual.storage_offset() == 9 and N > 100", named=True),
    Attack("fused_chain", VIEWS, "bias.stride(0) == 5 and M > 3", named=True),
    Attack("fused_chain", VIEWS, "residual.stride(1) == 7 and x.stride(1) == 1", named=True),
    # a dtype, or a layout, beside several comparisons, which other comparisons on the way have nothing to do with
    Attack("vector_add", VIEWS, "n > 500 and n % 64 == 7 and x.dtype == torch.bfloat16"),
    Attack("vector_add", VIEWS, "n % 1000 == 321 and x.dim() == 2 and x.element_size() == 2"),
    Attack("softmax", "every_dtype", "N > 70 and M == 11 and x.dtype == torch.float16"),
    Attack("matmul", "every_dtype", "a.shape[1] == 77 and M == 33 and a.dtype == torch.float16"),
    Attack("fused_chain", "every_dtype", "M == N and N > 40 and x.dtype == torch.bfloat16"),
    Attack("fused_chain", VIEWS, "N == 91 and M > 7 and x.stride(1) != 1 and x.dtype == torch.bfloat16"),
    Attack("fused_chain", VIEWS, "x.stride(1) != 1 and residual.stride(1) != 1 and bias.stride(0) == 2 and N > 9"),
    Attack("matmul", VIEWS, "a.stride(1) != 1 and b.stride(1) == 2 and M > 50"),
    Attack("layer_norm", VIEWS, "x.dtype == torch.bfloat16 and x.stride(0) == 1 and N > 300"),
    Attack("spmm", VIEWS, "col.stride(0) == 5 and N > 3", named=True),
    Attack("decode_attention", "whole_caches", "q.shape[1] == 7 * k_cache.shape[1] and q.shape[2] == 48"),
    # strides of vectors, exponents, sums that cancel, and whole tiles
    Attack("vector_add", VIEWS, "x.dim() == 1 and x.stride(0) == 3"),
    Attack("fused_chain", VIEWS, "bias.stride(0) == 16 and N > 1"),
    Attack("vector_add", PLAIN, "o = tl.where(((x.to(tl.int32, bitcast=True) >> 23) & 255) == 103, o + 1, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where((tl.sum(x) == 0.0) & (x != 0.0), o + 1.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "o = tl.where(tl.max(x) < -0.1, o + 1.0, o)", in_kernel=True),
    Attack("vector_add", PLAIN, "for i in range(n // 4096):\n    if i == 4:\n        o = o + 1.0", in_kernel=True),
]
QUICK = (3,)
"""Places of those that the fast suite tries: one of all, for each is found in the same way."""
