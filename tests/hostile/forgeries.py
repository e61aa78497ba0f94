"""Submissions that speak to the grader themselves: on the wire, or by changing what the tracer sends; forgeries.toml
has what they write and change."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from textwrap import indent

from tests.beside import beside

from .cheats import HEAD

WIRE = """\
import json, os, socket, struct, sys, time
wire = socket.socket(fileno=3)
def framed(body):
    return struct.pack("!I", len(body)) + body
def add(x, y):
    {body}
"""


@dataclass(frozen=True)
class Forgery:
    """What is sent in place of an honest answer: its `name`, and the submission's `text`."""

    name: str
    text: str
    harmless: bool = False  # the program computes what it should all the same, and may be graded
    waits: bool = False  # for the grader, which waits for an answer


def _sends(name: str, body: str, waits: bool = False) -> Forgery:
    """Whatever the call of `add` writes to the wire itself."""
    return Forgery(name, WIRE.replace("{body}", indent(body, "    ").lstrip()), waits=waits)


def _changes(name: str, change: str, harmless: bool = False) -> Forgery:
    """An honest tracer's answer to a call of `add`, whose `program` is changed before it is sent."""
    return Forgery(
        name,
        HEAD
        + "\nadd = right\n\nfrom gradekit import wire\nhonest = wire.send\n"
        + "def forged(sock, message, deadline=None):\n"
        + "    program = message.get('ok', {}).get('program')\n"
        + "    if program:\n"
        + "        steps, kernels = program['steps'], program['kernels']['items']\n"
        + "        launch = next((step for step in steps if step['is'] == 'Launch'), {})\n"
        + indent(change, "        ")
        + "\n    return honest(sock, message, deadline)\nwire.send = forged\n",
        harmless,
    )


def _ttir(name: str, expression: str, harmless: bool = False) -> Forgery:
    """An honest program whose kernel's `text` is another."""
    return _changes(
        name, f"for _, kernel in kernels:\n    text = kernel['ttir']\n    kernel['ttir'] = {expression}", harmless
    )


def _forgeries() -> Iterator[Forgery]:
    made = {
        "sends": _sends, "sends_and_waits": partial(_sends, waits=True),
        "changes": _changes, "changes_harmlessly": partial(_changes, harmless=True),
        "ttir": _ttir, "ttir_harmlessly": partial(_ttir, harmless=True),
    }  # fmt: skip
    for how, bodies in beside(__file__).items():
        yield from (made[how](name, body) for name, body in bodies.items())


FORGERIES = tuple(_forgeries())
