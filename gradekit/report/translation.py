"""What a reader sees in another language than English, translated at the edge, when all is said.

Records stay English and equal. In translations/<language>.toml each English template (those that `tools/messages.py`
prints, and the words of pages and terminals) has its translation. What is said is matched against the templates, and
the translation is filled with the same values; values that are sentences themselves are translated in turn.
"""

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
LONGEST = 800  # characters of a line that is looked at: a longer one is torch's or Python's, and none of ours

_HOLE = re.compile(r"(?<!=)\{\w*\}|\$line\.(?:[A-Z]|it\b)|\$\w+")
_FOREIGN = ("{said}",)  # what Triton says itself, one sentence, which stays as it is
_OPEN = re.compile(r"\{(?!n)\w*\}")
_SENTENCE = re.compile(r"(?<=[.?!])\s")
_CLAUSE = re.compile(r"(?<=[.?!:;,])\s")
_CODE = re.compile(r"`[^`\n]*`")
_LONG = re.compile(r"`[^`\n]*`|(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d.,]*\d)")
_NAME = re.compile(
    r"""`[^`]*`|line:\d+|gradekit [a-z]+|--[\w-]+|"[^"]*"|[\w.]*\w\([^)]*\)|[\w.]*\w=\S*|\w*\.\w[\w.]*|\w*_\w+|"""
    r"[\w/]*/[^\s，：；。]+"
)
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
    if language() == "en":
        return text
    said = "\n".join(_said(line, language())[1] for line in text.split("\n"))
    return _LONG.sub(lambda n: n[0] if n[0][0] == "`" else n[0].replace(",", "."), said) if language() == "de" else said


def english(text: str) -> list[str]:
    """The words of `text` that only English has, code and names apart."""
    return _ENGLISH.findall(_NAME.sub("", text))


@dataclass(frozen=True)
class _Template:
    pattern: re.Pattern[str]
    pieces: tuple[str, ...]
    translated: str
    code: frozenset[str]  # the values that stand between backticks or quotation marks, which stay as they are

    def stands_in(self, low: str) -> bool:
        """Whether each piece stands in a text, which is in small letters."""
        return all(piece.lower() in low for piece in self.pieces)

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
            in_code = piece.endswith("`") and then.startswith("`")
            values = r"[\d.,]+" if hole.startswith("{n") else "[^`]+?" if in_code else ".*?" if joined else ".+?"
            values = r"(?:(?![.?!]\s).)+" if hole in _FOREIGN else values
            pattern += f"(?P={_group(hole)})" if hole in seen else f"(?P<{_group(hole)}>{values})"
            seen.add(hole)
    if not pieces[-1] and pieces[-2:-1] != [""] and not pieces[-2].endswith((": ", ". ")):
        pattern += r"(?<!\.)"  # the full stop is no part of a value
    code = frozenset(map(_group, [*re.findall(f'[`"]({_HOLE.pattern})[`"]', english), *_FOREIGN]))
    return _Template(re.compile(pattern, re.DOTALL), tuple(pieces), translated, code)


@functools.cache
def table(language: str) -> dict[str, str]:
    """By English template, its translation."""
    parts = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    return {english: translated for part in parts.values() for english, translated in part.items()}


@functools.cache
def _templates(language: str) -> list[_Template]:
    """Those with holes: first what ends in an edit, then what begins with words or a number; of these the longest."""
    found = {english: _template(english, said) for english, said in table(language).items() if _HOLE.search(english)}
    length = {english: len("".join(template.pieces)) for english, template in found.items()}
    order = sorted(found, key=lambda one: (not one.endswith("right)"), bool(_OPEN.match(one)), -length[one]))
    return [found[one] for one in order]


@functools.lru_cache(4096)
def _said(text: str, language: str) -> tuple[int, str]:
    """How many English words are left in the best translation of a line of text, and that translation: a part of a
    sentence is translated only where all of it is."""
    if len(text) > LONGEST:
        return 1, text
    low = text.lower()
    return _Line(language, [each for each in _templates(language) if each.stands_in(low)]).said(text)


@functools.lru_cache(1 << 14)
def _unsaid(text: str) -> int:
    return len(english(text)) + len(_WORDS.findall(_NAME.sub("", text)))


class _Line:
    """One line of text: the `templates` of which all words stand in it, and what its parts are in the language."""

    def __init__(self, language: str, templates: list[_Template]) -> None:
        self._table, self._templates, self._has_no_capitals = table(language), templates, language == "zh"
        self._known: dict[str, str] = {}
        self._best: dict[str, tuple[int, str]] = {}

    def said(self, text: str) -> tuple[int, str]:
        """As `_said`."""
        if text not in self._best:
            said = self._whole(text) or self._by_parts(text, _CLAUSE)[1]
            left, parts = (0, said) if said else self._by_parts(text, _SENTENCE)
            self._best[text] = (left, parts) if parts else (_unsaid(text), text)
        return self._best[text]

    def _whole(self, text: str) -> str:
        """`text` by one template, also where its first letter is of the other case, or a full stop more; or ""."""
        core = text.strip()
        if not core:
            return text
        if core not in self._known:
            self._known[core] = ""
            ways = core, core[:1].swapcase() + core[1:]
            said = next(filter(None, (find(one) for find in (self._table.get, self._filled) for one in ways)), "")
            if not said and core.endswith(".") and (stopped := self._whole(core[:-1])):
                said = stopped + self._table["."]
            is_name = said[:1].islower() and self._has_no_capitals
            self._known[core] = said[:1].upper() + said[1:] if core[:1].isupper() and not is_name else said
        return text.replace(core, self._known[core]) if self._known[core] else ""

    def _filled(self, text: str) -> str:
        for template in self._templates:
            if match := template.pattern.fullmatch(text):
                holes = match.groupdict().items()
                if any(value.count("`") % 2 for _, value in holes):  # cut within code
                    continue
                values = {name: (0, value) if name in template.code else self.said(value) for name, value in holes}
                if not any(left for left, _ in values.values()):
                    return template.filled({name: said for name, (_, said) in values.items()})
        return ""

    def _by_parts(self, text: str, cut: re.Pattern[str]) -> tuple[int, str]:
        """`text` cut where most of it can be said, and how many English words are left; "" where it stays whole or
        where parts of sentences are left."""
        codes = [match.span() for match in _CODE.finditer(text)]
        cuts = [match.start() for match in cut.finditer(text) if not any(a < match.start() < b for a, b in codes)]
        ends = [0, *cuts, len(text)]
        best = [(0, 0, ""), *[(1 << 20, 0, "")] * (len(ends) - 1)]
        for stop in range(1, len(ends)):
            for start in range(stop):
                if stop - start < len(ends) - 1:
                    part = text[ends[start] : ends[stop]]
                    said = self._whole(part)
                    left, said = (0, said) if said else (_unsaid(part), part)
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
    """A page of HTML in the reader's language, by runs of text with bare code; translate="no" leaves text alone."""
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
