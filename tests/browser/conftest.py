"""One Chromium for all tests of a process; where there is none, they are skipped, and say what is missing."""

from collections.abc import Iterator

import pytest

from tests.browser.devtools import Browser, missing


@pytest.fixture(scope="session")
def shared_browser() -> Iterator[Browser]:
    lacks = missing()
    if lacks:
        pytest.skip(f"no browser: {lacks}")
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(shared_browser: Browser) -> Browser:
    shared_browser.look()
    return shared_browser
