"""Messages between processes arrive whole, or end in an error before the deadline."""

import socket
import time
from collections.abc import Iterator

import pytest

from gradekit import wire

from .patience import GUARD


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def soon() -> float:
    """A deadline for what never comes."""
    return time.monotonic() + 0.2


def someday() -> float:
    """A deadline for what comes."""
    return time.monotonic() + GUARD


def test_a_message_arrives_as_it_was_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    wire.send(pair[0], {"a": [1, None, "ä"]}, someday())
    assert wire.receive(pair[1], 1000, someday()) == {"a": [1, None, "ä"]}


@pytest.mark.parametrize(("sent", "error"), [
    (b"", wire.DeadlineExceeded),
    (b"\0\0", wire.DeadlineExceeded),
    (b"\0\0\0\5{}", wire.DeadlineExceeded),
    (b"\0\0\xff\xff{}", wire.WireError),
    (b"\0\0\0\2[[", wire.WireError),
    (b"\0\0\0\2\xff\xfe", wire.WireError),
    (b"\0\0\x03\xe8" + b"[" * 1000, wire.WireError),
], ids=["nothing", "half a length", "half a message", "too long", "not JSON", "not UTF-8", "nested too deep"])
def test_what_is_no_message_is_an_error(
    pair: tuple[socket.socket, socket.socket], sent: bytes, error: type[Exception]
) -> None:
    pair[0].sendall(sent)
    with pytest.raises(error) as caught:
        wire.receive(pair[1], 1000, soon() if error is wire.DeadlineExceeded else someday())
    assert caught.type is error


def test_the_end_of_the_other_side_is_told(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].close()
    with pytest.raises(wire.ConnectionClosed):
        wire.receive(pair[1], 1000, someday())


def test_a_reader_that_does_not_read_is_late(pair: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(wire.DeadlineExceeded):
        wire.send(pair[0], "x" * (1 << 24), soon())
