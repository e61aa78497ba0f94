"""Marking in Chromium: the pages are accessible in each look, run no script, and a form that is sent is a mark."""

import json

import pytest

from gradekit.batch.class_folder import ClassFolder
from gradekit.batch.marking import MarkingServer
from tests.batch.test_marking import folder, server  # noqa: F401  # fixtures
from tests.browser.devtools import Browser
from tests.browser.test_steps_in_browser import LOOKS
from tests.patience import eventually
from tests.report.samples import FAILED


def shown(browser: Browser, url: str) -> None:
    """Go to the address, and wait until its page is there."""
    browser.events.clear()
    browser.send("Page.navigate", url=url)
    while not any(event.get("method") == "Page.loadEventFired" for event in browser.events):
        browser.events.append(json.loads(browser.socket.recv()))


@pytest.mark.parametrize(("width", "dark"), LOOKS)
@pytest.mark.parametrize("place", ["", "0", "2"])
def test_every_look_is_accessible_and_quiet(
    browser: Browser, server: MarkingServer, place: str, width: int, dark: bool  # noqa: F811
) -> None:  # fmt: skip
    browser.look(width, dark=dark)
    shown(browser, server.url + place)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.scripts.length") == 0 and browser.complaints() == []
    assert browser.violations() == []


def test_a_form_that_is_sent_is_a_mark(
    browser: Browser, server: MarkingServer, folder: ClassFolder  # noqa: F811
) -> None:  # fmt: skip
    shown(browser, f"{server.url}0")
    browser.evaluate(f"""
        const form = document.querySelector('input[value="{FAILED.id}"]').form;
        form.elements.points.value = 15; form.elements.why.value = 'Nearly.'; form.requestSubmit();
    """)
    assert eventually(lambda: bool(folder.store.marks("double")))
    assert [kept.points for kept in folder.store.marks("double").values()] == [15.0]
