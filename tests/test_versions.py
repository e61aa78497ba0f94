"""Versions come from package metadata, without importing the packages."""

import importlib.metadata
import platform
from email.message import Message
from pathlib import Path

import pytest

from gradekit import versions
from gradekit.versions import environment, requirements, supported, version


def test_what_is_not_installed_has_no_version() -> None:
    assert version("surely-not-installed") is None


def test_the_environment_names_what_a_result_depends_on() -> None:
    found = environment(gpu="NVIDIA H200")
    assert set(found) == {"gradekit", "torch", "triton", "hypothesis", "python", "gpu"}
    assert found["python"] == platform.python_version()
    assert found["gpu"] == "NVIDIA H200"
    assert found["torch"] == version("torch")


def test_a_checkout_says_which_versions_it_accepts() -> None:
    found = supported()
    assert found["python"].contains("3.13") and not found["python"].contains("3.14")
    assert found["triton"].contains("3.6.0") and not found["triton"].contains("3.5.1")
    assert found["torch"].contains("2.13.0+cpu")


def test_what_an_extra_alone_needs_is_not_needed() -> None:
    assert "sqlalchemy" not in supported() and not any("sqlalchemy" in line for line in requirements())


def test_without_a_checkout_the_metadata_says_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    metadata = Message()
    for name, value in (
        ("Requires-Python", "<3.14,>=3.11"),
        ("Requires-Dist", "click<9,>=8.1"),
        ("Requires-Dist", "sqlalchemy>=2; extra == 'batch'"),
    ):
        metadata[name] = value
    monkeypatch.setattr(versions, "PROJECT", tmp_path / "gone.toml")
    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: metadata)
    assert {name: str(accepted) for name, accepted in supported().items()} == {
        "python": "<3.14,>=3.11", "click": "<9,>=8.1",
    }
