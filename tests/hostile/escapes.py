"""Submissions that reach for what is outside of their process: at import, by every way in that we know.

escapes.toml has them. Each is Python that runs at the top level. What it lays hands on goes into `got`, which the submission's entry then says
aloud, so that a secret that was read is found in what the grader was told. Names in braces are the world's: see
world.py. `needs` is the level of isolation that promises to contain it; at a lower one it is not tried.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import indent

from tests.beside import beside

HEAD = """\
import ctypes, errno, fcntl, glob, io, os, resource, signal, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
got = []
def name_me():
    libc.prctl(15, {marker!r}.encode(), 0, 0, 0)
def reach(function):
    try:
        got.append(function())
    except BaseException as error:
        got.append(repr(error))
    return function
def entry(x):
    raise RuntimeError(repr(got)[:1900])
"""


@dataclass(frozen=True)
class Escape:
    """One way out: what the submission does, and the level from which on it is contained."""

    group: str
    name: str
    body: str
    needs: int

    @property
    def id(self) -> str:
        return f"{self.group}: {self.name}"

    def text(self, world: dict[str, object]) -> str:
        """The submission, in that world."""
        body = self.body if "\n" in self.body else f"return ({self.body})"
        text = HEAD + "\n@reach\ndef attempt():\n" + indent(body, "    ") + "\n"
        for name, value in world.items():
            text = text.replace("{" + name + "!r}", repr(value)).replace("{" + name + "}", str(value))
        return text


def _escapes() -> Iterator[Escape]:
    for ways in beside(__file__)["ways"]:
        yield from (Escape(ways["group"], name, body, ways["needs"]) for name, body in ways["of"].items())


ESCAPES = tuple(_escapes())
