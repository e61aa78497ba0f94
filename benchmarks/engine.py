"""The CPU engine against Triton's interpreter and against plain torch: ratios from one run, one thread.

    python benchmarks/engine.py [--record FILE]

Each kernel is traced once; the engine, the interpreter (in a process of its own, with TRITON_INTERPRET=1) and torch
then get the same inputs. A time is the median of repeated calls, in CPU seconds, engine and torch in turn.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
REPEATS = 15


def inputs() -> dict[str, tuple[torch.Tensor, ...]]:
    """The arguments of each entry of kernels.py, the same in every process."""
    torch.manual_seed(0)
    half = torch.float16
    return {
        "softmax": (torch.randn(4096, 1000),),
        "add": (torch.randn(1 << 20), torch.randn(1 << 20)),
        "layer_norm": (torch.randn(4096, 1000), torch.randn(1000), torch.randn(1000)),
        "chain": (torch.randn(1024, 1024), torch.randn(1024), torch.randn(1024, 1024)),
        "matmul": (torch.randn(512, 512, dtype=half), torch.randn(512, 512, dtype=half)),
        "attention": tuple(torch.randn(1, 4, 512, 64, dtype=half) for _ in range(3)),
    }


def in_torch() -> dict[str, Callable[..., torch.Tensor]]:
    """The same arithmetic in plain torch on the CPU: products and sums in float32."""
    attend = torch.nn.functional.scaled_dot_product_attention
    gelu, norm = torch.nn.functional.gelu, torch.nn.functional.layer_norm
    return {
        "softmax": lambda x: torch.softmax(x, -1),
        "add": torch.add,
        "layer_norm": lambda x, weight, bias: norm(x, weight.shape, weight, bias),
        "chain": lambda x, bias, residual: gelu(x + bias, approximate="tanh") + residual,
        "matmul": lambda a, b: (a.float() @ b.float()).half(),
        "attention": lambda q, k, v: attend(q.float(), k.float(), v.float(), is_causal=True).half(),
    }


def seconds(*calls: Callable[[], Any], repeats: int = REPEATS) -> list[list[float]]:
    """CPU seconds of `repeats` times each of the calls in turn, after one of each that is not counted."""
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats + 1):
        for call, taken in zip(calls, samples, strict=True):
            start = time.thread_time()
            call()
            taken.append(time.thread_time() - start)
    return [taken[1:] for taken in samples]


def interpreted() -> dict[str, list[float]]:
    """Times of every kernel under Triton's interpreter, from a process of its own."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    result = subprocess.run([sys.executable, __file__, "--interpret"], env=environment, check=True, capture_output=True)
    times: dict[str, list[float]] = json.loads(result.stdout)
    return times


def interpret() -> None:
    """The other process: prints the times as JSON."""
    import kernels

    torch.set_num_threads(1)
    calls = {name: (getattr(kernels, name), args) for name, args in inputs().items()}
    print(json.dumps({name: seconds(lambda f=f, a=a: f(*a), repeats=3)[0] for name, (f, a) in calls.items()}))


def measured() -> dict[str, dict[str, list[float]]]:
    """For each kernel the times of engine, interpreter and torch; the engine's result must be torch's."""
    from gradekit.engine.executor import run
    from gradekit.program import View
    from gradekit.sandbox import Tracer
    from gradekit.submission import read

    torch.set_num_threads(1)
    slow, found = interpreted(), {}
    with Tracer(read(HERE / "kernels.py", entry="softmax")) as tracer:
        for name, args in inputs().items():
            views = [View(k, str(a.dtype)[6:], tuple(a.shape), a.stride()) for k, a in enumerate(args)]
            program = tracer.trace(name, views)
            result = run(program, args)
            plain = in_torch()[name]
            expected = plain(*args)
            assert not result.findings, result.findings
            torch.testing.assert_close(result.results[0], expected, atol=2e-2, rtol=2e-2)
            ours, theirs = seconds(lambda p=program, a=args: run(p, a), lambda f=plain, a=args: f(*a))
            found[name] = {"engine": ours, "interpreter": slow[name], "torch": theirs}
    return found


def table(found: dict[str, dict[str, list[float]]]) -> str:
    """A Markdown table of medians in milliseconds and of their ratios."""
    rows = [
        "| kernel | interpreter ms | engine ms | torch ms | interpreter / engine | engine / torch |",
        "|---|---|---|---|---|---|",
    ]
    for name, times in found.items():
        slow, ours, plain = (1e3 * statistics.median(times[key]) for key in ("interpreter", "engine", "torch"))
        rows.append(f"| {name} | {slow:.0f} | {ours:.1f} | {plain:.2f} | {slow / ours:.0f} | {ours / plain:.1f} |")
    return "\n".join(rows)


def main() -> None:
    if "--interpret" in sys.argv:
        interpret()
        return
    found = measured()
    print(table(found))
    if "--record" in sys.argv:
        Path(sys.argv[sys.argv.index("--record") + 1]).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
