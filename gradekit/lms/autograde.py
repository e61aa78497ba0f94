"""One unattended grading in an LMS's container: whatever the submission does, the LMS gets the record that it expects.

A record that says "did not finish" is delivered first; the grading then runs in a process of its own, which can be
killed at the time limit, and its record takes that one's place.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, get
from gradekit.batch import grader
from gradekit.batch.grader import GraderFailed, GradingJob, JobResult, SpeedJob
from gradekit.batch.intake import HandIn, Wanted, chosen
from gradekit.batch.pool import ClusterPool, GraderPool, grading_job
from gradekit.batch.pool import graded as read_result
from gradekit.checking import unchecked
from gradekit.credit import PendingPolicy
from gradekit.findings import Status
from gradekit.lms.package import SECRET_SEED
from gradekit.lms.platforms import Platform
from gradekit.report import record, translation
from gradekit.report.text import one_line
from gradekit.request import GradingOptions
from gradekit.submission import SubmissionError

CLUSTER = "GRADEKIT_CLUSTER"  # the variable that names a Dask scheduler whose workers have cards

MARGIN = 15  # seconds of the LMS's limit that are kept for ending and writing


def autograde(
    platform: Platform, id: str, *, root: Path = Path("/"), seconds: int | None = None, isolation: int | None = None,
    pending: PendingPolicy = PendingPolicy.LEFT_OUT,
) -> Mapping[str, Any]:  # fmt: skip
    """Grade the submission in `platform`'s place with the assignment `id`, and deliver the record: within the LMS's
    limit, `seconds` if not the usual one, at the `isolation` level at least, with what is `pending` as that says."""
    limit = max((seconds or platform.seconds) - MARGIN, MARGIN)
    end = time.monotonic() + limit
    deliver = lambda found, last: platform.deliver(root, translation.record(found), last, pending)
    deliver(unfinished(id, f"The grading did not finish in {limit} s."), False)
    graded, asked = _graded(platform.folder(root), id, limit, isolation)
    found, address = graded.record, os.environ.get(CLUSTER)
    if address and asked and graded.programs and record.awaits_gpu(found):
        deliver(found, False)
        found = timed(graded, asked, address, end - time.monotonic())
    deliver(found, True)
    return found


def timed(graded: JobResult, asked: GradingJob, address: str, seconds: float) -> dict[str, Any]:
    """The record with speeds that the cluster at `address` found from programs; what comes too late stays pending."""
    job = SpeedJob(asked.assignment, asked.release, asked.options, asked.name, graded.programs)
    pool = ClusterPool(address, patience=seconds)
    try:
        on_card = read_result(pool.submit(job).result(seconds)).record
        if on_card["status"] == Status.GRADED:
            return record.merged(graded.record, on_card)
        why = on_card["message"]
    except Exception as error:  # noqa: BLE001  # an unreachable cluster costs no points
        why = str(error) or f"no answer in {seconds:.0f} s"
    finally:
        pool.close()
    note = f"Speed is pending: the machines with a GPU did not measure it ({one_line(why)[:200]})."
    return graded.record | {"notes": [*graded.record["notes"], note]}


def unfinished(id: str, message: str) -> dict[str, Any]:
    """The record of a grading run that gradekit could not finish: a fault, which costs no points."""
    text = f"{message} This is no result: please tell your instructor."
    return record.to_dict(unchecked(id, "", Status.FAULT, text))


def _graded(folder: Path, id: str, seconds: float, isolation: int | None) -> tuple[JobResult, GradingJob | None]:
    try:
        assignment = get(id)
        hand_in = chosen(HandIn("", folder), [folder], Wanted.by(assignment))
        if hand_in.problem:
            raise SubmissionError(_upper(hand_in.problem))
        options = GradingOptions(hidden=True, isolation=isolation, secret_seed=_secret_seed(assignment))
        job = grading_job(assignment, hand_in.path.name, grader.content(hand_in.path), options)
        with GraderPool(1, jobs=1) as pool:
            return pool.graded(job, seconds), job
    except SubmissionError as error:
        return JobResult(record.to_dict(unchecked(id, "", Status.REJECTED, error.message, cause=error.cause))), None
    except GraderFailed as error:
        return JobResult(unfinished(id, _upper(str(error)))), None
    except Exception as error:  # noqa: BLE001  # whatever it is, the LMS gets a record, and no points are lost
        return JobResult(unfinished(id, f"{type(error).__name__}: {error}")), None


def _secret_seed(assignment: Assignment) -> int | None:
    file = assignment.solutions / SECRET_SEED if assignment.solutions else None
    return int(file.read_text(encoding="ascii")) if file and file.is_file() else None


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
