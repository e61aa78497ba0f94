"""The report as a page: complete, escaped, and allowed to load and run nothing."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from gradekit.findings import Cause, Outcome
from gradekit.report import page, pictures, templates, terminal
from gradekit.report.terminal import as_html

from .samples import FAILED, FAULT, PASSED, PENDING, REJECTED, record
from .test_lms import FASTER, NASTY

SOURCE = "\n".join(f"line {number} = '<b>&'" for number in range(1, 40))
WRONG = {"wrong": 3, "total": 99, "first": {"index": [0, 32]}, "along": [
    {"indices": 3, "of": 3, "first": 0, "last": 2}, {"indices": 1, "of": 33, "first": 32, "last": 32}]}  # fmt: skip


class Tags(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_check_is_shown_with_its_points_and_evidence() -> None:
    text = Tags(page.render(record(PASSED, FAILED, PENDING, FAULT), SOURCE)).text
    for check in (PASSED, FAILED, PENDING, FAULT):
        assert check.title in text
    for said in ("40 of 70 measured points", "0 / 30", FAILED.message, "compute mask = offsets < n", "strides (66, 2)", "--seed 7"):
        assert said in text, said


def test_the_line_at_fault_is_marked_in_the_source_and_linked() -> None:
    tags = Tags(page.render(record(PASSED, FAILED), SOURCE)).tags
    blamed = [attributes["id"] for tag, attributes in tags if "blamed" in (attributes.get("class") or "")]
    assert blamed == ["line-14"]
    assert "#line-14" in [attributes.get("href") for tag, attributes in tags if tag == "a"]


def test_checks_that_fail_for_one_reason_are_one_story() -> None:
    found = record(FAILED, replace(FAILED, id="test_other", title="Another"))
    assert "For the same reason as check 1" in " ".join(Tags(page.render(found, SOURCE)).text.split())
    said = [one["text"] for row in page.view(found, SOURCE, [])["source"] for one in row["said"]]
    assert said == [FAILED.message, ""]


def test_what_failed_stands_before_what_passed_and_numbers_agree_everywhere() -> None:
    other = replace(FAILED, id="test_other", title="Another", source=replace(FAILED.source, line=20), message="Other.")
    shown = page.view(record(PASSED, other, PENDING, FAILED), SOURCE, [])
    assert [(check["number"], check["outcome"]) for check in shown["checks"]] == [
        (1, "failed"), (2, "failed"), (3, "pending"), (4, "passed")]  # fmt: skip
    said = {row["number"]: [one["number"] for one in row["said"]] for row in shown["source"] if row["said"]}
    assert said == {20: [1], 14: [2]}


def test_what_a_check_found_stands_below_the_line_at_fault() -> None:
    rows = page.view(record(PASSED, FAILED), SOURCE, [])["source"]
    assert [(row["number"], row["said"][0]["text"]) for row in rows if row["said"]] == [(14, FAILED.message)]
    assert rows[13]["text"].striptags() == SOURCE.split("\n")[13]


def test_a_passed_check_is_folded_to_one_line() -> None:
    tags = Tags(page.render(record(PASSED, FAILED))).tags
    folded = [a for tag, a in tags if tag == "details" and a.get("class") == "check passed"]
    assert [a["id"] for a in folded] == ["check-2"] and "open" not in folded[0]


def test_points_that_are_pending_are_not_shown_as_lost() -> None:
    shown = page.view(record(PASSED, PENDING), "", [])
    assert (shown["earned"], shown["measured"], shown["pending"]) == ("40", "40", "30")
    assert next(row for row in shown["overview"] if row["kind"] == "speed")["measured"] == "0"


def test_how_many_calls_were_tried_is_said_in_plain_words() -> None:
    coverage = {"strength": 2, "rows": 18, "of": 18, "drawn": 4, "solved": 1, "long": 0, "factors": {}}
    text = Tags(page.render(record(replace(PASSED, details={"coverage": coverage})))).text
    assert "23 calls tried" in text and "1 made for what this submission compares" in text and "strength" not in text


@pytest.mark.parametrize(("most", "ticks"), [(1.15, [0, 0.5, 1]), (2.3, [0, 0.5, 1, 1.5, 2]), (14.0, [0, 5, 10])])
def test_an_axis_has_round_numbers(most: float, ticks: list[float]) -> None:
    assert pictures.round_ticks(most) == ticks


def test_a_rejected_submission_says_why() -> None:
    text = Tags(page.render(record(PASSED, **REJECTED))).text
    assert "rejected" in text and REJECTED["message"] in text


def test_an_untouched_starter_is_told_as_in_a_terminal_and_why_an_example_was_chosen_only_where_that_helps() -> None:
    said = replace(FAILED, message="NotImplementedError: fill in the TODOs", cause=Cause.EXCEPTION)
    sentence = "Nothing is written yet: fill in the TODOs, and delete line 14 when you have."
    assert sentence in Tags(page.render(record(said))).text and sentence in terminal.render(record(said))
    assert "Nothing is written yet" not in Tags(page.render(record(said, PASSED))).text
    origins = ("the covering design", "so that in line 3 `n > 4` is true")
    drawn, sought = (replace(FAILED, counterexample={"origin": one}) for one in origins)
    assert "chosen" not in Tags(page.render(record(drawn))).text and "chosen" in Tags(page.render(record(sought))).text


def test_the_wrong_part_of_a_result_is_drawn_with_words_for_those_who_cannot_see_it() -> None:
    drawn = pictures.wrong(WRONG)
    assert drawn is not None
    tags = Tags(page.render(record(replace(FAILED, details=WRONG)))).tags
    box = next(attributes for tag, attributes in tags if tag == "rect" and attributes["class"] == "wrong")
    assert (box["x"], box["y"], box["width"], box["height"]) == ("32", "0", "1", "3")
    labels = [attributes.get("aria-label") for tag, attributes in tags if tag == "svg"]
    assert labels == [drawn["caption"]]


def test_nothing_from_a_submission_becomes_a_tag_or_a_script() -> None:
    nasty = NASTY + "<script>alert(1)</script></style></pre><img src=x onerror=alert(1)>"
    hostile = replace(FAILED, message=nasty, title=nasty, details={"findings": [{"cause": nasty, "tensor": nasty}]})
    tags = Tags(page.render(record(hostile, notes=(nasty,)), nasty, [(nasty, nasty)])).tags
    plain = Tags(page.render(record(replace(FAILED, details={"findings": [{}]}), notes=("x",)), "x", [("x", "x")])).tags
    assert {tag for tag, _ in tags} == {tag for tag, _ in plain}
    assert len([tag for tag, _ in tags if tag == "script"]) == 1
    assert not [1 for _, attributes in tags for name in attributes if name.startswith("on") or name in ("src", "style")]


def test_the_page_may_use_its_own_style_sheet_and_script_and_nothing_else() -> None:
    text = page.render(record(PASSED))
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style and style[1] == templates.asset("style.css")[0]
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src '{templates.asset('style.css')[1]}'"
    policy += f"; script-src '{templates.asset('report.js')[1]}'"
    assert f'content="{policy}"' in text.replace("&#39;", "'")
    assert "http://" not in text and "https://" not in text


def test_a_long_submission_is_cut_and_the_page_says_so() -> None:
    text = page.render(record(FAILED), "x = 1\n" * 5000)
    assert "more lines of the submission: not shown" in text and len(text) < 700_000


def test_a_speed_is_shown_with_its_interval() -> None:
    speed = {
        "card": "a card", "size": "[4, 4]", "microseconds": {"student": 10.0, "eager": 20.0}, "verdicts": [
            {"side": "eager", "at_least": 1.5, "verdict": "pass"}], "configuration": "", "configurations": {}, "notes": [],
        "ratios": {"eager": {"value": 2.0, "low": 1.9, "high": 2.1}},
        "roofline": {"bytes_moved": 8, "bytes_least": 8, "binds": "memory", "bytes_per_second": 1e12, "of_bytes": 0.8},
    }  # fmt: skip
    drawn = pictures.speed(speed)["rows"][0]
    assert drawn["asked"] < drawn["low"] < drawn["value"] < drawn["high"]
    text = Tags(page.render(record(replace(FASTER, outcome=Outcome.PASSED, details={"speed": speed})))).text
    assert "2.00 times as fast as eager torch (1.90 to 2.10" in text


def test_what_has_changed_since_the_check_before_leads_to_the_cards() -> None:
    before = record(PASSED, replace(FAILED, outcome=Outcome.PASSED, earned=30, message="", cause=None, source=None))
    tags = Tags(page.render(record(PASSED, FAILED), SOURCE, before=before))
    assert "Fails now" in tags.text and [a.get("href") for t, a in tags.tags if t == "a"].count("#check-1") == 3
    assert "Since the last check" not in Tags(page.render(before, SOURCE, before=before)).text


def test_a_failing_call_comes_with_the_commands_that_show_more_and_links_to_what_lies_beside() -> None:
    failed = replace(
        FAILED, counterexample={**(FAILED.counterexample or {}), "call": "softmax(x)"}, details={"handout": "so-called rows, of N"}
    )
    links = {"handout": "README.md", "steps": "submission-steps.html", "causes": "../messages.html"}
    tags = Tags(page.render(record(failed), SOURCE, links=links))
    for command in ("view", "replay"):
        assert f"gradekit {command} submission.py -a softmax -k test_matches_torch" in tags.text
    hrefs = {a.get("href") for t, a in tags.tags if t == "a"}
    paragraph = "README.md#:~:text=so%2Dcalled%20rows%2C%20of%20N"
    assert {"README.md", paragraph, "submission-steps.html", f"../messages.html#{FAILED.cause}"} <= hrefs
    alone = page.render(record(failed), SOURCE, links={"handout": "README.md"})
    assert paragraph in alone and "step by step</a>" not in alone and "messages.html" not in alone
    secret = replace(failed, details={"hidden": True})
    assert "gradekit view" not in Tags(page.render(record(secret), SOURCE)).text


def test_code_in_messages_is_set_as_code_and_still_escaped() -> None:
    assert templates.words("bound `k < K` by <b>") == "bound <code>k &lt; K</code> by &lt;b&gt;"
    assert templates.words("one ` alone") == "one ` alone"


# --- the report in a notebook's cell is the terminal's, as safe HTML --------------------------------------------------


def test_it_is_letter_for_letter_the_terminals_report() -> None:
    data = record(PASSED, FAILED, PENDING)
    text = html.unescape(re.sub(r"<[^>]*>", "", as_html(data)))
    assert text == terminal.render(data, terminal.Look(100))


def test_colours_become_spans_that_all_close() -> None:
    page = as_html(record(PASSED, FAILED))
    assert '<span style="color:#2e7d32;font-weight:bold">✓</span>' in page
    assert page.count("<span") == page.count("</span>") > 0


def test_what_a_submission_says_stays_text() -> None:
    page = as_html(record(replace(FAILED, message="<script>alert(1)</script>\x1b[31mred")))
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31mred" in page
