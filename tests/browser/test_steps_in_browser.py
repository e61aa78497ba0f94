"""The step view in Chromium: it plays, by keys alone too, loads nothing, complains of nothing, and anybody can read it."""

import json
import time

import pytest

from gradekit.report import steps
from tests.browser import sample
from tests.browser.devtools import Browser

RECORD = json.loads(sample.FILE.read_text())
PAGE = steps.render(RECORD)
SLOW = pytest.mark.slow
LOOKS = [pytest.param(390, False, marks=SLOW), (390, True), (1280, False), pytest.param(1280, True, marks=SLOW)]
"""Widths, and whether it is dark: each of both is looked at each time, and all pairs in the slow tests."""


def where(browser: Browser) -> str:
    return str(browser.evaluate("document.getElementById('where').textContent"))


def step(browser: Browser) -> int:
    return int(where(browser).split()[1])


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_look_is_accessible_quiet_and_no_wider_than_the_screen(browser: Browser, width: int, dark: bool) -> None:
    browser.look(width, dark=dark)
    browser.open(PAGE)
    assert (browser.requests(), browser.complaints()) == ([], [])
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.violations() == []
    back = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(20, 25, 27)" if dark else "rgb(255, 255, 255)")


def opening(number: int) -> int:
    """The step at which a program is opened: the last visit of the blamed line before something goes wrong."""
    played = RECORD["programs"][number]
    return max(n for n in range(played["first_wrong"] + 1) if played["steps"][n]["line"] == RECORD["blamed"]) + 1


def test_it_begins_at_the_blamed_line_and_keys_alone_walk_it(browser: Browser) -> None:
    browser.open(PAGE)
    first = RECORD["programs"][0]["first_wrong"] + 1
    assert step(browser) == opening(0) and f"line {RECORD['blamed']}," in where(browser)
    assert browser.evaluate("document.querySelector('#source .blamed').textContent").startswith(str(RECORD["blamed"]))
    browser.press("Home")
    assert step(browser) == 1 and "goes wrong" not in where(browser)
    browser.press("ArrowRight")
    assert step(browser) == 2
    browser.press("ArrowLeft")
    assert step(browser) == 1
    browser.press("End")
    assert step(browser) == len(RECORD["programs"][0]["steps"])
    browser.press("w")
    assert step(browser) == first
    browser.press("ArrowLeft", shift=True)
    assert "iteration 2 of the loop" in where(browser)
    browser.press("ArrowRight", shift=True)
    assert "iteration 3 of the loop" in where(browser) and step(browser) == first


def test_a_notebook_s_lines_are_told_by_their_cells(browser: Browser) -> None:
    first = RECORD["blamed"] - 2
    browser.open(steps.render(RECORD | {"cells": [[1, 1], [4, first]]}))
    assert "cell 4, line 3," in where(browser) and "of the loop in cell 4, line" in where(browser)
    assert browser.evaluate("document.querySelector('#source .blamed .no').textContent") == "3"


def test_each_control_is_reached_by_tab_with_its_focus_in_sight(browser: Browser) -> None:
    browser.open(PAGE)
    reached, widths = [], []
    for _ in range(10):
        browser.press("Tab")
        reached.append(browser.evaluate("document.activeElement.id"))
        widths.append(browser.evaluate("getComputedStyle(document.activeElement).outlineWidth"))
    wanted = ["to-start", "back", "forward", "turn-back", "to-wrong", "program", "beside", "position", "source"]
    assert [name for name in reached if name in wanted] == wanted
    assert set(widths) == {"3px"}


def test_a_button_is_pressed_by_enter_and_a_line_by_a_click(browser: Browser) -> None:
    browser.open(PAGE)
    browser.evaluate("document.getElementById('back').focus()")
    now = step(browser)
    browser.press("Enter")
    assert step(browser) == now - 1
    line = RECORD["programs"][0]["steps"][-1]["line"]
    browser.evaluate(f"document.getElementById('line-{line}').click()")
    assert f"line {line}." in where(browser).replace(",", ".")


def test_another_program_is_chosen_by_its_id(browser: Browser) -> None:
    browser.open(PAGE)
    names = browser.evaluate("[...document.getElementById('program').options].map((o) => o.textContent)")
    assert [name.split(" ", 1)[1].removesuffix(" ✗") for name in names] == [
        f"({', '.join(map(str, played['id']))})" for played in RECORD["programs"]
    ]
    browser.evaluate("(() => { const p = document.getElementById('program'); p.value = '1'; p.dispatchEvent(new Event('change')); })()")
    assert step(browser) == opening(1)


def test_another_program_is_shown_beside_at_the_same_line(browser: Browser) -> None:
    browser.open(PAGE)
    browser.evaluate("(() => { const p = document.getElementById('beside'); p.value = '1'; p.dispatchEvent(new Event('change')); })()")
    beside = browser.evaluate("document.getElementById('beside-values').textContent")
    assert f"Program ({', '.join(map(str, RECORD['programs'][1]['id']))})" in beside and "Loads" in beside


def test_the_grid_shows_what_each_program_touches_of_each_tensor(browser: Browser) -> None:
    browser.open(PAGE)
    captions = browser.evaluate("[...document.querySelectorAll('#grid-pictures figcaption')].map((c) => c.textContent)")
    assert captions == ["a, float32 [20, 40]", "b, float32 [40, 20]", "the result, float32 [20, 20]"]
    assert browser.evaluate("document.querySelectorAll('#grid-pictures .mine').length") >= 3


