"""Test modules with their assertions rewritten, each by one worker: in a fresh clone every worker would rewrite all of them.

It takes longer than importing and collecting them. pytest keeps what it has rewritten beside Python's own bytecode, and
reads it where it is there.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def share_of_worker(config: pytest.Config) -> list[Path]:
    """The test modules that this worker rewrites for all; none where there is one process, or nothing may be kept."""
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER", ""), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if sys.dont_write_bytecode or workers == 1 or not worker.startswith("gw"):
        return []
    folders = [Path(argument) for argument in config.args if Path(argument).is_dir()]
    return sorted({path.absolute() for folder in folders for path in folder.rglob("test_*.py")})[int(worker[2:]) :: workers]


def rewrite_ahead(config: pytest.Config, modules: Iterable[Path]) -> None:
    """Leaves the bytecode of `modules` where pytest looks for it; what is there already stays."""
    state = config.stash.get(rewrite.assertstate_key, None)
    if state is None or state.mode != "rewrite":
        return
    for module in modules:
        folder = rewrite.get_cache_dir(module)
        kept = folder / (module.name[:-3] + rewrite.PYC_TAIL)
        if rewrite._read_pyc(module, kept) is None and rewrite.try_makedirs(folder):
            known_by, code = rewrite._rewrite_test(module, config)
            rewrite._write_pyc(state, code, known_by, kept)
