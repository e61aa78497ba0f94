"""Memory: masks and `other`, strides, 64-bit offsets, pointers made of pointers, grids, block pointers."""

import torch
import triton
import triton.language as tl

from corpus.case import VERSION, case, filled, given, integers, mask, normal, order

N = 64


@case(grid=(4,), out=filled(200), zero=filled(200), x=normal(200), n=200, N=N)
@triton.jit
def masked(out, zero, x, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m, other=-1.0) + 1, mask=m)
    tl.store(zero + i, tl.load(x + i, mask=m & (i % 2 == 0), other=0.0), mask=m)


@case(out=filled(N), x=normal(N), keep=mask(N), other=normal(N), N=N)
@triton.jit
def other_of_each_element(out, x, keep, other, N: tl.constexpr):
    i = tl.arange(0, N)
    m = tl.load(keep + i)
    a = tl.load(x + i, mask=m, other=tl.load(other + i))
    tl.store(out + i, a, mask=a < 1)


@case(grid=(3, 4), out=filled(40, 50), x=normal(40, 50), rows=40, columns=50, stride=50, R=16, C=16)
@triton.jit
def tiles(out, x, rows, columns, stride, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    c = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    m = (r < rows) & (c < columns)
    tl.store(out + r * stride + c, tl.load(x + r * stride + c, mask=m) * 2 + r - c, mask=m)


@case(out=filled(8, 16), x=normal(16, 8), N=8, M=16)
@triton.jit
def transposing_copy(out, x, N: tl.constexpr, M: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, M)[None, :]
    tl.store(out + r * M + c, tl.load(x + c * N + r))


@case(grid=(2, 3, 4), out=filled(24, dtype=torch.int32))
@triton.jit
def three_dimensional_grid(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    tl.store(out + (x * ny + y) * nz + z, x * 100 + y * 10 + z + nx * 10000 + ny * 100000 + nz * 1000000)


@case(out=filled(N), x=normal(N), index=order(N, torch.int64), N=N)
@triton.jit
def indirect(out, x, index, N: tl.constexpr):
    i = tl.arange(0, N)
    at = tl.load(index + i)
    tl.store(out + (N - 1 - at), tl.load(x + at))


@case(grid=(4,), out=filled(4 * N), x=normal(4 * N), stride=2**33, N=N)
@triton.jit
def offsets_of_64_bits(out, x, stride, N: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N).to(tl.int64)
    far = pid * stride + i
    near = far - pid * (stride - N)
    tl.store(out + near, tl.load(x + near))


@case(out=filled(3), x=normal(5))
@triton.jit
def scalar_access(out, x):
    tl.store(out, tl.load(x) + tl.load(x + 4))
    tl.store(out + 1, tl.load(x + 2, mask=False, other=5.0))
    tl.store(out + 2, tl.load(x + 1), mask=tl.load(x) > 100)


@case(out=filled(N, dtype=torch.bool, value=0), flag=filled(N, dtype=torch.int8), x=normal(N), m=mask(N), N=N)
@triton.jit
def bools_in_memory(out, flag, x, m, N: tl.constexpr):
    i = tl.arange(0, N)
    k = tl.load(m + i)
    tl.store(out + i, (tl.load(x + i) > 0) & k)
    tl.store(flag + i, k)


@case(out=filled(N), x=normal(N), N=N)
@triton.jit
def hints(out, x, N: tl.constexpr):
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, N), 16), 16)
    tl.assume(N > 3)
    a = tl.load(x + i, cache_modifier=".cg", eviction_policy="evict_last", volatile=True)
    tl.debug_barrier()
    tl.store(out + i, a, cache_modifier=".wb", eviction_policy="evict_first")


