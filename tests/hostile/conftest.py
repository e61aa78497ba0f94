"""A world for hostile submissions to fail in, and a tracer that does not wait long for them."""

from collections.abc import Iterator

import pytest

from gradekit.sandbox import Limits, Tracer

from .world import World, opened

SHORT = Limits(import_seconds=1.5, call_seconds=1.5, packages_seconds=1.5, memory_bytes=1 << 30)
"""Those who would wait for ever are not waited for."""


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(opened(tmp_path_factory.mktemp("world"))) as made:
        yield made


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tracers that a test starts itself; a grading takes its request's limits."""
    defaults = Tracer.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "limits", SHORT)
