"""A call with the tensors of an earlier one, whose values were changed in place since."""

from pathlib import Path

import pytest

from gradekit.causes import Cause
from gradekit.course.edits import edited
from gradekit.findings import Outcome
from gradekit.inputs.spec import Input, with_other_values
from tests import right
from tests.graded import graded
from tests.sampling import sampled

COPIES = {
    "giou_loss": ("targets", '''
-        pred, targets = pred.contiguous(), targets.contiguous()
+        pred = pred.contiguous()
+        if {stale}:
+            targets.dense, targets.seen = targets.contiguous(), targets._version
+        targets = targets.dense
'''),
    "kv_cache_update": ("positions", '''
-    B, H, D = k.shape
+    B, H, D = k.shape
+    if {stale}:
+        positions.dense, positions.seen = positions.contiguous(), positions._version
+    positions = positions.dense
'''),
    "spmm": ("crow", '''
-    rows, columns, pieces = crow.shape[0] - 1, dense.shape[1], triton.cdiv(col.shape[0], LONG)
+    rows, columns, pieces = crow.shape[0] - 1, dense.shape[1], triton.cdiv(col.shape[0], LONG)
+    if {stale}:
+        crow.dense, crow.seen = crow.contiguous(), crow._version
+    crow = crow.dense
'''),
}  # fmt: skip


@pytest.mark.parametrize("id", sampled(COPIES, str, lambda _, id: id == "spmm"))
@pytest.mark.parametrize("renews", [False, True])
def test_a_copy_that_is_kept_on_a_tensor_must_be_made_anew_once_the_tensor_has_changed(
    id: str, renews: bool, tmp_path: Path
) -> None:
    name, edit = COPIES[id]
    stale = f'getattr({name}, "seen", None) != {name}._version' if renews else f'not hasattr({name}, "dense")'
    base = Path(f"solutions/{id}/solution.py")
    text = edited(right.text(base), edit.strip("\n").format(stale=stale), base.name)
    (check,) = graded(id, text, tmp_path, keyword="test_any_stride_and_offset", profile="quick").checks
    assert check.outcome is (Outcome.PASSED if renews else Outcome.FAILED), check.message
    assert renews or check.cause is Cause.DEPENDS_ON_EARLIER_CALLS


def test_other_values_of_numbers_that_a_pattern_gives_keep_to_what_is_promised() -> None:
    crow = Input("int32", (5,), (2,), 1, profile="sorted:0:8", within=(0, 8), ascending=True)
    for spec in (crow, Input("int32", (4,), (1,), profile="between:0:2", within=(0, 2))):
        other = with_other_values(spec)
        assert isinstance(other, Input) and not other.tensor().equal(spec.tensor())
