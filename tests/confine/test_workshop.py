"""Where a compiler works: its folder, its user, and what it keeps to read Python with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradekit.confine import landlock, workshop
from gradekit.confine.landlock import Rules
from tests.hostile.world import opened


def test_its_folder_is_for_one_user_alone() -> None:
    folder = Path(workshop.private_folder("gradekit-test-"))
    try:
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        workshop.remove(str(folder))
    assert not folder.exists()


def test_what_killed_processes_have_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing that is held, new, or somebody else's"""
    opened(tmp_path)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    held = Path(workshop.private_folder("gradekit-test-"))
    left, new, other = (tmp_path / name for name in ("gradekit-test-left", "gradekit-test-new", "other"))
    for folder in (left, new, other):
        folder.mkdir()
    (left / "file").write_text("x")
    for folder in (held, left, other):
        os.utime(folder, (0, 0))
    made = Path(workshop.private_folder("gradekit-test-"))
    assert {path.name for path in tmp_path.iterdir()} == {held.name, made.name, new.name, other.name}
    for folder in (held, made):
        workshop.remove(str(folder))


def test_it_is_not_where_no_other_user_can_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root, which gives it away"""
    tmp_path.chmod(0o700)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder = Path(workshop.private_folder("gradekit-test-"))
    try:
        assert (folder.parent == tmp_path) is (os.geteuid() != 0)
    finally:
        workshop.remove(str(folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
@pytest.mark.parametrize("without", [(), ("landlock",)], ids=["behind Landlock", "without it"])
def test_a_python_that_root_alone_may_read_is_read_with_one_privilege(tmp_path: Path, without: tuple[str, ...]) -> None:
    """Behind Landlock, and nowhere else"""
    if not (without or landlock.version()):
        pytest.skip("no Landlock here")
    hidden = tmp_path / "python"
    hidden.mkdir(mode=0o700)
    found = workshop.found(Rules(read=(str(hidden),)), (), without)
    assert found.means.user is not bool(without)
    assert (found.keep in (1, 2)) is not bool(without)


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_no_privilege_is_kept_that_is_not_needed() -> None:
    found = workshop.found(Rules(read=("/usr",)))
    assert found.means.user and found.keep is None and found.user