def test_a_tile_has_the_ids_of_its_programs_and_is_dashed_where_a_loop_comes_later(browser: Browser) -> None:
    browser.open(PAGE)
    tiles = browser.evaluate(
        "[...document.querySelectorAll('#grid-pictures svg')].map((picture) => [...picture.querySelectorAll('.of')]"
        ".map((part) => [part.querySelector('title').textContent, part.querySelector('rect').classList[0], part.classList.contains('later')]))"
    )
    rows = {("(0, 0, 0), (0, 1, 0)", "shared", later) for later in (False, True)}
    assert rows <= set(map(tuple, tiles[0]))
    assert sorted(map(tuple, tiles[2])) == [(f"({m}, {n}, 0)", f"owner{2 * m + n}", False) for m in (0, 1) for n in (0, 1)]
    labels = browser.evaluate("[...document.querySelectorAll('#grid-pictures .of text')].map((label) => label.textContent)")
    assert "0,0" in labels and "0,0 · 0,1" in labels


def test_a_cell_tells_its_number_under_the_pointer(browser: Browser) -> None:
    browser.open(PAGE)
    browser.press("Home")
    value = RECORD["programs"][0]["steps"][0]["values"][0] | {"columns": 32, "rows": 1, "levels": "j" * 32, "shape": [32]}
    value |= {"numbers": [str(n * n) for n in range(32)]}
    text = browser.evaluate(f"cellSaid({json.dumps(value)}, 0, 5)")
    assert text == "[5] = 25"


def test_a_masked_lane_is_hatched_in_a_tile_as_in_the_legend_and_a_zero_is_not(browser: Browser) -> None:
    browser.open(PAGE)
    browser.evaluate("(() => { const p = document.getElementById('program'); p.value = '3'; p.dispatchEvent(new Event('change')); })()")
    looks = []
    browser.press("Home")
    for _ in RECORD["programs"][3]["steps"]:
        looks += browser.evaluate("[...document.querySelectorAll('td.masked')].map((one) => getComputedStyle(one).backgroundImage)")
        browser.press("ArrowRight")
    legend = "getComputedStyle(document.querySelector('.legend .{}')).{}"
    assert set(looks) == {browser.evaluate(legend.format("masked", "backgroundImage"))} and "gradient" in looks[0]
    assert browser.evaluate(legend.format("p0", "backgroundImage")) == "none"
    assert browser.evaluate(legend.format("masked", "fill")) == 'url("#hatching")'
    assert browser.evaluate("!!document.querySelector('pattern#hatching')")


def test_a_click_on_the_time_line_goes_there(browser: Browser) -> None:
    browser.open(PAGE)
    assert browser.evaluate("document.querySelectorAll('.timeline rect').length") == len(RECORD["programs"][0]["steps"])
    browser.evaluate(
        "(() => { const t = document.querySelector('.timeline'), r = t.getBoundingClientRect();"
        "t.dispatchEvent(new MouseEvent('click', {clientX: r.right - 2, clientY: r.top + 5})); })()"
    )
    assert step(browser) == len(RECORD["programs"][0]["steps"])


def test_without_a_script_the_source_and_a_table_of_all_values_are_there(browser: Browser) -> None:
    browser.look(script=False)
    browser.open(PAGE)
    text = browser.evaluate("document.body.innerText")
    assert "needs its script" in text and "def matmul_kernel" in text and "What this line did" not in text
    rows = browser.evaluate("document.querySelectorAll('#table tbody tr').length")
    assert rows == sum(len(each["values"]) for each in RECORD["programs"][0]["steps"])


def test_printed_it_is_dark_on_light_and_without_controls(browser: Browser) -> None:
    browser.look(dark=True, media="print")
    browser.open(PAGE)
    assert browser.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.evaluate("getComputedStyle(document.querySelector('.buttons')).display") == "none"


def test_nothing_that_a_submission_says_becomes_markup_or_runs(browser: Browser) -> None:
    nasty = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    programs = json.loads(json.dumps(RECORD["programs"]))
    for played in programs:
        for each in played["steps"]:
            for value in each["values"]:
                value["name"] = nasty
    tensors = [tensor | {"name": nasty} for tensor in RECORD["tensors"]]
    launches = [launch | {"kernel": nasty} for launch in RECORD["launches"]]
    hostile = RECORD | {
        "programs": programs, "tensors": tensors, "launches": launches, "path": nasty, "message": nasty, "check": nasty,
        "source": [nasty] * 30, "assignment": nasty, "notes": [nasty], "inputs": [{"name": nasty, "value": nasty}],
    }  # fmt: skip
    browser.open(steps.render(hostile))
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("document.scripts.length") == 2
    assert "owned" not in str(browser.evaluate("document.title")).removeprefix(nasty)
    assert (browser.requests(), browser.complaints()) == ([], [])


def test_a_notebook_shows_it_in_a_frame_of_an_origin_of_its_own(browser: Browser) -> None:
    browser.open(f"<!doctype html><title>notebook</title>{steps.framed(PAGE)}")
    end = time.monotonic() + 30
    frame = "document.querySelector('iframe')"
    while time.monotonic() < end and browser.evaluate(f"{frame}.clientHeight") < 700:
        time.sleep(0.05)
    assert browser.evaluate(f"{frame}.contentDocument") is None  # an origin of its own: it reaches nothing of the notebook
    assert (browser.requests(), browser.complaints()) == ([], [])
