"""A failing call as a Python file of its own: a pure function of the record and the paths of two files."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradekit.report.text import one_line

_FILE = '''\
"""{title}: a call that fails, to look into. Run it with Python; edit it as you like.

With a GPU, it runs there. Without one, Triton's interpreter runs the kernels (TRITON_INTERPRET=1), one program after
the other on the CPU: then you can print and set breakpoints in them.
"""

import importlib.util
import os
import sys
from pathlib import Path

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported


def module(path):
    """The module in the file at `path`."""
    sys.path.insert(0, str(Path(path).parent))
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


submission = module({submission!r})
{snippet}
got = {call}
print("got     ", got)
'''
_EXPECTED = """\
expected = module({tests!r}).{reference}
print("expected", expected)
"""


class NoReplay(ValueError):
    """A check has no call that could be written down: one sentence with the reason."""


def chosen(record: Mapping[str, Any], name: str | None = None) -> Mapping[str, Any]:
    """The first check that failed and has a call, or that called `name`.

    Raises:
        NoReplay: there is none.
    """
    failed = [check for check in record["checks"] if check["outcome"] == "failed" and name in (None, check["id"])]
    found = next((check for check in failed if (check["counterexample"] or {}).get("call")), None)
    if found is None:
        raise NoReplay(f"no check {name or 'of this report'} failed with a call that could be written down")
    return found


def script(check: Mapping[str, Any], submission: Path, tests: Path) -> str:
    """A Python program that makes the failing call of `check` and shows what came and what should have.

    `submission` is the file to call, `tests` the folder of the assignment's tests.
    """
    counterexample = check["counterexample"]
    call = _with_submission(counterexample["call"])
    snippet = counterexample["snippet"].replace('"cuda"', "DEVICE")
    text = _FILE.format(title=one_line(check["id"]), submission=str(submission), snippet=snippet, call=call)
    if counterexample.get("reference"):
        file, _, reference = counterexample["reference"].partition(".")
        return text + _EXPECTED.format(tests=str(tests / f"{file}.py"), reference=reference)
    if counterexample.get("expected"):
        return text + textwrap.dedent(f"""print("expected", "{", ".join(counterexample["expected"])}")\n""")
    return text


def _with_submission(call: str) -> str:
    """`call`, with the submission's function by its full name: "torch.autograd.grad(f(x), [x], upstream)" too."""
    inner = call.removeprefix("torch.autograd.grad(")
    return f"{call[: len(call) - len(inner)]}submission.{inner}"
