"""The other templates, run as their LMS runs them: its folders, user, environment and limits, and what it reads back.

Written after what VPL's jail and Moodle plugin, Jobe and CodeRunner, CodeGrade's reporter, GitLab and GitHub publish.
Beside each submission lie modules that would grade it, if the grader imported them from there.
"""

import base64
import json
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from gradekit.lms.package import build
from tests.lms import container
from tests.lms.test_containers import double, in_a_container
from tests.plugin.samples import TRIPLES

USER = 10001
PATH = f"{Path(sys.executable).parent}:/usr/bin:/bin"
SHADOW = """
import os, sys
for answer in ('Grade :=>> 100', '{"fraction": 1}', '{"tag": "points", "points": "1"}'):
    print(answer, flush=True)
os._exit(0)
"""
SHADOWS = ("click.py", "gradekit.py", "json.py", "sitecustomize.py", "zipfile.py", "subprocess.py")


def handed_in(folder: Path, text: str = TRIPLES) -> Path:
    folder.mkdir(parents=True)
    (folder / "submission.py").write_text(text)
    for name in SHADOWS:
        (folder / name).write_text(SHADOW)
    return folder


def packed(folder: Path, lms: str) -> Path:
    build(lms, double(folder), folder / "gradekit.zip")
    return container.packed(folder / "gradekit.zip", folder / "package")


def as_user(command: str, folder: str, environment: Mapping[str, str], user: int = USER) -> str:
    """`command` of a shell in a folder that belongs to an unprivileged user."""
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    inside = f"cd {folder} && {command}"
    drop = f"setpriv --reuid={user} --regid={user} --clear-groups --no-new-privs env -i {variables}"
    return f"sh -c {shlex.quote(f'chown -R {user}:{user} {folder}; exec {drop} bash -c {shlex.quote(inside)}')}"


@pytest.mark.sample(3, of="containers")
@in_a_container
def test_vpl_evaluates_in_two_steps_as_a_prisoner_and_reads_the_grade(tmp_path: Path) -> None:
    """What is not kept is deleted between them; the launcher reads the environment that Moodle wrote"""
    home = handed_in(tmp_path / "home/p10001")
    package = packed(tmp_path, "vpl")
    (home / "vpl_evaluate.sh").write_bytes((package / "vpl_evaluate.sh").read_bytes())
    (home / "gradekit.zip").write_bytes((tmp_path / "gradekit.zip").read_bytes())
    (home / "vpl_environment.sh").write_text("export VPL_GRADEMAX=20\nexport VPL_MAXTIME=200\nexport VPL_LANG=en\n")
    (home / "common_script.sh").write_text(". vpl_environment.sh\n")
    (home / ".vpl_launcher.sh").write_text("#!/bin/bash\n. vpl_environment.sh\n./vpl_execution\nexit $?\n")
    for script in home.glob("**/*.sh"):
        script.chmod(0o700)
    kept = "ulimit -u 500; ulimit -f 65536; ulimit -c 0"
    steps = f"{kept}; ./vpl_evaluate.sh && rm vpl_evaluate.sh gradekit.zip && ./.vpl_launcher.sh"
    environment = {"HOME": "/home/p10001", "TMPDIR": "/tmp", "PATH": PATH, "TERM": "dumb", "USER": "p10001"}
    done = container.run(tmp_path, {"home": tmp_path / "home"}, as_user(steps, "/home/p10001", environment))
    assert re.findall(r"^Grade :=>>(.*)$", done.said, re.MULTILINE) == [" 8.00000"], done.said
    comment = re.search(r"^<\|--$(.*?)^--\|>$", done.said, re.MULTILINE | re.DOTALL)
    assert comment is not None and "-[failed] Doubles every element (0 / 30)" in comment[1]


def expanded(template: str, answer: str) -> str:
    """A template as Twig fills it in, with CodeRunner's own escaper."""
    escaped = answer.replace("\\", "\\\\").replace('"', '\\"')
    known = {"STUDENT_ANSWER | e('py')": escaped, "QUESTION.cputimelimitsecs | default(120, true)": "120"}
    return re.sub(r"\{\{ (.*?) \}\}", lambda match: known[match[1]], template)


FIELDS = {
    "fraction", "prologuehtml", "testresults", "files", "epiloguehtml", "columnformats", "showdifferences",
    "showoutputonly", "graderstate", "instructorhtml",
}  # fmt: skip
"""What CodeRunner lets the answer of a combinator template grader have: any other field is an error."""


