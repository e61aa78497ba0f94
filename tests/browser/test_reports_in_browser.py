"""The report and the class's page in Chromium: in each look accessible, quiet, and no wider than the screen."""

import functools
import itertools

import pytest

from gradekit.report import page
from tests.browser import sample_reports
from tests.browser.devtools import Browser
from tests.browser.test_steps_in_browser import LOOKS

PAGES = ("report", "class", "course", "student", "leaderboard")


@functools.cache
def page_of(name: str) -> str:
    if name in ("report", "class"):
        return sample_reports.report_page() if name == "report" else sample_reports.dashboard_page()
    return sample_reports.course_pages_of()[name]


@pytest.mark.parametrize(("width", "dark"), LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_every_look_is_accessible_quiet_and_no_wider_than_the_screen(
    browser: Browser, name: str, width: int, dark: bool
) -> None:
    browser.look(width, dark=dark)
    browser.open(page_of(name))
    browser.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert (browser.requests(), browser.complaints()) == ([], [])
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.violations() == []


@pytest.mark.parametrize("name", PAGES)
def test_pages_read_the_same_without_a_script_and_print_dark_on_light(browser: Browser, name: str) -> None:
    browser.open(page_of(name))
    browser.evaluate("document.querySelectorAll('button.sort').forEach((each) => { each.replaceWith(each.textContent); })")
    browser.evaluate("document.querySelectorAll('button, #filters').forEach((each) => { each.remove(); })")
    usual = browser.evaluate("document.body.innerText.trim()").replace(" \n", "\n")
    browser.look(script=False)
    browser.open(page_of(name))
    assert browser.evaluate("document.body.innerText.trim()").replace(" \n", "\n") == usual
    browser.look(dark=True, media="print")
    browser.open(page_of(name))
    assert browser.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_a_class_is_searched_filtered_and_sorted(browser: Browser) -> None:
    browser.open(page_of("class"))
    names = "[...document.querySelectorAll('#class tbody tr:not([hidden]) th')].map((one) => one.textContent)"
    everybody = browser.evaluate(names)
    browser.evaluate("(() => { search.value = 'student 17 '; search.dispatchEvent(new Event('input')); })()")
    assert browser.evaluate(names) == ["Student 17 Example"]
    browser.evaluate("(() => { search.value = ''; const s = document.getElementById('status'); s.value = 'rejected'; s.dispatchEvent(new Event('change')); })()")
    assert len(browser.evaluate(names)) == 3
    browser.evaluate("(() => { const s = document.getElementById('status'); s.value = ''; s.dispatchEvent(new Event('change')); })()")
    browser.evaluate("document.querySelectorAll('button.sort')[2].click()")
    points = browser.evaluate("[...document.querySelectorAll('#class td.points')].map((one) => parseFloat(one.textContent) || -1)")
    assert points == sorted(points) and sorted(browser.evaluate(names)) == sorted(everybody)


@pytest.mark.parametrize("name", PAGES)
def test_a_screen_reader_finds_landmarks_and_headings_in_order(browser: Browser, name: str) -> None:
    browser.open(page_of(name))
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    roles = [node.get("role", {}).get("value") for node in nodes if not node.get("ignored")]
    assert roles.count("main") == roles.count("banner") == 1
    levels = [int(level) for level in browser.evaluate("[...document.querySelectorAll('h1,h2,h3')].map((h) => h.tagName[1])")]
    assert levels[0] == 1 and all(after - before <= 1 for before, after in itertools.pairwise(levels))
    pictures = [node for node in nodes if node.get("role", {}).get("value") in ("image", "img")]
    assert bool(pictures) == (name in ("report", "class")) and all(node["name"]["value"] for node in pictures)


def test_a_link_from_a_check_goes_to_its_line(browser: Browser) -> None:
    browser.open(page_of("report"))
    browser.evaluate("document.querySelector('a[href=\"#line-15\"]').focus()")
    browser.press("Enter")
    assert browser.evaluate("location.hash") == "#line-15"
    assert "blamed" in browser.evaluate("document.getElementById('line-15').className")


def test_a_policy_stops_what_escaping_would_miss(browser: Browser) -> None:
    attack = "<script>document.title='owned'</script><img src='http://example.invalid/x'><style>body{display:none}</style>"
    browser.open(page_of("report").replace("<main>", f"<main>{attack}"))
    assert browser.evaluate("document.title") != "owned"
    assert browser.evaluate("getComputedStyle(document.body).display") == "block"
    refused = [text for text in browser.complaints() if "Content Security Policy" in text]
    assert len(refused) == 3


def test_nothing_that_a_submission_says_becomes_markup(browser: Browser) -> None:
    nasty = "\"><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u202e"
    record = sample_reports.full_record()

    def hostile(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: hostile(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [hostile(each, key) for each in value]
        free = {"message", "title", "text", "hint", "replay", "path", "tensor", "finding", "why", "subject", "size", "card", "name"}
        return nasty if isinstance(value, str) and key in free else value

    text = page.render(hostile(record), nasty * 3, [(nasty, nasty)])  # type: ignore[arg-type]
    browser.open(text)
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("document.scripts.length") == 1 and browser.evaluate("document.title") != "owned"
    assert (browser.requests(), browser.complaints()) == ([], [])
    assert "\u202e" not in text
