"""Messages between processes: a length (4 bytes, big-endian), then that much JSON.

Both sides of every connection use it (tracer, GPU worker, warm grader), so it imports the standard library alone.
Reading is capped and has a deadline: the other side may be hostile, silent or dead. Deadlines are `time.monotonic()`
seconds; None waits without limit.
"""

import json
import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

LENGTH = struct.Struct("!I")
CAP, CONTROL_CAP = 80 << 20, 1 << 16
"""Bytes of a message between the grader and a process that it has started, such as a submission with its job or a
program; and of one to or from the server that forks for it."""

MOST_PARTS = 1 << 20
"""Lists and objects in one message: a few bytes of text each, and a hundred of memory."""


def activity(request: dict[str, Any]) -> str:
    """What the tracer does for `request`, as error messages put it: "in softmax", or "while the file was loaded"."""
    return f"in {request['entry']}" if "entry" in request else "while the file was loaded"


class WireError(Exception):
    """The other side sent something that is not a message, or too much of it."""


class ConnectionClosed(WireError):
    """The other side has closed the connection, or its process has ended."""


class DeadlineExceeded(WireError):
    """The other side did not answer, or did not read, before the deadline."""


def send(sock: socket.socket, message: Any, deadline: float | None = None) -> None:
    """Sends `message` (anything `json.dumps` accepts) before `deadline`.

    Raises:
        ConnectionClosed: the other side is gone.
        DeadlineExceeded: the other side does not read.
        TypeError, ValueError, RecursionError: `message` has no JSON; nothing was sent.
    """
    body = json.dumps(message).encode("ascii")
    data = memoryview(LENGTH.pack(len(body)) + body)
    while data:
        _wait(sock, deadline, writing=True)
        try:
            data = data[sock.send(data, 0 if deadline is None else socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            continue
        except OSError as error:
            raise ConnectionClosed(str(error)) from None


def receive(sock: socket.socket, cap: int, deadline: float | None = None) -> Any:
    """The next message, of at most `cap` bytes, received before `deadline`.

    Raises:
        ConnectionClosed: the other side is gone.
        DeadlineExceeded: the other side is silent.
        WireError: what it sent is not a message, or too long.
    """
    (length,) = LENGTH.unpack(_exactly(sock, LENGTH.size, deadline))
    if length > cap:
        raise WireError(f"a message of {length} bytes, where {cap} are allowed")
    return parse(_exactly(sock, length, deadline))


def parse(body: bytes | bytearray) -> Any:
    """The value that the JSON in `body` encodes. Raises WireError where it is not JSON, or has more than MOST_PARTS
    lists and objects."""
    if body.count(b"[") + body.count(b"{") > MOST_PARTS:
        raise WireError(f"more than {MOST_PARTS} parts in a message")
    try:
        return json.loads(body.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from None


def send_descriptors(sock: socket.socket, descriptors: Sequence[int]) -> None:
    """Sends file descriptors, with the single byte that carries them; the request that they belong to follows. Raises
    ConnectionClosed where the other side is gone."""
    try:
        socket.send_fds(sock, [b"."], descriptors)
    except OSError as error:
        raise ConnectionClosed(str(error)) from None


def receive_descriptors(sock: socket.socket, deadline: float | None = None, most: int = 1) -> list[int]:
    """The file descriptors (so many at `most`) that the other side sent before its next message. Raises
    ConnectionClosed where the other side is gone, and DeadlineExceeded where the other side is silent."""
    _wait(sock, deadline, writing=False)
    byte, descriptors, _, _ = socket.recv_fds(sock, 1, most)
    if not byte:
        raise ConnectionClosed("end of stream")
    return list(descriptors)


def _exactly(sock: socket.socket, count: int, deadline: float | None) -> bytearray:
    data = bytearray(count)
    missing = memoryview(data)
    while missing:
        _wait(sock, deadline, writing=False)
        try:
            received = sock.recv_into(missing)
        except OSError as error:
            raise ConnectionClosed(str(error)) from None
        if not received:
            raise ConnectionClosed("end of stream")
        missing = missing[received:]
    return data


def _wait(sock: socket.socket, deadline: float | None, *, writing: bool) -> None:
    if deadline is None:
        return
    left = deadline - time.monotonic()
    poller = select.poll()  # not select(): a grader with many open files has descriptors past its 1024
    poller.register(sock, select.POLLOUT if writing else select.POLLIN)
    if left <= 0 or not poller.poll(left * 1000):
        raise DeadlineExceeded("no answer in time")
