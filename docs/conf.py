"""Sphinx's configuration: the pages of docs/, the handouts of assignments/, and the API from docstrings.

    make docs           writes docs/_build/html; a warning is an error
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

import gradekit
from gradekit import versions

ROOT = Path(__file__).parent.parent
HANDOUTS = Path(__file__).parent / "handouts"
sys.path.insert(0, str(ROOT))  # for tests.browser.sample

project = "gradekit"
author = "the gradekit authors"
release = versions.version("gradekit") or ""
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "gradekit"
html_static_path: list[str] = []
html_extra_path = ["_live"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"members": False}
nitpicky = False


def write_handouts(app: Sphinx) -> None:
    """Copy each assignment's pages and pictures to docs/handouts, which git ignores."""
    shutil.rmtree(HANDOUTS, ignore_errors=True)
    for readme in sorted((ROOT / "assignments").glob("*/README.md")):
        folder = HANDOUTS / readme.parent.name
        folder.mkdir(parents=True)
        for file in (*readme.parent.glob("*.md"), *readme.parent.glob("*.svg")):
            shutil.copy(file, folder / file.name)
        for page in folder.glob("*.md"):
            if page.name != "README.md":  # reached from the handout alone
                page.write_text("---\norphan: true\n---\n" + page.read_text(encoding="utf-8"), encoding="utf-8")


def write_api(app: Sphinx) -> None:
    """The page of the API: every name that gradekit offers, by its docstring."""
    lines = ["# API", "", "What `from gradekit import ...` offers to those who write assignments.", ""]
    for name in gradekit.__all__:
        what = getattr(gradekit, name)
        kind = "autoclass" if isinstance(what, type) else "autofunction" if callable(what) else "autodata"
        lines += ["```{eval-rst}", f".. {kind}:: gradekit.{name}", "```", ""]
    HANDOUTS.parent.joinpath("api.md").write_text("\n".join(lines), encoding="utf-8")


def write_live_pages(app: Sphinx) -> None:
    """The step view of a wrong submission, as `gradekit view` writes it."""
    from gradekit.report import steps
    from tests.browser import sample

    folder = Path(__file__).parent / "_live" / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    folder.joinpath("matmul-steps.html").write_text(steps.render(sample.made()), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Write the pages that are made from elsewhere, before the sources are read."""
    app.connect("builder-inited", write_handouts)
    app.connect("builder-inited", write_api)
    app.connect("builder-inited", write_live_pages)
