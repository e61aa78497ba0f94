"""Folders of a confined process: who may enter them, and who removes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradekit.confine.paths import PrivateFolder
from tests.hostile.world import opened


def test_its_folder_is_for_one_user_alone() -> None:
    with PrivateFolder("gradekit-test-") as folder:
        assert folder.path.stat().st_mode & 0o777 == 0o700
    assert not folder.path.exists()


def test_a_folder_that_nobody_holds_is_removed() -> None:
    path = PrivateFolder("gradekit-test-").path
    assert not path.exists()


def test_a_fork_of_the_process_does_not_remove_its_folder() -> None:
    with PrivateFolder("gradekit-test-") as folder:
        pid = os.fork()
        if pid == 0:
            folder.remove()
            os._exit(0)
        os.waitpid(pid, 0)
        assert folder.path.exists()


def test_what_killed_processes_have_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing that is locked, new, or somebody else's"""
    opened(tmp_path)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    held = PrivateFolder("gradekit-test-")
    left, new, other = (tmp_path / name for name in ("gradekit-test-left", "gradekit-test-new", "other"))
    for folder in (left, new, other):
        folder.mkdir()
    (left / "file").write_text("x")
    for folder in (held.path, left, other):
        os.utime(folder, (0, 0))
    made = PrivateFolder("gradekit-test-")
    assert {path.name for path in tmp_path.iterdir()} == {held.path.name, made.path.name, new.name, other.name}


def test_it_is_not_where_no_other_user_can_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root, which gives it away"""
    tmp_path.chmod(0o700)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    with PrivateFolder("gradekit-test-") as folder:
        assert (folder.path.parent == tmp_path) is (os.geteuid() != 0)
