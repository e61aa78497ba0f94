"""What is uploaded, run where the LMS puts it: at its paths, as root, within its limits, without the repository."""

import json
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch

from gradekit.assignment import Assignment, get, load
from gradekit.lms.package import build
from gradekit.report.record import validate
from gradekit.sandbox import host
from tests.lms import container
from tests.lms.container import closed, gradescope
from tests.plugin.samples import RIGHT as SMALL
from tests.plugin.samples import TRIPLES, laid_out

ROOT = Path(__file__).parents[2]
RIGHT = (ROOT / "solutions/vector_add/solution.py").read_text()
WRONG = (ROOT / "solutions/vector_add/wrong_missing_mask.py").read_text()

RACY = RIGHT.replace("    tl.store(", "    tl.store(out_ptr, tl.load(out_ptr) + 1)\n    tl.store(")
ATOMIC = RIGHT.replace("    tl.store(out_ptr + offsets, x + y", "    tl.atomic_xchg(out_ptr + offsets, x + y")

SNOOPS = """
import glob


def double(x):
    found = []
    for pattern in ("source/grader/**/*.py", "submission_metadata.json", "results/*"):
        for name in glob.glob("/autograder/" + pattern, recursive=True):
            try:
                found.append(name + open(name).read()[:100])
            except OSError:
                pass
    raise RuntimeError("SEEN " + repr([name for name in found if "gradekit/" not in name]))
"""

in_a_container = pytest.mark.skipif(not container.possible(), reason="needs root, unshare and pivot_root")


def double(folder: Path) -> Assignment:
    """The small assignment, as a course has it."""
    return load(laid_out(folder / "course") / "double")


@pytest.mark.sample(3, of="containers")
@in_a_container
def test_gradescope_grades_within_768_mib(tmp_path: Path) -> None:
    done, results = gradescope(tmp_path, double(tmp_path), SMALL, memory=768 << 20, cores=2.0)
    assert done.code == 0, done.said
    assert results.get("score") == 50 and {"output", "tests", "execution_time"} <= results.keys(), results["output"]
    assert 0 < done.peak <= 768 << 20


@pytest.mark.slow
@in_a_container
def test_gradescope_grades_softmax_within_768_mib_at_half_a_core(tmp_path: Path) -> None:
    """It prints for how long it computed (`-s`), at the machine's pace; no time decides"""
    if torch.version.cuda:
        pytest.skip("the image has torch's build for the CPU, which takes less memory")
    text = (ROOT / "solutions/softmax/solution.py").read_text()
    done, results = gradescope(tmp_path, get("softmax"), text, memory=768 << 20, cores=0.5)
    assert done.code == 0, done.said
    assert results.get("score") == 130 and {"output", "tests", "execution_time"} <= results.keys(), results["output"]
    host.means()  # starts what finds the pace
    print(f"peak {done.peak / 2**20:.0f} MiB, computed for {done.computed:.1f} s at pace {host.server().pace:.2f}")
    assert done.peak <= 768 << 20


@pytest.mark.sample(3, of="containers")
@in_a_container
def test_gradescope_keeps_its_tests_and_metadata_from_the_submission(tmp_path: Path) -> None:
    done, results = gradescope(tmp_path, double(tmp_path), SNOOPS)
    assert done.code == 0, done.said
    assert results["score"] == 0 and "SEEN []" in json.dumps(results)


@pytest.mark.sample(3, of="containers")
@in_a_container
def test_prairielearn_reads_a_share_and_exit_code_0(tmp_path: Path) -> None:
    build("prairielearn", double(tmp_path), tmp_path / "image.zip")
    image = container.packed(tmp_path / "image.zip", tmp_path / "grader")
    closed(image / "grader")  # as the Containerfile does
    (tmp_path / "grade/student").mkdir(parents=True)
    (tmp_path / "grade/student/double.py").write_text(TRIPLES)
    (tmp_path / "grade/data").mkdir()
    (tmp_path / "grade/data/data.json").write_text('{"correct_answers": {}}')
    places = {"grade": tmp_path / "grade", "grader": image}
    done = container.run(tmp_path, places, f"env PATH={Path(sys.executable).parent}:$PATH /grader/run.sh")
    assert done.code == 0, done.said
    written = (tmp_path / "grade/results/results.json").read_bytes()
    results = json.loads(written)
    assert results["gradable"] is True and 0 < results["score"] < 1 and len(written) < 1024 * 1024
    assert all({"points", "max_points"} <= test.keys() for test in results["tests"])


