"""How torch's two sides compare is kept for a card, by what the function is and what it is given."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gradekit.gpu import card
from gradekit.gpu.baselines import Comparison
from gradekit.gpu.card import Card
from gradekit.inputs.spec import normal
from gradekit.judge.speed import Ratio

CARD = Card("Test Card", "GPU-1", 0, (9, 0), 132, 50 << 20, 80 << 30)
X = normal((8, 8), seed=1)
FOUND = Ratio(1.5, 1.4, 1.6, rounds=16, discarded=0)


def twice(x: Any) -> Any:
    return x + x


def scaled(by: Any) -> Any:
    return lambda x: by * x


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(card, "driver", lambda: "580.1")


@pytest.mark.parametrize("function", [twice, torch.softmax, scaled(3)])
def test_a_ratio_is_found_again_for_the_same_call_with_other_values(function: Any) -> None:
    assert Comparison(function, [X, -1], CARD).found is None
    Comparison(function, [X, -1], CARD).keep(FOUND)
    assert Comparison(function, [replace(X, seed=7), -1], CARD).found == FOUND


def test_another_shape_number_function_or_card_is_another_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    Comparison(scaled(2), [X, 5], CARD).keep(FOUND)
    assert Comparison(scaled(2), [normal((8, 9)), 5], CARD).found is None
    assert Comparison(scaled(2), [X, 6], CARD).found is None
    assert Comparison(scaled(4), [X, 5], CARD).found is None
    assert Comparison(scaled(2), [X, 5], replace(CARD, uuid="GPU-2")).found is None
    monkeypatch.setattr(card, "driver", lambda: "590.2")
    assert Comparison(scaled(2), [X, 5], CARD).found is None


def test_a_function_that_holds_a_tensor_is_measured_each_time() -> None:
    held = Comparison(scaled(torch.ones(3)), [X], CARD)
    held.keep(FOUND)
    assert held.found is None
