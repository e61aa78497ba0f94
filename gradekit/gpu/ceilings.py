"""How fast this card moves bytes and multiplies at best, each measured with several kernels: some seconds, once.

No single kernel tells: on an H200 a captured copy_ of 512 MiB ran at 2.7 TB/s where an add ran at 4.2. What was
measured is kept in the user's cache folder, for that card under these versions of its driver, torch and Triton.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from gradekit.compat.torch import float8_product
from gradekit.gpu import Limit
from gradekit.gpu.card import Card, keep, known
from gradekit.gpu.timing import Clock
from gradekit.judge.speed import Ceilings

Action = Callable[[], object]

EMULATED = Ceilings(1e30, {})  # of a CPU emulation of a card: it has none that anything could be held against


@functools.cache
def measure(card: Card) -> Ceilings:
    """The ceilings of this card, as they were measured once. Nobody else should be using the card meanwhile."""
    if card.device.type == "cpu":
        return EMULATED
    kept = known(card, "ceilings", Ceilings)
    rates = (kept.bytes_per_second, *kept.flops_per_second.values()) if kept else (0,)
    return kept if kept and min(rates) > 0 else _measured(card)


def raised(card: Card, before: Ceilings) -> Ceilings:
    """The ceilings measured anew, where others may have used the card `before`: the higher ones count from now on."""
    if card.device.type == "cpu":
        return before
    now = _measured(card)
    flops = {name: max(rate, before.flops_per_second.get(name, 0.0)) for name, rate in now.flops_per_second.items()}
    best = replace(now, bytes_per_second=max(now.bytes_per_second, before.bytes_per_second), flops_per_second=flops)
    keep(card, "ceilings", best)
    return best


def _measured(card: Card) -> Ceilings:
    with torch.cuda.device(card.device), torch.no_grad():
        rates = {name: moved / _seconds(action, Limit.STREAMED, card) for name, action, moved in _streams(card)}
        flops = {name: work / _seconds(action, Limit.MULTIPLIED, card) for name, action, work in _products(card)}
    torch.cuda.empty_cache()
    best = max(rates, key=rates.__getitem__)
    found = Ceilings(rates[best], flops, card.l2_bytes, {"bytes": best} | {name: "matmul" for name in flops})
    keep(card, "ceilings", found)
    return found


def _seconds(action: Action, calls: int, card: Card) -> float:
    clock = Clock([action] * calls, card)
    try:
        return min(clock.turn(Limit.CEILING_MS).seconds)
    finally:
        clock.close()


def _streams(card: Card) -> Iterator[tuple[str, Action, int]]:
    """Kernels that only move bytes: name, action, bytes read plus written."""
    size = min(Limit.STREAM_BYTES, card.memory_bytes // 16) // (1 << 20) * (1 << 20)
    a, b, c = (torch.ones(size // 4, dtype=torch.int32, device=card.device) for _ in range(3))
    yield "copy_", lambda: b.copy_(a), 2 * size
    yield "add", lambda: torch.add(a, b, out=c), 3 * size
    yield "fill_", lambda: c.fill_(1), size
    yield "amax", lambda: torch.amax(a), size
    from gradekit.gpu import stream  # here alone: it imports Triton

    yield "triton copy", lambda: stream.copy(b, a), 2 * size


def _products(card: Card) -> Iterator[tuple[str, Action, float]]:
    """Matrix products of random numbers: dtype, action, operations. Large where the card has tensor cores for them."""
    for name, size in (("float16", 8192), ("bfloat16", 8192), ("float32", 4096), ("float64", 4096)):
        a, b = (torch.randn(size, size, device=card.device, dtype=getattr(torch, name)) for _ in range(2))
        yield name, functools.partial(_product, a, b, "ieee"), 2.0 * size**3
        if name == "float32" and card.capability >= (8, 0):
            yield "tf32", functools.partial(_product, a, b, "tf32"), 2.0 * size**3
    if card.capability >= (8, 9):
        yield _float8(card, 8192)


def _product(a: torch.Tensor, b: torch.Tensor, precision: str) -> torch.Tensor:
    setting = torch.backends.cuda.matmul
    before = setting.fp32_precision
    setting.fp32_precision = precision
    try:
        return a @ b
    finally:
        setting.fp32_precision = before


def _float8(card: Card, size: int) -> tuple[str, Action, float]:
    a, b = (torch.randn(size, size, device=card.device).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device=card.device)
    product = functools.partial(float8_product(), a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
    return "float8_e4m3fn", product, 2.0 * size**3
