"""What is published works: the wheel, installed in an environment of its own, outside of any checkout."""

import ast
import json
import os
import re
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from tests.patience import GUARD

ROOT = Path(__file__).parents[1]

HELP = """
from click.testing import CliRunner
from gradekit.cli import main
for name in main.commands:
    done = CliRunner().invoke(main, [name, "--help"])
    print(name, done.exit_code, len(done.output.splitlines()))
"""


@dataclass(frozen=True)
class Installed:
    """gradekit in the environment `prefix`; commands run in the folder `work`."""

    prefix: Path
    work: Path

    def run(self, *words: str, program: str = "gradekit") -> subprocess.CompletedProcess[str]:
        """What a command did, in an environment that knows nothing of the checkout."""
        hidden = ("PYTHONPATH", "GRADEKIT_ASSIGNMENTS", "VIRTUAL_ENV")
        environment = {name: value for name, value in os.environ.items() if name not in hidden} | {
            "PYTHONWARNINGS": "ignore"
        }
        command = [str(self.prefix / "bin" / program), *words]
        return _ran(command, cwd=self.work, env=environment)


def _ran(command: Sequence[str], **how: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=GUARD, check=False, **how)  # type: ignore[call-overload,no-any-return]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    done = _ran([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder


def _names(dist: Path) -> tuple[set[str], set[str]]:
    """The files in the wheel and in the source distribution, these without the folder that they are all in."""
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel, tarfile.open(next(dist.glob("*.tar.gz"))) as sources:
        return set(wheel.namelist()), {name.partition("/")[2] for name in sources.getnames()}


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in a fresh environment, which takes torch and all other packages from this one."""
    folder = tmp_path_factory.mktemp("installed")
    prefix = folder / "env"
    venv.create(prefix, with_pip=False, symlinks=True)
    packages = prefix / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (packages / "others.pth").write_text("".join(f"{place}\n" for place in site.getsitepackages()))
    options = ["--quiet", "--no-deps", "--no-index", "--force-reinstall", "--ignore-installed"]
    pip = [sys.executable, "-m", "pip", "--python", str(prefix / "bin" / "python")]
    done = _ran([*pip, "install", *options, str(next(dist.glob("*.whl")))])
    assert done.returncode == 0, done.stderr
    (work := folder / "work").mkdir()
    return Installed(prefix, work)


@pytest.fixture(scope="module")
def metadata(dist: Path) -> Metadata:
    """What the wheel says of itself, if it is valid."""
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        return Metadata.from_email(wheel.read(name), validate=True)


def test_the_metadata_are_complete(metadata: Metadata) -> None:
    assert metadata.license_expression == "Apache-2.0" and metadata.license_files == ["LICENSE"]
    assert metadata.summary and metadata.keywords and metadata.description_content_type == "text/markdown"
    assert metadata.author or metadata.author_email
    assert {"Typing :: Typed", "Framework :: Pytest"} <= set(metadata.classifiers or ())
    assert str(metadata.requires_python) == "<3.14,>=3.11"


PROVIDED = {
    "yaml": "pyyaml", "pynvml": "nvidia-ml-py", "dask": "distributed", "sympy": "torch", "z3": "z3-solver",
    "markupsafe": "jinja2", "_pytest": "pytest",
}
"""Packages whose distribution has another name, or that come with another."""

ONLY_WHERE_IT_RUNS = {"IPython", "nbgrader"}
"""Imported only where it is installed, by what runs inside of it or serves it."""


def test_every_package_that_is_imported_is_declared(metadata: Metadata) -> None:
    files = (ROOT / "gradekit").rglob("*.py")
    kinds = (ast.Import, ast.ImportFrom)
    nodes = [n for file in files for n in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(n, kinds)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    roots = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"gradekit"} - ONLY_WHERE_IT_RUNS
    declared = [need for need in metadata.requires_dist or () if not re.search('"(test|docs|dev)"', str(need.marker))]
    assert {PROVIDED.get(root, root) for root in roots} <= {need.name for need in declared}


def test_the_wheel_has_assignments_and_scripts_and_no_solutions(dist: Path) -> None:
    wheel, _ = _names(dist)
    assert {
        "gradekit/py.typed", "gradekit/report/schema.json", "gradekit/_assignments/softmax/test_softmax.py",
        "gradekit/_autograder/gradescope/run_autograder",
    } <= wheel  # fmt: skip
    assert not [name for name in wheel if "solution" in name or "__pycache__" in name or name.startswith("tests/")]
    assert {"gradekit/schemas/domain.json", "gradekit/authoring/template/domain.toml.txt"} <= wheel


def test_the_sources_build_the_same_wheel_and_hold_no_solutions(dist: Path, tmp_path: Path) -> None:
    wheel, sources = _names(dist)
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"} <= sources
    assert not [name for name in sources if name.startswith(("solutions/", "tests/")) or "__pycache__" in name]
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    done = _ran(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")], cwd=unpacked
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next((tmp_path / "again").glob("*.whl"))) as again:
        assert set(again.namelist()) == wheel


def test_every_command_of_the_installed_program_says_what_it_does(installed: Installed) -> None:
    where = installed.run("-c", "import gradekit; print(gradekit.__file__)", program="python")
    assert Path(where.stdout.strip()).is_relative_to(installed.prefix), where.stderr
    assert installed.run("--version").stdout.strip().endswith("0.1.0")
    done = installed.run("-c", HELP, program="python")
    shown = [line.split() for line in done.stdout.splitlines()]
    assert {"check", "list", "start", "doctor", "package", "grade", "verify"} <= {name for name, *_ in shown}, (
        done.stderr
    )
    assert [line for line in shown if line[1] != "0" or int(line[2]) < 4] == []


def test_a_student_can_start_and_check_outside_of_a_checkout(installed: Installed) -> None:
    assert installed.run("start", "vector_add").returncode == 0
    done = installed.run("check", "vector_add", "-k", "empty", "--quick", "--json", "report.json")
    assert done.returncode == 1, done.stderr  # a starter earns nothing
    report = json.loads((installed.work / "report.json").read_text())
    assert report["status"] == "graded" and report["score"]["earned"] == 0


def test_staff_can_package_outside_of_a_checkout(installed: Installed) -> None:
    done = installed.run("package", "gradescope", "softmax", "-o", "softmax.zip")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(installed.work / "softmax.zip") as archive:
        names = archive.namelist()
        assert b"+" not in archive.read("requirements.txt")
    assert {"run_autograder", "grader/gradekit/cli.py", "grader/assignments/softmax/test_softmax.py"} <= set(names)
    assert not [name for name in names if name.startswith("grader/gradekit/_a")]


@pytest.mark.slow
def test_the_doctor_of_an_installed_program_finds_nothing_bad(installed: Installed) -> None:
    done = installed.run("doctor")
    assert done.returncode == 0, done.stdout
    assert "BAD" not in done.stdout and "triton" in done.stdout
