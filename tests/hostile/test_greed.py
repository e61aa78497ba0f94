"""Whoever takes more than their share is stopped, and nobody else notices."""

import contextlib
import shutil

import pytest

from gradekit.program import View
from gradekit.sandbox import Limits, TraceError, Tracer, host
from tests.beside import beside
from tests.patience import eventually
from tests.tracer.styles import VECTOR_ADD, Text

from .world import World

CASES = beside(__file__)

X = View(0, "float32", (100,), (1,))
SHORT = Limits(import_seconds=0.5, call_seconds=0.5, packages_seconds=0.5, memory_bytes=1 << 30)

GREED = CASES["greed"] | {"notes": "\n".join("1 / 0" for _ in range(20_000))}


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", GREED)
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
            notes = tracer.load().notes
            assert 0 < len(notes) <= 20 and all("turned to the system" in note for note in notes)
    assert eventually(lambda: shutil.disk_usage(host.server().scratch).free > free - (50 << 20))


def test_files_without_end_are_ended_where_they_are_on_the_disk() -> None:
    """In a container without namespaces, where no limit is set to their number"""
    greedy = Text(GREED["the disk, in empty files"])
    with (
        host.without("root", "apart"), Tracer(greedy, limits=Limits()) as tracer,
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
