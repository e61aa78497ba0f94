"""Each test begins with nothing that another has run."""

from collections.abc import Iterator

import pytest

from gradekit import reuse


@pytest.fixture(autouse=True)
def nothing_shared() -> Iterator[None]:
    with reuse.kept():
        yield
