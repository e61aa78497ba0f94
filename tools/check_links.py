"""Follows every link inside a built site, and lists those that lead outside of it, which it does not fetch.

    python tools/check_links.py docs/_build/html [--external]

Ends with 1 where a page, a file, an anchor, or words that a link leads to (#:~:text=) are missing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class PageLinks(HTMLParser):
    """What a page links to, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note links, pictures, styles and scripts, and every id."""
        known = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := known.get(name))}
        self.targets += [value for name in ("href", "src") if (value := known.get(name))]

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.text += data


def broken(site: Path) -> Iterator[str]:
    """Each link of the site whose target is not there, with its page."""
    pages = {file.resolve(): PageLinks(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    for file, page in pages.items():
        for target in dict.fromkeys(page.targets):
            if missing := _missing(file, target, pages):
                yield f"{file.relative_to(site.resolve())}: {target}: {missing}"


def _missing(file: Path, target: str, pages: dict[Path, PageLinks]) -> str:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return ""
    there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    there = there / "index.html" if there.is_dir() else there
    if not there.is_file():
        return "no such file"
    anchor, _, words = parts.fragment.partition(":~:text=")
    if words and unquote(words) not in " ".join(pages[there].text.split()):
        return "no such words"
    return "no such anchor" if anchor and there in pages and unquote(anchor) not in pages[there].anchors else ""


def external(site: Path) -> list[str]:
    """The addresses outside of the site that its pages link to."""
    found = {target for file in site.rglob("*.html") for target in PageLinks(file.read_text(encoding="utf-8")).targets}
    return sorted(target for target in found if urlsplit(target).scheme in ("http", "https"))


def main(words: list[str]) -> int:
    """The command; its exit code."""
    site = Path(words[0])
    wrong = list(broken(site))
    print("\n".join(wrong) or "every link inside the site leads somewhere")
    if "--external" in words:
        print("\n".join(external(site)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
