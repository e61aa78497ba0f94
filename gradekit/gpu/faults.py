"""What can go wrong on a card, in words that both processes have. Imports the standard library alone."""

from __future__ import annotations

from typing import Any, Literal, get_args

Kind = Literal["illegal-access", "hang", "crash", "compile", "out-of-memory", "resources", "isolation"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_DEADLY = (
    "illegal memory access", "misaligned address", "illegal instruction", "invalid program counter",
    "operation not supported on global/shared address space", "address space", "hardware stack error",
    "unspecified launch failure", "device-side assert", "stack overflow", "ECC error",
)  # fmt: skip
"""CUDA's words for what a kernel did that ends the process's use of the card."""

_REFUSED = (
    "too many resources", "invalid argument", "invalid configuration", "out of resource", "cluster", "invalid value",
    "no kernel image", "not supported", "cooperative launch",
)  # fmt: skip
"""CUDA's words for a launch that this card does not do."""

_BY_NAME: dict[str, Kind] = {
    "OutOfResources": "resources", "OutOfMemoryError": "out-of-memory", "MemoryError": "out-of-memory",
    "PTXASError": "compile", "CompilationError": "compile",
}  # fmt: skip


class CardFault(Exception):
    """A program could not be run on the card: the `kernel` that was at it and the submission's `line`, where known.
    `kind` says how: a kernel touched other memory, did not end in time or did not compile, the card refuses the launch,
    memory is short, isolation is too weak; a "crash" is the end of the process, or a program that makes no sense."""

    def __init__(self, kind: Kind, message: str, kernel: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.message, self.kernel, self.line = kind, message, kernel, line

    @property
    def deadly(self) -> bool:
        """Whether the process that met it can do nothing more on the card."""
        return self.kind == "illegal-access"

    def to_json(self) -> dict[str, Any]:
        """The fault as data that `json.dumps` accepts."""
        return {"kind": self.kind, "message": self.message, "kernel": self.kernel, "line": self.line}

    @staticmethod
    def from_json(data: Any) -> CardFault:
        """The inverse of `to_json`; data that is none of it becomes a crash."""
        if not isinstance(data, dict) or data.get("kind") not in KINDS:
            return CardFault("crash", "the worker sent an answer that makes no sense")
        line = data["line"] if type(data.get("line")) is int else None
        return CardFault(data["kind"], str(data.get("message")), str(data.get("kernel", "")), line)


def fault_of(error: BaseException, kernel: str = "", line: int | None = None) -> CardFault:
    """What an exception of torch, Triton or CUDA comes to; a CardFault stays itself."""
    if isinstance(error, CardFault):
        return error
    return CardFault(_kind(error), _words(error), kernel, line)


def _kind(error: BaseException) -> Kind:
    if type(error).__name__ in _BY_NAME:
        return _BY_NAME[type(error).__name__]
    text = str(error)
    if not isinstance(error, RuntimeError):
        return "crash"
    if any(words in text for words in _DEADLY):
        return "illegal-access"
    if "out of memory" in text or "can't allocate memory" in text:
        return "out-of-memory"
    if "launch timed out" in text:
        return "hang"
    return "resources" if any(words in text for words in _REFUSED) else "crash"


def _words(error: BaseException) -> str:
    """The first line of what was said, without the names of those who said it; ptxas says why further down."""
    lines = str(error).strip().splitlines() or [""]
    first = next((line for line in lines if line.startswith(("ptxas fatal", "ptxas error"))), lines[0])
    for name in ("Triton Error [CUDA]: ", "CUDA error: "):
        first = first.removeprefix(name)
    plain = isinstance(error, RuntimeError) or not first
    return first if plain and first else f"{type(error).__name__}: {first}".removesuffix(": ")
