"""The tests on the oldest and on the newest versions that pyproject.toml accepts: `make
matrix`, or `nox -s "tests-3.13(oldest)"`.

nox makes an environment for each pair of a Python and a set of versions, with uv, which picks the build of torch:
TORCH_BACKEND is "cpu" unless the environment says "auto", "cu128", ..., or "" for whatever the configured index has.
TORCH is the newest torch to try. A Python that is not installed is skipped; on a CI server that is a failure.

    nox -l                                          what there is
    nox -s "tests-3.11(newest)" -- tests/compat     one environment, some of the tests
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = "CI" in os.environ

BACKEND = os.environ.get("TORCH_BACKEND", "cpu")
NEWEST_TORCH = os.environ.get("TORCH", "torch==2.13.*")


def oldest() -> list[str]:
    """The lower bound of each package that gradekit and its extra `batch` need, as a pin: "torch==2.11"."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["batch"]]
    return [f"{found[1]}=={found[2]}" for line in declared if (found := re.match(r"([\w-]+)>=([\d.]+)", line))]


@nox.session(python=["3.11", "3.13"])
@nox.parametrize("versions", ["oldest", "newest"], ids=["oldest", "newest"])
def tests(session: nox.Session, versions: str) -> None:
    """The suite, or what is named after `--`."""
    pins = oldest() if versions == "oldest" else [NEWEST_TORCH]
    torch = [pin for pin in pins if pin.startswith("torch==")]
    session.install(*torch, *([f"--torch-backend={BACKEND}"] if BACKEND else []))  # alone: the rest is on any index
    session.install("--editable", ".[test]", *(pin for pin in pins if pin not in torch))
    session.run("python", "-c", "import torch, triton; print('torch', torch.__version__, 'triton', triton.__version__)")
    words = session.posargs or ["-n", "auto", "--dist", "worksteal"]
    session.run("python", "-m", "pytest", *words, env={"TRITON_DEFAULT_FP_FUSION": "1"})
