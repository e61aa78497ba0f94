"""A small assignment, `double(x)`, and submissions for it: what the tests of the plugin, of classes and of LMSs grade."""

from pathlib import Path

from tests.beside import beside

TEXTS = beside(__file__)

TOML = """
title = "Double"
entry = "double"
summary = "Twice of everything"
seed = 7
"""

TESTS = TEXTS["tests"]

KERNEL = TEXTS["kernel"]

RIGHT = KERNEL.replace("FACTOR", "2").replace("MASK", "i < n")
TRIPLES = KERNEL.replace("FACTOR", "3").replace("MASK", "i < n")
UNMASKED = KERNEL.replace("FACTOR", "2").replace("MASK", "i < n + 1")


def laid_out(folder: Path, tests: str = TESTS) -> Path:
    """The folder of assignments with "double" in it, made in `folder`."""
    made = folder / "assignments" / "double"
    made.mkdir(parents=True, exist_ok=True)
    (made / "assignment.toml").write_text(TOML)
    (made / "test_double.py").write_text(tests)
    return made.parent
