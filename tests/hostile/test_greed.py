"""Whoever takes more than their share is stopped, and nobody else notices."""

from __future__ import annotations

import contextlib
import shutil

import pytest

from gradekit.program import View
from gradekit.sandbox import Limits, TraceError, Tracer, host
from tests.patience import eventually
from tests.sampling import sampled
from tests.tracer.styles import VECTOR_ADD, Text

from .world import World

X = View(0, "float32", (100,), (1,))
SHORT = Limits(import_seconds=0.5, call_seconds=0.5, packages_seconds=0.5, memory_bytes=1 << 30)

GREED = {
    "memory": "x = [bytearray(1 << 26) for _ in range(1000)]",
    "memory, by little and little": "x = []\nwhile True: x.append('y' * 1000)",
    "memory, mapped": "import mmap\nx = [mmap.mmap(-1, 1 << 30) for _ in range(100)]",
    "memory, in many processes": "import os, time\nfor _ in range(200):\n    try:\n        if os.fork() == 0: x = bytearray(200 << 20); time.sleep(60)\n    except OSError: break",
    "memory, of a number": "x = 10 ** 10 ** 9",
    "memory, of a pattern": "import re\nre.match('(a*)*b', 'a' * 40)",
    "memory, of a file in memory": "import os\nf = os.memfd_create('x')\nwhile True: os.write(f, b'x' * (1 << 20))",
    "the disk, in one file": "with open('big', 'wb') as f:\n    while True: f.write(b'x' * (1 << 20))",
    "the disk, in many files": "n = 0\nwhile True:\n    open(f'f{n}', 'wb').write(b'x' * (1 << 20)); n += 1",
    "the disk, in empty files": "n = 0\nwhile True:\n    open(f'f{n}', 'wb').close(); n += 1",
    "open files": "import os\nx = []\nwhile True: x.append(os.open('.', os.O_RDONLY))",
    "pipes": "import os\nx = []\nwhile True: x.append(os.pipe())",
    "threads": "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()",
    "processes": "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.1)",
    "time": "while True: pass",
    "time, asleep": "import time\ntime.sleep(1000)",
    "time, without the alarm": "import signal\nfor n in (14, 27): signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
    "time, with the alarm blocked": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
    "time, catching everything": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "time, in C": "sum(range(10 ** 12))",
    "time, in a lock": "import threading\nl = threading.Lock()\nl.acquire()\nl.acquire()",
    "time, in deep frames": "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()",
    "time, while it stands still": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "time, in a child that it waits for": "import os, time\npid = os.fork()\nif pid == 0: time.sleep(1000)\nos.waitpid(pid, 0)",
    "output": "while True: print('x' * 1000)",
    "output, on the descriptor": "import os\nfor _ in range(10 ** 5): os.write(1, b'x' * 10000)",
    "names": "for n in range(10 ** 6): globals()[f'f{n}'] = print",
    "notes": "\n".join("1 / 0" for _ in range(20_000)),
}  # fmt: skip


RARELY = (
    "memory, of a pattern", "time, without the alarm", "time, with the alarm blocked", "time, catching everything", "time, in a lock",
    "time, in deep frames", "time, in a child that it waits for", "the disk, in many files", "notes",
)  # fmt: skip
"""Of a kind that others of these are of too, or that test_sandbox has."""


@pytest.mark.parametrize("name", sampled(GREED, str, lambda _, name: name not in RARELY))
def test_the_greedy_are_stopped(name: str) -> None:
    """With an answer, and the next submission has all that it needs"""
    with Tracer(Text(f"{GREED[name]}\ndef entry(x):\n    return None\n"), limits=SHORT) as tracer:
        try:
            tracer.trace("entry", [X])
        except TraceError as error:
            assert error.message and len(error.message) < 10_000
    with Tracer(VECTOR_ADD, limits=Limits()) as honest:
        assert honest.load().functions


def test_one_process_cannot_write_to_two_gibibytes() -> None:
    """Nor for a moment: the sum over processes is looked at a few times a second"""
    text = "def entry(x):\n    try:\n        return len(bytearray(2 << 30))\n    except MemoryError:\n        return 'too much'\n"
    with Tracer(Text(text), limits=Limits()) as tracer:
        assert tracer.trace("entry", [X]).returned == "str"


def test_files_are_gone_with_the_submission() -> None:
    """A full scratch folder is empty again for the next"""
    text = "import os\nfor n in range(30):\n    with open(f'f{n}', 'wb') as f: f.write(b'x' * (10 << 20))\nos.makedirs('a/b')\nos.chmod('a', 0)\n"
    free = shutil.disk_usage(host.server().scratch).free
    for _ in range(3):
        with Tracer(Text(text)) as tracer, contextlib.suppress(TraceError):  # a folder like that may end it
            assert tracer.load().notes == ()
    assert eventually(lambda: shutil.disk_usage(host.server().scratch).free > free - (50 << 20))


def test_files_without_end_are_ended_where_they_are_on_the_disk() -> None:
    """In a container without namespaces, where no limit is set to their number"""
    greedy = Text(GREED["the disk, in empty files"])
    with (
        host.without("root", "apart"),
        Tracer(greedy, limits=Limits()) as tracer,
        pytest.raises(TraceError, match="SIGXFSZ"),
    ):
        tracer.load()


def test_two_submissions_do_not_see_each_other(world: World) -> None:
    """Not their files, not their processes"""
    look = "import glob, os\ndef entry(x):\n    seen = glob.glob(os.path.dirname(os.getcwd()) + '/*/*') + glob.glob('/tmp/gradekit-*/*/*')\n"
    look += "    return [p for p in seen if not p.startswith(os.getcwd())] or 'nothing'\n"
    with Tracer(Text("SECRET = 1\n")) as first, Tracer(Text(look)) as second:
        first.load()
        if host.means().level >= 2:
            assert second.trace("entry", [X]).returned == "str"
