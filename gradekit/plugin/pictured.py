"""What a failed check keeps for the report's pictures: which program wrote what of the result of its counterexample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradekit.plugin.run_state import GradingRun
    from gradekit.subject.subject import Call

WORK = 20_000_000
"""A call that took more work is not run again for a picture."""


def pictured(call: Call | None, error: BaseException, run: GradingRun) -> dict[str, Any]:
    """`details` of a check whose `call` failed with `error`: `tiles`, or nothing where there is no map to draw."""
    from gradekit import engine
    from gradekit.engine.owners import Owners
    from gradekit.inputs.spec import Input
    from gradekit.judge.failure import Failure
    from gradekit.judge.result_map import result_map

    observation = call.observation if call is not None else None
    if observation is None or not isinstance(error, Failure) or observation.counters.work > WORK or observation.card:
        return {}
    if error.comparison is None and "findings" not in error.facts:
        return {}
    inputs = [arg.tensor() if isinstance(arg, Input) else arg for arg in observation.inputs]
    tensors = [value for value in inputs if hasattr(value, "untyped_storage")]
    owners = Owners()
    try:
        engine.run(observation.program, tensors, allow=run.request.assignment.allow, observer=owners)
    except (engine.Unsupported, engine.OverBudget, engine.ForbiddenOp):
        return {}
    tiles = result_map(observation.program, owners, error.comparison, observation.findings)
    return {"tiles": tiles} if tiles else {}
