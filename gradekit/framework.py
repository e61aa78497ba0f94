"""What torch makes of a submission's entry in a model, for the grader: data of the tracer's that is not trusted."""

from dataclasses import dataclass, replace

from gradekit.program import add_nouns, replaced

KERNEL = "triton_kernel_wrapper"
"""How a graph's nodes are called that are Triton kernels which torch.compile can look into."""

OF_A_GPU = (".is_cuda", ".device.type", "torch.cuda.")
"""Words by which a submission asks what tensors without data cannot answer truly."""

MOST = 4000  # the most characters of a text that are kept


@dataclass(frozen=True)
class Inspection:
    """What was seen when a model around the entry was compiled on tensors without data, as one graph.

    `schema` is that of the first operator in it that is not torch's own ("": there is none). `graphs` are what
    torch.compile recorded: the names of what is called. `forward` and `backward` are what is left when operators have
    been taken apart as far as torch can. `error` says why it did not come to that ("": it did). `checks` are torch's
    own checks of the operator, each with what it said ("": nothing). `unconfirmed` says why a person must confirm what
    was seen: the submission's process has seen it, and could have made it up ("": it could not). `unavailable` says why
    nothing can be compiled on this machine, where that is so, whatever the submission.
    """

    schema: str
    graphs: tuple[tuple[str, ...], ...]
    forward: tuple[str, ...]
    backward: tuple[str, ...]
    error: str
    checks: dict[str, str]
    asks_for_device: bool = False
    unavailable: str = ""
    unconfirmed: str = ""

    @property
    def doubtful(self) -> bool:
        """Whether what went wrong may be that tensors without data are on no GPU, where the submission asks for one."""
        return self.asks_for_device and bool(self.error or any(self.checks.values()))

    @property
    def kernels(self) -> int:
        """How many Triton kernels torch.compile sees in the forward pass."""
        return sum(name.startswith(KERNEL) for name in self.forward)


add_nouns(Inspection)


def of_submission(found: Inspection, text: str) -> Inspection:
    """What the tracer's process found in the submission with this `text`, cut short; it has no say in the rest."""
    cut: Inspection = replaced(found, lambda part: part[:MOST] if isinstance(part, str) else None)
    return replace(cut, asks_for_device=any(word in text for word in OF_A_GPU), unconfirmed="")
