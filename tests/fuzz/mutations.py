"""Inputs that are nearly right: valid ones with a few pieces cut, doubled, moved or replaced."""

import re
from collections.abc import Sequence

from hypothesis import strategies as st

PLACE = st.floats(0, 1, exclude_max=True)
_Edit = tuple[float, str, float, object]


def edits(pieces: Sequence[object]) -> st.SearchStrategy[list[_Edit]]:
    """A few changes; `pieces` are what is put in."""
    kinds = st.sampled_from(["cut", "double", "put", "replace", "swap", "repeat"])
    return st.lists(st.tuples(PLACE, kinds, PLACE, st.sampled_from(list(pieces))), min_size=1, max_size=6)


def edited(parts: Sequence[object], changes: Sequence[_Edit]) -> list[object]:
    """`parts` with the changes made, one after another."""
    found = list(parts)
    for place, kind, other, piece in changes:
        at, end = int(place * (len(found) + 1)), int(other * (len(found) + 1))
        match kind:
            case "cut":
                del found[min(at, end) : min(max(at, end), min(at, end) + 40)]
            case "double":
                found[at:at] = found[at : at + 20]
            case "put":
                found.insert(at, piece)
            case "replace" if at < len(found):
                found[at] = piece
            case "swap" if max(at, end) < len(found):
                found[at], found[end] = found[end], found[at]
            case "repeat":
                found[at:at] = [piece] * int(other * 3000)
    return found


def texts(bases: Sequence[str], pieces: Sequence[str]) -> st.SearchStrategy[str]:
    """Texts near one of `bases`, changed token by token; among the tokens that are put in are the bases' own."""
    tokens = {base: re.findall(r"\w+|\s+|[^\w\s]", base) for base in bases}
    known = sorted({token for found in tokens.values() for token in found} | set(pieces))

    def changed(base: str, changes: list[_Edit]) -> str:
        return "".join(map(str, edited(tokens[base], changes)))

    return st.builds(changed, st.sampled_from(list(bases)), edits(known))


def data(bases: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Bytes near one of `bases`, changed byte by byte."""
    pieces = [0, 1, 0x7F, 0x80, 0xFF, ord("["), ord("{"), ord('"'), ord("\\"), ord("P")]

    def changed(base: bytes, changes: list[_Edit]) -> bytes:
        return bytes(edited(base, changes))  # type: ignore[arg-type]

    return st.one_of(st.builds(changed, st.sampled_from(list(bases)), edits(pieces)), st.binary(max_size=200))
