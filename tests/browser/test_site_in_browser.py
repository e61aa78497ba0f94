"""The documentation's site in Chromium, where it was built (make docs): each page is accessible."""

from pathlib import Path

import pytest

from gradekit.causes import Cause
from tests.browser.devtools import Browser
from tests.browser.sample_reports import WORDS

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = sorted(file.name for file in SITE.glob("*.html"))


@pytest.mark.skipif(not PAGES, reason="the documentation is not built (make docs)")
@pytest.mark.parametrize("page", PAGES or [""])
def test_each_page_of_the_site_is_accessible(browser: Browser, page: str) -> None:
    browser.open(SITE / page)
    assert browser.violations() == []


IN_VIEW = """
(() => {
    const texts = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        if (!texts.currentNode.textContent.replace(/\\s+/g, " ").includes("WORDS")) continue;
        const place = texts.currentNode.parentElement.getBoundingClientRect();
        return scrollY > 0 && place.bottom > 0 && place.top < innerHeight;
    }
})()
"""


@pytest.mark.skipif(not PAGES, reason="the documentation is not built (make docs)")
@pytest.mark.parametrize(("link", "words"), [(".check q a", WORDS), (".check p.dim a", Cause.MISSING_MASK)])
def test_a_card_leads_to_the_paragraph_of_the_handout_and_to_its_cause(browser: Browser, link: str, words: str) -> None:
    browser.open(SITE / "examples" / "student.html")
    browser.send("Page.navigate", url=browser.evaluate(f"document.querySelector('{link}').href"))
    browser.evaluate("new Promise(done => setTimeout(done, 1000))")
    assert browser.evaluate(IN_VIEW.replace("WORDS", words)) is True
