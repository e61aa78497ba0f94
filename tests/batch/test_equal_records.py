"""The same submission gets the same record from `check`, in a class, and on a machine that has hardly any time for it."""

import base64
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gradekit import reuse
from gradekit.assignment import discover, get
from gradekit.batch.grader import Graders, GradingJob, release
from gradekit.checking import check
from gradekit.course.mistakes import all_of as mistakes
from gradekit.report.record import to_dict
from gradekit.request import GradingOptions
from tests import right
from tests.batch.clusters import BROKEN, RAISES, RIGHT, WRONG, assignments
from tests.patience import GUARD

RENAMED = "# My own.\n\n" + re.sub(r"\bi\b", "offsets", RIGHT)
TRIPLED = RIGHT.replace("2 * tl", "3 * tl")
UNMASKED = RIGHT.replace(", i < n)", ")")
BLIND = RIGHT.replace("tl.load(x_ptr + i, i < n)", "tl.load(x_ptr + i, i < n - 3)")
SLEEPY = RIGHT.replace("    out =", "    import time; time.sleep(0.1)\n    out =")
RACY = RIGHT.replace("tl.store(out_ptr + i, 2 *", "tl.store(out_ptr + i, tl.program_id(0) +").replace("    i = tl", "    i = 0 * tl")
TUNED = RIGHT.replace("@triton.jit", "@triton.autotune([triton.Config({'BLOCK': b}) for b in (32, 64)], key=['n'])\n@triton.jit")
TUNED = TUNED.replace("[(triton.cdiv(x.numel(), 64),)]", "[lambda m: (triton.cdiv(x.numel(), m['BLOCK']),)]")
TUNED = TUNED.replace("x.numel(), BLOCK=64)", "x.numel())")
ENDLESS = RIGHT.replace("    tl.store", "    turns = 0\n    while turns < 1000000000:\n        turns += 1\n    tl.store")
ENDLESS = ENDLESS.replace("i < n)\n\n\ndef", "(i < n) & (turns > 0))\n\n\ndef")
FOR_EVER = RIGHT.replace("    out =", "    import time; time.sleep(1e9)\n    out =")
COMPUTES = RIGHT.replace("    out =", "    while True:\n        pass\n    out =")
COUNTED = RIGHT.replace("64", "4").replace("out_ptr, n", "out_ptr, count_ptr, n").replace("(x, out, x", "(x, out, count, x").replace(
    "    out =", "    count = torch.zeros(1, device=x.device)\n    out ="
)  # fmt: skip
LOST = COUNTED.replace("    tl.store", "    tl.store(count_ptr, tl.load(count_ptr) + 1)\n    tl.store")
ADDED = COUNTED.replace("    tl.store", "    tl.atomic_add(count_ptr, 1.0)\n    tl.store")
TEXTS = {
    "right": RIGHT, "wrong": TRIPLED, "unmasked": UNMASKED, "blind": BLIND, "sleepy": SLEEPY, "raises": RAISES,
    "broken": BROKEN, "racy": RACY, "tuned": TUNED, "lost updates": LOST, "counted by atomics": ADDED,
}  # fmt: skip
NEVER_ENDING = {"computes": COMPUTES, "sleeps": FOR_EVER, "loops": ENDLESS}
POINTS = {"lost updates": 0, "counted by atomics": 60} | dict.fromkeys(NEVER_ENDING, 0)
ROOT = Path(__file__).parents[2]
OPTIONS = GradingOptions(hidden=True, profile="quick", device="cpu")


@contextmanager
def seen_to(graders: Graders, act: Callable[[int], object]) -> Iterator[None]:
    """While open, `act` is called again and again with the process id of each grader that works."""
    over = threading.Event()

    def see_to() -> None:
        while not over.wait(0.005):
            for process in list(graders._graders):
                with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                    act(process.pid)

    thread = threading.Thread(target=see_to)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def hardly_running(graders: Graders, share: float = 0.1) -> contextlib.AbstractContextManager[None]:
    """While open, each grader runs for this share of the time."""

    def throttle(pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.1 * (1 - share))
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.1 * share)

    return seen_to(graders, throttle)


