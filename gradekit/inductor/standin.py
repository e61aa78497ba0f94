"""What torch is told of a card that is not there, so that it generates code for one. Only for a process that ends then.

torch offers no way to ask for this: the names below are its own, private ones among them, of torch 2.11 to 2.13. What is
missing is an error in the answer, never a wrong figure: nothing of this is measured or graded.
"""

from __future__ import annotations

import types
from typing import Any

import torch
from torch._subclasses import fake_tensor
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from gradekit.inspector.targets import REGISTERS_PER_SM, WARP, Target


class Driver:
    """Triton's driver, as far as torch asks it."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._target.capability, WARP)

    def get_current_device(self) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def is_active(self) -> bool:
        return True

    def get_device_interface(self) -> Any:
        return torch.cuda


def install(target: Target) -> None:
    """Make torch believe in a card like `target`."""
    driver.set_active(Driver(target))
    answers = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": divmod(target.capability, 10),
        "get_device_properties": _properties(target),
        "get_rng_state": torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": None,
        "synchronize": None,
        "_lazy_init": None,
        "_exchange_device": 0,
        "_maybe_exchange_device": 0,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, _always(answer))
    torch.version.cuda = torch.version.cuda or "12.8"
    fake_tensor.init_gpu_context = _always(None)  # builds for CUDA would make a tensor on the card
    _without_patterns()


def _always(answer: Any) -> Any:
    return lambda *args, **kwargs: answer


def _without_patterns() -> None:
    """The searches for attention, for random permutations and for products worth padding make tensors on the card, or
    time them there. All other rewriting is as it would be with a card: softmax is found, for one.
    """
    from torch._inductor.fx_passes import fuse_attention, misc_patterns, pad_mm

    fuse_attention._sfdp_init = _always(None)
    misc_patterns._misc_patterns_init = _always(None)
    pad_mm._pad_mm_init = _always(None)


def _properties(target: Target) -> types.SimpleNamespace:
    major, minor = divmod(target.capability, 10)
    return types.SimpleNamespace(
        name=target.card, major=major, minor=minor, multi_processor_count=target.sms, total_memory=16 << 30,
        max_threads_per_multi_processor=target.warps * WARP, max_threads_per_block=1024, warp_size=WARP,
        regs_per_multiprocessor=REGISTERS_PER_SM, shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=target.shared_per_block, shared_memory_per_multiprocessor=target.shared_per_sm,
        L2_cache_size=32 << 20, gcnArchName="", is_integrated=0, clock_rate=1_400_000, memory_clock_rate=1_200_000,
        memory_bus_width=5120,
    )  # fmt: skip
