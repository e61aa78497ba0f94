"""Which card there is, and how fast it runs at this moment.

Changes nothing on the card. Clocks come from NVML through `nvidia-ml-py`, which is optional: without it no reading is
had, and what was measured says "clock unknown".
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

_THROTTLES = {
    0x08: "hardware slowdown",
    0x20: "too hot (software)",
    0x40: "too hot (hardware)",
    0x80: "power brake",
}
"""NVML's reasons for which a card runs slower than it would: what is timed then says little of the kernel."""

_POWER_CAP = 0x04
"""The card keeps to its power limit: the ordinary state of a large card under matrix products, so no throttling."""


@dataclass(frozen=True)
class Card:
    """A CUDA device: `index` as torch counts them, `uuid` as NVML names it ("GPU-..."), sizes in bytes."""

    name: str
    uuid: str
    index: int
    capability: tuple[int, int]
    sms: int
    l2_bytes: int
    memory_bytes: int

    @property
    def device(self) -> torch.device:
        """The card as torch names it; the CPU for one that is emulated (see `cpu_emulation`)."""
        return torch.device("cpu") if self.index < 0 else torch.device("cuda", self.index)


@dataclass(frozen=True)
class Reading:
    """The clocks in MHz at one moment, and why they were not higher; `throttled` if that makes timings worthless."""

    sm_mhz: int
    memory_mhz: int
    throttled: bool
    reasons: tuple[str, ...] = ()


def find(device: str = "auto") -> Card | None:
    """The card that `device` names: "auto" is the current one or None, "cpu" is None, "cuda" or "cuda:1" must exist.
    Raises ValueError where there is no such device, or it is no name of one."""
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return None
    if not torch.cuda.is_available():
        raise ValueError(f"device {device!r}: torch finds no CUDA device on this machine")
    index = torch.cuda.current_device() if device in ("auto", "cuda") else _index(device)
    return _card(index)


def _index(device: str) -> int:
    kind, _, number = device.partition(":")
    if kind != "cuda" or not number.isdigit():
        raise ValueError(f"device {device!r}: say auto, cpu, cuda or cuda:0")
    if int(number) >= torch.cuda.device_count():
        raise ValueError(f"device {device!r}: this machine has {torch.cuda.device_count()} CUDA devices")
    return int(number)


@functools.cache
def _card(index: int) -> Card:
    found = torch.cuda.get_device_properties(index)
    return Card(
        name=found.name,
        uuid=f"GPU-{found.uuid}",
        index=index,
        capability=(found.major, found.minor),
        sms=found.multi_processor_count,
        l2_bytes=found.L2_cache_size,
        memory_bytes=found.total_memory,
    )


def read(card: Card) -> Reading | None:
    """The card's clocks, or None where NVML cannot be had. Worth something only while the card works, and up to a tenth
    of a second old: NVML answers in microseconds, from what it last saw."""
    nvml, handle = _nvml(), _handle(card.uuid)
    if handle is None:
        return None
    try:
        return to_reading(
            nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
        )
    except nvml.NVMLError:
        return None


def driver(path: Path = Path("/proc/driver/nvidia/version")) -> str:
    """The version of NVIDIA's kernel driver, or "unknown"."""
    try:
        found = re.search(r"\b(\d+\.\d+(\.\d+)?)\b", path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return "unknown"
    return found[1] if found else "unknown"


def to_reading(sm_mhz: int, memory_mhz: int, bits: int) -> Reading:
    """The reading of NVML's numbers; `bits` are its reasons for the clocks."""
    reasons = tuple(word for bit, word in _THROTTLES.items() if bits & bit)
    return Reading(sm_mhz, memory_mhz, bool(reasons), reasons + (("power limit",) if bits & _POWER_CAP else ()))


@functools.cache
def _handle(uuid: str) -> Any:
    """NVML's handle of a card, or None."""
    nvml = _nvml()
    try:
        return nvml.nvmlDeviceGetHandleByUUID(uuid) if nvml else None
    except nvml.NVMLError:
        return None


@functools.cache
def _nvml() -> Any:
    """The NVML module, ready for use, or None."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml
