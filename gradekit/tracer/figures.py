"""What ptxas made of a kernel, read from the machine code with the tools that the triton package carries."""

from __future__ import annotations

import re
import subprocess
import tempfile

from triton import knobs

REGISTER_BYTES = 4


def registers_and_spills(cubin: bytes) -> tuple[int, int]:
    """How many registers one thread has, and how many more it would have liked."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    # spilled registers lie on the stack, which Triton's n_spills counts too; LOCAL is what a kernel asks for itself
    return _number(shown, "REG"), (_number(shown, "STACK") + _number(shown, "LOCAL")) // REGISTER_BYTES


def _number(shown: str, name: str) -> int:
    found = re.search(rf"{name}:(\d+)", shown)
    return int(found[1]) if found else 0
