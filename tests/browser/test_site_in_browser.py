"""The documentation's site in Chromium, where it was built (make docs): each page is accessible."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.devtools import Browser

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = sorted(file.name for file in SITE.glob("*.html"))


@pytest.mark.skipif(not PAGES, reason="the documentation is not built (make docs)")
@pytest.mark.parametrize("page", PAGES or [""])
def test_each_page_of_the_site_is_accessible(browser: Browser, page: str) -> None:
    browser.open(SITE / page)
    assert browser.violations() == []
