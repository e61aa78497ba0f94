"""What is uploaded to an LMS holds all that grades, and nothing that must stay at home."""

import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from gradekit.assignment import UsageError, get
from gradekit.lms.package import build, contents
from gradekit.versions import supported
from tests.small import laid_out

ALL = ("gradescope", "prairielearn", "autolab", "classroom", "oci", "gitlab", "vpl", "coderunner", "codegrade")


@pytest.mark.sample(4)
@pytest.mark.parametrize("lms", ALL)
def test_no_solution_leaves_the_house(lms: str) -> None:
    names = contents(lms, get("softmax"))
    assert not [name for name in names if re.search(r"solution\.py|/wrong_|/right_|mistakes\.toml", name)]
    assert {"requirements.txt", "grader/gradekit/cli.py", "grader/assignments/softmax/test_softmax.py"} <= names.keys()
    assert not [name for name in names if "__pycache__" in name or "_assignments" in name]


@pytest.mark.sample(4)
@pytest.mark.parametrize("lms", ALL)
def test_the_scripts_name_the_assignment(lms: str) -> None:
    files = contents(lms, get("softmax"))
    scripts = [data for name, data in files.items() if not name.startswith("grader/")]
    assert any(b"softmax" in data for data in scripts)
    assert not any(b"@ASSIGNMENT@" in data for data in scripts)


@pytest.mark.sample(4)
@pytest.mark.parametrize("lms", ALL)
def test_no_script_imports_what_is_handed_in(lms: str) -> None:
    """`python -m` looks into the current folder first, but for -P"""
    scripts = [data.decode() for name, data in contents(lms, get("softmax")).items() if not name.startswith("grader/")]
    started = [option for text in scripts for option in re.findall(r'(\S+) "?-m"?,? "?gradekit\b', text)]
    assert started and {option.strip('",') for option in started} == {"-P"}


def test_only_versions_that_every_index_has_are_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradekit.lms.package.version", {"torch": "2.13.0+cpu", "click": "8.3.0"}.get)
    assert contents("oci", get("softmax"))["requirements.txt"] == b"torch==2.13.0\nclick==8.3.0\n"


def test_everything_that_gradekit_needs_is_pinned() -> None:
    pinned = contents("oci", get("softmax"))["requirements.txt"].decode()
    assert {line.partition("==")[0] for line in pinned.splitlines()} == supported().keys() - {"python"}


def test_the_doctor_of_the_image_knows_what_gradekit_accepts() -> None:
    files = contents("oci", get("softmax"))
    (text,) = [data.decode() for name, data in files.items() if name.endswith(".dist-info/METADATA")]
    assert "Requires-Python: <3.14,>=3.11\n" in text and "\nRequires-Dist: click>=8.1,<9\n" in text


def test_the_hidden_tests_are_inside(tmp_path: Path) -> None:
    files = dict.fromkeys(("test_toy.py", "solutions/test_toy_hidden.py", "solutions/solution.py"), "")
    names = contents("gradescope", laid_out(tmp_path, "toy", "toy", files))
    assert sorted(name for name in names if "/toy/" in name) == [
        "grader/assignments/toy/assignment.toml", "grader/assignments/toy/test_toy.py",
        "grader/solutions/toy/secret_seed", "grader/solutions/toy/test_toy_hidden.py",
    ]  # fmt: skip


def test_gradescope_finds_its_scripts_at_the_top_and_executable(tmp_path: Path) -> None:
    build("gradescope", get("softmax"), tmp_path / "upload.zip")
    with zipfile.ZipFile(tmp_path / "upload.zip") as archive:
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
    assert (modes["setup.sh"], modes["run_autograder"], modes["requirements.txt"]) == (0o755, 0o755, 0o644)


def test_each_package_has_a_secret_seed_of_its_own() -> None:
    seeds = {contents("oci", get("softmax"))["grader/solutions/softmax/secret_seed"] for _ in range(3)}
    assert len(seeds) == 3 and all(int(seed) >= 0 for seed in seeds)
    assert not any(name.endswith("secret_seed") for name in contents("oci", get("lesson")))


def test_the_same_assignment_and_seed_give_the_same_file(tmp_path: Path) -> None:
    for name in ("one.tar", "two.tar"):
        build("autolab", get("softmax"), tmp_path / name, secret_seed=5)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    with tarfile.open(tmp_path / "one.tar") as archive:
        assert "Makefile" in archive.getnames()


def test_an_lms_without_scripts_is_refused() -> None:
    with pytest.raises(UsageError, match="there are some for autolab, classroom, codegrade"):
        contents("moodle", get("softmax"))


SECRET = re.compile(r"hidden|secret_seed|solutions/")


@pytest.mark.parametrize("lms", ["classroom", "gitlab"])
def test_nothing_secret_is_put_where_students_read(lms: str) -> None:
    assert not [name for name in contents(lms, get("softmax")) if SECRET.search(name)]
    for secret in ({"hidden": True}, {"secret_seed": 5}):
        with pytest.raises(UsageError, match="students read what is uploaded to"):
            contents(lms, get("softmax"), **secret)


@pytest.mark.sample(4)
@pytest.mark.parametrize("lms", ALL)
def test_hidden_tests_and_their_seed_can_be_left_out_everywhere(lms: str) -> None:
    assert not [name for name in contents(lms, get("softmax"), hidden=False) if SECRET.search(name)]
    if lms not in ("classroom", "gitlab"):
        names = contents(lms, get("softmax"))
        assert {"grader/solutions/softmax/test_softmax_hidden.py", "grader/solutions/softmax/secret_seed"} <= set(names)
