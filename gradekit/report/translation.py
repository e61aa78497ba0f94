"""What a reader sees in another language than English, translated at the edge, when all is said.

Records stay English and equal. In translations/<language>.toml each English template (those that `gradekit messages`
prints, and the words of pages and terminals) has its translation. What is said is matched against the templates, and
the translation is filled with the same values; values that are sentences themselves are translated in turn.
"""

from __future__ import annotations

import functools
import html
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "translations"
VARIABLE = "GRADEKIT_LANG"

_HOLE = re.compile(r"(?<!=)\{\w*\}|\$line\.[A-Z]|\$\w+")
_OPEN = re.compile(r"\{(?!n)\w*\}")
_SENTENCE = re.compile(r"(?<=[.?!])\s|\n")
_CLAUSE = re.compile(r"(?<=[.?!:;,])\s|\n")
_CODE = re.compile(r"`[^`\n]*`")
_NAME = re.compile(r"""`[^`]*`|"[^"]*"|[\w.]*\w\([^)]*\)|[\w.]*\w=\S*|\w*\.\w[\w.]*|\w*_\w+|[\w/]*/\S+""")
_ENGLISH = re.compile(
    r"\b(the|of|is|are|were|and|or|not|it|its|that|which|with|without|for|from|by|to|this|these|has|have|must|be|than|"
    r"no|where|their|they|there|here|as|line|lines|one|other|others|only|when|how|does|do|takes|never|nothing|same|"
    r"past|check|checks|example|right|wrong|outside|first|stores|loads|reads|writes|result|program)\b",
    re.IGNORECASE,
)

_WORDS = re.compile(r"(?<![\w.`/])[a-z]{3,} [a-z]{3,}(?![\w.`/])")  # two words side by side are no name


def languages() -> list[str]:
    """The languages that there are, as `--lang` takes them."""
    return ["en", *sorted(file.stem for file in FOLDER.glob("*.toml"))]


def language() -> str:
    """The language of this process: that of the environment, if there is such a one."""
    wanted = os.environ.get(VARIABLE, "en")
    return wanted if wanted in languages() else "en"


def say(text: str) -> str:
    """`text` in the reader's language, and as it is where no template says it."""
    return text if language() == "en" or not text.strip() else _said(text, language())[1]


def english(text: str) -> list[str]:
    """The words of `text` that only English has, code and names apart."""
    return _ENGLISH.findall(_NAME.sub("", text))


@dataclass(frozen=True)
class _Template:
    pattern: re.Pattern[str]
    literal: str
    weight: int
    translated: str
    code: frozenset[str]  # the values that stand between backticks or quotation marks, which stay as they are

    def filled(self, values: dict[str, str]) -> str:
        return _HOLE.sub(lambda hole: values[_group(hole[0])], self.translated)


def _group(hole: str) -> str:
    return "h" + re.sub(r"\W", "", hole.replace("$", "d"))


def _template(english: str, translated: str) -> _Template:
    pieces, pattern, seen = _HOLE.split(english), "", set[str]()
    for piece, hole, then in zip(pieces, [*_HOLE.findall(english), ""], [*pieces[1:], ""], strict=True):
        pattern += re.escape(piece)
        if hole:
            joined = (pattern and pattern[-1] != " ") or then[:1].isalpha()  # "word{2}": no or one letter more
            values = r"[\d.,]+" if hole.startswith("{n") else ".*?" if joined else ".+?"
            pattern += f"(?P={_group(hole)})" if hole in seen else f"(?P<{_group(hole)}>{values})"
            seen.add(hole)
    if not pieces[-1] and pieces[-2:-1] != [""] and not pieces[-2].endswith((": ", ". ")):
        pattern += r"(?<!\.)"  # the full stop is no part of a value
    code = frozenset(_group(match[1]) for match in re.finditer(f"[`\"]({_HOLE.pattern})[`\"]", english))
    return _Template(re.compile(pattern, re.DOTALL), max(pieces, key=len), sum(map(len, pieces)), translated, code)


@functools.cache
def table(language: str) -> dict[str, str]:
    """By English template, its translation."""
    parts = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    return {english: translated for part in parts.values() for english, translated in part.items()}


