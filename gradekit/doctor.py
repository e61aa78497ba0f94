"""Looks at this machine: what gradekit needs, what it can measure here, and how to mend what is missing.

Each part of the machine is a function that answers with an Item; one that breaks is an item too, and hides no other.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING

from gradekit.assignment import discover
from gradekit.program import Program, View
from gradekit.report.text import columns, one_line, seconds
from gradekit.report.translation import say
from gradekit.submission import Submission
from gradekit.versions import supported, version

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from gradekit.subject.device import Device


class State(StrEnum):
    """How much an item matters."""

    GOOD = "good"
    NOTE = "note"  # worth knowing: `gradekit check` works all the same
    BAD = "bad"  # `gradekit check` does not work until this is mended


@dataclass(frozen=True)
class Item:
    """A part of this machine: what was `found`, and how to `mend` it where it is not good."""

    name: str
    state: State
    found: str
    mend: str = ""


NEEDS_GPU = "speed (it is measured on a GPU): such points stay pending here, and are never a zero"


def examined() -> list[Item]:
    """The parts of this machine, in the order in which they are worth mending; what needs broken parts is not tried."""
    needed = [partial(dependency, name) for name in _needed()]
    first: list[Callable[[], Item]] = [system, itself, python, *needed, assignments, interpreter, scratch]
    items = [_safely(part) for part in first]
    return [*items, *map(_safely, (private_names, tracing, isolation, gpu))] if works(items) else items


def _needed() -> list[str]:
    try:
        return [name for name in supported() if name != "python"]
    except PackageNotFoundError:
        return []


def works(items: Iterable[Item]) -> bool:
    """Whether `gradekit check` can work here."""
    return all(item.state is not State.BAD for item in items)


def _safely(part: Callable[[], Item]) -> Item:
    try:
        return part()
    except Exception as error:  # noqa: BLE001  # a doctor that faints helps nobody
        name = getattr(part, "__name__", "doctor")
        return Item(name, State.BAD, one_line(f"could not be examined: {type(error).__name__}: {error}"))


# --- the parts --------------------------------------------------------------------------------------------------------


def system() -> Item:
    """Triton's packages are made for Linux alone."""
    found = f"{platform.system()} {platform.machine()}"
    if platform.system() == "Linux":
        return Item("system", State.GOOD, found)
    mend = {
        "Darwin": "Triton has no macOS packages: work in a Linux container or on a Linux machine",
        "Windows": "Triton has no Windows packages: work in WSL 2 or in a Linux container",
    }
    return Item("system", State.BAD, found, mend.get(platform.system(), "Triton's packages are made for Linux"))


def itself() -> Item:
    """gradekit, whose metadata says which versions of everything else it accepts."""
    found = version("gradekit")
    if found:
        return Item("gradekit", State.GOOD, found)
    return Item("gradekit", State.BAD, "not installed", "install it with pip, from its wheel or its checkout")


def python() -> Item:
    """The Python that runs this."""
    mend = "make a virtual environment with another Python"
    return _ranged("python", platform.python_version(), supported()["python"], mend)


def dependency(name: str) -> Item:
    """An installed package, against the range of versions that is supported."""
    accepted, found = supported()[name], version(name)
    command = f'{Path(sys.executable).name} -m pip install "{name}{_in_order(accepted)}"'
    return _ranged(name, found, accepted, command) if found else Item(name, State.BAD, "not installed", command)


def _ranged(name: str, found: str, accepted: SpecifierSet, mend: str) -> Item:
    from packaging.version import Version

    if accepted.contains(found, prereleases=True):
        return Item(name, State.GOOD, found)
    too_old = any(Version(found) < Version(one.version) for one in accepted if one.operator == ">=")
    return Item(
        name, State.BAD if too_old else State.NOTE, f"{found}, but {_in_order(accepted)} is known to work", mend
    )


def _in_order(accepted: SpecifierSet) -> str:
    """The lower bound, then the upper: ">=2.11,<3"."""
    return ",".join(sorted(map(str, accepted), reverse=True))


def assignments() -> Item:
    """The assignments that can be found from here."""
    known = discover()
    if known:
        return Item("assignments", State.GOOD, f"{', '.join(known)} in {next(iter(known.values())).folder.parent}")
    return Item("assignments", State.BAD, "none found", "set GRADEKIT_ASSIGNMENTS to the folder that holds them")


def interpreter() -> Item:
    """TRITON_INTERPRET turns kernels into Python, so that there is nothing to compile; the tracer works without it."""
    value = os.environ.get("TRITON_INTERPRET", "")
    if value in ("", "0"):
        return Item("TRITON_INTERPRET", State.GOOD, "not set")
    found = f"set to {value}: gradekit compiles kernels and never interprets them, so it ignores this"
    return Item("TRITON_INTERPRET", State.NOTE, found, "unset TRITON_INTERPRET, unless your own experiments need it")


def scratch() -> Item:
    """The folder for temporary files, where the tracer keeps the submission and Triton's cache."""
    folder = Path(tempfile.gettempdir())
    if os.access(folder, os.W_OK | os.X_OK):
        return Item("scratch", State.GOOD, str(folder))
    return Item("scratch", State.BAD, f"{folder} cannot be written", "set TMPDIR to a folder that you may write to")


