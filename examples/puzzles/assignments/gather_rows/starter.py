"""10. Rows by number: fill in the TODOs, then run `gradekit check` in this folder. README.md explains the task."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather_rows_kernel(table_ptr, index_ptr, out_ptr, D, BLOCK: tl.constexpr):
    """Copies one row of the table."""
    # TODO: load the number of the row; load that row with a mask; store it as row i.


def gather_rows(table, index):
    """Return rows of table (float32 [V, D]) by their numbers (int64 [I]), as a new [I, D]."""
    (count,), D = index.shape, table.shape[1]
    out = torch.empty((count, D), dtype=table.dtype, device=table.device)
    gather_rows_kernel[(count,)](table, index, out, D, BLOCK=triton.next_power_of_2(D))
    return out
