"""The documentation's links: what leads nowhere is named with its page; what leads outside is listed and not fetched."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def check_links(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/check_links.py, with its folder on the path, as when it is run."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "tools")
    return importlib.import_module("check_links")


def site(folder: Path, **pages: str) -> Path:
    for name, text in pages.items():
        folder.joinpath(f"{name}.html").write_text(text, encoding="utf-8")
    return folder


def test_files_and_anchors_that_are_there_are_fine(tmp_path: Path, check_links: ModuleType) -> None:
    a = '<h1 id="top">A</h1><a href="b.html#part">b</a><a href="#top">top</a><a href="https://example.invalid/x">out</a>'
    made = site(tmp_path, a=a, b='<h2 id="part">B</h2><a href="a.html?x=1">a</a>')
    assert list(check_links.broken(made)) == []
    assert check_links.external(made) == ["https://example.invalid/x"]


def test_what_leads_nowhere_is_named_with_its_page(tmp_path: Path, check_links: ModuleType) -> None:
    links = '<a href="gone.html">x</a><img src="b%20c.png"><a href="a.html#gone">y</a>'
    words = '<a href="#:~:text=two%20words">here</a><a href="#:~:text=no%20words">x</a><p>two <b>words</b></p>'
    made = site(tmp_path, a=links + words)
    assert list(check_links.broken(made)) == [
        "a.html: gone.html: no such file", "a.html: b%20c.png: no such file", "a.html: a.html#gone: no such anchor",
        "a.html: #:~:text=no%20words: no such words",
    ]  # fmt: skip
    assert check_links.main([str(made)]) == 1
