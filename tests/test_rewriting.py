"""Test modules are rewritten by one worker for all: pytest finds the bytecode, and reads it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import rewriting


def test_what_was_rewritten_ahead_is_not_rewritten_again(
    pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "test_of_one.py"
    module.write_text("def of_one():\n    assert 1 + 1 == 3\n")
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    rewriting.rewrite_ahead(pytestconfig, [module])
    monkeypatch.setattr("_pytest.assertion.rewrite._rewrite_test", None)
    hook = pytestconfig.pluginmanager.rewrite_hook
    spec = importlib.util.spec_from_file_location("test_of_one", module, loader=hook)
    assert spec is not None
    made = importlib.util.module_from_spec(spec)
    hook.exec_module(made)
    with pytest.raises(AssertionError, match=r"assert \(1 \+ 1\) == 3"):
        made.of_one()


@pytest.mark.parametrize(("worker", "names"), [("gw0", ["test_a.py", "test_c.py"]), ("gw1", ["test_b.py"]), ("", [])])
def test_workers_share_the_modules_below_the_folders_that_are_asked_for(
    worker: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("test_a.py", "test_b.py", "test_c.py", "helper.py"):
        (tmp_path / name).touch()
    monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    asked = SimpleNamespace(args=[str(tmp_path), str(tmp_path / "test_a.py")])
    assert [path.name for path in rewriting.share_of_worker(asked)] == names  # type: ignore[arg-type]
