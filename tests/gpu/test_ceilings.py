"""Claims about keeping what a card was measured to do, on a machine that may have none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch

from gradekit.gpu import ceilings
from gradekit.gpu.card import Card
from gradekit.judge.speed import Ceilings

CARD, OTHER = (Card("A card", uuid, 0, (9, 0), 132, 50 << 20, 80 << 30) for uuid in ("GPU-1", "GPU-2"))

Measure = Callable[[Mapping[str, float]], None]


@pytest.fixture
def now_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Says how many bytes a second each kernel moves from now on; the arithmetic stays at 1e6 operations a second."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(ceilings, "driver", lambda: "580.1")
    monkeypatch.setattr(ceilings, "_products", lambda card: [("float32", lambda: "product", 500.0)])

    def now(rates: Mapping[str, float]) -> None:
        seconds = {name: 1000 / rate for name, rate in rates.items()} | {"product": 5e-4}
        monkeypatch.setattr(ceilings, "_streams", lambda card: [(name, lambda n=name: n, 1000) for name in rates])
        monkeypatch.setattr(ceilings, "_seconds", lambda action, calls, card: seconds[action()])

    return now


def asked_anew(card: Card) -> Ceilings:
    """What another process is told."""
    return ceilings.measure.__wrapped__(card)


def test_a_card_is_measured_once(now_moves: Measure) -> None:
    now_moves({"copy_": 1e9, "add": 3e9})
    first = asked_anew(CARD)
    assert (first.bytes_per_second, first.by["bytes"], first.flops_per_second) == (3e9, "add", {"float32": 1e6})
    now_moves({"copy_": 2e9})
    assert asked_anew(CARD) == first


def test_another_card_or_another_driver_is_measured_for_itself(
    now_moves: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_moves({"copy_": 1e9})
    asked_anew(CARD)
    now_moves({"copy_": 2e9})
    assert asked_anew(OTHER).bytes_per_second == 2e9
    monkeypatch.setattr(ceilings, "driver", lambda: "590.2")
    assert asked_anew(CARD).bytes_per_second == 2e9


def test_a_file_that_makes_no_sense_is_measured_again(now_moves: Measure, tmp_path: Path) -> None:
    now_moves({"copy_": 1e9})
    asked_anew(CARD)
    now_moves({"copy_": 2e9})
    for text in ("{", "[]", '{"bytes_per_second": -1, "flops_per_second": {}}'):
        next((tmp_path / "gradekit" / "cards").iterdir()).write_text(text)
        assert asked_anew(CARD).bytes_per_second == 2e9


def test_what_was_measured_beside_others_is_raised_and_never_lowered(now_moves: Measure) -> None:
    now_moves({"copy_": 2e9})
    low = asked_anew(CARD)
    now_moves({"copy_": 4e9})
    assert ceilings.raised(CARD, low).bytes_per_second == asked_anew(CARD).bytes_per_second == 4e9
    now_moves({"copy_": 1e9})
    assert ceilings.raised(CARD, asked_anew(CARD)).bytes_per_second == asked_anew(CARD).bytes_per_second == 4e9
