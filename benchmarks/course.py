"""The course's solutions on a card, beside eager torch and torch.compile: `python benchmarks/course.py [id ...]`.

Solutions run as they are, without the tracer. Each time is that of one call within a CUDA graph of many calls, which
walk over sets of inputs that together are three times as large as the L2 cache, so that each call meets a cold one.
The three take turns, round by round; a figure is the median over the rounds.

A case with gradients is timed as forward and backward pass together.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
SOLUTIONS = Path(__file__).parents[1] / "solutions"
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
ROUNDS = 7
MOST_SETS = 1024


@dataclass(frozen=True)
class Case:
    """`entry` of solutions/`id` on what `inputs` makes (once for each set), beside `eager`.

    `bytes` is the least traffic of a call (0: not said), `flops` its least arithmetic. `wanted` are the positions of
    the inputs whose gradients are wanted; the last input is then the gradient of the result, and no argument.
    """

    id: str
    entry: str
    label: str
    inputs: Callable[[], tuple[Any, ...]]
    eager: Callable[..., Any]
    bytes: int = 0
    flops: int = 0
    wanted: tuple[int, ...] = ()


# --- the table: one function for each assignment ----------------------------------------------------------------------


def normal(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


def vector_add() -> Iterator[Case]:
    for name, dtype in DTYPES.items():
        n = (256 << 20) // dtype.itemsize
        inputs = lambda n=n, d=dtype: (normal((n,), d), normal((n,), d))
        yield Case("vector_add", "add", f"{name} 256 MiB", inputs, torch.add, 3 * (256 << 20))


def _chain(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    h = x + bias
    return 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h**3))) + residual


def fused_chain() -> Iterator[Case]:
    for name, dtype in DTYPES.items():
        m, n = (256 << 20) // dtype.itemsize // 8192, 8192
        inputs = lambda m=m, n=n, d=dtype: (normal((m, n), d), normal((n,), d), normal((m, n), d))
        yield Case("fused_chain", "fused_chain", f"{name} [{m}, {n}]", inputs, _chain, 3 * (256 << 20))


def softmax() -> Iterator[Case]:
    for name, dtype in DTYPES.items():
        for n in (1024, 8192, 32768):
            m = (256 << 20) // dtype.itemsize // n
            inputs = lambda m=m, n=n, d=dtype: (normal((m, n), d),)
            eager = lambda x: torch.softmax(x, dim=-1)
            yield Case("softmax", "softmax", f"{name} [{m}, {n}]", inputs, eager, 2 * (256 << 20))


def matmul() -> Iterator[Case]:
    for name in ("f16", "bf16"):
        for n in (4096, 8192):
            inputs = lambda n=n, d=DTYPES[name]: (normal((n, n), d), normal((n, n), d))
            yield Case("matmul", "matmul", f"{name} {n}", inputs, torch.mm, flops=2 * n**3)


def dropout() -> Iterator[Case]:
    eager = lambda x, p, seed: F.dropout(x, p)
    for name, dtype in DTYPES.items():
        n = (256 << 20) // dtype.itemsize
        inputs = lambda n=n, d=dtype: (normal((n,), d), 0.3, 12345)
        yield Case("dropout", "dropout", f"{name} 256 MiB", inputs, eager, 2 * (256 << 20))


def layer_norm() -> Iterator[Case]:
    eager = lambda x, weight, bias: F.layer_norm(x, x.shape[-1:], weight, bias)
    for name, dtype in DTYPES.items():
        for n in (1024, 4096, 8192):
            m = (256 << 20) // dtype.itemsize // n

            def inputs(m: int = m, n: int = n, d: torch.dtype = dtype) -> tuple[Tensor, ...]:
                return normal((m, n), d), normal((n,), d), normal((n,), d)

            yield Case("layer_norm", "layer_norm", f"{name} [{m}, {n}]", inputs, eager, 2 * (256 << 20))
    for name in ("f32", "bf16"):
        m, n = (256 << 20) // DTYPES[name].itemsize // 4096, 4096

        def more(m: int = m, n: int = n, d: torch.dtype = DTYPES[name]) -> tuple[Tensor, ...]:
            return normal((m, n), d), normal((n,), d), normal((n,), d), normal((m, n), d)

        label = f"{name} [{m}, {n}] forward and backward"
        yield Case("layer_norm", "layer_norm", label, more, eager, 5 * (256 << 20), wanted=(0, 1, 2))


def _giou(pred: Tensor, targets: Tensor) -> Tensor:
    """The loss as one would write it in eager torch, in float32."""
    pred, targets = pred.float(), targets.float()
    (left, top, right, bottom), (its_left, its_top, its_right, its_bottom) = pred.unbind(-1), targets.unbind(-1)
    width = (torch.minimum(right, its_right) - torch.maximum(left, its_left)).clamp(min=0)
    height = (torch.minimum(bottom, its_bottom) - torch.maximum(top, its_top)).clamp(min=0)
    inter = width * height
    union = (right - left) * (bottom - top) + (its_right - its_left) * (its_bottom - its_top) - inter
    wide = (torch.maximum(right, its_right) - torch.minimum(left, its_left)).clamp(min=0)
    high = (torch.maximum(bottom, its_bottom) - torch.minimum(top, its_top)).clamp(min=0)
    enclosing = wide * high
    giou = inter / union.clamp(min=1e-5) - (enclosing - union) / enclosing.clamp(min=1e-5)
    real = (its_bottom > 0).float()
    return (giou * real).sum() / real.sum().clamp(min=1)


def _boxes(batch: int, boxes: int, dtype: torch.dtype) -> Tensor:
    corner, size = torch.rand(2, batch, boxes, 2, device="cuda") * 100
    return torch.cat([corner, corner + size + 1], dim=-1).to(dtype)


def giou_loss() -> Iterator[Case]:
    for name, dtype in DTYPES.items():
        for batch in (32, 16384):
            size = 2 * batch * 256 * 4 * dtype.itemsize
            inputs = lambda b=batch, d=dtype: (_boxes(b, 256, d), _boxes(b, 256, d))
            yield Case("giou_loss", "giou_loss", f"{name} [{batch}, 256]", inputs, _giou, size)
    more = lambda: (*(_boxes(16384, 256, torch.float32) for _ in range(2)), torch.ones((), device="cuda"))
    label = "f32 [16384, 256] forward and backward"
    yield Case("giou_loss", "giou_loss", label, more, _giou, 5 * 16384 * 256 * 16, wanted=(0,))


def custom_op() -> Iterator[Case]:
    eager = lambda x, bias: F.gelu(x + bias)
    for name, dtype in DTYPES.items():
        m, n = (256 << 20) // dtype.itemsize // 4096, 4096
        inputs = lambda m=m, n=n, d=dtype: (normal((m, n), d), normal((n,), d))
        yield Case("custom_op", "bias_gelu", f"{name} [{m}, {n}]", inputs, eager, 2 * (256 << 20))


def _decode(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor, sm_scale: float) -> Tensor:
    scores = q.unflatten(1, (k.shape[1], -1)) @ k.mT * sm_scale
    past = torch.arange(k.shape[2], device=q.device) >= lengths[:, None, None, None]
    return (torch.softmax(scores.masked_fill(past, -torch.inf), -1) @ v).flatten(1, 2)


def decode_attention() -> Iterator[Case]:
    """Bytes are those of the positions that count."""
    for name, dtype in DTYPES.items():
        for batch, heads, kv_heads, size, ragged in (
            (16, 32, 8, 4096, True), (16, 8, 8, 4096, True), (16, 32, 8, 8192, False), (1, 32, 8, 65536, False),
        ):  # fmt: skip
            ends = torch.linspace(1, size, batch).int() if ragged else torch.full((batch,), size, dtype=torch.int32)

            def inputs(b=batch, h=heads, g=kv_heads, s=size, d=dtype, e=ends) -> tuple[Any, ...]:  # type: ignore[no-untyped-def]
                return normal((b, h, 128), d), normal((b, g, s, 128), d), normal((b, g, s, 128), d), e.cuda(), 0.088

            label = f"{name} [{batch}, {heads}/{kv_heads}, {size}, 128]{' ragged' if ragged else ''}"
            least = 2 * int(ends.sum()) * kv_heads * 128 * dtype.itemsize
            yield Case("decode_attention", "decode_attention", label, inputs, _decode, least)


def _fused(q: Tensor, k: Tensor, v: Tensor, causal: bool, sm_scale: float) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=sm_scale)


def flash_attention() -> Iterator[Case]:
    """Beside torch's fused attention, not beside the four steps that it replaces."""
    for width in (64, 128):
        for causal in (False, True):
            shape, label = (4, 16, 4096, width), f"f16 [4, 16, 4096, {width}]{' causal' if causal else ''}"
            flops = 4 * 64 * 4096**2 * width // (2 if causal else 1)

            def inputs(s: tuple[int, ...] = shape, c: bool = causal) -> tuple[Any, ...]:
                return *(normal(s, torch.float16) for _ in range(3)), c, s[-1] ** -0.5

            def more(make: Callable[[], tuple[Any, ...]] = inputs, s: tuple[int, ...] = shape) -> tuple[Any, ...]:
                return *make(), normal(s, torch.float16)

            yield Case("flash_attention", "attention", label, inputs, _fused, flops=flops)
            both = f"{label} forward and backward"
            yield Case("flash_attention", "attention", both, more, _fused, flops=7 * flops // 2, wanted=(0, 1, 2))


def _sparse_product(crow: Tensor, col: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    return torch.sparse_csr_tensor(crow, col, values, (len(crow) - 1, dense.shape[0])) @ dense


def spmm() -> Iterator[Case]:
    """Up to 32 elements in each row, and a power law: a row in 64 has 64 times as many as the others."""
    for name in ("f32", "f16"):
        for columns in (64, 256):
            for pattern in ("few", "skewed"):

                def inputs(n: int = columns, d: torch.dtype = DTYPES[name], p: str = pattern) -> tuple[Tensor, ...]:
                    rows = 32768
                    counts = torch.randint(0, 33, (rows,), device="cuda")
                    if p == "skewed":
                        counts = torch.randint(1, 17, (rows,), device="cuda")
                        counts[::64] *= 64
                    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
                    first = torch.arange(int(crow[-1]), device="cuda") - crow[:-1].long().repeat_interleave(counts)
                    step = rows // counts.clamp(min=1).repeat_interleave(counts)
                    col = (first * step + torch.randint(0, 8, first.shape, device="cuda") % step).int()
                    return crow, col, normal((len(col),), d), normal((rows, n), d)

                yield Case(
                    "spmm", "spmm", f"{name} [32768, 32768] {pattern}, {columns} columns", inputs, _sparse_product
                )


TABLE: dict[str, Callable[[], Iterator[Case]]] = {
    make.__name__: make
    for make in (
        vector_add,
        fused_chain,
        softmax,
        matmul,
        dropout,
        layer_norm,
        giou_loss,
        custom_op,
        decode_attention,
        spmm,
        flash_attention,
    )
}
"""Every assignment that is timed: add a function that yields its cases."""

# --- time -------------------------------------------------------------------------------------------------------------


class Clock:
    """Calls of one function on many sets of inputs, captured once, timed as often as wanted."""

    def __init__(self, call: Callable[..., Any], sets: Sequence[tuple[Any, ...]], seconds: float = 0.01) -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for inputs in (*sets[:3], sets[0]):
                call(*inputs)
            once = _timed(lambda: call(*sets[0]))
            self.calls = max(len(sets), min(200, int(seconds / max(once, 1e-6))))
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for number in range(self.calls):
                call(*sets[number % len(sets)])
        self.graph.replay()

    def turn(self) -> float:
        """Seconds of one call."""
        return _timed(self.graph.replay) / self.calls


def _timed(call: Callable[[], Any]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000


def sets_of(case: Case) -> list[tuple[Any, ...]]:
    """Inputs three times as large as the L2 cache, at most MOST_SETS sets of them."""
    first = case.inputs()
    size = sum(t.numel() * t.element_size() for t in first if isinstance(t, Tensor))
    wanted = 3 * torch.cuda.get_device_properties(0).L2_cache_size
    return [first, *(case.inputs() for _ in range(min(MOST_SETS, wanted // max(size, 1) + 1)))]


def callable_of(function: Callable[..., Any], case: Case) -> Callable[..., Any]:
    """What is timed: the call, or the call and its backward pass."""
    if not case.wanted:
        return function

    def both(*inputs: Any) -> Any:
        *args, upstream = inputs
        leaves = [args[position].requires_grad_() for position in case.wanted]
        return torch.autograd.grad(function(*args), leaves, upstream)

    return both


def solution(id: str) -> Any:
    """solutions/`id`/solution.py as a module."""
    spec = importlib.util.spec_from_file_location(f"solution_{id}", SOLUTIONS / id / "solution.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(case: Case, compiled: bool = True) -> dict[str, Any]:
    """Microseconds of a call of each, what follows from them, and each turn."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    functions = {"eager": case.eager, "ours": getattr(solution(case.id), case.entry)}
    if compiled:
        functions["compiled"] = torch.compile(case.eager, dynamic=False)
    sets = sets_of(case)
    clocks = {name: Clock(callable_of(function, case), sets) for name, function in functions.items()}
    turns: dict[str, list[float]] = {name: [] for name in clocks}
    for number in range(ROUNDS):
        names = list(clocks)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            turns[name].append(clocks[name].turn())
    figures = _figures(case, {name: statistics.median(values) for name, values in turns.items()})
    return figures | {"turns_us": {name: [round(v * 1e6, 2) for v in values] for name, values in turns.items()}}


def _figures(case: Case, seconds: dict[str, float]) -> dict[str, Any]:
    ours = seconds["ours"]
    figures: dict[str, Any] = {"id": case.id, "case": case.label}
    figures |= {f"{name}_us": round(value * 1e6, 2) for name, value in seconds.items()}
    figures |= {f"x_{name}": round(value / ours, 2) for name, value in seconds.items() if name != "ours"}
    return figures | {"TB_per_s": round(case.bytes / ours / 1e12, 2), "TFLOP_per_s": round(case.flops / ours / 1e12, 1)}


def ceiling() -> float:
    """Bytes per second of the fastest simple stream here: adding two matrices of 256 MiB."""
    make = lambda: tuple(torch.randn(8192, 8192, device="cuda") for _ in range(2))
    clock = Clock(torch.add, [make() for _ in range(2)])
    return 3 * (256 << 20) / min(clock.turn() for _ in range(ROUNDS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", default=list(TABLE), metavar="id")
    parser.add_argument("--only", default="", help="only cases whose label contains this")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--record", type=Path, help="append all that was measured to this file, a line for each case")
    options = parser.parse_args()
    tell({"card": torch.cuda.get_device_name(), "ceiling_TB_per_s": round(ceiling() / 1e12, 2)}, options.record)
    for id in options.ids:
        for case in TABLE[id]():
            if options.only in case.label:
                tell(measured(case, compiled=not options.no_compile), options.record)
                torch.cuda.empty_cache()


def tell(found: dict[str, Any], record: Path | None) -> None:
    """Print a line without the turns, and record it with them."""
    print(json.dumps({key: value for key, value in found.items() if key != "turns_us"}), flush=True)
    if record:
        with record.open("a") as file:
            print(json.dumps(found), file=file)


if __name__ == "__main__":
    main()
