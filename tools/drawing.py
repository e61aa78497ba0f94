"""A sheet to draw on, in the one style of the course's figures; what it gives is the text of an SVG file.

Every sheet is 760 units wide, on white, so that it can be read on a dark page too. Lengths are in these units, and a
position is a text's left end (or middle, or right end) on its baseline.
"""

from __future__ import annotations

from html import escape

WIDTH = 760

INK = "#263238"
DIM = "#78909c"
LINE = "#90a4ae"
BLUE = "#bbdefb"
DARK_BLUE = "#1565c0"
ORANGE = "#ffcc80"
DARK_ORANGE = "#e65100"
GREEN = "#c8e6c9"
DARK_GREEN = "#2e7d32"
GREY = "#eceff1"
RED = "#c62828"
WHITE = "#ffffff"

_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" \
font-family="Helvetica, Arial, sans-serif" font-size="14" fill="{ink}" role="img" aria-label="{title}">
<title>{title}</title>
<defs>
<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
<path d="M0 0 L8 4 L0 8 z" fill="{ink}"/></marker>
<pattern id="outside" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="6" height="6" fill="{grey}"/><line x1="0" y1="0" x2="0" y2="6" stroke="{line}" stroke-width="2"/></pattern>
</defs>
<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>
"""

OUTSIDE = "url(#outside)"
"""The filling of what does not exist, or is not mine."""


class Sheet:
    """A figure of the given height and title (for those who cannot see it), to which shapes are added in order."""

    def __init__(self, title: str, height: int) -> None:
        self._title = title
        self._height = height
        self._parts: list[str] = []

    def svg(self) -> str:
        """The whole file."""
        head = _HEAD.format(width=WIDTH, height=self._height, title=escape(self._title), ink=INK, grey=GREY, line=LINE)
        return head + "\n".join(self._parts) + "\n</svg>\n"

    def text(
        self, x: float, y: float, words: str, *, size: float = 14, colour: str = INK, anchor: str = "start",
        bold: bool = False, mono: bool = False,
    ) -> None:  # fmt: skip
        style = f' font-size="{_n(size)}"' if size != 14 else ""
        style += f' fill="{colour}"' if colour != INK else ""
        style += f' text-anchor="{anchor}"' if anchor != "start" else ""
        style += ' font-weight="bold"' if bold else ""
        style += ' font-family="Menlo, Consolas, DejaVu Sans Mono, monospace"' if mono else ""
        self._parts.append(f'<text x="{_n(x)}" y="{_n(y)}"{style}>{escape(words)}</text>')

    def code(self, x: float, y: float, words: str) -> None:
        self.text(x, y, words, size=13, mono=True)

    def rect(
        self, x: float, y: float, width: float, height: float, *, fill: str = WHITE, edge: str = INK, line: float = 1.2,
        round: float = 0, dashed: bool = False, words: str = "", size: float = 14, mono: bool = False,
        bold: bool = False,
    ) -> None:  # fmt: skip
        """A box, with `words` in its middle."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        corner = f' rx="{_n(round)}"' if round else ""
        self._parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"{corner} fill="{fill}" '
            f'stroke="{edge}" stroke-width="{_n(line)}"{dash}/>'
        )
        lines = words.split("\n") if words else []
        top = y + height / 2 - (len(lines) - 1) * size * 0.6 + size * 0.35
        for number, text in enumerate(lines):
            self.text(x + width / 2, top + number * size * 1.2, text, size=size, anchor="middle", mono=mono, bold=bold)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, colour: str = INK, width: float = 1.2,
        dashed: bool = False, arrow: bool = False,
    ) -> None:  # fmt: skip
        more = ' stroke-dasharray="5 4"' if dashed else ""
        more += ' marker-end="url(#head)"' if arrow else ""
        self._parts.append(
            f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" stroke="{colour}" '
            f'stroke-width="{_n(width)}"{more}/>'
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, *, width: float = 1.5) -> None:
        self.line(x1, y1, x2, y2, arrow=True, width=width)

    def path(self, points: list[tuple[float, float]], *, fill: str = "none", edge: str = INK, closed: bool = False,
             arrow: bool = False, line: float = 1.2) -> None:  # fmt: skip
        """A line through `points`."""
        data = " L".join(f"{_n(x)} {_n(y)}" for x, y in points) + (" z" if closed else "")
        head = ' marker-end="url(#head)"' if arrow else ""
        self._parts.append(f'<path d="M{data}" fill="{fill}" stroke="{edge}" stroke-width="{_n(line)}"{head}/>')

    def cells(
        self, x: float, y: float, fills: list[str], words: list[str] | None = None, *, width: float = 22,
        height: float = 22, size: float = 11,
    ) -> None:  # fmt: skip
        """A row of cells, each with its filling, and what stands in it."""
        for index, fill in enumerate(fills):
            word = words[index] if words else ""
            self.rect(x + index * width, y, width, height, fill=fill, line=0.8, words=word, size=size)

    def brace(self, x1: float, x2: float, y: float, words: str, *, above: bool = True, size: float = 13) -> None:
        """A bracket over (or under) x1 to x2 that names what lies there."""
        tip = y - 6 if above else y + 6
        self.path([(x1, y), (x1, tip), (x2, tip), (x2, y)], edge=DIM)
        self.text((x1 + x2) / 2, tip - 5 if above else tip + size + 2, words, size=size, anchor="middle")


def _n(value: float) -> str:
    """A number as SVG has it: two digits behind the point at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
