"""What gradekit needs of pytest beyond its public names, for pytest 8.4 and later."""

from __future__ import annotations

from typing import Any

import pytest

from gradekit.compat.missing import relies_on


def arguments(item: pytest.Function) -> dict[str, Any]:
    """The values of the fixtures that the test function of `item` takes as arguments, which have been set up."""
    with relies_on("pytest"):
        names = item._fixtureinfo.argnames
    return {name: item.funcargs[name] for name in names}
