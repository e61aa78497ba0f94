"""Where a mistake can be: an edit of a line mends nothing that does not depend on it, nor what right results depend on."""

from gradekit.source.draft import Draft, settled_lines

TWO_RESULTS = '''
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, out_ptr, log_sum_ptr, N, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    m = tl.max(x, axis=0)
    e = tl.exp(x - m)
    s = tl.sum(e, axis=0)
    kept = m * 1.0
    tl.store(out_ptr + i, e / s, mask=i < N)
    tl.store(log_sum_ptr, kept)


@triton.jit
def backward_kernel(x_ptr, log_sum_ptr, dx_ptr, N, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(dx_ptr + i, tl.load(x_ptr + i) - tl.load(log_sum_ptr), mask=i < N)
'''


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
