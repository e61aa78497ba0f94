"""Sphinx's configuration: the pages of docs/, the handouts of assignments/, and the API from docstrings.

    make docs           writes docs/_build/html; a warning is an error
"""

from __future__ import annotations

import re
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
exclude_patterns = ["_build", "handouts/gallery.md"]
html_theme = "furo"
html_title = "gradekit"
html_static_path = ["static"]
html_css_files = ["doors.css"]
LIVE = Path(__file__).parent / "_live"
LIVE.mkdir(exist_ok=True)
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


def write_handout_gallery(app: Sphinx) -> None:
    """Each handout's picture with a link to it."""
    from gradekit.assignment import discover

    lines = []
    for assignment in discover(ROOT / "assignments").values():
        figure = HANDOUTS / assignment.id / "figure.svg"
        lines += [f"### [{assignment.title}](handouts/{assignment.id}/README.md)", "", assignment.summary, ""]
        lines += [f"![The picture of {assignment.title}](handouts/{assignment.id}/figure.svg)", ""] if figure.is_file() else []
    HANDOUTS.joinpath("gallery.md").write_text("\n".join(lines), encoding="utf-8")


def write_messages(app: Sphinx) -> None:
    """The page that tools/messages.py prints."""
    from tools import messages

    HANDOUTS.parent.joinpath("messages.md").write_text(messages.page(), encoding="utf-8")


ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<div class="content-icon-container">': '<div class="content-icon-container" role="region" aria-label="Source and colours">',
    '<pre>': '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div id="search-results"></div>': '<h1>Search</h1><div id="search-results"></div>',
}
"""What the theme writes, and what a screen reader and a keyboard need in its place."""


def make_accessible(app: Sphinx, exception: Exception | None) -> None:
    """Mend the theme's landmarks, captions and regions that scroll, in every page that was written."""
    for page in Path(app.outdir).rglob("*.html") if exception is None else ():
        text = page.read_text(encoding="utf-8")
        for written, needed in ACCESSIBLE.items():
            text = text.replace(written, needed)
        page.write_text(text, encoding="utf-8")


def write_live_pages(app: Sphinx) -> None:
    """The step view and the report of a wrong submission, as the commands write them; and a class that was made up."""
    from gradekit.assignment import discover
    from gradekit.batch.gradebook import to_csv
    from gradekit.plugin import grade
    from gradekit.report import page, record, steps
    from gradekit.request import GradingOptions, GradingRequest
    from tests.browser import sample, sample_reports

    options = GradingOptions(keyword="contiguous_float32 or memory", inputs=sample.INPUTS, device="cpu")
    request = GradingRequest(discover(ROOT / "assignments")["matmul"], sample.EXAMPLE, options)
    data = record.to_dict(grade(request))
    data["submission"]["path"] = sample.EXAMPLE.name
    student = sample_reports.report_page().replace('href="README.md', 'href="../handouts/softmax/README.html')
    student = student.replace('href="steps.html"', 'href="matmul-steps.html"')  # files that stand beside a student's page
    pages = {
        "matmul-steps": steps.render(sample.made()), "student": student,
        "class": re.sub('href="feedback/[^"]*"', 'href="student.html"', sample_reports.dashboard_page()),
        "matmul-report": page.render(data, sample.EXAMPLE.read_text(encoding="utf-8")),
    }  # fmt: skip
    folder = LIVE / "examples"
    folder.mkdir(exist_ok=True)
    folder.joinpath("gradebook.csv").write_text(to_csv(sample_reports.class_lines(60)), encoding="utf-8")
    for name, text in pages.items():
        folder.joinpath(f"{name}.html").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Write the pages that are made from elsewhere, before the sources are read."""
    app.connect("builder-inited", write_handouts)
    app.connect("builder-inited", write_api)
    app.connect("builder-inited", write_handout_gallery)
    app.connect("builder-inited", write_messages)
    app.connect("builder-inited", write_live_pages)
    app.connect("build-finished", make_accessible)
