"""Claims about naming a card and reading its clocks, on a machine that may have none."""

from __future__ import annotations

import pytest
import torch

from gradekit.gpu import card
from gradekit.gpu.card import Card, find, read, to_reading


@pytest.fixture
def no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("no_card")
def test_a_machine_without_a_card_has_none_to_find() -> None:
    assert find() is None
    assert find("auto") is None


def test_the_cpu_is_no_card() -> None:
    assert find("cpu") is None


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


def test_without_nvml_there_is_no_reading_and_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card, "_nvml", lambda: None)
    monkeypatch.setattr(card, "_handle", lambda uuid: None)
    assert read(Card("a card", "GPU-0", 0, (9, 0), 1, 1, 1)) is None
    assert card.driver() is None


def test_heat_and_power_brakes_are_throttling() -> None:
    assert to_reading(900, 3201, 0x40).throttled
    assert to_reading(900, 3201, 0x80 | 0x04).reasons == ("power brake", "power limit")


def test_a_power_limit_is_mentioned_but_is_no_throttling() -> None:
    reading = to_reading(1400, 3201, 0x04)
    assert not reading.throttled
    assert reading.reasons == ("power limit",)


def test_a_card_at_full_speed_has_no_reasons() -> None:
    assert to_reading(1980, 3201, 0).reasons == ()
