"""Shows that an assignment grades as it should: each thing that must hold is a claim, tried on real submissions.

The solution earns every point that this machine can measure, and so does each right_*.py beside it; the starter earns
none; each mistake (gradekit.course.mistakes) fails the check and for the cause that it declares; and trivially wrong
results earn no point for correctness.
"""

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gradekit.assignment import Assignment
from gradekit.course.mistakes import Mistake, MistakeError, bases, read_or_refused
from gradekit.findings import Cause, Check, Kind, Outcome, Report, Status
from gradekit.report.text import one_line, points, seconds, shortened
from gradekit.request import TRIVIAL_RESULTS, GradingOptions, GradingRequest

_MOST = 3  # checks that a problem tells of


Grade = Callable[[GradingRequest], Report]  # `gradekit.plugin.grade`, or a function with the same signature


Found = tuple[str, str]  # what came of a claim: a problem, empty where it holds, and a note on what the trial left open


@dataclass(frozen=True)
class Claim:
    """Something that must hold: `subject`, a file, a mistake or a trivial result, does `says`."""

    subject: str
    says: str
    check: Callable[[], Found]


@dataclass(frozen=True)
class ClaimResult:
    """What came of a claim: `problem` is empty where it holds, `note` where nothing was left open."""

    claim: Claim
    problem: str
    seconds: float
    note: str = ""

    @property
    def held(self) -> bool:
        """Whether there is no problem."""
        return not self.problem


def claims(assignment: Assignment, grade: Grade, *, quick: bool = False) -> list[Claim]:
    """Every claim that must hold for `assignment`. Nothing is graded until a claim is tried."""
    solution = assignment.solution
    if solution is None or not solution.is_file():
        name = f"solution{assignment.suffix}"
        return [Claim(name, "exists", lambda: (f"there is no solutions/{assignment.id}/{name}", ""))]

    def graded(path: Path, keyword: str | None = None, trivial: str | None = None) -> Report:
        options = GradingOptions(keyword=keyword, trivial=trivial, profile="quick" if quick else "default", hidden=True)
        return grade(GradingRequest(assignment, path, options))

    def right(path: Path) -> Found:
        report = graded(path)
        return earns_everything(report), " ".join(filter(None, (left_open(report), nearest_to_budget(report))))

    def worthless(trivial: str) -> Found:
        report = graded(solution, trivial=trivial)
        problem = earns_no_correctness(report, may_be_right=trivial == "lower_precision")
        return problem, unchanged(report, trivial)

    def fails(found: Mistake) -> Found:
        with tempfile.TemporaryDirectory(prefix="gradekit-verify-") as folder:
            path = Path(folder, found.name + assignment.suffix)
            path.write_text(found.text, encoding="utf-8")
            report = graded(path, keyword=found.check or None)
            if found.cause is None:  # what each check names by itself, which is how a claim is tried
                tests = dict.fromkeys(c.id.partition("[")[0] for c in report.checks if c.outcome is Outcome.FAILED)
                alone = [graded(path, keyword=test) for test in [*tests][:_MOST]]
                report = replace(report, checks=tuple(check for each in alone for check in each.checks))
            return fails_for(report, found.check, found.cause), ""

    bases_too = (solution, *bases(assignment))
    return [
        *(Claim(path.name, "earns all that is measured", partial(right, path)) for path in bases_too),
        Claim(assignment.starter.name, "earns nothing", lambda: (earns_nothing(graded(assignment.starter)), "")),
        *(_of_mistake(name, found, fails) for name, found in read_or_refused(assignment)),
        *(Claim(trivial, "earns nothing for correctness", partial(worthless, trivial))
          for trivial in (() if assignment.is_quiz else TRIVIAL_RESULTS)),
    ]  # fmt: skip


def _of_mistake(name: str, found: Mistake | MistakeError, fails: Callable[[Mistake], Found]) -> Claim:
    if isinstance(found, MistakeError):
        problem = str(found)
        return Claim(name, "is described as it should be", lambda: (problem, ""))
    expected = f"{found.check}: {found.cause.value}" if found.cause else "for what is yet to be written"
    return Claim(name, f"fails {expected}", partial(fails, found))


def tried(claim: Claim) -> ClaimResult:
    """What comes of the claim; where trying it raises, it does not hold."""
    began = time.monotonic()
    try:
        problem, note = claim.check()
    except Exception as error:  # noqa: BLE001  # whatever it is, the claim has not been shown
        problem, note = f"{type(error).__name__}: {error}", ""
    return ClaimResult(claim, problem, time.monotonic() - began, note)


# --- what a report shows: each answers with the problem, or "" --------------------------------------------------------


