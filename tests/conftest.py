"""No test changes the process that it runs in; those marked `gpu` run where there is a card."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
import torch

from tests.leaks import Process

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)  # pytest runs on every core, so torch takes one

PROCESS = pytest.StashKey[Process]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def pytest_collection_finish(session: pytest.Session) -> None:
    session.stash[PROCESS] = Process()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Fails the test after which the process is not what it was, once its fixtures have put back what they changed."""
    try:
        yield
    finally:
        left = item.session.stash[PROCESS].changes()
    if left:
        pytest.fail(f"{item.nodeid} leaves the process changed: {', '.join(left)}", pytrace=False)
