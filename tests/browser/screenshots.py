"""Writes docs/screenshots: the pages as they are seen, at two widths, in light and dark.

    python -m tests.browser.screenshots [NAME ...]
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from gradekit.report import steps
from tests.browser import sample, sample_reports
from tests.browser.devtools import Browser

FOLDER = sample.ROOT / "docs" / "screenshots"

PAGES: dict[str, Callable[[], str]] = {
    "steps": lambda: steps.render(json.loads(sample.FILE.read_text())), "report": sample_reports.report_page,
    "class": sample_reports.dashboard_page,
}


def write(browser: Browser, name: str, width: int, *, dark: bool) -> Path:
    """One screenshot; its file."""
    browser.look(width, dark=dark)
    browser.open(PAGES[name]())
    file = FOLDER / f"{name}-{width}-{'dark' if dark else 'light'}.webp"
    browser.screenshot(file, 1100)
    return file


def main(names: list[str]) -> None:
    """Write those that are asked for, or all."""
    FOLDER.mkdir(exist_ok=True)
    browser = Browser()
    try:
        for name in names or PAGES:
            for width, dark in ((1280, False), (390, True)):
                print(write(browser, name, width, dark=dark))
    finally:
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
