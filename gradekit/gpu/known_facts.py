"""What was measured on a card before, in the user's cache folder: for that card, under these versions of its driver,
torch and Triton. No submission's process can write there (see the threat model)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch

from gradekit.gpu.card import Card, driver
from gradekit.versions import cache_folder, version


def known(card: Card, name: str) -> dict[str, Any] | None:
    """What was kept under that name, as `keep` was given it; None where nothing was, or nothing that can be read."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(_file(card, name).read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else None
    return None


def keep(card: Card, name: str, facts: dict[str, Any]) -> None:
    """Keep it, if it can be kept: as a whole, whoever else reads or writes it."""
    file = _file(card, name)
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(facts), encoding="utf-8")
        new.replace(file)


def _file(card: Card, name: str) -> Path:
    versions = [name, card.uuid, driver(), torch.__version__, torch.version.cuda, version("triton")]
    return cache_folder() / "cards" / hashlib.sha256(repr(versions).encode()).hexdigest()[:32]
