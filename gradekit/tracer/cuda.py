"""torch.cuda and the Triton driver as a machine with one GPU would show them, without a GPU."""

import contextlib
import json
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import torch
import triton

from gradekit.compat.torch import INITIALIZE_CUDA, never_wrap_triton
from gradekit.compat.triton import TARGET, use_driver

MANY = 132  # multiprocessors of the GPU that is pretended, unless a call is traced with another number


class Multiprocessors:
    """How many multiprocessors the pretended GPU has at this moment, and whether host code has asked."""

    def __init__(self) -> None:
        self.count = MANY
        self.asked = False

    def tell(self) -> int:
        """The number, for host code."""
        self.asked = True
        return self.count


multiprocessors = Multiprocessors()


class Properties(types.SimpleNamespace):
    """What `torch.cuda.get_device_properties` answers."""

    @property
    def multi_processor_count(self) -> int:
        """How many multiprocessors the GPU has."""
        return multiprocessors.tell()

    def __repr__(self) -> str:
        return f"_CudaDeviceProperties(name={self.name!r}, multi_processor_count={self.multi_processor_count})"


PROPERTIES = Properties(**json.loads(Path(__file__).with_name("h100.json").read_text(encoding="ascii")))
"""Beside the number of multiprocessors, the published figures of the GPU that `gradekit.compat.triton.TARGET` names."""


def triton_properties(device: int = 0) -> dict[str, int]:
    """The same figures as Triton's driver names them."""
    return {
        "max_shared_mem": PROPERTIES.shared_memory_per_block_optin, "max_num_regs": PROPERTIES.regs_per_multiprocessor,
        "multiprocessor_count": PROPERTIES.multi_processor_count, "warpSize": PROPERTIES.warp_size,
        "sm_clock_rate": PROPERTIES.clock_rate, "mem_clock_rate": PROPERTIES.memory_clock_rate,
        "mem_bus_width": PROPERTIES.memory_bus_width,
    }  # fmt: skip


STREAMS = ("Event", "Stream", "ExternalStream", "CUDAGraph", "stream", "graph", "device", "device_of", "current_stream",
           "default_stream", "StreamContext")  # fmt: skip
"""What torch.cuda has for ordering and timing work: nothing runs here, so each is an `InstantEvent`."""


_ORIGINALS: dict[str, Any] = {}  # what `install` has replaced in torch.cuda


class InstantEvent:
    """A stream, event, graph or guard: whatever is asked of it happens at once and costs nothing."""

    cuda_stream = 0
    device = torch.device("cuda", 0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def elapsed_time(self, other: Any) -> float:
        """One millisecond, always."""
        return 1.0

    def query(self) -> bool:
        """Everything is done already."""
        return True

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def _driver() -> Any:
    return types.SimpleNamespace(
        utils=types.SimpleNamespace(get_device_properties=triton_properties), get_current_target=_always(TARGET),
        get_active_torch_device=_always(torch.device("cuda", 0)), get_current_device=_always(0),
        set_current_device=_always(None), get_current_stream=_always(0),
        get_device_capability=_always((PROPERTIES.major, PROPERTIES.minor)), get_device_interface=_always(torch.cuda),
        get_benchmarker=_always(bench),
        get_empty_cache_for_benchmark=lambda: torch.empty(64 * 1024 * 1024, dtype=torch.int, device="cuda"),
        clear_cache=_always(None), is_active=_always(True), map_python_to_cpp_type=lambda kind: kind,
    )  # fmt: skip


def bench(call: Callable[[], Any], *args: Any, quantiles: Any = None, return_mode: str = "mean", **kwargs: Any) -> Any:
    """do_bench: one call, one millisecond."""
    call()
    if quantiles is not None:
        return [1.0] * len(quantiles) if len(quantiles) > 1 else 1.0
    return [1.0] if return_mode == "all" else 1.0


def install() -> None:
    """Shows this process a machine with one GPU."""
    use_driver(_driver())
    for name, value in _torch_cuda().items():
        _ORIGINALS[name] = getattr(torch.cuda, name)
        setattr(torch.cuda, name, value)
    torch.Generator = Generator  # type: ignore[misc]
    torch.Tensor.record_stream = _always(None)  # type: ignore[method-assign]  # its parser would refuse our streams
    torch.cuda.nvtx.range_push = torch.cuda.nvtx.range_pop = torch.cuda.nvtx.mark = _always(None)
    torch.cuda.nvtx.range = InstantEvent  # type: ignore[assignment]
    torch.compile = _compile  # type: ignore[assignment]
    triton.testing.do_bench = bench
    triton.testing.do_bench_cudagraph = bench
    triton.testing.Mark.run = _always(None)
    never_wrap_triton()


def as_it_is() -> contextlib.AbstractContextManager[None]:
    """While open, torch.cuda is what it is on this machine, for torch's own code that looks behind it."""
    return patched(torch.cuda, **_ORIGINALS)


@contextlib.contextmanager
def patched(owner: Any, **values: Any) -> Iterator[None]:
    """While open, these attributes of `owner` have other values."""
    before = {name: getattr(owner, name) for name in values}
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


class Generator(torch.Generator):
    """A random generator; one for the GPU lives on the CPU, where nobody sees what it draws."""

    def __new__(cls, device: Any = "cpu") -> Self:
        """Of any device."""
        return super().__new__(cls, torch.device("cpu"))  # type: ignore[call-arg]


def _compile(function: Any = None, **options: Any) -> Any:
    return (lambda function: function) if function is None else function


def _torch_cuda() -> dict[str, Any]:
    answers = {
        "is_available": True,
        "is_initialized": True,
        "current_device": 0,
        "device_count": 1,
        "get_device_properties": PROPERTIES,
        "get_device_capability": (PROPERTIES.major, PROPERTIES.minor),
        "get_device_name": PROPERTIES.name, "get_arch_list": ["sm_90"], "is_bf16_supported": True,
        "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0,
        "mem_get_info": (PROPERTIES.total_memory, PROPERTIES.total_memory), "is_current_stream_capturing": False,
        **dict.fromkeys(
            ("synchronize", "set_stream", "empty_cache", "init", "set_device", "reset_peak_memory_stats", "ipc_collect",
             INITIALIZE_CUDA, "manual_seed", "manual_seed_all", "seed", "seed_all"),
        ),
    }  # fmt: skip
    functions = {name: _always(value) for name, value in answers.items()}
    return functions | dict.fromkeys(STREAMS, InstantEvent)


def _always(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value