@case(out=filled(2 * N), x=normal(N), y=normal(N), N=N)
@triton.jit
def chosen_pointer(out, x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    each = tl.where(i % 2 == 0, x + i, y + i)
    tl.store(out + i, tl.load(each))
    number = (x + i).to(tl.int64)
    tl.store(out + N + i, tl.load(number.to(tl.pointer_type(tl.float32))) + (number[None, :] == 0).to(tl.float32).sum())


@case(out=filled(16, 4), x=normal(16), y=normal(4), R=16, C=4)
@triton.jit
def broadcasting(out, x, y, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    a, b = tl.load(x + r)[:, None], tl.load(y + c)[None, :]
    wide, tall = tl.broadcast(a, b)
    tl.store(out + r[:, None] * C + c[None, :], wide + tall * tl.broadcast_to(a, (R, C)))


@case(grid=(12,), out=filled(12, dtype=torch.int32), m=3, n=4, g=2)
@triton.jit
def grouped_order(out, m, n, g):
    pid = tl.program_id(0)
    a, b = tl.swizzle2d(pid // n, pid % n, m, n, g)
    tl.store(out + pid, a * 100 + b)


@case(out=filled(8), x=normal(8), n=8, none=None, one=1, N=8)
@triton.jit
def absent_argument(out, x, n, none, one, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i, mask=i < n)
    if none is not None:
        a += tl.load(none + i)
    tl.store(out + i * one, a)


if VERSION < (3, 9):

    @case(grid=(3, 2), out=filled(40, 30), x=normal(40, 30), rows=40, columns=30, R=16, C=16)
    @triton.jit
    def block_pointers(out, x, rows, columns, R: tl.constexpr, C: tl.constexpr):
        at = (tl.program_id(0) * R, tl.program_id(1) * C)
        source = tl.make_block_ptr(x, (rows, columns), (columns, 1), at, (R, C), (1, 0))
        target = tl.make_block_ptr(out, (rows, columns), (columns, 1), at, (R, C), (1, 0))
        a = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, a + 1, boundary_check=(0, 1))

    @case(out=filled(16, 16), x=normal(40, 50), rows=40, columns=50, B=16)
    @triton.jit
    def advancing_block_pointer(out, x, rows, columns, B: tl.constexpr):
        source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (8, 0), (B, B), (1, 0))
        total = tl.zeros((B, B), tl.float32)
        for _ in range(0, columns, B):
            total += tl.load(source, boundary_check=(1,), padding_option="zero")
            source = tl.advance(source, (0, B))
        i = tl.arange(0, B)
        tl.store(out + i[:, None] * B + i[None, :], total)

    @case(out=filled(16, 8), x=normal(8, 16), B=16)
    @triton.jit
    def transposed_block_pointer(out, x, B: tl.constexpr):
        source = tl.make_block_ptr(x, (16, 8), (1, 16), (0, 0), (B, 8), (0, 1))
        target = tl.make_block_ptr(out, (16, 8), (8, 1), (0, 0), (B, 8), (1, 0))
        tl.store(target, tl.load(source))

    def _padded(a):
        block = torch.full((16, 16), float("nan"))
        block[4:14, 2:12] = a["x"]
        return {"out": block.nan_to_num(99.0)}

    @case(out=filled(16, 16), x=normal(10, 10), B=16, oracle=_padded)
    @triton.jit
    def block_pointer_off_both_edges(out, x, B: tl.constexpr):
        source = tl.make_block_ptr(x, (10, 10), (10, 1), (-4, -2), (B, B), (1, 0))
        a = tl.load(source, boundary_check=(0, 1), padding_option="nan")
        i = tl.arange(0, B)
        tl.store(out + i[:, None] * B + i[None, :], tl.where(a == a, a, 99.0))  # noqa: PLR0124  false for NaN


@case(
    grid=(2,), out=filled(2 * N, dtype=torch.uint8), x=integers(2 * N, dtype=torch.uint8),
    table=given(*range(255, -1, -1), dtype=torch.uint8), N=N,
)
@triton.jit
def table_lookup(out, x, table, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(table + tl.load(x + i)))
