"""A grading run inside pytest: what happens at each of its steps, from collection to the written report."""

from collections.abc import Collection, Generator
from typing import Any

import pytest

from gradekit.causes import NO_RESULT
from gradekit.compat.pytest import format_comparisons_without_terminal, report_passed
from gradekit.findings import Check, Outcome, Report
from gradekit.plugin import check_points, check_results
from gradekit.plugin.check_results import BrokenOff
from gradekit.plugin.check_run import CHECK, CheckRun, evidence_of, run_secretly
from gradekit.plugin.check_workers import CheckWorkers
from gradekit.plugin.design import drawn_by
from gradekit.plugin.run_state import RUN, GradingRun, return_freed
from gradekit.report.text import counted

_Reported = Generator[None, pytest.TestReport, pytest.TestReport]


class GradingPlugin:
    """`report` is there when pytest has finished; `left_out` are the names of the checks that were not to run."""

    config: pytest.Config

    def __init__(self, run: GradingRun, failed: Collection[str] = ()) -> None:
        self.run = run
        self._workers = CheckWorkers(run, failed)
        self._collected: list[str] = []
        self.left_out: list[str] = []
        self.report: Report | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Announce the run: the command line then asks for no other."""
        self.config = config
        config.stash[RUN] = self.run
        if not config.pluginmanager.has_plugin("terminalreporter"):
            config.option.tbstyle = "line"  # nobody reads how pytest shows failures
        format_comparisons_without_terminal(config)

    # --- collection --------------------------------------------------------------------------------------------------

    def pytest_exception_interact(self, call: pytest.CallInfo[Any], report: object) -> None:
        """Tests that cannot be collected are the grader's fault, for they are the grader's."""
        if isinstance(report, pytest.CollectReport) and call.excinfo is not None:
            error = call.excinfo.value
            said = check_results.located(error.__cause__ or error)
            self.run.faults.append(f"The assignment's tests could not be collected: {said}")

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note the order in which the assignment's files have the checks."""
        self._collected.append(item.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Split the points while all tests are there, and undo what shuffles them; memory of all calls comes last."""
        order = {nodeid: number for number, nodeid in enumerate(self._collected)}
        items.sort(key=lambda item: order[item.nodeid])
        self.run.possible = check_points.possible_points(items)
        counted = [item for item in items if not check_points.claims(item, "assert_bytes_moved")]
        every = ((item.name, drawn_by(getattr(item, "obj", None))) for item in counted)
        self.run.drawn = [(name, drawn[1]) for name, drawn in every if drawn is not None]
        kind = self.run.request.options.kind
        if kind:
            items[:] = [item for item in items if check_points.worth(item).kind == kind]
        self.run.order = {item.name: number for number, item in enumerate(items)}
        items.sort(key=lambda item: check_points.claims(item, "assert_memory_clean"))

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Note which checks are not run."""
        self.left_out += [item.name for item in items]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """All checks are known: now the submission must have been executed."""
        self.run.items = list(session.items)
        if session.items and self.run.rejection is None:
            self.run.load()
            if self.run.rejection is None:
                self._workers.share_out(session.items)
                self._workers.look_first(self.run.items)

    # --- each check --------------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Tell those who watch that a check begins; one that has passed in another process is not run here."""
        self.run.on_progress(check_points.title(item), len(self.run.checks), len(self.run.items))
        check = self._workers.passed(item)
        if check is None:
            return None
        report_passed(item, nextitem)
        self._record(check, evidence_of(item), None)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """A submission that was rejected is not run."""
        if self.run.rejection is not None:
            raise self.run.rejection

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run a check under the seed and the profile, then under the secret seed if there is one; keep the evidence."""
        with CheckRun(item, self.run).running():
            result = yield
        if self.run.request.options.secret_seed is not None and isinstance(item, pytest.Function):
            run_secretly(item, self.run)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Examples that this process has drawn before are run without Hypothesis; where one fails, it starts over."""
        return pyfuncitem.stash[CHECK].ran_planned() or None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> _Reported:
        """A check has ended, or could not begin: record it."""
        if not self.config.pluginmanager.has_plugin("terminalreporter"):
            # In one line: a traceback with source lines would take long to format, and is not shown.
            item.repr_failure = pytest.ExceptionInfo.exconly  # type: ignore[assignment, method-assign]
        report = yield
        if call.when == "call" or (call.when == "setup" and call.excinfo):
            evidence = evidence_of(item)
            error = call.excinfo.value if call.excinfo else None
            evidence.error = error
            check = check_results.check_of(item, self.run, error, evidence)
            _as_pytest_says(report, check, item)
            self._record(check, evidence, error)
            if error is None and CHECK in item.stash:
                del item.stash[CHECK]  # and with it the references of its calls, which a cache may have let go
            return_freed()
        return report

    def _record(self, check: Check, evidence: check_results.CheckEvidence, error: BaseException | None) -> None:
        self.run.checks.append(check)
        self.run.on_evidence(check, evidence, error)

    # --- the end -----------------------------------------------------------------------------------------------------

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """pytest or gradekit itself failed: the report says so, and no check loses points for it."""
        self.run.faults.append(f"The grader broke down: {excinfo.exconly()}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Make the report: a run that broke off is a fault, and the checks that were not run lose no points. Where the
        user asked to stop at a failure (-x), the checks after it are left out, as with -k."""
        run = self.run
        self._workers.close()
        self._settle()
        missing = [item for item in run.items if item.name not in {check.id for check in run.checks}]
        if missing and run.rejection is None and session.shouldfail and any(check.lost for check in run.checks):
            run.notes.append(f"Stopped at the first failure: {counted(len(missing), 'check')} did not run.")
            missing = []
        if missing and run.rejection is None and not run.faults:
            run.faults.append("The run was interrupted.")
        why = run.rejection or BrokenOff()  # -x or not, every check ends with a rejection
        run.checks += [check_results.check_of(item, run, why, check_results.CheckEvidence()) for item in missing]
        run.checks.sort(key=lambda check: run.order.get(check.id, len(run.order)))
        run.notes += self._about_the_run() + list(dict.fromkeys(run.device.troubles if run.device else ()))
        if run.subject is not None:
            run.on_subject(run.subject)
        self.report = check_results.report_of(run)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """By their module's loader, which pytest made, functions that a warm grader keeps would keep the whole run."""
        for item in self.run.items:
            if isinstance(item, pytest.Function):
                vars(item.module).update(__loader__=None, __spec__=None)

    def _settle(self) -> None:
        """Says of failed checks what all of them show together."""
        run = self.run
        with run.looking_for_a_cause({}):
            for name, found in run.tutor.at_the_end().items() if run.tutor is not None else ():
                item = next(item for item in run.items if item.name == name)
                number = next(number for number, check in enumerate(run.checks) if check.id == name)
                evidence, error = evidence_of(item), evidence_of(item).error
                assert error is not None
                evidence.diagnosis = check_results.diagnosis(evidence.repeated or error, evidence, run, found)
                run.checks[number] = check_results.check_of(item, run, error, evidence)
        causes = {check.cause for check in run.checks if check.outcome is Outcome.FAILED}
        if causes and all(cause is not None and cause.traits & NO_RESULT for cause in causes):
            run.notes.append("No result was compared yet: more may show once this is put right.")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The report, as `gradekit check` would show it."""
        if self.report is not None:
            from gradekit.report import terminal
            from gradekit.report.record import to_dict

            terminalreporter.section("gradekit")
            terminalreporter.write(terminal.render(to_dict(self.report)))

    def _about_the_run(self) -> list[str]:
        keyword, profile = self.run.request.options.keyword, self.run.profile
        notes = [f'Only the checks that match "{keyword}" were run.'] if keyword else []
        if profile.name == "quick":
            notes.append(f"A quick look: at most {profile.examples} examples for each check.")
        ledgers = (check.details.get("coverage", {}).get("branches", {}) for check in self.run.checks)
        asked = dict.fromkeys((way["line"], way["what"]) for one in ledgers for way in one.get("asked", ()))
        return [*notes, *(f"line {line} turned to the system ({what})" for line, what in asked)]


def _as_pytest_says(report: pytest.TestReport, check: Check, item: pytest.Item) -> None:
    """To pytest, what could not be measured is a test that was skipped, and so is a bonus that was missed."""
    if report.failed and (check.outcome is Outcome.PENDING or (check.bonus and not check.lost)):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {check.message}")
