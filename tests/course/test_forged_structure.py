"""Points for the structure of an operator are not earned by a process that answers for torch itself; test_right has honest ones."""

from pathlib import Path

import pytest

from gradekit.findings import Outcome
from tests.graded import graded

PLAIN = """
import torch

def bias_gelu(x, bias):
    raise NotImplementedError
"""
FORGED = {
    "by the tracer's own module": """
import gradekit.tracer.child as child
NODE = "triton_kernel_wrapper_functional"
ANSWER = {"schema": "course::bias_gelu(Tensor x, Tensor bias) -> Tensor", "graphs": [["course.bias_gelu"]], "forward": [NODE],
          "backward": [NODE], "error": "", "unavailable": "",
          "checks": dict.fromkeys(("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"), "")}
child.Child.inspect = lambda self, entry, args: ANSWER
""",
    "without naming it": """
for cls in object.__subclasses__():
    if cls.__module__.endswith("tracer.child"):
        cls.inspect = lambda self, entry, args: {
            "schema": "course::bias_gelu(Tensor x, Tensor bias) -> Tensor", "graphs": [], "forward": ["triton_kernel_wrapper_functional"],
            "backward": [], "error": "", "unavailable": "", "checks": dict.fromkeys(
                ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"), "")}
""",
}


@pytest.mark.parametrize("forgery", FORGED.values(), ids=FORGED)
def test_a_forged_inspection_earns_nothing_until_a_person_confirms_it(tmp_path: Path, forgery: str) -> None:
    report = graded("custom_op", PLAIN + forgery, tmp_path, keyword="operator or opcheck or in_a_model")
    assert [(check.outcome, check.earned) for check in report.checks] == [(Outcome.PENDING, 0.0)] * len(report.checks)
    assert all("A person must confirm this: line " in check.message for check in report.checks)
