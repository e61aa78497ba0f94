"""Kinds of values: what their names say, in every dtype, from one stream of a generator."""

import hashlib
import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from gradekit.domain import load
from gradekit.inputs.calls import calls, draws_of
from gradekit.inputs.spec import BrokenPromise, Input, with_other_values
from gradekit.inputs.value_kinds import WHOLE, make

DTYPES = ["int8", "uint8", "int16", "int32", "int64", "bool", "float32", "float16", "bfloat16", "float8_e4m3fn"]


def made(kind: str, shape: tuple[int, ...] = (6, 50), dtype: str = "int64", seed: int = 3) -> torch.Tensor:
    return make(kind, shape, getattr(torch, dtype), torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", [*(k for k in WHOLE if k != "index"), "index:7", "between:3:9"])
def test_every_kind_fits_every_shape_and_dtype(kind: str) -> None:
    for dtype, shape in itertools.product(DTYPES, [(), (0,), (1,), (5,), (3, 4), (2, 0)]):
        tensor = Input(dtype, shape, tuple(torch.empty(shape).stride()), profile=kind).tensor()
        assert (tensor.shape, str(tensor.dtype)) == (shape, f"torch.{dtype}")


def test_an_index_has_every_place_below_a_size_and_both_ends() -> None:
    values = made("index:5")
    assert set(values.flatten().tolist()) == {0, 1, 2, 3, 4}
    assert {0, 99} <= set(made("index:100", (2,)).tolist())
    assert made("index:1").eq(0).all()


def test_rows_of_a_permutation_have_each_number_once() -> None:
    assert made("permutation").sort(dim=-1).values.equal(torch.arange(50).expand(6, 50))


def test_sorted_rows_rise_and_few_values_are_few() -> None:
    assert (made("sorted").diff(dim=-1) >= 0).all() and made("sorted").unique().numel() > 20
    assert made("few").unique().numel() <= 3


def test_one_hot_rows_have_one_1_and_masks_have_both() -> None:
    assert made("one_hot").sum(dim=-1).eq(1).all()
    assert set(made("mask").flatten().tolist()) == {0, 1}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_the_full_range_has_both_ends_but_the_poison(dtype: str) -> None:
    info, values = torch.iinfo(getattr(torch, dtype)), made("full", dtype=dtype)
    assert (values.min(), values.max()) == (info.min, info.max - 1)


@pytest.mark.parametrize("kind", ["index", "index:a", "index:1:2", "between:3", "mask:1", "integer"])
def test_a_kind_that_makes_no_sense_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=kind.partition(":")[0]):
        made(kind)


TAKE = """
[take]
arguments = ["x", "at", "order"]
result = { shape = ["N"], dtype = "float32" }
sizes.N = { most = 400 }
sizes.V = { most = 400 }
tensors.x = { shape = ["V"], dtype = "float32" }
tensors.at = { shape = ["N"], dtype = "int64", range = ["-1", "V - 1"] }
tensors.order = { shape = ["N"], dtype = "int32", range = ["0", "V"], ascending = true }
"""


def test_tensors_with_a_range_are_drawn_within_it(tmp_path: Path) -> None:
    (tmp_path / "domain.toml").write_text(TAKE)
    drawn: Any = draws_of(calls(load(tmp_path / "domain.toml")["take"], values=["normal"]))
    ends = set()
    for number, row in enumerate(drawn.design()):
        (x, at, order), _ = drawn.call(row, number)
        V = x.shape[0]
        values, rising = at.tensor(), order.tensor()
        ends |= {int(values.min()) == -1, int(values.max()) == V - 1}
        assert x.profile == "normal" and -1 <= values.min() <= values.max() <= V - 1
        assert 0 <= rising.min() <= rising.max() <= V and (rising.diff() >= 0).all()
    assert ends == {True, False}


def test_a_spec_travels_with_what_is_promised_of_it() -> None:
    spec = Input("int32", (4,), (1,), profile="between:0:9", within=(0, 5), ascending=True, seed=2)
    assert Input.from_json(spec.to_json()) == spec
    with pytest.raises(BrokenPromise, match="promises 0 to 5"):
        Input.from_json(spec.to_json()).tensor()


# --- values of each kind are made from one stream of a generator, and in little memory --------------------------------


DIGESTS = {"normal": "ccee94bbcb94a48e", "positive": "c3366b73c8c4ecaa", "trend": "ae01a3b0759f23c5"}


@pytest.mark.parametrize("kind", DIGESTS)
def test_values_are_those_that_they_have_always_been(kind: str) -> None:
    """A record names a kind and a seed: the values must not change"""
    values = make(kind, (3, 5, 7), torch.float32, torch.Generator().manual_seed(20260901))
    assert hashlib.sha256(values.numpy().tobytes()).hexdigest()[:16] == DIGESTS[kind]


@pytest.mark.parametrize("kind", ["normal", "positive", "alternating", "grid", "spike"])
def test_no_more_numbers_are_drawn_at_a_time_than_there_are_values(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight million of them are 64 MiB, and a grader has 1 GiB"""
    drawn, randint = [], torch.randint

    def noted(low: int, high: int, shape: tuple[int, ...], **others: Any) -> torch.Tensor:
        drawn.append(math.prod(shape))
        return randint(low, high, shape, **others)

    monkeypatch.setattr(torch, "randint", noted)
    make(kind, (64, 64), torch.float32, torch.Generator().manual_seed(1))
    assert drawn and max(drawn) == 64 * 64


def test_other_values_of_numbers_that_a_pattern_gives_keep_to_what_is_promised() -> None:
    crow = Input("int32", (5,), (2,), 1, profile="sorted:0:8", within=(0, 8), ascending=True)
    for spec in (crow, Input("int32", (4,), (1,), profile="between:0:2", within=(0, 2))):
        other = with_other_values(spec)
        assert isinstance(other, Input) and not other.tensor().equal(spec.tensor())
