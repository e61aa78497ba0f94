"""What a machine offers: its user, and what that user keeps to read Python with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradekit.confine import landlock
from gradekit.confine.confinement import for_compilers
from gradekit.confine.landlock import Rules


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
@pytest.mark.parametrize("without", [(), ("landlock",)], ids=["behind Landlock", "without it"])
def test_a_python_that_root_alone_may_read_is_read_with_one_privilege(tmp_path: Path, without: tuple[str, ...]) -> None:
    """Behind Landlock, and nowhere else"""
    if not (without or landlock.version()):
        pytest.skip("no Landlock here")
    hidden = tmp_path / "python"
    hidden.mkdir(mode=0o700)
    found = for_compilers(Rules(read=(str(hidden),)), (), without)
    assert found.means.user is not bool(without)
    assert (found.keep in (1, 2)) is not bool(without)


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_no_privilege_is_kept_that_is_not_needed() -> None:
    found = for_compilers(Rules(read=("/usr",)))
    assert found.means.user and found.keep is None and found.user
