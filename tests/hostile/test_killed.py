"""SIGKILL of the grader, at any moment: no process lives on, no report is half written, no file is left behind."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradekit.report import record
from tests.patience import GUARD, eventually
from tests.zygote import python_path

from .world import ROOT, commanded

SECONDS = (0.05, 0.2, 0.4, 0.7, 1.0, 1.4, 1.9, 2.5, 3.2)
"""While Python starts, while torch is imported, while the server does, while examples run, while the report is written."""

pytestmark = pytest.mark.usefixtures("real_start")

SUBMISSION = "import os, time\nif os.fork() == 0:\n    time.sleep(300)\n"


@pytest.mark.sample(2)
@pytest.mark.parametrize("seconds", SECONDS)
def test_a_grader_that_is_killed_leaves_nothing(tmp_path: Path, seconds: float) -> None:
    """Nothing survives it, and its report is whole or absent"""
    path, report, scratch = tmp_path / "submission.py", tmp_path / "report.json", tmp_path / "scratch"
    scratch.mkdir()
    path.write_text(SUBMISSION + (ROOT / "solutions" / "vector_add" / "solution.py").read_text())
    command = [sys.executable, "-m", "gradekit.cli", "check", str(path), "-a", "vector_add", "--json", str(report)]
    environment = os.environ | {"PYTHONPATH": python_path(), "TMPDIR": str(scratch)}
    grader = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    grader.kill()
    grader.wait()
    assert eventually(lambda: not commanded(str(scratch))), commanded(str(scratch))
    assert eventually(lambda: not list(scratch.glob("gradekit-tracer-*")))
    if report.exists():
        record.validate(json.loads(report.read_text()))


def test_a_server_that_is_killed_takes_everything_with_it(tmp_path: Path) -> None:
    """The supervisor ends what the server leaves"""
    code = (
        "import os, signal, sys\nfrom types import SimpleNamespace as Text\nfrom gradekit import sandbox\n"
        "tracer = sandbox.Tracer(Text(text='import os, time\\nif os.fork() == 0: time.sleep(300)\\n')); tracer.load()\n"
        "supervisor = sandbox.host.server().process.pid\n"
        "children = open(f'/proc/{supervisor}/task/{supervisor}/children').read().split()\n"
        "os.kill(int(children[0]), signal.SIGKILL)\n"
        f"sandbox.host._server.process.wait({GUARD}); print('ended')\n"
    )
    environment = os.environ | {"PYTHONPATH": python_path(), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "ended\n", done.stderr
    assert eventually(lambda: not commanded(str(tmp_path)))