@pytest.mark.sample(3, of="containers")
@in_a_container
def test_autolab_runs_make_beside_the_tar_and_reads_the_last_line(tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    lab.mkdir()
    build("autolab", double(tmp_path), lab / "autograde.tar")
    with tarfile.open(lab / "autograde.tar") as archive:
        archive.extract("Makefile", lab, filter="data")
    (lab / "click.py").write_text('import os\n\nprint(\'{"scores": {"Correctness": 30}}\', flush=True)\nos._exit(0)\n')
    (lab / "submission.py").write_text('print(\'{"scores": {"Correctness": 1000}}\')\n' + SMALL)
    done = container.run(tmp_path, {"lab": lab}, f"env PATH={Path(sys.executable).parent}:$PATH make -s -C /lab")
    assert done.code == 0, done.said
    last = done.said.rstrip().splitlines()[-1]
    rewritten = re.sub(r"([a-zA-Z0-9]+):", r'"\1":', last)  # as Autolab's server does
    assert json.loads(rewritten)["scores"] == {"Correctness": 30.0, "Memory": 20.0}


def entrypoint(containerfile: str) -> str:
    """The command with the environment that an image of this file starts with."""
    variables = re.search(r"^ENV (.+)$", containerfile, re.MULTILINE)
    words = re.search(r"^ENTRYPOINT (\[.+\])$", containerfile, re.MULTILINE)
    assert variables is not None and words is not None
    return f"env PATH={Path(sys.executable).parent}:$PATH {variables[1]} {shlex.join(json.loads(words[1]))}"


@pytest.mark.slow
@in_a_container
def test_the_plain_image_leaves_the_record_and_exits_as_check_does(tmp_path: Path) -> None:
    build("oci", get("vector_add"), tmp_path / "image.zip")
    image = container.packed(tmp_path / "image.zip", tmp_path / "grader")
    closed(image / "grader")  # as the Containerfile does
    for folder in ("submission", "results"):
        (tmp_path / folder).mkdir()
    (tmp_path / "submission/submission.py").write_text(WRONG)
    places = {"grader": image, "submission": tmp_path / "submission", "results": tmp_path / "results"}
    done = container.run(tmp_path, places, entrypoint((image / "Containerfile").read_text()))
    assert done.code == 1, done.said
    found = json.loads((tmp_path / "results/report.json").read_text())
    validate(found)
    assert found["status"] == "graded" and 0 < found["score"]["earned"] < found["score"]["possible"]
    hidden = [check for check in found["checks"] if check["details"].get("hidden")]
    assert hidden and not any(check["title"] in done.said for check in hidden)


@pytest.mark.slow
@in_a_container
@pytest.mark.parametrize("text", [RIGHT, WRONG, RACY, ATOMIC], ids=["right", "wrong", "racy", "atomic"])
def test_half_a_core_makes_the_record_that_this_machine_makes(tmp_path: Path, text: str) -> None:
    """Field by field, times and the machine's own names aside"""
    place = tmp_path / "autograder"
    build("gradescope", get("vector_add"), tmp_path / "upload.zip")
    container.packed(tmp_path / "upload.zip", place / "source")
    (place / "submission").mkdir()
    (place / "submission/submission.py").write_text(text)
    check = "gradekit check submission.py --assignment vector_add --device cpu --json record.json"
    inside = f"cd /autograder/submission && PYTHONPATH=/autograder/source/grader /opt/gradekit/bin/python -m {check}"
    done = container.run(tmp_path, {"autograder": place}, f"sh -c {shlex.quote(inside)}", memory=768 << 20, cores=0.5)
    assert done.code in (0, 1), done.said
    assert (place / "submission/record.json").is_file(), done.said
    there = json.loads((place / "submission/record.json").read_text())
    (tmp_path / "submission.py").write_text(text)
    subprocess.run([sys.executable, "-m", *check.split()], cwd=tmp_path, check=False, capture_output=True)
    here = json.loads((tmp_path / "record.json").read_text())
    assert {**there, "seconds": 0, "environment": {}} == {**here, "seconds": 0, "environment": {}}


@pytest.mark.parametrize("kind", ["prairielearn", "oci"])
def test_the_command_that_builds_an_image_names_the_file_that_the_package_has(tmp_path: Path, kind: str) -> None:
    build(kind, double(tmp_path), tmp_path / "image.zip")
    names = zipfile.ZipFile(tmp_path / "image.zip").namelist()
    assert "Containerfile" in names and "Dockerfile" not in names
    text = (Path(__file__).parents[2] / "docs/lms.md").read_text()
    commands = re.findall(r"docker build[^`]*", text)
    assert commands and all(" -f Containerfile " in command for command in commands)
