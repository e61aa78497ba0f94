"""The patches that make Triton and torch work for the tracer do what they are for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import zygote


def found(*words: str) -> dict[str, Any]:
    """What patched.py saw."""
    done = zygote.ran([Path(__file__).with_name("patched.py"), *words])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def patched() -> dict[str, Any]:
    return found()


def test_jit_functions_are_known_from_then_on(patched: dict[str, Any]) -> None:
    assert patched["watched"] == ["late"]


def test_a_jit_function_is_parsed_once(patched: dict[str, Any]) -> None:
    assert patched["parsed once"]


def test_triton_asks_the_driver_that_was_put_in_place(patched: dict[str, Any]) -> None:
    assert patched["target"] == 90


def test_triton_compiles_with_what_was_put_in_place_of_its_compiler(patched: dict[str, Any]) -> None:
    assert patched["compiled"] == ["early", {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}]


def test_a_launch_has_its_grid_and_arguments(patched: dict[str, Any]) -> None:
    grid, arguments = patched["launched"]
    assert grid == [3, 1, 1] and "17" in arguments


def test_torch_compile_is_not_imported_for_tensors_without_data_or_operators(patched: dict[str, Any]) -> None:
    assert patched["sum"] == [3] and patched["thrice"] == [3.0]
    assert not patched["dynamo after"]


def test_the_code_of_a_custom_operator_is_found(patched: dict[str, Any]) -> None:
    assert patched["code"] == [3.0, 3.0]


@pytest.mark.slow
def test_without_the_patch_torch_would_import_it() -> None:
    assert found("unpatched") == {"sum": [3], "dynamo after": True}


def test_wrap_triton_wraps_where_it_is_asked_to_and_nowhere_else(patched: dict[str, Any]) -> None:
    assert patched["wraps"] == [True, False]