def earns_everything(report: Report) -> str:
    """Nothing failed: every check passed, could not be measured here, or was a bonus."""
    if report.status is not Status.GRADED:
        return f"{report.status.value}: {report.message}"
    lost = [check for check in report.checks if check.lost or check.outcome is Outcome.FAULT]
    passed = any(check.outcome is Outcome.PASSED for check in report.checks)
    return _problems(lost) or ("" if passed else "no check passed")


def left_open(report: Report) -> str:
    """What this machine did not measure, and why; "" where it measured everything."""
    waiting = [check for check in report.checks if check.outcome is Outcome.PENDING]
    if not waiting:
        return ""
    why = " ".join(dict.fromkeys(one_line(check.message) for check in waiting))
    names = ", ".join(dict.fromkeys(check.id.partition("[")[0] for check in waiting))
    return f"{points(report.score.pending)} points are open ({names}). {why}"


def nearest_to_budget(report: Report) -> str:
    """How much of the work that a check may take the one that takes most has used; "" where no kernel ran."""
    used = [(check.details["budget"], check.id) for check in report.checks if "budget" in check.details]
    share, name = max(used, default=(0.0, ""))
    return f"{name} takes {100 * share:.2g} % of the work that a check may take." if used else ""


def earns_nothing(report: Report) -> str:
    """Returns a problem if any point was earned, or if the grader failed."""
    if report.status is Status.FAULT:
        return f"fault: {report.message}"
    return _problems(check for check in report.checks if check.earned or check.outcome is Outcome.FAULT)


def earns_no_correctness(report: Report, *, may_be_right: bool = False) -> str:
    """A problem if a check of correctness earned a point for a wrong result, or none was wrong, unless they
    `may_be_right`: small whole numbers in a lower precision are."""
    if report.status is not Status.GRADED:
        return f"{report.status.value}: {report.message}"
    checks = [check for check in report.checks if check.kind is Kind.CORRECTNESS and not _is_right(check)]
    if not checks and not may_be_right:
        return "no check of correctness was given a wrong result"
    return _problems(check for check in checks if check.earned or check.outcome is Outcome.FAULT)


def unchanged(report: Report, trivial: str) -> str:
    """Which checks of correctness saw no wrong result, because all of their results stay as they are; "" for none."""
    same = dict.fromkeys(c.id.partition("[")[0] for c in report.checks if c.kind is Kind.CORRECTNESS and _is_right(c))
    return f"{trivial} changes no result of {', '.join(same)}" if same else ""


def _is_right(check: Check) -> bool:
    return check.details.get("trivially") == "right"


def fails_for(report: Report, test: str, cause: Cause | None) -> str:
    """The check `test`, or one of its parametrizations, failed for `cause`: as diagnosed, or as it was observed. Where
    there is no `cause`, what a mistake's `expect` is to say, as it was measured."""
    checks = [check for check in report.checks if test in ("", check.id.partition("[")[0])]
    failed = [check for check in checks if check.outcome is Outcome.FAILED]
    if report.status is Status.FAULT:
        return f"fault: {report.message}"
    if cause is None:
        told = [f'expect = "{check.id.partition("[")[0]} {check.cause.value}"' for check in failed if check.cause]
        fails = ", or ".join(dict.fromkeys(told))
        return f"it says no expect; what fails: {fails}" if told else "no check fails with it"
    if not checks:
        return f"there is no check {test}"
    if any(cause in (check.cause, check.details.get("observed_cause")) for check in failed):
        return ""
    return _problems(failed or checks[:1])


def _problems(checks: Iterable[Check]) -> str:
    all_shown = [_shown(check) for check in checks]
    more = [f"and {len(all_shown) - _MOST} more"] if len(all_shown) > _MOST else []
    return "; ".join(all_shown[:_MOST] + more)


def _shown(check: Check) -> str:
    worth = f"{check.id} {check.outcome.value}, {points(check.earned)} of {points(check.possible)}"
    cause = f" ({check.cause.value})" if check.cause else ""
    return f"{worth}{cause}" + (f": {shortened(one_line(check.message), 160)}" if check.message else "")


# --- the table --------------------------------------------------------------------------------------------------------


def row(result: ClaimResult, width: int) -> str:
    """One line for a result, subjects in `width` columns, and below it what is wrong, where something is."""
    mark, claim = "ok  " if result.held else "FAIL", result.claim
    text = f"  {mark}  {seconds(result.seconds):>7}  {claim.subject:<{width}}  {claim.says}"
    below = result.note if result.held else result.problem
    return text + "\n" + " " * 8 + below if below else text


def summary(results: list[ClaimResult], took: float) -> str:
    """One line for an assignment: how many claims hold, and how many seconds it took to see, all cores together."""
    return f"{sum(result.held for result in results)} of {len(results)} claims hold; {seconds(took)}"
