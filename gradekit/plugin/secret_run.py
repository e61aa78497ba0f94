"""A check once more, under a seed that no student knows.

All students know the release's seed, and with it every example and every value: a submission could answer from a table.
So a class is graded under the public seed and then under a secret one, which draws other examples, and whose values
nobody can predict. What fails there is shown with its inputs, from which the seed cannot be told.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradekit.compat.pytest import arguments
from gradekit.findings import Kind
from gradekit.plugin.check_points import worth
from gradekit.plugin.check_run import CHECK, evidence_of, running
from gradekit.plugin.run_state import GradingRun


def run_secretly(item: pytest.Function, run: GradingRun) -> None:
    """Run the check of `item`, which has passed under the public seed, under the secret one.

    Speed is not timed twice: it does not depend on values.

    Raises:
        what the check raises.
    """
    from gradekit.inputs.spec import salted

    secret = run.request.options.secret_seed
    if secret is None or worth(item).kind is Kind.SPEED:
        return
    before = evidence_of(item)
    options = replace(run.request.options, seed=secret)
    hidden_run = replace(run, request=replace(run.request, options=options))
    try:
        with salted(secret), running(item, hidden_run):
            if not item.stash[CHECK].ran_planned():
                item.obj(**arguments(item))
    finally:
        evidence = evidence_of(item)
        evidence.is_secret = True
        if before.award.fraction < evidence.award.fraction:
            evidence.award = before.award
        evidence.details |= {"coverage": before.details["coverage"]} if "coverage" in before.details else {}
        examples = [found.details["examples"] for found in (before, evidence) if "examples" in found.details]
        evidence.details |= {"examples": sum(examples)} if examples else {}
