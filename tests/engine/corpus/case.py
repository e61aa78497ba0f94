"""What a corpus entry is: a kernel, its grid and its arguments, and how to know what it should write.

Entries register themselves: `@case(...)` above `@triton.jit`. Every tensor argument is compared after the launch, so an
output begins as a filled tensor and an element that nobody writes must keep its value.
"""

import inspect
import linecache
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
CASES: dict[str, "Case"] = {}

Maker = Callable[[torch.Generator], torch.Tensor]
Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Case:
    """One launch. `oracle` maps the arguments to the expected tensors that it knows; the interpreter has the others.

    `tolerance` is relative to the largest expected magnitude of a tensor; 0 asks for equal values.
    """

    name: str
    kernel: Any
    grid: tuple[int, ...]
    makers: dict[str, Any]
    oracle: Callable[[Tensors], Tensors] | None = None
    tolerance: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)
    not_interpreted: str = ""  # why the interpreter cannot be asked; then there is an oracle

    def arguments(self) -> dict[str, Any]:
        """Fresh arguments by name, the same in every process."""
        return {name: _made(maker, f"{self.name} {name}") for name, maker in self.makers.items()}

    @property
    def parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.kernel.fn).parameters.values())


def _made(maker: Any, key: str) -> Any:
    if not callable(maker):
        return maker
    return maker(torch.Generator().manual_seed(zlib.crc32(key.encode())))


def case(
    *, grid: tuple[int, ...] = (1,), name: str = "", oracle: Callable[[Tensors], Tensors] | None = None,
    tolerance: float = 0.0, options: dict[str, Any] | None = None, not_interpreted: str = "", **makers: Any,
) -> Callable[[Any], Any]:
    """Registers the kernel below as one entry; stands several times above a kernel for several entries."""

    def register(kernel: Any) -> Any:
        full = kernel.fn.__name__ + (f"[{name}]" if name else "")
        assert full not in CASES, f"two entries are called {full}"
        CASES[full] = Case(full, kernel, grid, makers, oracle, tolerance, options or {}, not_interpreted)
        return kernel

    return register


def written(name: str, parameters: str, *lines: str) -> Any:
    """The kernel `name(parameters)` of these lines; Triton finds its source as that of any other."""
    file, text = f"<kernel {name}>", "\n    ".join([f"@triton.jit\ndef {name}({parameters}):", *lines]) + "\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {"__name__": __name__, "triton": triton, "tl": tl, "libdevice": libdevice}
    exec(compile(text, file, "exec"), names)  # noqa: S102
    return names[name]


def lanes(name: str, stored: dict[str, str], inputs: str = "x y", numbers: str = "") -> Any:
    """A kernel of N lanes `i` that loads a, b, c from the inputs and stores each output's expression."""
    loads = [f"{short} = tl.load({key} + i)" for short, key in zip("abc", inputs.split(), strict=False)]
    stores = [f"tl.store({key} + i, {expression})" for key, expression in stored.items()]
    parameters = [*stored, *inputs.split(), *numbers.split(), "N: tl.constexpr"]
    return written(name, ", ".join(parameters), "i = tl.arange(0, N)", *loads, *stores)


def blocks(name: str, *lines: str) -> Any:
    """The kernel of these lines over x, out and n; `at` are the places of a program's block of B elements."""
    return written(name, "x, out, n, B: tl.constexpr", "at = tl.program_id(0) * B + tl.arange(0, B)", *lines)


def elementwise(
    name: str, inputs: dict[str, Any], stored: dict[str, str], *, N: int = 64,
    dtype: torch.dtype | Sequence[torch.dtype] = torch.float32, value: float = 7, **more: Any,
) -> Any:
    """An entry of such a kernel, whose outputs have this dtype, or one after another; the kernel, for further entries."""
    tensors = [key for key, maker in inputs.items() if callable(maker)]
    kernel = lanes(name, stored, " ".join(tensors), " ".join(key for key in inputs if key not in tensors))
    dtypes = [dtype] * len(stored) if isinstance(dtype, torch.dtype) else dtype
    outputs = {key: filled(N, dtype=own, value=value) for key, own in zip(stored, dtypes, strict=True)}
    return case(**outputs, **inputs, N=N, **more)(kernel)


def each_dtype(
    kernel: Any, dtypes: Sequence[torch.dtype], outputs: Sequence[str], N: int = 64, oracle: Any = None, kind: Any = None, **makers: Any,
) -> None:
    """One entry for each dtype, with inputs of it, or of the `kind` of it, and outputs of it."""
    for dtype in dtypes:
        inputs = {name: make(dtype) for name, make in makers.items()}
        case(name=str(dtype)[6:], **{name: filled(N, dtype=kind or dtype, value=1 if kind else 7) for name in outputs}, **inputs, N=N,
             oracle=oracle)(kernel)  # fmt: skip


# --- what arguments are made of ---------------------------------------------------------------------------------------

EXTREMES = (0, 1, -1, 2, -2, 3, 7, -7)


def normal(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> Maker:
    """Standard normal values times `scale`."""
    return lambda generator: (torch.randn(shape, generator=generator) * scale).to(dtype)


def positive(*shape: int, dtype: torch.dtype = torch.float32) -> Maker:
    """Values from 0.01 to 2.01."""
    return lambda generator: (torch.rand(shape, generator=generator) * 2 + 0.01).to(dtype)


def integers(*shape: int, dtype: torch.dtype = torch.int32, low: int | None = None, high: int | None = None) -> Maker:
    """Integers from `low` up to but not `high`; without bounds, all of the type's, its extremes first."""

    def make(generator: torch.Generator) -> torch.Tensor:
        if low is not None and high is not None:
            return torch.randint(low, high, shape, generator=generator).to(dtype)
        flat = torch.randint(-(2**63), 2**63 - 1, shape, generator=generator).flatten()
        bits = torch.iinfo(dtype).bits
        first = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 2 ** (bits - 2) + 1, *EXTREMES][: flat.numel()]
        flat[: len(first)] = torch.tensor(first)
        return flat.to(dtype).view(shape)

    return make


def specials(*shape: int, dtype: torch.dtype = torch.float32) -> Maker:
    """Normal values among infinities, NaN, zeros of both signs, halves, large, small and subnormal numbers."""
    infinity, nan = float("inf"), float("nan")
    first = [0.0, -0.0, infinity, -infinity, nan, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-40, 6e-8, 65504.0, 1e30]

    def make(generator: torch.Generator) -> torch.Tensor:
        flat = torch.randn(shape, generator=generator).flatten() * 10
        some = torch.tensor(first)[: flat.numel()]
        places = torch.randperm(flat.numel(), generator=generator)[: len(some)]
        flat[places] = some
        return flat.view(shape).to(dtype)

    return make


def filled(*shape: int, dtype: torch.dtype = torch.float32, value: float = 7) -> Maker:
    """A tensor that holds `value` everywhere: an output."""
    return lambda generator: torch.full(shape, value).to(dtype)


def given(*values: float, dtype: torch.dtype = torch.float32) -> Maker:
    """Exactly these values."""
    return lambda generator: torch.tensor(values).to(dtype)


def mask(*shape: int) -> Maker:
    """Random bools."""
    return lambda generator: torch.rand(shape, generator=generator) < 0.6


def order(count: int, dtype: torch.dtype = torch.int32) -> Maker:
    """A permutation of 0 to `count` - 1."""
    return lambda generator: torch.randperm(count, generator=generator).to(dtype)
