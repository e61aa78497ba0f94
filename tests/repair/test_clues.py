"""Where a mistake can be: an edit of a line mends nothing that does not depend on it, nor what right results depend on."""

from gradekit.source.draft import Draft, settled_lines
from tests.beside import beside

TWO_RESULTS = beside(__file__)["two_results"]


def _left(wrong: set[str], right: set[str]) -> dict[str, list[str]]:
    """What is left of the kernels' bodies to look at, without the definitions."""
    draft, lines = Draft(TWO_RESULTS), TWO_RESULTS.splitlines()
    settled = settled_lines(draft, wrong, right)
    return {
        kernel.name: [
            lines[one.lineno - 1].strip()
            for one in kernel.statements
            if one.lineno not in settled.get(kernel.name, ()) and one is not kernel.node
        ]
        for kernel in draft.kernels
    }


def test_what_a_right_result_depends_on_is_not_looked_at() -> None:
    left = _left({"backward_kernel.dx_ptr"}, {"forward_kernel.out_ptr"})
    assert left["forward_kernel"] == ["kept = m * 1.0", "tl.store(log_sum_ptr, kept)"]
    assert len(left["backward_kernel"]) == 2


def test_a_result_that_is_wrong_somewhere_settles_nothing() -> None:
    left = _left({"forward_kernel.out_ptr"}, {"forward_kernel.out_ptr"})["forward_kernel"]
    assert "s = tl.sum(e, axis=0)" in left
