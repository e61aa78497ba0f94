"""Reports in German and Chinese: every sentence has a translation with the same holes, and pages and records keep nothing in English."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradekit import checking, doctor
from gradekit.causes import Cause
from gradekit.cli import main
from gradekit.confine import Means
from gradekit.doctor import Item, State
from gradekit.report import (
    bench_table,
    for_lms,
    inspection,
    page,
    plain_text,
    proofs,
    record,
    terminal,
    text,
    translation,
)
from gradekit.report.grade import grade
from gradekit.request import GradingOptions
from gradekit.submission.syntax import SourceError, parse
from gradekit.tracer.hints import HINTS
from tools.messages import ROOMS, sentences

from .samples import FAILED, PASSED
from .samples import record as sample
from .test_record import FOUND as PROVED
from .test_speed import RECORD as SWEPT
from .test_text import RECORD as INSPECTED

ROOT = Path(__file__).parents[2]
OTHERS = [language for language in translation.languages() if language != "en"]
GRAMMAR = {  # what English alone says twice: "word{2}" for one word or several, "is" and "are"
    "Only the first {1} of {2} elements of the result {3} ever written.",
    "Where {1} alone need{2} a gradient",
    "on a GPU with {1} multiprocessor{2}",
    "Recorded ({1} word{2}). A person marks this answer.",
}


def templates() -> set[str]:
    """Every template that tools/messages.py prints."""
    causes = [said for cause in Cause for said in (cause.meaning, cause.hint) if said]
    in_code = [said.strip() for room in ROOMS for row in sentences(room) for said in row]
    return {*causes, *(advice for _, advice in HINTS), *in_code}


@pytest.fixture(params=OTHERS)
def language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(translation.VARIABLE, request.param)
    return str(request.param)


def test_there_are_german_and_chinese() -> None:
    assert translation.languages() == ["en", "de", "zh"]


def is_within(pieces: list[str], text: str) -> bool:
    """Whether the pieces stand in `text` in their order."""
    at = 0
    for piece in pieces:
        at = text.find(piece, at) + len(piece)
        if at < len(piece):
            return False
    return True


@pytest.mark.sample(1)
def test_every_sentence_of_the_list_of_messages_is_translated(language: str) -> None:
    """Itself, or in finer templates that have all its words: "Checks {1} {2} {3} show the same" once with "and", once with "to"."""
    known = translation.table(language)
    left = [(one, [piece.strip() for piece in translation._HOLE.split(one) if re.search("[a-z]", piece)]) for one in templates() - known.keys()]
    assert sorted(one for one, pieces in left if not any(is_within(pieces, finer) for finer in known)) == []


def test_commands_and_what_they_render_have_no_english_left(language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [["list"], ["status"], ["start", "vector_add"], ["server", "status"], ["start", "vector_add"], ["check", "nosuch"]]
    commands += [["check", "vector_add", "-a", "nosuch"], ["inspect", "vector_add", "--target", "sm_3"]]
    said = [CliRunner().invoke(main, command).output for command in commands]
    items = [Item("isolation", State.NOTE, "level 1 of 3: no privileges, no sockets, no signals to other processes", Means().missing()[0])]
    items += [Item("gpu", State.NOTE, "none", "nothing to mend: everything but speed is checked without one")]
    said += [doctor.render(items), inspection.render(INSPECTED), bench_table.render({**SWEPT, "rows": SWEPT["rows"][:2]}), proofs.render({"passes": {"add": PROVED}})]
    lines = [line for text in said for line in text.splitlines() if not line.startswith(("Usage:", "Try ")) and "│" not in line]
    assert [line for line in lines if translation.english(line.removeprefix("Error: "))] == []


def test_a_translation_takes_in_what_its_sentence_takes_in(language: str) -> None:
    for english, said in translation.table(language).items():
        holes, kept = (set(translation._HOLE.findall(one)) for one in (english, said))
        assert kept == holes or (english in GRAMMAR and kept < holes), english


def test_no_translation_is_english(language: str) -> None:
    left = {said: words for said in translation.table(language).values() if (words := translation.english(translation._HOLE.sub("", said)))}
    allowed = ("Your task", "May I call torch?", "How it is graded", "other=", "try oder with", "(def, if, for", "try 和 with", "（def、if、for")
    assert {said: words for said, words in left.items() if not any(one in said for one in allowed)} == {}


def test_every_title_of_the_assignments_is_translated(language: str) -> None:
    files = [*ROOT.glob("assignments/*/test_*.py"), *ROOT.glob("solutions/*/test_*hidden.py")]
    titles = {title for file in files for title in re.findall(r'(?m)^def test_.*\n    """(.+?)(?:"""|$)', file.read_text())}
    assert len(titles) > 100 and sorted(titles - translation.table(language).keys()) == []


@pytest.mark.sample(1)
def test_a_report_of_a_wrong_submission_has_no_english_left(language: str, tmp_path: Path) -> None:
    (tmp_path / "submission.py").write_text((ROOT / "solutions/vector_add/wrong_missing_mask.py").read_text())
    report = checking.check(tmp_path / "submission.py", None, GradingOptions(profile="quick", keyword="contiguous or memory"))
    data = record.to_dict(report)
    assert any(check["outcome"] == "failed" for check in data["checks"])
    translated = translation.record(data)
    said = [translated["message"], *translated["notes"]]
    said += [check[name] for check in translated["checks"] for name in ("title", "message", "hint")]
    assert [one for one in said if translation.english(one)] == []
    assert translated["submission"] == data["submission"] and len(translated["checks"]) == len(data["checks"])
    shown = [line for line in terminal.render(data).splitlines() if "│" not in line and "gradekit check" not in line]
    assert [line for line in shown if translation.english(line)] == []
    result = for_lms.gradescope(grade(translated))
    assert translation.english(" ".join(test["name"] for test in result["tests"])) == []


class Texts(HTMLParser):
    """The texts of a page, without scripts, styles and what is marked to stay."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[bool] = []
        self.language = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in translation_void:
            self.open.append(tag in ("script", "style", "code") or ("translate", "no") in attrs)
        self.language = self.language or dict(attrs).get("lang") or ""

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() and not any(self.open):
            self.texts.append(" ".join(data.split()))


translation_void = {"meta", "link", "input", "br", "img"}


def test_a_page_says_its_language_and_keeps_no_english_and_the_submission_as_it_is(language: str) -> None:
    cause = sample(FAILED, PASSED)
    for check in cause["checks"]:
        check["title"] = "Is right around the size of a block"
    source = "# where the mask is not for the last one\n" + "\n".join(f"x{n} = {n}" for n in range(30))
    shown = page.render(cause, source)
    texts = Texts(shown)
    assert texts.language == language
    assert [one for one in texts.texts if translation.english(one) and "Your task" not in one] == []
    assert "# where the mask is not for the last one" in shown


def test_what_scripts_say_is_translated_and_allowed_by_its_hash(language: str) -> None:
    assert '{1} of {2} shown":"' not in page.render(sample(PASSED))
    for name in ("report.js", "class.js", "steps.js"):
        script = (ROOT / "gradekit/report/pages" / name).read_text()
        said = set(re.findall(r'\bsay\("([^"]+)"', script))
        assert said and sorted(said - translation.table(language).keys()) == []


def test_what_no_template_says_stays_as_it_is(language: str) -> None:
    for said in ("Frobnicates the widget of the x", "", "  ", "x = tl.load(p)", "RuntimeError: the disk is full"):
        assert translation.say(said) == said


def test_an_input_that_no_parameter_names_is_named_in_the_readers_language(language: str) -> None:
    given = {"dtype": "float32", "shape": [1]}
    assert translation.english(text.described({"name": "the gradient of the result", **given})) == []
    assert text.described({"name": "rows", **given}) == "rows: float32 [1]"


def test_what_triton_says_stays_as_it_is_and_what_stands_around_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "AssertionError: Loop-carried variable count has initial type int32 but is re-assigned to uint32 in loop! "
    said += "Please make sure that the type stays consistent."
    monkeypatch.setenv(translation.VARIABLE, "de")
    wanted = f"Triton kann `k` nicht übersetzen: {said} `count` beginnt in Zeile 8: `count = 0`."
    assert translation.say(f"Triton cannot compile `k`: {said} `count` begins on line 8: `count = 0`.") == wanted


def test_a_chinese_sentence_that_begins_with_a_name_keeps_it_and_an_edit_stands_behind_its_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(translation.VARIABLE, "zh")
    said = "No kernel of kv_cache_update has stored to the argument that it must write: store there, not to a copy."
    assert translation.say(said).startswith("kv_cache_update 的 kernel")
    hint = "multiply each index by the stride of its dimension: `x_stride` is missing as a factor of `offs`"
    tried = " (with line 9 as `y = offs * x_stride`, this example and others are right)"
    assert translation.say(hint + tried).startswith(translation.say(hint) + "（第 9 行")


def test_values_that_are_sentences_are_translated_too_and_code_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(translation.VARIABLE, "de")
    said = "There are two mistakes. Line 4 saves `of`, and line 5 takes it for `the`. With that put right, there is another: "
    said += "The square root in line 9 has no eps under it."
    wanted = "Es gibt zwei Fehler. Zeile 4 speichert `of`, und Zeile 5 hält es für `the`. Ist das berichtigt, gibt es noch einen: "
    assert translation.say(said) == wanted + "Unter der Quadratwurzel in Zeile 9 steht kein eps."


def test_a_sentence_that_nobody_knows_stays_whole_beside_one_that_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(translation.VARIABLE, "de")
    assert translation.say("Every element is 0. Of the gods, one is out.") == "Jedes Element ist 0. Of the gods, one is out."


def test_lines_of_a_notebook_are_named_by_their_cells_in_each_language(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = {"cells": [[1, 1], [3, 10]]}
    said = "Line 12 rounds `n // B` down: what is left over gets no program."
    monkeypatch.setenv(translation.VARIABLE, "de")
    assert text.located(said, notebook).startswith("Zelle 3, Zeile 3 rundet `n // B` ab")
    monkeypatch.setenv(translation.VARIABLE, "zh")
    assert text.located(said, notebook).startswith("单元 3，第 3 行")


def test_chinese_is_wrapped_by_columns_and_no_line_begins_with_a_mark() -> None:
    lines = text.wrapped("只写张量之内的位置：检查 tl.store 的掩码，以及地址是怎样算出来的，还有别的。", 20, "  ", "  ")
    assert all(text.columns(line) <= 22 for line in lines) and len(lines) > 3
    assert not any(line.strip()[0] in "，。：" for line in lines)
    assert "".join(line.strip() for line in lines).replace(" ", "").startswith("只写张量之内的位置：检查tl.store")


def test_an_unknown_language_is_wrong_usage_and_a_course_may_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, ["--lang", "tlh", "list"]).exit_code == 2
    monkeypatch.setenv(translation.VARIABLE, "")
    (tmp_path / "course.toml").write_text('[course]\nlang = "de"\n')
    (tmp_path / "submission.py").write_text("def f(:\n")
    answer = CliRunner().invoke(main, ["check", "submission.py", "-a", "vector_add"])
    assert "Abgelehnt" in answer.stdout
    (tmp_path / "course.toml").write_text('[course]\nlang = "tlh"\n')
    monkeypatch.setenv(translation.VARIABLE, "")
    answer = CliRunner().invoke(main, ["list"])
    assert answer.exit_code == 2 and "there are en, de, zh" in answer.output


def test_a_summary_for_an_lms_is_translated(language: str) -> None:
    data = translation.record(sample(FAILED, PASSED))
    assert translation.english(plain_text.summary(grade(data))) == []
    assert json.dumps(data)


@pytest.mark.sample(1)
def test_messages_that_reports_had_keep_no_english(language: str) -> None:
    seen = (Path(__file__).parent / "messages_seen.txt").read_text().replace(" ⏎ ", "\n").splitlines()
    assert len(seen) > 50
    assert {one: left for one in seen if (left := translation.english(translation.say(one)))} == {}


@pytest.mark.parametrize("wrong", ["def f(x)\n  pass\n", "if x = 1:\n  pass\n", "print 'a'\n", "x = (1\n", "x = [1 2]\n"])
def test_what_is_to_be_done_about_a_syntax_error_is_said_in_every_language(wrong: str, language: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse(wrong)
    said = translation.say(f"Python cannot read line 1 of kernel.py: {caught.value.message}")
    hint = caught.value.message.partition("`. ")[2].rstrip(".")
    known = translation.table(language)
    assert known[hint[:1].lower() + hint[1:]].lower() in said.lower()


def test_german_numbers_have_points_where_english_ones_have_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(translation.VARIABLE, "de")
    for english, german in (
        ("proved for every N up to 2,145,386,495 and every M up to 65,535.", "2.145.386.495"),
        ("1,048,576 elements", "1.048.576"), ("`f(1,024)` [1,128] 0.5, 128,256, 1,000", "`f(1,024)` [1.128] 0.5, 128.256, 1.000"),
    ):
        assert german in translation.say(english)
    assert "," not in translation.say("65,535")
    monkeypatch.setenv(translation.VARIABLE, "zh")
    assert "1,048,576" in translation.say("1,048,576 elements")
