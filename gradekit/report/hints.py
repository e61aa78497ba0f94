"""What to do about a cause, in one sentence: advice that holds for every submission with that cause."""

from __future__ import annotations

HINTS = {
    "out-of-bounds-load": "give tl.load a mask that is true only for offsets inside the tensor, and other=...",
    "out-of-bounds-store": "give tl.store a mask that is true only for offsets inside the tensor",
    "uninitialized-read": "torch.empty holds no values yet: write an element before you read it, or start from torch.zeros",
    "unwritten-output": "check that the grid and the offsets cover every element, the last, partial block too",
    "write-conflict": "let exactly one program write each element, or combine the values with tl.atomic_add",
    "race": "programs of one launch run in any order: split the work into two launches, or use an atomic",
    "input-modified": "write to a new tensor (torch.empty_like), not to the one that was passed in",
    "misaligned-access": "do not promise an alignment (tl.multiple_of) that the pointers do not have",
    "budget-exceeded": "look for a loop that never ends, or for a grid or a tensor that is far too large",
    "too-many-bytes": "keep values on chip: load each element once, and store only the result",
    "too-many-launches": "do the steps in one kernel, so that intermediate values never leave the chip",
    "too-much-memory": "allocate the result alone, and keep intermediate values inside the kernel",
    "too-slow": "see which binds, memory or arithmetic; then look at tile sizes, num_warps and what is read twice",
    "illegal-access": "look for a load or store without a mask, and for offsets that overflow 32 bits at this size",
    "out-of-resources": "choose smaller tiles, or fewer stages: both live in shared memory",
    "wrong-type": "return the result as a torch tensor",
    "wrong-dtype": "allocate the result with dtype=x.dtype; tl.store converts the values to it",
    "nan": "look for 0/0, inf - inf, and masked-off elements that enter a reduction",
    "missing-mask": "compute mask = offsets < n, and pass it to tl.load and tl.store",
    "ignores-strides": "pass x.stride(...) to the kernel and multiply the indices by it, or call .contiguous() first",
    "overflow": "subtract the row's maximum before exp, or convert to float32 before the arithmetic",
    "low-precision": "convert to float32 for the arithmetic, and back when you store",
    "all-zeros": "check that the kernel is launched and stores to the tensor that is returned",
    "unchanged-input": "return the tensor that the kernel writes, not the one that it reads",
    "forbidden-op": "do this step inside the Triton kernel; the host may allocate, view, copy and launch",
    "no-kernel": "launch a Triton kernel: kernel[grid](...); a grid of 0 programs (n // BLOCK, for a small n) launches none",
    "reads-values": "the host sees shapes and dtypes, never values: compute with them in the kernel",
    "missing-entry": "name the function exactly as the handout does",
    "wrong-arity": "give the function the parameters that the handout names",
}
"""By cause; a cause that is not here needs the message alone."""
