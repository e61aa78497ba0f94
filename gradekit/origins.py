"""How the numbers in a program were computed from the sizes of its inputs: data of a process that may be hostile.

The tracer writes it beside a program, and the grader reads it to prove things. Its codec is that of gradekit.program.
"""

from dataclasses import dataclass, field

from gradekit.program import Source, View, add_nouns


@dataclass(frozen=True)
class Condition:
    """Host code compared two numbers: terms `left` and `right` by `relation` (<, <=, ==), which `held` or did not."""

    left: int
    relation: str
    right: int
    held: bool
    source: Source | None = None


@dataclass(frozen=True)
class LaunchOrigin:
    """Where a launch's numbers come from: terms for its grid, for its arguments (-1 where an argument is no integer),
    and (term, value) for each integer that the kernel was compiled for."""

    grid: tuple[int, ...]
    args: tuple[int, ...]
    constants: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class ViewOrigin:
    """Terms for the shape, strides and offset of a view."""

    view: View
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Origins:
    """How the numbers in a program were computed from the sizes of its inputs, as its host code says: not to be
    trusted.

    `terms` are ("number", value), ("size", input, axis), ("stride", input, axis), ("offset", input), ("scalar",
    argument), ("opaque", value) for a number whose origin was lost, or an operation on earlier terms: +, -, *, // and
    %, or next_power_of_2. Launches stand in the order of the steps, those of every option.
    """

    terms: tuple[tuple[str | int, ...], ...]
    conditions: tuple[Condition, ...] = ()
    launches: tuple[LaunchOrigin, ...] = ()
    views: tuple[ViewOrigin, ...] = ()


@dataclass(frozen=True)
class LaunchedNames:
    """A launch that was not compiled: terms for its grid, and for arguments that are whole numbers, by name; and the
    `floats` that it is given, whatever they come from."""

    kernel: str
    line: int | None
    grid: tuple[int, ...]
    names: tuple[tuple[str, int], ...]
    floats: tuple[tuple[str, float], ...] = field(default=(), compare=False, repr=False)


TO_THE_SYSTEM = frozenset(
    {"os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.kill", "os.killpg", "os.remove",
     "os.rename", "os.rmdir", "signal.pthread_kill", "socket.connect", "subprocess.Popen", "ctypes.dlopen", "open"}
)  # fmt: skip
"""What Python's audit hooks call that which a kernel's host code has no need of; of "open", to write."""


@dataclass(frozen=True)
class Explored:
    """What a call compares: see `CallTracer.explored`. `left` are places that turned TO_THE_SYSTEM, each a line and
    what; `whole` is whether the call came to its end."""

    origins: Origins
    launches: tuple[LaunchedNames, ...]
    left: tuple[tuple[int, str], ...]
    whole: bool


add_nouns(Condition, LaunchOrigin, ViewOrigin, Origins, LaunchedNames, Explored)
