"""Versions come from package metadata, without importing the packages."""

from __future__ import annotations

import platform

from gradekit.versions import environment, version


def test_what_is_not_installed_has_no_version() -> None:
    assert version("surely-not-installed") is None


def test_the_environment_names_what_a_result_depends_on() -> None:
    found = environment(gpu="NVIDIA H200")
    assert set(found) == {"gradekit", "torch", "triton", "hypothesis", "python", "gpu"}
    assert found["python"] == platform.python_version()
    assert found["gpu"] == "NVIDIA H200"
    assert found["torch"] == version("torch")
