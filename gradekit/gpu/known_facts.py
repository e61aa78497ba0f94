"""What was measured on a card before, in the user's cache folder: for that card, under these versions of its driver,
torch and Triton. No submission's process can write there (see the threat model)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch

from gradekit.gpu.card import Card, driver
from gradekit.versions import cache_folder, version

T = TypeVar("T")


def known(card: Card, name: str, kind: Callable[..., T]) -> T | None:
    """What was kept under that name; None where nothing was, or nothing that makes one of this kind."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return kind(**json.loads(_file(card, name).read_text(encoding="utf-8")))
    return None


def keep(card: Card, name: str, facts: Any) -> None:
    """Keep what a dataclass holds, if it can be kept: as a whole, whoever else reads or writes it."""
    file = _file(card, name)
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(asdict(facts)), encoding="utf-8")
        new.replace(file)


def _file(card: Card, name: str) -> Path:
    versions = [name, card.uuid, driver(), torch.__version__, torch.version.cuda, version("triton")]
    return cache_folder() / "cards" / hashlib.sha256(repr(versions).encode()).hexdigest()[:32]
