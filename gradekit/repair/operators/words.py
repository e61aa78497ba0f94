"""What the tutor says of an edit that repairs a submission, from words.toml: by operator, and by the role of what it
edits."""

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


@functools.cache
def table() -> Mapping[str, Mapping[str, str]]:
    """By "operator" or "operator-role": the sentence without its "Line n" (`says`), and the `hint`."""
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def sentence_of(role: str, **holes: Any) -> str:
    """The sentence of a role, or of its first word, without its "Line n"."""
    says = table()[role].get("says") or table()[role.partition("-")[0]]["says"]
    return says.format(**holes)


def hint_of(role: str, **holes: Any) -> str:
    """The hint of a role."""
    return table()[role]["hint"].format(**holes)


def words(role: str, **holes: Any) -> tuple[str, str]:
    """Both."""
    return sentence_of(role, **holes), hint_of(role, **holes)


def unused(says: str, name: str) -> str:
    """A sentence, with a name that nothing uses."""
    return sentence_of("unused", says=says.removesuffix("."), name=name)
