"""Imports torch and triton once, then forks a child for each submission.

The grader speaks over one Unix socket: {"do": "fork"} comes with the descriptor of a socket for the new child, which
is answered with its process id, as it is known here; {"do": "end", "pid": n} kills that child and all that it started,
and is answered with how the child ended. When the grader goes, every child goes with it.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Iterator

from gradekit import wire
from gradekit.confine.available import enter_root
from gradekit.confine.confinement import Confinement
from gradekit.tracer.children import PULSE_SECONDS, Children

IDLE_SECONDS = 5.0
"""A grader that is quiet for so long, has no submission at work and is still there, is one that stays."""

MANY = 8
"""One that has asked for so many children is grading a class: a check takes up to four."""


def serve(descriptor: int, scratch: str, confinement: Confinement) -> None:
    """Serves the socket that `descriptor` names until its other end closes, with files in `scratch`; its children are
    confined."""
    statm = os.open("/proc/self/statm", os.O_RDONLY)  # while /proc can be seen
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
    if confinement.means.root:
        enter_root(scratch, confinement.rules)
    from gradekit.tracer import warmup  # imports torch and triton

    control = socket.socket(fileno=descriptor)
    warmup.warm_up()
    wire.send(control, {"ok": "ready", "means": confinement.means.as_data(), "pace": warmup.pace()})
    children = Children(confinement, scratch, statm, proc)
    idle = warmup.while_idle()
    try:
        while True:
            _use_the_time(control, children, idle)
            _answer(control, children)
    except wire.WireError:
        pass
    finally:
        children.end_all()
        os._exit(0)  # sooner than taking torch apart


def _use_the_time(control: socket.socket, children: Children, idle: Iterator[None]) -> None:
    """Buries the dead, ends the greedy, and does what is still to be warmed up, until a request comes."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    children.reap()
    quiet = time.monotonic()
    while not poller.poll(1000 * (PULSE_SECONDS if children.homes or children.made >= MANY else IDLE_SECONDS)):
        children.reap()
        children.end_those_with_too_many_files()
        if children.made >= MANY or not children.homes and time.monotonic() - quiet >= IDLE_SECONDS:
            next(idle, None)
            quiet = time.monotonic()


def _answer(control: socket.socket, children: Children) -> None:
    descriptors = wire.receive_descriptors(control)
    request = wire.receive(control, wire.CONTROL_CAP)
    if request["do"] == "fork":
        with socket.socket(fileno=descriptors[0]) as sock:
            wire.send(control, {"pid": children.fork(sock, request["limits"])})
    else:
        wire.send(control, {"status": children.end(request["pid"])})
