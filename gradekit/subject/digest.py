"""Digests of programs: equal for programs that compute the same, whatever their names and line numbers.

What a program computes does not depend on line numbers, on the names of kernels, arguments and variables, or on
Triton's compile options, but for what atomics wait for; the engine uses the others only in messages. So two programs
that differ in nothing else have the same run, as long as that run has no message.
"""

import functools
import hashlib
import re
from typing import Any

from gradekit.program import Choice, Kernel, Launch, Program, Scalar, View, field_names

_STRING = r'"(?:[^"\\\n]|\\.)*+"'
_NESTED = rf'(?:[^()"\n]++|{_STRING}|\((?:[^()"\n]++|{_STRING}|\((?:[^()"\n]++|{_STRING}|\([^()"\n]*+\))*+\))*+\))*+'
_ALIAS = re.compile(r"^#\w++ = loc\(.*\)[ \t]*+\n", re.MULTILINE)
_PART = re.compile(rf"({_STRING}| loc\((?:#\w++|{_NESTED})\)|[%@][\w$.-]++|@{_STRING})")


def plain(ttir: str) -> str:
    """A kernel's text without its locations, all values and functions numbered in the order in which they come up. What
    stands in strings stays. Texts that become the same are the same but for locations and names; a text of another form
    than Triton's at worst does not equal others of its kind."""
    parts = _PART.split(_ALIAS.sub("", ttir))
    renamed = _Renamed()
    parts[1::2] = [renamed[part] for part in parts[1::2]]
    return "".join(parts)


class _Renamed(dict[str, str]):
    """What becomes of a part of a text: a number of its own in place of each name, nothing in place of a location."""

    def __missing__(self, part: str) -> str:
        if part[0] in '" ':
            return part if part[0] == '"' else ""
        return self.setdefault(part, f"{part[0]}v{len(self)}")


@functools.lru_cache(maxsize=1024)
def of_kernel(ttir: str) -> bytes:
    """The digest of its plain text: 32 bytes, the same in every process."""
    return _digest(plain(ttir))


def of_program(program: Program) -> bytes:
    """The same for two programs that do the same: 32 bytes, the same in every process."""
    return _digest(repr(_effect(program, program.kernels)))


_WITHOUT_EFFECT = {Program: {"kernels", "returned", "path", "multiprocessors", "empty_grids"}, Choice: {"labels"}}
"""Fields that do not change a run; a kernel is compared where it is launched."""


def _effect(value: Any, kernels: dict[str, Kernel]) -> Any:
    """`value` as nested tuples of plain values, such that equal texts of them mean the same run."""
    kind: Any = type(value)
    if kind is View:  # this and the next are what most are
        return ("View", value.storage, value.dtype, value.shape, value.stride, value.offset)
    if kind is Scalar:
        return ("Scalar", value.value, value.dtype)
    if kind is Launch:
        kernel = kernels[value.kernel]
        return ("Launch", of_kernel(kernel.unaligned), kernel.atomics_wait, value.grid, _effect(value.args, kernels))
    if kind is tuple:
        return tuple([_effect(item, kernels) for item in value])
    if kind is dict:
        return ("dict", sorted((repr(key), repr(_effect(item, kernels))) for key, item in value.items()))
    names = _names(kind)
    return (kind.__name__, *[_effect(getattr(value, name), kernels) for name in names]) if names else value


@functools.cache
def _names(noun: Any) -> tuple[str, ...]:
    """The fields of a noun that decide what it does; none of anything else."""
    left_out = _WITHOUT_EFFECT.get(noun, set()) | {"source"}
    return tuple(name for name in field_names(noun) if name not in left_out)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()
