"""gradekit grades Triton kernels: a submission becomes data, and data cannot cheat.

This is the table of contents for those who write assignments: `from gradekit import points, reference, assert_close`.
Nothing is imported before it is asked for, so that `import gradekit` costs nothing, and the command line can set the
submission's process going before torch is imported here.
"""

import importlib
from typing import Any

_OFFERED = {
    "gradekit.assignment": ("beside", "public_tests"),
    "gradekit.plugin.check_points": ("points", "award"),
    "gradekit.plugin.runner": ("grade", "NoSuchCheck"),
    "gradekit.request": ("GradingOptions", "GradingRequest"),
    "gradekit.judge.compare": ("any_order", "assert_close", "ties"),
    "gradekit.judge.failure": ("Failure",),
    "gradekit.judge.framework_claims": ("assert_compiles", "assert_opcheck", "assert_operator"),
    "gradekit.judge.memory_checks": (
        "assert_allocates", "assert_bytes_moved", "assert_growth", "assert_inputs_unmodified", "assert_launches",
        "assert_memory_clean", "least_bytes",
    ),
    "gradekit.judge.tolerance": ("Rounding",),
    "gradekit.judge.reference": ("Reference", "conditioned", "own_tolerance", "reference"),
    "gradekit.findings": ("Cause", "Finding", "Kind", "Outcome", "Report"),
    "gradekit.inputs.spec": ("FLOATS", "Input", "normal"),
    "gradekit.inputs.calls": ("calls", "domain_of"),
    "gradekit.inputs.layouts": ("LAYOUTS",),
    "gradekit.inputs.strategies": ("matrices", "shaped", "vectors"),
    "gradekit.inputs.value_kinds": ("value_kind",),
    "gradekit.subject.runs": ("Observation",),
    "gradekit.subject.timed_call": ("assert_peak_memory", "assert_speed", "at_least"),
    "gradekit.session": ("check", "view"),
    "gradekit.relations": ("Relation", "assert_independent", "assert_relation", "relations_of"),
}  # fmt: skip

_HOME = {name: module for module, names in _OFFERED.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605

_HOME["load_ipython_extension"] = "gradekit.session"  # asked for by Jupyter's %load_ext, not by people


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"gradekit offers no {name!r}; it offers {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
