"""docs/threat-model.md names tests that exist, and figures that are true."""

import re
from pathlib import Path

import pytest

from gradekit import sandbox, wellformed
from gradekit.confine import LEVELS
from gradekit.confine.confinement import COMPILER_TASKS, HIGHEST_WITHOUT_NAMESPACES
from gradekit.engine.budget import LAUNCH, STEP, Budget
from gradekit.gpu import Limit
from gradekit.inspector import Limit as Compiling
from gradekit.submission import archive, notebook, reading
from gradekit.tracer import children
from tests.hostile.escapes import ESCAPES

ROOT = Path(__file__).parents[2]
TEXT = " ".join((ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[\w/.]+)`", TEXT))))
def test_every_test_that_it_names_is_there(name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.parametrize("words", [
    f"{len(ESCAPES)} ways",
    f"for {sandbox.Limits().import_seconds:g} seconds while it is loaded",
    f"for {sandbox.Limits().call_seconds:g} seconds in each call",
    f"{sandbox.Limits().packages_seconds:g} seconds of importing packages do not count",
    f"sleep for {sandbox.Limits().total_seconds:g} seconds",
    f"{Budget().work // 10**9} billion element operations of the engine",
    f"{Budget().bytes >> 20} MiB of tensors",
    f"map {sandbox.Limits().memory_bytes >> 30} GiB",
    f"files of {sandbox.Limits().file_bytes >> 20} MiB",
    f"write to {children.DATA_BYTES / (1 << 30)} GiB",
    f"a launch counts as {'half a million' if LAUNCH * STEP == 500_000 else LAUNCH * STEP}",
    f"{sandbox.Limits().processes} processes and threads",
    f"{sandbox.Limits().program_bytes >> 20} MiB of program",
    f"{wellformed.MOST_TTIR >> 20} MiB of TTIR",
    f"have {children.MEMORY_BYTES >> 30} GiB of memory together",
    f"its files {children.FILE_BYTES >> 20} MiB, in {children.FILES:,} files",
    (
        f"looked at {['never', 'once', 'twice', 'three times', 'four times'][round(1 / children.PULSE_SECONDS)]} a "
        "second"
    ),
    f"{children.OPEN_FILES} of {sandbox.Limits().file_bytes >> 20} MiB",
    f"{Limit.MEMORY_BYTES >> 30} GiB of memory of its own, to files of {Limit.FILE_BYTES >> 30} GiB",
    f"have {COMPILER_TASKS} processes and threads",
    (
        f"offline has {Compiling.SECONDS} seconds, {Compiling.MEMORY_BYTES >> 30} GiB and files of "
        f"{Compiling.FILE_BYTES >> 20} MiB"
    ),
    f"level {HIGHEST_WITHOUT_NAMESPACES} at most",
    f"may have {archive.MAX_BYTES >> 20} MiB and {archive.MAX_ENTRIES:,} entries",
    f"Python {reading.MAX_SOURCE_BYTES >> 20} MiB; notebooks {reading.MAX_NOTEBOOK_BYTES >> 20} MiB",
])
def test_its_figures_are_those_of_the_code(words: str) -> None:
    assert words in TEXT


def test_it_describes_every_level() -> None:
    assert all(f"| {number} |" in TEXT for number in range(len(LEVELS)))


def test_what_the_notebooks_reader_takes_fits_in_a_submission() -> None:
    assert notebook.MOST_CODE <= reading.MAX_SOURCE_BYTES