def most_memory(graders: Graders, job: GradingJob) -> tuple[Any, int]:
    """The record of a job, and the most KiB that its grader had, with what it shares with its template."""
    seen = [0]

    def look(pid: int) -> None:
        told = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
        seen.append(int(told[1]) if told else 0)  # a process that has just ended has none

    with seen_to(graders, look):
        record = graders.grade(job, 10 * GUARD).record
    graders.close()
    assert max(seen), "it was looked at while it worked"
    return record, max(seen)


def comparable(record: Any) -> Any:
    """The record without times and the names of machines."""
    left_out = {"seconds", "environment"}
    return {name: value for name, value in record.items() if name not in left_out}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assignments(tmp_path_factory.mktemp("equal"))


@pytest.fixture(scope="module")
def grader(course: Path) -> Iterator[Graders]:
    """One that has graded others before."""
    made = Graders(warms=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADEKIT_ASSIGNMENTS", str(course))
        made.grade(job(WRONG), GUARD)
    yield made
    made.close()


def checked(course: Path, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The record that `gradekit check` makes in this process, as far as it is to be the same everywhere."""
    monkeypatch.setenv("GRADEKIT_ASSIGNMENTS", str(course))
    monkeypatch.chdir(folder)
    Path("submission.py").write_text(text)
    return comparable(to_dict(check(Path("submission.py"), "double", OPTIONS)))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [*TEXTS, *(pytest.param(name, marks=pytest.mark.slow) for name in NEVER_ENDING)])
def test_check_a_class_and_a_throttled_grader_make_the_same_record(
    course: Path, grader: Graders, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (TEXTS | NEVER_ENDING)[name]
    alone = checked(course, text, tmp_path, monkeypatch)
    assert comparable(grader.grade(job(text), 10 * GUARD).record) == alone
    with hardly_running(grader):
        assert comparable(grader.grade(job(text), 30 * GUARD).record) == alone
    assert alone["checks"] and alone["status"] in ("graded", "rejected")
    if name in POINTS:
        assert (alone["status"], alone["score"]["earned"]) == ("graded", POINTS[name])


@pytest.mark.sample(2)
@pytest.mark.parametrize("text", [RIGHT, TRIPLED, UNMASKED, TUNED, RAISES], ids=["right", "wrong", "unmasked", "tuned", "raises"])
def test_after_an_edit_of_comments_a_check_makes_the_record_of_a_first_one(
    course: Path, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited = "# Mine.\n\n" + text.replace("def double", "# The entry.\n\n\ndef double") + "# The end.\n"
    alone = checked(course, edited, tmp_path, monkeypatch)
    with reuse.kept():
        checked(course, text, tmp_path, monkeypatch)
        assert checked(course, edited, tmp_path, monkeypatch) == alone


GREEDY = RIGHT.replace("    out = torch.empty_like(x)\n", "    out = torch.empty_like(x)\n    BIG\n").replace(
    "x_ptr, out_ptr, n", "x_ptr, out_ptr, big_ptr, n"
).replace("(x, out, x", "(x, out, big, x").replace(
    "    tl.store(out", "    at = tl.arange(0, 1024)\n    tl.store(big_ptr + at, tl.load(big_ptr + at) + 1)\n    tl.store(out"
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("size", ["2**28", "250_000_000", "1 << 26"])
def test_a_race_in_a_large_buffer_leaves_a_grader_below_a_gibibyte(course: Path, size: str) -> None:
    text = GREEDY.replace("BIG", f"big = torch.zeros({size}, dtype=torch.uint8, device=x.device)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADEKIT_ASSIGNMENTS", str(course))
        record, most = most_memory(Graders(), job(text))
    assert record["score"]["earned"] == 0
    assert most < 1 << 20


@pytest.mark.slow
@pytest.mark.parametrize(("id", "number"), [("softmax", 0), ("layer_norm", 1), ("giou_loss", 0), ("dropout", 1)])
def test_a_failing_submissions_record_does_not_depend_on_the_order_of_sets(id: str, number: int, tmp_path: Path) -> None:
    """Python orders a set of texts anew in each process, unless PYTHONHASHSEED says how"""
    mistake = list(mistakes(get(id)))[number]
    (tmp_path / "submission.py").write_text(mistake.text)
    records = []
    for seed in ("1", "2", "3"):
        command = [sys.executable, "-m", "gradekit", "check", "submission.py", "-a", id, "--device", "cpu", "--json", "r.json"]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=10 * GUARD, check=False)
        records.append(comparable(json.loads((tmp_path / "r.json").read_text())))
    assert any(check["outcome"] == "failed" for check in records[0]["checks"])
    assert records[0] == records[1] == records[2]


def of_every_assignment() -> Iterator[tuple[str, str, str]]:
    """The solution of each assignment of kernels and one of its mistakes: id, name, text."""
    for id, assignment in sorted(discover(ROOT / "assignments").items()):
        if not assignment.is_quiz:
            yield id, "solution", (ROOT / "solutions" / id / "solution.py").read_text()
            first = next(mistakes(assignment))
            yield id, first.name, first.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("id", "text"), [pytest.param(id, text, id=f"{id}-{name}") for id, name, text in of_every_assignment()]
)
def test_in_every_assignment_check_and_a_grader_with_half_a_processor_make_the_same_record(
    id: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grader's template has graded the solution before."""
    options = GradingOptions(device="cpu")
    (tmp_path / "submission.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    alone = comparable(to_dict(check(Path("submission.py"), id, options)))
    made = Graders(warms=True)
    with contextlib.closing(made), hardly_running(made, share=0.5):
        assert comparable(made.grade(job(text, id, options), 30 * GUARD).record) == alone
    assert alone["status"] == "graded" and alone["checks"]


def job(text: str, id: str = "double", options: GradingOptions = OPTIONS) -> GradingJob:
    content = base64.b64encode(text.encode()).decode()
    return GradingJob(id, release(get(id)), options.to_json(), "submission.py", content)


LARGEST = ["softmax", "layer_norm", "spmm", "giou_loss", "flash_attention", "decode_attention"]


@pytest.mark.slow
@pytest.mark.parametrize("id", LARGEST)
def test_a_right_submissions_largest_calls_leave_a_grader_below_a_gibibyte(id: str, real_start: None) -> None:
    """The solutions that take most memory, graded as in a class: with hidden tests and a secret seed"""
    options = GradingOptions(device="cpu", hidden=True, secret_seed=123456789012345)
    text = (ROOT / "solutions" / id / "solution.py").read_text()
    record, most = most_memory(Graders(warms=True), job(text, id, options))
    score = record["score"]
    assert score["earned"] == score["possible"] - score["pending"] > 0
    assert most < 1 << 20


def test_each_grader_is_a_fork_of_one_template_that_has_graded_the_solution_and_makes_the_record_of_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"right": RIGHT, "renamed": RENAMED, "renamed and wrong": RENAMED.replace("2 *", "3 *"), "unmasked": UNMASKED,
             "remarked": "# Mine.\n" + RIGHT + "# The end.\n", "remarked, unmasked": "# Mine.\n" + UNMASKED,
             "unmasked to the end": UNMASKED + "# The end.\n", "broken": BROKEN}  # fmt: skip
    course = assignments(tmp_path)
    solution = tmp_path / "solutions/double/solution.py"
    solution.parent.mkdir(parents=True)
    solution.write_text(RIGHT)
    alone = {name: checked(course, text, tmp_path, monkeypatch) for name, text in texts.items()}
    parents, made = set[str](), Graders(warms=True)

    def look(pid: int) -> None:
        parents.add(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    with contextlib.closing(made), seen_to(made, look):
        found = {name: comparable(made.grade(job(text), GUARD).record) for name, text in texts.items()}
        assert made._template is not None
        template = str(made._template.pid)
    assert found == alone
    assert parents == {template}


@pytest.mark.slow
@pytest.mark.parametrize("path", ["softmax/block_pointers.py", "layer_norm/autotuned.py"])
def test_what_was_graded_before_changes_nothing_in_a_record(path: str) -> None:
    """Not even what was tried beside the examples, and what it cost"""
    style = right.file(right.FOLDER / path)
    id, options = path.partition("/")[0], GradingOptions(device="cpu", jobs=1)
    alone = comparable(to_dict(check(style, id, options)))
    with reuse.kept():
        check(right.ROOT / "solutions" / id / "solution.py", id, options)
        assert comparable(to_dict(check(style, id, options))) == alone
