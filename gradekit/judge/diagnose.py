"""From evidence to the sentence that a tutor would say, or to silence where the evidence is not clear.

Every rule is a function from `Evidence` to a `Diagnosis` or None. A rule speaks only if what it says follows from
what was seen; each has a test in which it speaks and one, a near miss, in which it must not.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gradekit.causes import SAYS_ALL
from gradekit.judge import by_finding, by_text, by_value
from gradekit.judge.comparison import Comparison
from gradekit.judge.evidence import Diagnosis, Evidence, results_of
from gradekit.judge.failure import Failure

RULES = (
    by_value.result_strides, by_finding.other_strides, by_finding.wrapped,
    by_finding.unset_memory, by_finding.missing_mask, by_finding.unwritten, by_value.all_zeros,
    by_value.integers_as_floats, by_value.off_by_a_factor, by_text.never_used,
)  # fmt: skip
"""In the order in which they are asked: proofs by computation first, circumstantial evidence last."""


def diagnose(
    failure: Failure, observation: Any = None, inputs: Sequence[Any] = (), text: str = "",
    calls: Sequence[tuple[Mapping[str, Any], Comparison]] = (),
) -> Diagnosis | None:
    """Why the submission with this `text` fails, by the `failure` that a judge's assertion raised and the run (see
    `Observed`) that it was about, if there was one; or None. `inputs` are the arguments of the call, by default the
    observation's: `Input` specs tell most; `calls` are all of its check that are wrong (see `Evidence`)."""
    if failure.told.traits & SAYS_ALL:
        return None
    evidence = evidence_of(failure, observation, inputs, text, calls)
    return next((found for found in (rule(evidence) for rule in RULES) if found), None)


def evidence_of(
    failure: Failure, observation: Any, inputs: Sequence[Any], text: str = "",
    calls: Sequence[tuple[Mapping[str, Any], Comparison]] = (),
) -> Evidence:  # fmt: skip
    """A failure, and what is known of it: see `diagnose`."""
    findings = getattr(observation, "findings", ()) or [one for one in [failure.seen] if one is not None]
    return Evidence(
        failure, tuple(inputs or getattr(observation, "inputs", ())), tuple(findings),
        getattr(observation, "program", None), results_of(observation), text, calls,
    )  # fmt: skip
