"""What gradekit needs of Hypothesis beyond its public names, for Hypothesis 6.140 and later."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import is_hypothesis_test, settings
from hypothesis.database import ExampleDatabase
from hypothesis.strategies import SearchStrategy

from gradekit.compat import relies_on

with relies_on("hypothesis"):
    from hypothesis.configuration import set_hypothesis_home_dir
    from hypothesis.database import choices_to_bytes
    from hypothesis.internal.conjecture import providers

    # used below, under names that Hypothesis must have
    providers._get_local_constants, providers.Constants  # noqa: B018

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
    """While open, Hypothesis draws no numbers of loaded modules' source, so that examples depend on the seed alone."""
    original = providers._get_local_constants
    providers._get_local_constants = providers.Constants
    try:
        yield
    finally:
        providers._get_local_constants = original


class ReplayDatabase(ExampleDatabase):
    """Holds one example: the numbers that its strategies would have drawn, in order, once they are set."""

    def __init__(self) -> None:
        self.numbers: Sequence[int] | None = None

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """The example, as one that failed before; not as the smallest that did, which would not be made smaller."""
        if self.numbers is not None and key.endswith(b".secondary"):
            yield choices_to_bytes(self.numbers)

    def save(self, key: bytes, value: bytes) -> None:
        """Keeps nothing."""

    def delete(self, key: bytes, value: bytes) -> None:
        """Deletes nothing."""


@contextlib.contextmanager
def examples(test: Any, count: int | None, replay: ReplayDatabase, *, at_least: int = 1) -> Iterator[None]:
    """While open, a Hypothesis `test` runs what is in `replay`, then its own number of examples within these bounds."""
    if not is_hypothesis_test(test):
        yield
        return
    with relies_on("hypothesis"):
        own = getattr(test, _SETTINGS)
    number = max(own.max_examples if count is None else min(own.max_examples, count), at_least)
    setattr(test, _SETTINGS, settings(own, max_examples=number, database=replay))
    try:
        yield
    finally:
        setattr(test, _SETTINGS, own)


def strategies(test: Any) -> Mapping[str, SearchStrategy[Any]]:
    """The strategies that the test is given, by parameter; none where it does not use Hypothesis."""
    if not is_hypothesis_test(test):
        return {}
    with relies_on("hypothesis"):
        return test.hypothesis._given_kwargs
