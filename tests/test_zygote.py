"""A process that is forked from one with torch ends as a Python that is started anew."""

from __future__ import annotations

import signal

import pytest

from tests import zygote

ENDS = {
    "pass": (0, ""),
    "sys.exit()": (0, ""),
    "sys.exit(3)": (3, ""),
    "sys.exit('too few')": (1, "too few"),
    "1 / 0": (1, "ZeroDivisionError: division by zero"),
    "os.kill(os.getpid(), 9)": (-signal.SIGKILL, ""),
}


@pytest.mark.parametrize("text", ENDS)
def test_the_end_of_a_program_is_pythons(text: str) -> None:
    code, said = ENDS[text]
    done = zygote.ran(["-c", f"import os, sys\nprint('begun', flush=True)\n{text}"])
    assert (done.returncode, done.stdout) == (code, "begun\n")
    assert done.stderr.strip().endswith(said) and bool(done.stderr) is bool(said)


def test_threads_and_exit_handlers_come_to_their_end_and_all_that_is_printed_arrives() -> None:
    text = (
        "import atexit, threading, time\n"
        "atexit.register(print, 'handler')\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\n"
        "print('end')"
    )
    assert zygote.ran(["-c", text]).stdout.split() == ["end", "thread", "handler"]
