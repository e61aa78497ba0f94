"""Jinja2's environment for the pages: everything is escaped, and the one style sheet is allowed by its hash."""

from __future__ import annotations

import base64
import functools
import hashlib
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@functools.cache
def environment() -> Environment:
    """The environment, made at its first use."""
    return Environment(
        loader=PackageLoader("gradekit.report", "pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )


@functools.cache
def style() -> tuple[Markup, str]:
    """The style sheet, and the hash by which a Content-Security-Policy allows it."""
    loader = environment().loader
    assert loader is not None
    text = loader.get_source(environment(), "style.css")[0]
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(text), f"sha256-{digest}"


def page(template: str, view: dict[str, Any]) -> str:
    """The page that `template` makes of `view`."""
    text, digest = style()
    return environment().get_template(template).render(style=text, style_hash=digest, **view)
