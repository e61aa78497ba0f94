"""Messages between the grader and the tracer: a length (4 bytes, big-endian), then that much JSON.

Both sides use it, so it imports the standard library alone. Reading is capped and has a deadline: the other side may
be hostile, silent or dead.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from typing import Any

LENGTH = struct.Struct("!I")
CHUNK = 1 << 20

MOST_PARTS = 1 << 20
"""Lists and objects in one message: a few bytes of text each, and a hundred of memory."""


class WireError(Exception):
    """The other side sent something that is not a message, or too much of it."""


class Closed(WireError):
    """The other side is gone."""


class Late(WireError):
    """The other side did not answer in time."""


def doing(request: dict[str, Any]) -> str:
    """What the tracer is asked to do, as errors tell of it: the same words on both sides, whichever finds the error."""
    return f"in {request['entry']}" if "entry" in request else "while the file was loaded"


def send(sock: socket.socket, message: Any, deadline: float | None = None) -> None:
    """Sends `message` (anything `json.dumps` accepts) before `deadline` (time.monotonic seconds; None waits).

    Raises:
        Closed, Late: the other side is gone, or does not read.
    """
    body = json.dumps(message).encode("ascii")
    data = memoryview(LENGTH.pack(len(body)) + body)
    while data:
        _wait(sock, deadline, writing=True)
        try:
            data = data[sock.send(data[:CHUNK], 0 if deadline is None else socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            continue
        except OSError as error:
            raise Closed(str(error)) from None


def receive(sock: socket.socket, cap: int, deadline: float | None = None) -> Any:
    """The next message, of at most `cap` bytes, before `deadline` (time.monotonic seconds; None waits).

    Raises:
        Closed, Late, WireError: the other side is gone, silent, or sent what is not a message.
    """
    (length,) = LENGTH.unpack(_exactly(sock, LENGTH.size, deadline))
    if length > cap:
        raise WireError(f"a message of {length} bytes, where {cap} are allowed")
    return parse(_exactly(sock, length, deadline))


def parse(body: bytes) -> Any:
    """The value that a message's JSON says.

    Raises:
        WireError: it is not JSON, or of too many parts.
    """
    if body.count(b"[") + body.count(b"{") > MOST_PARTS:
        raise WireError(f"more than {MOST_PARTS} parts in a message")
    try:
        return json.loads(body.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from None


def _exactly(sock: socket.socket, count: int, deadline: float | None) -> bytes:
    parts = []
    while count:
        _wait(sock, deadline, writing=False)
        try:
            part = sock.recv(min(count, CHUNK))
        except OSError as error:
            raise Closed(str(error)) from None
        if not part:
            raise Closed("end of stream")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _wait(sock: socket.socket, deadline: float | None, *, writing: bool) -> None:
    if deadline is None:
        return
    left = deadline - time.monotonic()
    poller = select.poll()  # not select(): a grader with many open files has descriptors past its 1024
    poller.register(sock, select.POLLOUT if writing else select.POLLIN)
    if left <= 0 or not poller.poll(left * 1000):
        raise Late("no answer in time")