@functools.cache
def _templates(language: str) -> list[_Template]:
    """Those with holes: first those that begin with words or a number, and of these the longest."""
    found = {english: _template(english, said) for english, said in table(language).items() if _HOLE.search(english)}
    return [found[one] for one in sorted(found, key=lambda one: (bool(_OPEN.match(one)), -found[one].weight))]


@functools.lru_cache(4096)
def _said(text: str, language: str) -> tuple[int, str]:
    """How many English words are left in the best translation of `text`, and that translation: a part of a sentence is
    translated only where all of it is."""
    core = text.strip()
    if not core:
        return 0, text
    before, _, after = text.partition(core)
    for one in (core, core[:1].swapcase() + core[1:]):
        said = table(language).get(one) or _filled(one, language)
        if not said and one.endswith(".") and not (stopped := _said(one[:-1], language))[0] and stopped[1] != one[:-1]:
            said = stopped[1] + table(language)["."]
        if said := said or _by_parts(one, language, _CLAUSE)[1]:
            return 0, before + (said[:1].upper() + said[1:] if core[:1].isupper() else said) + after
    left, said = _by_parts(core, language, _SENTENCE)
    return (left, before + said + after) if said else (len(english(text)) + len(_WORDS.findall(text)), text)


def _filled(text: str, language: str) -> str:
    """`text` by the first template of which all values can be said; "" where there is none."""
    for template in _templates(language):
        if template.literal in text and (match := template.pattern.fullmatch(text)):
            holes = match.groupdict().items()
            values = {name: (0, value) if name in template.code else _said(value, language) for name, value in holes}
            if not any(left for left, _ in values.values()):
                return template.filled({name: said for name, (_, said) in values.items()})
    return ""


def _by_parts(text: str, language: str, cut: re.Pattern[str]) -> tuple[int, str]:
    """`text` cut where most of it can be said, and how many English words are left; "" where it stays whole or where
    parts of sentences are left."""
    codes = [match.span() for match in _CODE.finditer(text)]
    cuts = [match.start() for match in cut.finditer(text) if not any(a < match.start() < b for a, b in codes)]
    ends = [0, *cuts[:24], len(text)]
    best = [(0, 0, ""), *[(1 << 20, 0, "")] * (len(ends) - 1)]
    for stop in range(1, len(ends)):
        for start in range(stop):
            if stop - start < len(ends) - 1:
                left, said = _said(text[ends[start] : ends[stop]], language)
                best[stop] = min(best[stop], (best[start][0] + left, best[start][1] + 1, best[start][2] + said))
    left, _, said = best[-1]
    return (left, said) if not left or cut is _SENTENCE else (left, "")


def record(data: Mapping[str, Any]) -> dict[str, Any]:
    """A record for readers of this language alone: all that it says is translated."""
    told = {key: say(data[key]) for key in ("message", "hint", "title") if key in data}
    parts = {"checks": [record(check) for check in data["checks"]]} if "checks" in data else {}
    return {**data, **told, **parts, **({"notes": list(map(say, data["notes"]))} if "notes" in data else {})}


# --- pages ------------------------------------------------------------------------------------------------------------

_TAG = re.compile(r"(<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>)", re.DOTALL)
_SHOWN = re.compile(r'\b(aria-label|title|placeholder|alt)="([^"]*)"')
_STAYS = 'translate="no"'


def page(text: str) -> str:
    """A whole page of HTML in the reader's language, each run of text with the bare code inside of it; what is marked
    translate="no" stays as it is."""
    if language() == "en":
        return text
    out, run, kept = [], "", 0
    for number, piece in enumerate(_TAG.split(text)):
        if number % 2 == 0 or (piece in ("<code>", "</code>") and not kept):
            run += piece if number % 2 == 0 else "`"
            continue
        said = run if kept else _said_in_html(run, quote=False)
        out.append(said if kept else _CODE.sub(lambda code: f"<code>{code[0][1:-1]}</code>", said))
        if kept or _STAYS in piece:
            kept += -1 if piece.startswith("</") else not piece.endswith("/>")
        out.append(piece if kept else _SHOWN.sub(lambda shown: f'{shown[1]}="{_said_in_html(shown[2])}"', piece))
        run = ""
    return "".join([*out, run]).replace('<html lang="en"', f'<html lang="{language()}"', 1)


def _said_in_html(text: str, *, quote: bool = True) -> str:
    return html.escape(say(html.unescape(text)), quote=quote)
