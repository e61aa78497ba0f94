"""Control flow: loops and branches that differ between programs, nested ones, early return, carried pointers."""

import torch
import triton
import triton.language as tl

from corpus.case import case, filled, given, integers, normal

N = 32


@case(grid=(6,), out=filled(6), x=normal(6 * N), length=given(0, 1, 5, 32, 31, 7, dtype=torch.int32), N=N)
@triton.jit
def loop_of_its_own_length(out, x, length, N: tl.constexpr):
    pid = tl.program_id(0)
    total = 0.0
    for k in range(tl.load(length + pid)):
        total += tl.load(x + pid * N + k)
    tl.store(out + pid, total)


@case(grid=(5,), out=filled(5, dtype=torch.int32), seeds=given(1, 7, 27, 97, 6, dtype=torch.int32))
@triton.jit
def collatz(out, seeds):
    pid = tl.program_id(0)
    n = tl.load(seeds + pid)
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(out + pid, steps)


@case(grid=(8,), out=filled(8 * N), x=normal(8 * N), N=N)
@triton.jit
def branches_by_program(out, x, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    a = tl.load(x + i)
    if pid % 3 == 0:
        a = a * 2
        if pid > 3:
            a = a + 100
    elif pid % 3 == 1:
        a = -a
    else:
        tl.store(out + i, a)
        a = a - 1
    if pid != 5:
        tl.store(out + i, a)


@case(grid=(7,), out=filled(7, dtype=torch.int32), x=given(3, -1, 0, 8, -2, 0, 5, dtype=torch.int32))
@triton.jit
def several_returns(out, x):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    if v < 0:
        tl.store(out + pid, -100)
        return
    v = v * 2
    if v == 0:
        return
    for k in range(v):
        v += k
    tl.store(out + pid, v)


@case(grid=(7,), out=filled(7 * N), x=normal(7 * N), n=5 * N + 3, whole=4, N=N)
@triton.jit
def return_in_else(out, x, n, whole, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    if pid < whole:
        tl.store(out + i, tl.load(x + i) + 1)
    else:
        if pid * N >= n:
            return
        tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0) - 1, mask=i < n)


@case(grid=(8,), out=filled(8, dtype=torch.int32), x=given(3, -1, 0, 8, -2, 0, 5, 4, dtype=torch.int32))
@triton.jit
def chain_of_returns(out, x):
    pid = tl.program_id(0)
    v = tl.load(x + pid)
    if v < 0:
        tl.store(out + pid, -1)
        return
    elif v == 0:
        tl.store(out + pid, 100)
        return
    elif v > 4:
        v = v * 2
    else:
        v = v + 1
        if v == 5:
            return
    tl.store(out + pid, v)


@case(grid=(3,), out=filled(3), x=normal(3 * 128), stride=128, n=100, N=N)
@triton.jit
def carried_pointer(out, x, stride, n, N: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    at = x + pid * stride + i
    total = tl.zeros((N,), tl.float32)
    for k in range(0, n, N):
        total += tl.load(at, mask=k + i < n, other=0.0)
        at += N
    tl.store(out + pid, tl.max(total, 0))


@case(grid=(2,), out=filled(2, dtype=torch.int32), n=4)
@triton.jit
def nested_loops(out, n):
    pid = tl.program_id(0)
    total = 0
    for a in range(n + pid):
        for b in range(a):
            k = b
            while k > 0:
                total += k * a
                k -= 2
        total += 1
    tl.store(out + pid, total)


@case(out=filled(8, dtype=torch.int32), n=10)
@triton.jit
def ranges(out, n):
    total = 0
    for k in range(n, 0, -3):
        total = total * 10 + k
    tl.store(out, total)
    for _ in range(3, 3):
        total = -1
    tl.store(out + 1, total)
    for k in tl.range(0, n, 4, num_stages=2):
        total += k
    tl.store(out + 2, total)
    for k in tl.static_range(4):
        total += k * k
    tl.store(out + 3, total)
    for _ in range(n, 0):
        total = -1
    tl.store(out + 4, total)
    for k in tl.range(n, loop_unroll_factor=2):
        total += k
    tl.store(out + 5, total)


@case(grid=(2,), out=filled(2 * N), x=normal(2 * N), N=N, FLAG=True, KIND="double")
@case(name="off", grid=(2,), out=filled(2 * N), x=normal(2 * N), N=N, FLAG=False, KIND="other")
@triton.jit
def decided_at_compile_time(out, x, N: tl.constexpr, FLAG: tl.constexpr, KIND: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(x + i)
    if FLAG:
        a += 1
    if KIND == "double":
        a *= 2
    elif KIND == "half":
        a /= 2
    tl.store(out + i, a if FLAG else -a)


@case(grid=(4,), out=filled(4), x=normal(4 * N), N=N)
@triton.jit
def while_it_is_small(out, x, N: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    a = tl.abs(tl.load(x + pid * N + i)) + 0.1
    rounds = 0.0
    while (tl.sum(a, 0) < 1000) & (rounds < 20):
        a = a * 1.5
        rounds += 1
    tl.store(out + pid, rounds)


@case(grid=(3,), out=filled(3, dtype=torch.int32), x=integers(3 * N, low=0, high=50), N=N)
@triton.jit
def swapped_while_carried(out, x, N: tl.constexpr):
    """Each round exchanges the carried values, and so takes all of them before it gives any."""
    pid = tl.program_id(0)
    a = 0
    b = 1
    for k in range(pid + 5):
        c = tl.load(x + pid * N + k)
        a, b = b, a + c
    tl.store(out + pid, a * 1000 + b)


@case(grid=(4,), out=filled(4 * N), x=normal(4 * N), o2=filled(4), N=N)
@triton.jit
def results_of_an_if(out, x, o2, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    a = tl.load(x + i)
    top = tl.max(a, 0)
    if top > 2.2:
        scale = 1 / top
        shift = tl.zeros((N,), tl.float32)
        where = x
    else:
        scale = top
        shift = a * a
        where = x + 1
    tl.store(out + i, a * scale + shift)
    tl.store(o2 + pid, tl.load(where + pid))


@case(grid=(300,), out=filled(300, dtype=torch.int32), n=3)
@triton.jit
def many_programs(out, n):
    pid = tl.program_id(0)
    total = 0
    k = pid
    while k > 0:
        if (k & 1) == 1:
            total += n
        k = k >> 1
    tl.store(out + pid, total)
