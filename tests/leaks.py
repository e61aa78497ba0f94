"""What belongs to the whole process and must be after each test what it was before: else tests depend on their order.

Warning filters, captured streams and log handlers of a test are not here: pytest itself puts those back.
"""

import gc
import importlib
import operator
import os
import resource
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import torch
import triton
from hypothesis.internal.conjecture import providers

from gradekit import reuse
from gradekit.processes import Command
from gradekit.sandbox import host

NAMESPACES = (
    "builtins", "os", "time", "subprocess", "socket", "json",
    "torch", "torch:Tensor", "torch:UntypedStorage", "torch.cuda", "torch.cuda.nvtx", "torch.library",
    "triton", "triton.compiler", "triton.testing", "triton.runtime.jit:JITFunction",
    "triton.runtime.autotuner:Autotuner",
)  # fmt: skip
"""Modules and, as `module:name`, classes in which a test may replace nothing for good."""

CLOSED = [name for name in NAMESPACES if name == "builtins" or ":" in name]
"""Those to which nothing may be added either; a module gets new names when its parts are imported."""

GENERATED = "torch._inductor.runtime.compile_tasks."
"""Inductor puts the modules that it writes under this name, and the same source again in place of an earlier one."""

SIGNALS = [
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF,
    signal.SIGCHLD, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2,
]  # fmt: skip
TIMERS = [signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF]
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def _driver() -> object:
    """Triton's driver, unless it is the machine's own, which Triton sets when it is first needed."""
    config = vars(triton.runtime.driver)
    return config["_active"] if config["_active"] is not config["_default"] else None


CARD = torch.cuda.is_available()

ONCE = frozenset({
    "recursion limit", "torch.manual_seed", "JITFunction.__slotnames__", "sys.modules['__triton_launcher']",
    "torch.cuda._initialized", "torch.cuda.default_generators", "torch.cuda._cached_device_count",
    "os.environ['TORCHINDUCTOR_CACHE_DIR']", "os.environ['TRITON_CACHE_DIR']", "os.environ['TRITON_PTXAS_PATH']",
})  # fmt: skip
"""What torch and Triton change for good when they first meet a card, or compile for it: no test can put it back."""

STATE: dict[str, Callable[[], Any]] = {
    "working directory": os.getcwd,
    "signal handlers": lambda: [signal.getsignal(number) for number in SIGNALS],
    "timers": lambda: [signal.getitimer(timer)[0] > 0 for timer in TIMERS],
    "resource limits": lambda: [resource.getrlimit(limit) for limit in LIMITS],
    "sys.path": lambda: list(sys.path),
    "sys.meta_path": lambda: [finder for finder in sys.meta_path if not type(finder).__module__.startswith("six")],
    "recursion limit": sys.getrecursionlimit,
    "sys.dont_write_bytecode": lambda: sys.dont_write_bytecode,
    "trace functions": lambda: (sys.gettrace(), sys.getprofile()),
    "exception hooks": lambda: (sys.excepthook, threading.excepthook),
    "garbage collector": lambda: (gc.isenabled(), gc.get_threshold()),
    "temporary folder": tempfile.gettempdir,
    "Hypothesis's profile": lambda: (hypothesis.settings.get_current_profile_name(), repr(hypothesis.settings.default)),
    "Hypothesis's constants": lambda: getattr(providers, "_get_local_constants", None),
    "torch's default dtype": torch.get_default_dtype,
    "torch's default device": torch.get_default_device,
    "torch's threads": torch.get_num_threads,
    "torch's gradient mode": torch.is_grad_enabled,
    "torch's deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "torch's matmul precision": torch.get_float32_matmul_precision,
    "torch's random generator": lambda: Numbers(torch.get_rng_state()),
    "Triton's driver": _driver,
}

STATE_BETWEEN_MODULES: dict[str, Callable[[], Any]] = {
    "isolation that the tracer's host asks for": lambda: (host._without, host.required),
    "whether submissions share what they may": lambda: reuse._keeping,
    "how processes are started": lambda: Command.start,
}
"""What a fixture may change for all tests of a module."""


class Numbers:
    """A tensor that is equal to another when all its elements are."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbers) and torch.equal(self.tensor, other.tensor)

    __hash__ = None  # type: ignore[assignment]


class Process:
    """What this process is like now; `changes` compares with it, and begins again from what it finds."""

    def __init__(self) -> None:
        self._spaces = {name: _namespace(name) for name in NAMESPACES}
        self._shared = {name: read() for name, read in STATE_BETWEEN_MODULES.items()}
        self._remember()

    def changes(self, *, module_ends: bool = False) -> list[str]:
        """The names of what is no longer as it was at the last call, or at the start; where `module_ends`, also of
        what the tests of one module may share."""
        spaces, names = self._spaces, self._names
        found = [
            *(name for name, read in STATE.items() if read() != self._state[name]),
            *(_named(space, name) for space in NAMESPACES for name in _replaced(names[space], spaces[space])),
            *(_named(space, name) for space in CLOSED for name in _added(names[space], spaces[space])),
            *(f"sys.modules[{name!r}]" for name in _replaced(self._modules, sys.modules) if not name.startswith(GENERATED)),
            *(f"os.environ[{name!r}]" for name in _different(self._environment, _environment())),
            *(name for name, read in STATE_BETWEEN_MODULES.items() if module_ends and read() != self._shared[name]),
        ]
        if module_ends:
            self._shared = {name: read() for name, read in STATE_BETWEEN_MODULES.items()}
        if found or len(sys.modules) != len(self._modules):  # a module that was imported is watched from now on
            self._remember()
        return [name for name in found if not (CARD and name in ONCE)]

    def _remember(self) -> None:
        self._state = {name: read() for name, read in STATE.items()}
        self._names = {name: dict(space) for name, space in self._spaces.items()}
        self._modules = dict(sys.modules)
        self._environment = _environment()


def _namespace(name: str) -> Mapping[str, Any]:
    module, _, attribute = name.partition(":")
    found = importlib.import_module(module)
    return vars(getattr(found, attribute) if attribute else found)


def _named(space: str, name: str) -> str:
    return f"{space.rpartition(':')[2]}.{name}"


def _replaced(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names that are gone or mean another object; a new name is an import, mostly."""
    if len(now) >= len(before) and all(map(operator.is_, before.values(), now.values())):
        return []  # new names come last
    return [name for name, value in before.items() if now.get(name, before) is not value]


def _added(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [] if len(before) == len(now) else [name for name in now if name not in before and name != "_"]


def _different(before: Mapping[Any, Any], now: Mapping[Any, Any]) -> list[str]:
    return [] if before == now else sorted(os.fsdecode(name) for name in {*before, *now} if before.get(name) != now.get(name))


def _environment() -> dict[Any, Any]:
    """The environment but for the variable in which pytest says what it is doing; as it is kept, for decoding takes longer."""
    found = os.environ._data.copy()  # type: ignore[attr-defined]
    found.pop(b"PYTEST_CURRENT_TEST", None)
    return found


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that these have."""
    try:
        found = {int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    except (FileNotFoundError, ProcessLookupError):  # it has ended since it was seen
        return set()
    return found.union(*map(descendants, found)) if found else found
