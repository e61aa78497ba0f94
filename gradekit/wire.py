"""Messages between processes: a length (4 bytes, big-endian), then that much JSON.

Both sides of every connection use it (tracer, GPU worker, warm grader), so it imports the standard library alone.
Reading is capped and has a deadline: the other side may be hostile, silent or dead. Deadlines are `time.monotonic()`
seconds; None waits without limit.
"""

import contextlib
import fcntl
import json
import os
import select
import socket
import struct
import time
import weakref
from collections.abc import Sequence
from typing import Any, cast

LENGTH = struct.Struct("!I")
CAP, CONTROL_CAP = 80 << 20, 1 << 16
"""Bytes of a message between the grader and a process that it has started, such as a submission with its job or a
program; and of one to or from the server that forks for it."""

MOST_PARTS = 1 << 20  # lists and objects in one message: a few bytes of text each, and a hundred of memory


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
    """Sends `message` (anything `json.dumps` accepts) before `deadline`. Raises ConnectionClosed, DeadlineExceeded
    where the other side does not read, and TypeError, ValueError or RecursionError, with nothing sent, for no JSON."""
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
    """The next message, of at most `cap` bytes, before `deadline`. Raises ConnectionClosed, DeadlineExceeded where the
    other side is silent, and WireError where what it sent is no message, or too long."""
    (length,) = LENGTH.unpack(_exactly(sock, LENGTH.size, deadline))
    if length > cap:
        raise WireError(f"a message that is longer than {cap} bytes, or garbled")
    return parse(_exactly(sock, length, deadline))


def parse(body: bytes | bytearray) -> Any:
    """The value of the JSON in `body`. Raises WireError where it is none, or has more than MOST_PARTS parts."""
    if body.count(b"[") + body.count(b"{") > MOST_PARTS:
        raise WireError(f"more than {MOST_PARTS} parts in a message")
    try:
        return json.loads(body.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from None


def send_descriptors(sock: socket.socket, descriptors: Sequence[int]) -> None:
    """Sends file descriptors with the byte that carries them, before the request. Raises ConnectionClosed."""
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


class ForkedCache:
    """A cache that this process and all forks of it read and write from now on: what one puts in, the others get.

    It lies in an anonymous file, which only they have open, so no program that is started can reach it, but for one
    that is given a descriptor by which it is `readable`, as its `file`. An entry is a line, written at once: its key in
    hexadecimal, and a list as JSON. What a writer that was killed has left of one is no entry. A value that would bring
    the file beyond `most` bytes is not stored.
    """

    def __init__(self, most: int, file: int | None = None) -> None:
        self._file = os.memfd_create("gradekit-shared") if file is None else file
        self.readable: list[int] = []
        if file is None:
            os.fchmod(self._file, 0o400)  # who reads it cannot open it to write
            fcntl.fcntl(self._file, fcntl.F_SETFL, os.O_APPEND)
            with contextlib.suppress(OSError):
                self.readable.append(os.open(f"/proc/self/fd/{self._file}", os.O_RDONLY))
        for number in (self._file, *self.readable):
            weakref.finalize(self, os.close, number)
        self._most, self._read = most, 0
        self._places: dict[bytes, tuple[int, int]] = {}  # where the value of a key begins, and its bytes

    def get(self, key: bytes) -> list[Any] | None:
        """The value of `key`, made anew; None where nobody has put it in."""
        name = key.hex().encode()
        if name not in self._places:
            self._read_on()
        where, size = self._places.get(name, (0, 0))
        try:
            return cast("list[Any]", json.loads(os.pread(self._file, size, where))) if size else None
        except ValueError:
            return None

    def put(self, key: bytes, value: list[Any]) -> None:
        """Adds the value of `key`; a later one of the same key is used by those who have not met this one."""
        line = f"\n{key.hex()} {json.dumps(value)}\n".encode()
        if os.fstat(self._file).st_size + len(line) <= self._most:
            os.write(self._file, line)

    def _read_on(self) -> None:
        """Notes where the entries are that came in since the last time, as far as they are whole."""
        new = os.pread(self._file, os.fstat(self._file).st_size - self._read, self._read)
        whole = new[: new.rfind(b"\n") + 1]
        for line in whole.splitlines(keepends=True):
            key, _, value = line.partition(b" ")
            if value:
                self._places[key] = self._read + len(key) + 1, len(value)
            self._read += len(line)
