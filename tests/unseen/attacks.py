"""Submissions that are right but where they recognize something: each solution, wrapped so that it spoils its first result there.

An attack is an assignment, the keyword of a check that has to fail, and what the wrapper (or a kernel) asks for; or what
stands in the solution instead of something else; attacks.toml has them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.beside import beside
from tests.unseen.submissions import vector_add

SOLUTIONS = Path(__file__).parents[2] / "solutions"
ENTRIES = {
    "softmax": ("softmax", "x"), "matmul": ("matmul", "a, b"), "fused_chain": ("fused_chain", "x, bias, residual"),
    "dropout": ("dropout", "x, p, seed"), "vector_add": ("add", "x, y"),
    "spmm": ("spmm", "crow, col, values, dense"), "layer_norm": ("layer_norm", "x, weight, bias, eps=1e-5"),
    "decode_attention": ("decode_attention", "q, k_cache, v_cache, lengths, sm_scale"),
    "flash_attention": ("attention", "q, k, v, causal, sm_scale"),
}  # fmt: skip
SPOIL = beside(__file__)["spoil"]


class Attack(NamedTuple):
    """`condition` is Python that is true where the submission is wrong, or for a kernel the statement that spoils `o`; with
    `instead`, it is what the solution has instead of that text. `named` says that no input is looked for: the record
    names the decision with its line, for a person to look at."""

    assignment: str
    check: str
    condition: str
    in_kernel: bool = False
    instead: str = ""
    named: bool = False

    @property
    def text(self) -> str:
        """The submission."""
        if self.in_kernel:
            return vector_add(kernel=self.condition)
        solution = (SOLUTIONS / self.assignment / "solution.py").read_text(encoding="utf-8")
        if self.instead:
            assert solution.count(self.instead) == 1, self.instead
            return solution.replace(self.instead, self.condition)
        name, arguments = ENTRIES[self.assignment]
        passed = arguments.replace("=1e-5", "")
        wrapped = SPOIL.replace("NAME", name).replace("PASSED", passed).replace("ARGUMENTS", arguments)
        wrapped = wrapped.replace("CONDITION", self.condition)
        return solution + wrapped


def _attacks() -> Iterator[Attack]:
    for one in beside(__file__)["attacks"]:
        known = (one.get("in_kernel", False), one.get("instead", ""))
        for how in ("found", "named"):
            conditions = one.get(how, ())
            yield from (Attack(one["assignment"], one["check"], each.strip(), *known, how == "named") for each in conditions)


ATTACKS = tuple(_attacks())
"""The one that the fast suite tries, for each is found in the same way."""
