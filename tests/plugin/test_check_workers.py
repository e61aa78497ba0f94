"""Checks that run in other processes at the same time count as if they had run in one, one after the other."""

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradekit import reuse
from gradekit.assignment import Assignment
from gradekit.findings import Outcome, Report
from gradekit.plugin.profiles import Limit
from gradekit.processes import ForkedProcess
from gradekit.report.record import to_dict
from tests.beside import beside
from tests.graded import grade
from tests.patience import GUARD
from tests.plugin.samples import RIGHT, TRIPLES, UNMASKED

Make = Callable[..., Assignment]
Write = Callable[[str], Path]

TESTS = beside(__file__)["tests"]


def checks(second: str = "", memory: str = "(1, 300)") -> str:
    return TESTS.format(grader=os.getpid(), second=second, memory=memory)


def graded(made: Assignment, path: Path, jobs: int, **options: Any) -> tuple[Report, dict[str, str]]:
    """The report, and for each check where it ran last."""
    seen = made.folder / "processes"
    seen.unlink(missing_ok=True)
    report = grade(made, path, jobs=jobs, **options)
    return report, dict(line.split() for line in seen.read_text().splitlines())


@pytest.fixture(autouse=True)
def worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limit, "WORTH_A_WORKER", 0)


def told(report: Report) -> list[Any]:
    """What a report says of its checks, but for what was proved and tried once for all of them."""
    return [[check | {"details": {}} for check in to_dict(report)["checks"]], report.score]


def test_a_right_submission_is_checked_in_several_processes_with_the_same_record(assignment: Make, submitted: Write) -> None:
    made, path = assignment(checks()), submitted(RIGHT)
    alone, here = graded(made, path, jobs=1)
    report, where = graded(made, path, jobs=2)
    assert set(here.values()) == {"here"} and set(where.values()) == {"here", "elsewhere"}
    assert told(report) == told(alone) and report.score.earned == 40


@pytest.mark.parametrize("text", [TRIPLES, UNMASKED])
def test_what_fails_is_told_as_one_process_tells_it(assignment: Make, submitted: Write, text: str) -> None:
    made, path = assignment(checks()), submitted(text)
    report, where = graded(made, path, jobs=3)
    failed = [check for check in report.checks if check.outcome is Outcome.FAILED]
    assert failed and told(report) == told(graded(made, path, jobs=1)[0])
    assert {where[check.id.removeprefix("test_")] for check in failed} == {"here"}


def test_a_check_of_memory_answers_for_the_calls_of_all_processes(assignment: Make, submitted: Write) -> None:
    """The kernel stores beyond the result where that has 17 elements: in no call of the memory check's own."""
    beyond = RIGHT.replace("mask=i < n)\n\n\n", "mask=(i < n) | (n == 17))\n\n\n")
    assert beyond != RIGHT
    made = assignment(checks(memory="(18, 300)").replace("size=(1, 300)", "size=(17, 17)"))
    report, _ = graded(made, submitted(beyond), jobs=2)
    assert {check.id: check.outcome for check in report.checks}["test_memory"] is Outcome.FAILED
    assert told(report) == told(graded(made, submitted(beyond), jobs=1)[0])


def test_a_second_run_learns_nothing_that_a_process_of_the_first_knew(assignment: Make, submitted: Write) -> None:
    made, path = assignment(checks()), submitted(RIGHT)
    with reuse.kept():
        first, where = graded(made, path, jobs=2)
        here = reuse.known()
        reuse.merge_received()
        known = reuse.known()
        second, _ = graded(made, path, jobs=2)
        reuse.merge_received()
        assert "elsewhere" in where.values() and known != here
        assert reuse.known() == known
        assert to_dict(second)["checks"] == to_dict(first)["checks"]


def test_checks_of_a_process_that_dies_run_here(assignment: Make, submitted: Write) -> None:
    made = assignment(checks(second="os.getpid() == GRADER or os._exit(1)"))
    report, where = graded(made, submitted(RIGHT), jobs=3)
    assert where["second"] == "here" and report.score.earned == 40


def test_a_quick_look_takes_one_process(assignment: Make, submitted: Write) -> None:
    _, where = graded(assignment(checks()), submitted(RIGHT), jobs=2, profile="quick")
    assert set(where.values()) == {"here"}


def test_a_forked_process_answers_in_order_and_ends_with_its_object() -> None:
    forked = ForkedProcess(lambda message: message + str(os.getpid() == here).encode())
    for message in (b"one ", b"two "):
        forked.ask(message)
    assert [forked.take(GUARD), forked.take(GUARD)] == [b"one False", b"two False"]
    (pid,) = [int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split() if _is_fork(one)]
    del forked
    gc.collect()
    assert not Path(f"/proc/{pid}").exists()


here = os.getpid()


def _is_fork(pid: str) -> bool:
    """Whether a child has this process's own command line."""
    return Path(f"/proc/{pid}/cmdline").read_bytes() == Path("/proc/self/cmdline").read_bytes()


def test_a_forked_process_that_breaks_down_is_gone() -> None:
    forked = ForkedProcess(lambda message: b"" if message else 1 // 0)  # type: ignore[return-value]
    forked.ask(b"")
    with pytest.raises((EOFError, OSError)):
        forked.take(GUARD)
    forked.end()


def test_proofs_of_all_calls_weigh_as_much_as_the_first_check_does(assignment: Make, submitted: Write) -> None:
    """So the process that runs them is given nothing else, where the third check costs less."""
    _, where = graded(assignment(checks()), submitted(RIGHT), jobs=2)
    assert where == {"first": "here", "second": "here", "memory": "elsewhere"}
