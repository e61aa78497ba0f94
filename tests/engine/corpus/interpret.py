"""Runs the corpus in Triton's interpreter: `python interpret.py RESULTS` writes {name: {argument: tensor} or error text}.

A process of its own, because TRITON_INTERPRET is read when Triton is imported.
"""

import os
import sys
import warnings
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).parent.parent))

import torch

from corpus import CASES, Case

Expected = dict[str, torch.Tensor] | str


def interpreted(case: Case) -> Expected:
    """The tensors after the launch, or why the interpreter could not do it."""
    if case.not_interpreted:
        return case.not_interpreted
    arguments = case.arguments()
    try:
        case.kernel[case.grid](**arguments, **case.options)
    except Exception as error:  # noqa: BLE001  whatever it raises is the reason
        cause = error.__cause__ or error
        return f"{type(cause).__name__}: {cause}".splitlines()[0]
    return {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.save({name: interpreted(case) for name, case in CASES.items()}, sys.argv[1])