def private_names() -> Item:
    """What gradekit needs of other packages beyond their public names, which any release of them may drop."""
    from gradekit.compat import Incompatible

    packages = ("triton", "torch", "hypothesis", "pytest")
    try:
        for name in packages:
            importlib.import_module(f"gradekit.compat.{name}")
    except Incompatible as error:
        mend = f"install the release of {error.package} that came before this one"
        return Item("private names", State.BAD, one_line(str(error)), mend)
    return Item("private names", State.GOOD, f"those of {', '.join(packages)} are there")


_PROBE = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)

def probe(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y
"""


def tracing() -> Item:
    """A small kernel through the whole way from source to program: Triton loads, compiles, and launches are seen."""
    from gradekit.sandbox import TraceError

    began = time.monotonic()
    try:
        program = _probe()
    except TraceError as error:
        mend = "reinstall torch and triton in a fresh virtual environment"
        return Item("tracing", State.BAD, one_line(f"a small kernel cannot be traced: {error.message}"), mend)
    launches = sum(1 for _ in program.launches())
    return Item("tracing", State.GOOD, f"a kernel with {launches} launch, in {seconds(time.monotonic() - began)}")


def _probe() -> Program:
    from gradekit.sandbox import Tracer

    with Tracer(Submission("probe.py", _PROBE, "")) as tracer:
        return tracer.trace("probe", [View(0, "float32", (33,), (1,))])


def isolation() -> Item:
    """How strongly a submission is kept apart from everything else here, from 0 to 3: docs/threat-model.md."""
    from gradekit.confine import LEVELS, RECOMMENDED
    from gradekit.sandbox import host

    means = host.means()
    found = f"level {means.level} of {len(LEVELS) - 1}: {LEVELS[means.level]}"
    if means.missing() and means.level < RECOMMENDED:
        return Item("isolation", State.NOTE, f"{found}; your own code is safe to check", "; ".join(means.missing()))
    return Item("isolation", State.GOOD, found)


def gpu() -> Item:
    """The GPU, for what only a GPU can measure."""
    import torch

    from gradekit.subject.device import Device

    if torch.cuda.is_available():
        return card(Device())
    if Path("/proc/driver/nvidia").exists() and torch.version.cuda is None:
        mend = "install torch's CUDA build (https://pytorch.org/get-started) to use it"
        return Item("gpu", State.NOTE, "there is an NVIDIA driver, but torch is built for the CPU alone", mend)
    return Item("gpu", State.NOTE, "none", "nothing to mend: everything but speed is checked without one")


def card(device: Device) -> Item:
    """A card, tried with a small kernel: from the program through compilation to the result."""
    import torch

    from gradekit.confine import RECOMMENDED
    from gradekit.gpu.card import driver
    from gradekit.judge.failure import Failure
    from gradekit.subject.device import NeedsCard

    name, x, began = f"{device.need().name}, driver {driver()}", torch.arange(33.0), time.monotonic()
    try:
        run = device.run(_probe(), [x], option=0, allow=(), entry="probe")
        means = device.worker.means
    except (Failure, NeedsCard) as error:
        mend = "see that Triton works here by itself: it needs a C compiler, and a driver for its CUDA"
        return Item("gpu", State.NOTE, one_line(f"{name}, but a small kernel does not run there: {error}"), mend)
    finally:
        device.close()
    (result,) = run.results
    if not isinstance(result, torch.Tensor) or not torch.equal(result, x + 1):
        return Item("gpu", State.NOTE, f"{name}, but a small kernel gives wrong results there", "examine the card")
    found = f"{name}: a kernel ran there, in {seconds(time.monotonic() - began)}, isolated at level {means.level}"
    if means.level < RECOMMENDED:
        return Item("gpu", State.NOTE, f"{found}; your own code is safe to run", "; ".join(means.missing()[:-1]))
    return Item("gpu", State.GOOD, found)


# --- as text ----------------------------------------------------------------------------------------------------------

_MARKS = {State.GOOD: "ok  ", State.NOTE: "note", State.BAD: "BAD "}


def render(items: Sequence[Item]) -> str:
    """The items as a list with what to do below each, and what can be measured here; a pure function."""
    width = max(columns(say(item.name)) for item in items)
    lines = [line for item in items for line in _lines(item, width)]
    return "\n".join([*lines, "", *map(say, _verdict(items))]) + "\n"


def _lines(item: Item, width: int) -> list[str]:
    name = say(item.name)
    first = f"  {_MARKS[item.state]}  {name}{' ' * (width - columns(name))}  {say(item.found)}"
    return [first, f"  {'':4}  {'':{width}}  -> {say(item.mend)}"] if item.mend else [first]


def _verdict(items: Sequence[Item]) -> list[str]:
    if works(items):
        measured = "Measured here:      correctness, memory, structure"
        if any(item.name == "gpu" and item.state is State.GOOD for item in items):
            return [f"{measured}, speed"]
        return [measured, f"Not measured here:  {NEEDS_GPU}"]
    bad = [item.name for item in items if item.state is State.BAD]
    return [f"gradekit check does not work here until this is mended: {', '.join(bad)}"]
