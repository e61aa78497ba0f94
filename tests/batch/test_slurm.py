"""The workers that dask-jobqueue asks Slurm for grade as any others do; a stand-in for sbatch runs its job scripts here."""

import importlib.util
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.patience import GUARD

from .clusters import RIGHT, WRONG, assignments, environment, grading

needs_jobqueue = pytest.mark.skipif(importlib.util.find_spec("dask_jobqueue") is None, reason="needs dask-jobqueue")
pytestmark = [pytest.mark.slow, needs_jobqueue]

SBATCH = """#!/bin/sh
job=$$
for script; do :; done
cp "$script" job.sh
setsid sh job.sh >> jobs.log 2>&1 &
echo $! >> jobs.pid
echo "Submitted batch job $job"
"""
SCANCEL = "#!/bin/sh\nfor group in $(cat jobs.pid); do kill -TERM -- -$group; done\n"

SCRIPT = """
import sys
from dask_jobqueue import SLURMCluster

if __name__ == "__main__":
    grader = {"cores": 1, "processes": 1, "memory": "4GB", "worker_extra_args": ["--resources", "grader=1"]}
    with SLURMCluster(**grader, interface="lo", local_directory="scratch", shared_temp_directory="scratch") as cluster:
        cluster.scale(jobs=1)
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""
"""What docs/grading.md tells instructors to run."""


def stand_in(folder: Path) -> Path:
    """Commands by the names of Slurm's."""
    folder.mkdir()
    for name, text in {"sbatch": SBATCH, "scancel": SCANCEL}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def test_workers_that_slurm_starts_grade_a_class(tmp_path: Path) -> None:
    assignments(tmp_path)
    for name, text in {"ada": RIGHT, "bob": WRONG}.items():
        (tmp_path / f"in/{name}").mkdir(parents=True)
        (tmp_path / f"in/{name}/submission.py").write_text(text)
    mark = uuid.uuid4().hex
    variables = environment(tmp_path, mark)
    variables["PATH"] = os.pathsep.join([str(stand_in(tmp_path / "bin")), variables["PATH"]])
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=variables, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as cluster:  # fmt: skip
        assert cluster.stdout is not None
        run = grading(tmp_path, mark, "--cluster", cluster.stdout.readline().strip())
        said = run.communicate(timeout=GUARD)[0]
    assert run.returncode == 0, said
    points = {
        line.split(",")[0]: line.split(",")[4] for line in (tmp_path / "out/gradebook.csv").read_text().splitlines()
    }
    assert (points["ada"], points["bob"]) == ("100", "0")  # speed is left out
    assert "gradekit" not in (tmp_path / "job.sh").read_text()  # an ordinary worker: nothing of ours has to start it
