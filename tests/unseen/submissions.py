"""Submissions of vector_add that are right but where a condition holds: HOST stands before the launch, KERNEL before the store."""

from tests.texts import HEAD

TEXT = HEAD + """@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0)
    y = tl.load(y_ptr + i, mask=m, other=0)
    o = x + y
    KERNEL
    tl.store(o_ptr + i, o, mask=m)


def add(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    a, b = x, y
    x, y = x.contiguous(), y.contiguous()
    n = out.numel()
    if n == 0:
        return out
    HOST
    kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    return out
"""
HOST_LINE = 1 + TEXT.split("\n").index("    HOST")


def vector_add(host: str = "pass", kernel: str = "pass") -> str:
    """The text of a submission."""
    return TEXT.replace("HOST", host.replace("\n", "\n    ")).replace("KERNEL", kernel.replace("\n", "\n    "))