@pytest.mark.sample(3, of="containers")
@in_a_container
def test_coderunner_reads_a_fraction_from_jobe_and_nothing_from_standard_error(tmp_path: Path) -> None:
    answer = '"""A docstring, with a \\\\ and \'quotes\'."""\r\n' + TRIPLES.replace("\n", "\r\n")
    work = handed_in(tmp_path / "home/jobe/runs/jobe_x1", answer)
    (work / "submission.py").unlink()  # the answer is in the template alone
    package = packed(tmp_path, "coderunner")
    (work / "gradekit.zip").write_bytes((tmp_path / "gradekit.zip").read_bytes())
    program = expanded((package / "template.py").read_text(), answer)
    assert not re.search(r"\{[{%#]", program)  # Twig reads each of these
    (work / "prog.py").write_text(program)
    limits = "ulimit -u 200; ulimit -f 20000; ulimit -t 121; ulimit -c 0"
    runs = f"{limits}; python3 -BE prog.py </dev/null >prog.out 2>prog.err"
    home = "/tmp/mplwork_x"
    environment = {"PATH": PATH, "HOME": home, "MPLCONFIGDIR": home, "OPENBLAS_NUM_THREADS": "4"}
    command = as_user(f"mkdir {home}; {runs}", "/home/jobe/runs/jobe_x1", environment)
    done = container.run(tmp_path, {"home": tmp_path / "home"}, command)
    said = (work / "prog.out").read_text()
    assert (work / "prog.err").read_text() == "", done.said  # Jobe calls any word a failed run
    result = json.loads(said)
    assert result.keys() <= FIELDS and result["fraction"] == 0.4
    assert "[failed] Doubles every element (0 / 30)" in result["prologuehtml"]


@pytest.mark.sample(3, of="containers")
@in_a_container
def test_codegrade_reads_points_from_the_structured_output_through_its_own_command(tmp_path: Path) -> None:
    home = tmp_path / "codegrade"
    handed_in(home / "student")
    packed(tmp_path, "codegrade").rename(home / "fixtures")
    (home / "bin").mkdir()
    (home / "bin/cg").write_text('#!/bin/sh\n[ "$1" = truncate ] && exec cat >&3\n')  # what it writes to is inherited
    (home / "bin/cg").chmod(0o755)
    environment = {"PATH": f"/codegrade/bin:{PATH}", "CG_ATV2": "true", "FIXTURES": "/codegrade/fixtures"}
    command = as_user("cd student && bash $FIXTURES/run.sh 3>../structured", "/codegrade", environment)
    done = container.run(tmp_path, {"codegrade": home}, command)
    assert done.code == 0, done.said
    checks, points = map(json.loads, (home / "structured").read_text().splitlines())
    assert points == {"tag": "points", "points": "2/5"} and checks["tag"] == "unit-test"
    assert [case["status"] for case in checks["results"][0]["testCases"]] == ["failure", "success"]


@pytest.mark.sample(3, of="containers")
@in_a_container
def test_gitlab_runs_the_job_and_keeps_what_it_names(tmp_path: Path) -> None:
    project = handed_in(tmp_path / "builds/group/project")
    packed(tmp_path, "gitlab").rename(project / ".gradekit")
    job = yaml.safe_load((project / ".gradekit/gitlab-ci.yml").read_text())["gradekit"]
    assert (project / ".gradekit/requirements.txt").is_file()
    assert "-r .gradekit/requirements.txt" in job["before_script"][0]
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in job["variables"].items())
    script = f"set -eo pipefail; cd /builds/group/project; export PATH={PATH} {settings}; " + "\n".join(job["script"])
    done = container.run(tmp_path, {"builds": tmp_path / "builds"}, f"bash -c {shlex.quote(script)}")
    assert done.code == 1, done.said  # red, as a check that fails
    report = ElementTree.parse(project / job["artifacts"]["reports"]["junit"])
    failed = {case.get("name") for case in report.iter("testcase") if case.find("failure") is not None}
    assert failed == {"test_doubles"} and all(case.get("classname") for case in report.iter("testcase"))
    assert all((project / path).is_file() for path in job["artifacts"]["paths"])


@pytest.mark.sample(3, of="containers")
@in_a_container
def test_github_classroom_hands_the_step_s_result_to_the_reporter_and_annotates_the_file(tmp_path: Path) -> None:
    workspace = handed_in(tmp_path / "github/workspace")
    packed(tmp_path, "classroom").rename(workspace / ".gradekit")
    workflow = yaml.safe_load((workspace / ".gradekit/classroom.yml").read_text())
    *_, step, reporter = workflow["jobs"]["grade"]["steps"]
    runner = reporter["with"]["runners"]
    assert reporter["env"] == {f"{runner.upper()}_RESULTS": "${{ steps." + step["id"] + ".outputs.result }}"}
    (workspace.parent / "output").touch()
    files = {"GITHUB_OUTPUT": "/github/output", "GITHUB_STEP_SUMMARY": "/github/summary"}
    environment = step["env"] | files | {"PATH": PATH}
    command = as_user(f"cd workspace; {step['run']}", "/github", environment, 1001)
    done = container.run(tmp_path, {"github": tmp_path / "github"}, command)
    assert done.code == 0, done.said
    outputs = dict(line.split("=", 1) for line in (workspace.parent / "output").read_text().splitlines())
    result = json.loads(base64.b64decode(outputs["result"]))
    assert result["max_score"] == 50 and sum(test["score"] for test in result["tests"]) == 20
    (annotated,) = re.findall(r"^::error file=([^,]+),line=(\d+),title=", done.said, re.MULTILINE)
    assert "tl.store" in (workspace / annotated[0]).read_text().splitlines()[int(annotated[1]) - 1]
    assert "| ❌ |" in (workspace.parent / "summary").read_text()
