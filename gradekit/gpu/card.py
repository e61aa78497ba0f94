"""Which card there is, and how fast it runs at this moment.

Changes nothing on the card. Clocks come from NVML through `nvidia-ml-py`, which is optional: without it no reading is
had, and what was measured says "clock unknown".
"""

import contextlib
import functools
import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from gradekit.versions import cache_folder, version

T = TypeVar("T")

_THROTTLES = {0x08: "hardware slowdown", 0x20: "too hot (software)", 0x40: "too hot (hardware)", 0x80: "power brake"}
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
    """The clock in MHz at one moment, and why it was not higher; `throttled` if that makes timings worthless."""

    sm_mhz: int
    throttled: bool
    reasons: tuple[str, ...] = ()


def find(device: str = "auto") -> Card | None:
    """The card that `device` names: "auto" is the current one or None, "cpu" is None, "cuda" or "cuda:1" must exist.
    Raises ValueError where there is no such device, or it is no name of one."""
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return None
    if not torch.cuda.is_available():
        raise ValueError(f"device {device!r}: torch finds no CUDA device on this machine")
    return _card(torch.cuda.current_device() if device in ("auto", "cuda") else _index(device))


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
    capability, sms = (found.major, found.minor), found.multi_processor_count
    return Card(found.name, f"GPU-{found.uuid}", index, capability, sms, found.L2_cache_size, found.total_memory)


def read(card: Card) -> Reading | None:
    """The card's clocks, a tenth of a second old at most and worth something while it works; None without NVML."""
    nvml, handle = _nvml(), _handle(card.uuid)
    if handle is None:
        return None
    try:
        return to_reading(
            nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
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


def to_reading(sm_mhz: int, bits: int) -> Reading:
    """The reading of NVML's numbers; `bits` are its reasons for the clocks."""
    reasons = tuple(word for bit, word in _THROTTLES.items() if bits & bit)
    return Reading(sm_mhz, bool(reasons), reasons + (("power limit",) if bits & _POWER_CAP else ()))


@functools.cache
def _handle(uuid: str) -> Any:
    nvml = _nvml()
    try:
        return nvml.nvmlDeviceGetHandleByUUID(uuid) if nvml else None
    except nvml.NVMLError:
        return None


@functools.cache
def _nvml() -> Any:
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


# --- what was measured on a card before, kept in the user's cache folder, where no submission's process can write -----


def known(card: Card, name: str, kind: Callable[..., T]) -> T | None:
    """What was kept under that name; None where nothing was, or nothing that makes one of this kind."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return kind(**json.loads(_file(card, name).read_text(encoding="utf-8")))
    return None


def keep(card: Card, name: str, facts: Any) -> None:
    """Keep what a dataclass holds, if it can be kept: as a whole, whoever else reads or writes it."""
    file = _file(card, name)
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(asdict(facts)), encoding="utf-8")
        new.replace(file)


def _file(card: Card, name: str) -> Path:
    versions = [name, card.uuid, driver(), torch.__version__, torch.version.cuda, version("triton")]
    return cache_folder() / "cards" / hashlib.sha256(repr(versions).encode()).hexdigest()[:32]
