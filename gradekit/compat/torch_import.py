"""Imports torch without two parts of it, which take a third of the time and which a grader does not need: how graphs
are exported, and how operators behave on tensors without data. A tracer needs the second, and imports it while the
grader that was forked beside it begins.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from gradekit.compat import relies_on

LATER = ("torch.export", "torch._meta_registrations")


class StandIn(types.ModuleType):
    """In the place of a module that is slow to import; what it does not have itself it loads that module for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # inspect and importlib ask any module for such
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def without_parts() -> None:
    """Imports torch; what of LATER is asked for is imported then."""
    if "torch" in sys.modules:
        return
    stand_ins = {name: StandIn(name) for name in LATER}
    sys.modules |= stand_ins
    importlib.import_module("torch")
    for name, module in stand_ins.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    _make_generators()


def _make_generators() -> None:
    """Since 2.13 a torch.Generator cannot be made before one of the parts (torch._prims.rng_prims) has said this."""
    say = getattr(sys.modules["torch"]._C, "_set_generator_metaclass", None)
    if say is not None:
        with relies_on("torch"):
            from torch._opaque_base import OpaqueBaseMeta
        say(OpaqueBaseMeta)


def the_rest() -> None:
    """Imports how operators behave without data; what exports graphs is imported where somebody asks for it."""
    with relies_on("torch"):
        import torch._meta_registrations  # noqa: F401
