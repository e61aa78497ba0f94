"""Kinds of values in the words that readers know. No torch: pages are rendered from records alone."""

import functools
import tomllib
from pathlib import Path


def in_words(kind: str) -> str:
    """A kind of values in words; an assignment's own kind is named after the function that makes it."""
    word, *ends = kind.split(":")
    if len(ends) == 2 and ends[0] == ends[1]:
        word = "least"
    known = _known().get(f"{word}:" if ends else word)
    return known["says"].format(word, *ends) if known else f"values made by {word}"


@functools.cache
def _known() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("kinds_of_values.toml").read_text(encoding="utf-8"))
