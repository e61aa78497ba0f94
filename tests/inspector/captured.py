"""A compiler in which hostile TTIR has won: its "TTIR" is Python, run in the kernel's process after that was shut in.

Started as the compiler is, by `python -m tests.inspector.captured FOLDER PARENT`; what
is left in `got` is its first stage.
"""

import sys
from pathlib import Path
from typing import Any

from gradekit.inspector import compiler

honest = compiler.compile_to
"""What the compiler does in an honest process."""


def obey(folder: Path, job: dict[str, Any]) -> None:
    """Does what the stranger says."""
    names: dict[str, Any] = {"folder": str(folder)}
    try:
        exec(job["ttir"], names)  # noqa: S102
    except BaseException as error:  # noqa: BLE001
        names["got"] = repr(error)
    (folder / "ttir").write_text(repr(names.get("got")))


if __name__ == "__main__":
    compiler.compile_to = obey
    compiler.main(Path(sys.argv[1]), int(sys.argv[2]))
