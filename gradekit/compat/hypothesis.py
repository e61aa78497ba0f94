"""What gradekit needs of Hypothesis beyond its public names, for Hypothesis 6.140 and later."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from hypothesis import is_hypothesis_test, settings
from hypothesis.strategies import DataObject

from gradekit.compat.missing import relies_on

with relies_on("hypothesis"):
    from hypothesis.configuration import set_hypothesis_home_dir
    from hypothesis.internal.conjecture import providers
    from hypothesis.internal.conjecture.data import ConjectureData

    # used below, under names that Hypothesis must have
    ConjectureData.mark_overrun, providers._get_local_constants, providers.Constants  # noqa: B018

_SETTINGS = "_hypothesis_internal_use_settings"


@contextlib.contextmanager
def home(folder: Path | str) -> Iterator[None]:
    """While open, Hypothesis keeps in `folder` what it would keep in the current one."""
    set_hypothesis_home_dir(folder)
    try:
        yield
    finally:
        set_hypothesis_home_dir(None)


@contextlib.contextmanager
def no_constants_of_modules() -> Iterator[None]:
    """While open, Hypothesis draws no numbers that it finds in the source of modules that are loaded.

    Else the examples would depend on what has been imported, and on where gradekit is installed, beside the seed.
    """
    original = providers._get_local_constants
    providers._get_local_constants = providers.Constants
    try:
        yield
    finally:
        providers._get_local_constants = original


@contextlib.contextmanager
def at_least(examples: int, test: Any) -> Iterator[None]:
    """While open, the `test` runs as many examples, also where its own @settings say fewer; if it uses Hypothesis at all."""
    if not is_hypothesis_test(test):
        yield
        return
    with relies_on("hypothesis"):
        own = getattr(test, _SETTINGS)
    setattr(test, _SETTINGS, settings(own, max_examples=max(own.max_examples, examples)))
    try:
        yield
    finally:
        setattr(test, _SETTINGS, own)


def overrun(data: DataObject) -> NoReturn:
    """Ends the example that draws from `data` as one that became too long, from which nothing is concluded."""
    data.conjecture_data.mark_overrun()
    raise AssertionError("Hypothesis went on after an overrun")
