"""A card that is not there, as torch sees it, so that it generates code for one. Only for a process of its own.

torch offers no way to ask for this: gradekit.compat.torch_compile has the names that are its own. What is missing is an
error in the answer, never a wrong figure: nothing of this is measured or graded.
"""

from __future__ import annotations

import types
from typing import Any

import torch

from gradekit.compat import torch_compile
from gradekit.compat.triton import GPUTarget, target, use_driver
from gradekit.inspector.targets import Target


class FakeDriver:
    """Triton's driver, as far as torch asks it."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def get_current_target(self) -> GPUTarget:
        """The GPU that kernels are compiled for."""
        return target(self._target.capability)

    def get_current_device(self) -> int:
        """The number of the only one."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """The first CUDA device."""
        return torch.device("cuda", 0)

    def is_active(self) -> bool:
        """Always: Triton looks for no other driver."""
        return True

    def get_device_interface(self) -> Any:
        """torch.cuda, with the answers that `install` gives."""
        return torch.cuda


def install(card: Target) -> None:
    """Make torch believe in a card like `card`."""
    use_driver(FakeDriver(card))
    answers = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": divmod(card.capability, 10),
        "get_device_properties": _properties(card),
        "get_rng_state": torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": None,
        "synchronize": None,
        **torch_compile.CUDA_INTERNALS,
    }
    for name, answer in answers.items():
        torch_compile.replace(torch.cuda, name, _always(answer))
    torch.version.cuda = torch.version.cuda or "12.8"
    torch_compile.touch_no_card()


def _always(answer: Any) -> Any:
    return lambda *args, **kwargs: answer


def _properties(target: Target) -> types.SimpleNamespace:
    major, minor = divmod(target.capability, 10)
    return types.SimpleNamespace(
        name=target.card, major=major, minor=minor, multi_processor_count=target.sms, total_memory=16 << 30,
        max_threads_per_multi_processor=target.warps * target.warp, max_threads_per_block=1024, warp_size=target.warp,
        regs_per_multiprocessor=target.registers, shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=target.shared_per_block, shared_memory_per_multiprocessor=target.shared_per_sm,
        L2_cache_size=32 << 20, gcnArchName="", is_integrated=0, clock_rate=1_400_000, memory_clock_rate=1_200_000,
        memory_bus_width=5120,
    )  # fmt: skip
