"""Naming a card, reading its clocks and keeping what it was measured to do, on a machine that may have none."""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch

from gradekit.gpu import card, ceilings
from gradekit.gpu.card import Card, find, read, to_reading
from gradekit.judge.speed import Ceilings


@pytest.fixture
def no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("no_card")
def test_a_machine_without_a_card_has_none_to_find_and_the_cpu_is_none() -> None:
    assert find() is find("auto") is find("cpu") is None


@pytest.mark.usefixtures("no_card")
def test_asking_for_a_card_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="device 'cuda': torch finds no CUDA device on this machine"):
        find("cuda")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:"])
def test_a_word_that_names_no_device_is_an_error_that_says_what_does(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(ValueError, match="say auto, cpu, cuda or cuda:0"):
        find(name)


def test_a_device_number_that_is_too_high_is_an_error_that_says_how_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match="this machine has 2 CUDA devices"):
        find("cuda:2")


def test_without_nvml_there_is_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card, "_nvml", lambda: None)
    monkeypatch.setattr(card, "_handle", lambda uuid: None)
    assert read(Card("a card", "GPU-0", 0, (9, 0), 1, 1, 1)) is None


def test_heat_and_power_brakes_are_throttling_and_a_power_limit_is_mentioned_alone() -> None:
    assert to_reading(900, 0x40).throttled
    assert to_reading(900, 0x80 | 0x04).reasons == ("power brake", "power limit")
    limited, full = to_reading(1400, 0x04), to_reading(1980, 0)
    assert (limited.throttled, limited.reasons, full.reasons) == (False, ("power limit",), ())


# --- claims about keeping what a card was measured to do, on a machine that may have none -----------------------------


CARD, OTHER = (Card("A card", uuid, 0, (9, 0), 132, 50 << 20, 80 << 30) for uuid in ("GPU-1", "GPU-2"))

Measure = Callable[[Mapping[str, float]], None]


@pytest.fixture
def now_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Says how many bytes a second each kernel moves from now on; the arithmetic stays at 1e6 operations a second."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(card, "driver", lambda: "580.1")
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
    monkeypatch.setattr(card, "driver", lambda: "590.2")
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


def test_the_driver_is_named(tmp_path: Path) -> None:
    line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build\nGCC version: 11.4.0\n"
    (tmp_path / "version").write_text(line)
    assert card.driver(tmp_path / "version") == "580.82.07"
    assert card.driver(tmp_path / "gone") == "unknown"
