"""Jinja2's environment for pages: text is cleaned and escaped; style sheet and script are allowed by their hashes."""

import base64
import functools
import hashlib
import json
import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gradekit.report import translation
from gradekit.report.text import clean, described, points, seconds


@functools.cache
def environment() -> Environment:
    """The environment, made at its first use."""
    made = Environment(
        loader=PackageLoader("gradekit.report", "pages"), autoescape=True, trim_blocks=True,
        undefined=StrictUndefined, finalize=lambda value: clean(value) if type(value) is str else value,
    )  # fmt: skip
    made.filters |= {"words": words, "points": points, "seconds": seconds, "described": described}
    made.globals["zip"] = zip
    return made


def words(text: str) -> Markup:
    """`text` escaped, with what stands between two backticks on one line as code."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(clean(text)))))


_SAID = re.compile(r'\bsay\("([^"]+)"')


@functools.cache
def asset(name: str, language: str = "en") -> tuple[Markup, str]:
    """A style sheet or script, speaking the `language`, and the hash by which a page's policy allows it."""
    loader = environment().loader
    assert loader is not None
    text = loader.get_source(environment(), name)[0]
    if language != "en":
        known = translation.table(language)
        words = {template: known.get(template, template) for template in _SAID.findall(text)}
        text = text.replace("const WORDS = {}", f"const WORDS = {data_block(words)}")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(text), f"sha256-{digest}"


def data_block(data: Any) -> Markup:
    """`data`, cleaned, as JSON inside a script element of a type that no browser runs: no text can end the element."""
    text = json.dumps(_cleaned(data), separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _cleaned(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _cleaned(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return list(map(_cleaned, data))
    return clean(data) if isinstance(data, str) else data


def page(template: str, view: dict[str, Any], script: str = "", *, forms: bool = False) -> str:
    """The page that `template` makes of `view`, with one script of ours or none; `forms` are sent where it is from."""
    style, style_hash = asset("style.css")
    target = "'self'" if forms else "'none'"
    policy = f"default-src 'none'; base-uri 'none'; form-action {target}; style-src '{style_hash}'"
    known: dict[str, Any] = {"style": style}
    if script:
        known["script"], script_hash = asset(script, translation.language())
        policy += f"; script-src '{script_hash}'"
    return translation.page(environment().get_template(template).render(policy=Markup(policy), **known, **view))
