"""Atomic operations: each kind, with masks, on repeated addresses, and with the value that they return."""

import torch
import triton
import triton.language as tl

from corpus.case import VERSION, case, filled, given, integers

N = 64


def _whole(*shape):
    """Small whole numbers as floats, so that sums do not depend on their order."""
    return lambda generator: torch.randint(-8, 9, shape, generator=generator).float()


@case(grid=(4,), total=filled(8), whole=filled(8, dtype=torch.int32), x=_whole(4 * N), N=N)
@triton.jit
def added(total, whole, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + tl.program_id(0) * N + i)
    tl.atomic_add(total + i % 8, a)
    tl.atomic_add(whole + i % 8, a.to(tl.int32), mask=i < 40)


_KINDS = ("high", "low", "both", "either", "one")


@triton.jit
def kinds(high, low, both, either, one, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + tl.program_id(0) * N + i)
    tl.atomic_max(high + i % 4, a)
    tl.atomic_min(low + i % 4, a)
    tl.atomic_and(both + i % 4, a)
    tl.atomic_or(either + i % 4, a)
    tl.atomic_xor(one + i % 4, a)


for _dtype in (torch.int32, torch.uint32, torch.int64):
    case(name=str(_dtype)[6:], grid=(3,), x=integers(3 * N, dtype=_dtype), N=N,
         **{kind: filled(4, dtype=_dtype) for kind in _KINDS})(kinds)  # fmt: skip


@case(grid=(3,), high=filled(4, value=-100), low=filled(4, value=100), x=_whole(3 * N), N=N)
@triton.jit
def extremes_of_floats(high, low, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + tl.program_id(0) * N + i) / 3 - 1
    tl.atomic_max(high + i % 4, a)
    tl.atomic_min(low + i % 4, a)


@case(grid=(8,), counter=filled(1, dtype=torch.int32, value=0), tickets=filled(1, dtype=torch.int32, value=0),
      oracle=lambda a: {"counter": torch.tensor([8 * 3], dtype=torch.int32),
                        "tickets": torch.tensor([sum(3 * k for k in range(8))], dtype=torch.int32)})  # fmt: skip
@triton.jit
def tickets_are_all_different(counter, tickets):
    mine = tl.atomic_add(counter, 3)
    tl.atomic_add(tickets, mine)


@case(old=filled(N), target=filled(N, value=2), x=_whole(N), N=N)
@triton.jit
def the_value_before(old, target, x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(old + i, tl.atomic_add(target + i, tl.load(x + i)))


@case(old=filled(N, dtype=torch.int32), target=integers(N), x=integers(N), N=N)
@triton.jit
def exchanged(old, target, x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(old + i, tl.atomic_xchg(target + i, tl.load(x + i), mask=i % 3 != 0), mask=i % 3 != 0)


@case(old=filled(8, dtype=torch.int32), target=given(1, 2, 3, 4, 5, 6, 7, 8, dtype=torch.int32),
      expected=given(1, 0, 3, 0, 5, 0, 7, 0, dtype=torch.int32), N=8)  # fmt: skip
@triton.jit
def compared_and_swapped(old, target, expected, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(old + i, tl.atomic_cas(target + i, tl.load(expected + i), i * 100))


@case(grid=(2,), total=filled(4, dtype=torch.float16), wide=filled(4, dtype=torch.float64), x=_whole(2 * N), N=N)
@triton.jit
def other_precisions(total, wide, x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + tl.program_id(0) * N + i)
    tl.atomic_add(total + i % 4, a.to(tl.float16), sem="relaxed")
    tl.atomic_add(wide + i % 4, a.to(tl.float64), scope="cta")


@case(grid=(4,), total=filled(1, dtype=torch.int32, value=0), n=3)
@triton.jit
def scalar_with_a_mask(total, n):
    pid = tl.program_id(0)
    tl.atomic_add(total, pid + 1, mask=pid < n)


if VERSION >= (3, 9):

    @case(out=filled(N, dtype=torch.int32), flag=filled(1, dtype=torch.int32, value=1), seen=filled(1, dtype=torch.int32),
          x=integers(N), N=N)  # fmt: skip
    @triton.jit
    def loads_and_stores(out, flag, seen, x, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.atomic_store(out + i, tl.atomic_load(x + i, sem="relaxed"), mask=i < 50)
        tl.store(seen, tl.atomic_poll(flag, 1).to(tl.int32))
        tl.atomic_store(flag, 5, scope="cta")
