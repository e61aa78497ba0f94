"""What a check finds does not depend on which other checks ran before it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradekit.findings import Outcome
from gradekit.plugin.lifecycle import GradingPlugin
from tests.graded import graded
from tests.unseen.submissions import vector_add

CHECKS = ["test_contiguous_float32", "test_every_dtype[float32]", "test_every_dtype[float16]"]
WRONG = {
    "in host code": vector_add("n -= n > 6007 and x.dtype == torch.float16"),
    "in a kernel": vector_add(kernel="if n > 6007:\n    o += (o_ptr.dtype.element_ty == tl.float16)"),
    "in exact arithmetic": vector_add(kernel="o = tl.where(x == 77, o + 1, o)"),
}


@pytest.fixture
def backwards(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Checks run from the last to the first once this was called."""
    finish = GradingPlugin.pytest_collection_finish

    def reversed_finish(self: GradingPlugin, session: pytest.Session) -> None:
        session.items.reverse()
        finish(self, session)

    return lambda: monkeypatch.setattr(GradingPlugin, "pytest_collection_finish", reversed_finish)


@pytest.mark.sample(1)
@pytest.mark.parametrize("where", WRONG)
def test_a_check_alone_and_in_any_order_has_the_same_verdict_and_evidence(
    where: str, tmp_path: Path, backwards: Callable[[], None]
) -> None:
    def found(keyword: str) -> dict[str, Any]:
        told = {"device": "cpu", "shrink": False, "diagnose": False, "keyword": keyword}
        checks = graded("vector_add", WRONG[where], tmp_path, **told).checks
        return {one.id: (one.outcome, one.cause, one.message, one.details) for one in checks if one.id in CHECKS}

    together = found("contiguous or every_dtype and not bfloat16")
    assert set(together) == set(CHECKS) and together["test_every_dtype[float16]"][0] is Outcome.FAILED
    for one in CHECKS[1:]:
        name, _, dtype = one.strip("]").partition("[")
        assert found(f"{name} and {dtype}")[one] == together[one]
    backwards()
    assert found("contiguous or every_dtype and not bfloat16") == together
