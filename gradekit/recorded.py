"""Programs as one text: what a submission's calls became on one machine, for a machine that never sees the submission.

JSON, compressed and as ASCII. The text may have passed through other hands: programs are checked when they are read.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping

from gradekit import wellformed
from gradekit.program import Program, ProgramError, decode, encode

LARGEST = 4 << 20  # characters of such a text: the calls that an assignment times are few

LARGEST_PLAIN = 128 << 20


def dumps(programs: Mapping[str, Program]) -> str:
    """The programs, by what tells their calls from others, as a text. Raises ProgramError where they are too large."""
    data = json.dumps({name: encode(program) for name, program in programs.items()}, separators=(",", ":"))
    text = base64.b85encode(zlib.compress(data.encode(), 6)).decode()
    if len(text) > LARGEST or len(data) > LARGEST_PLAIN:
        raise ProgramError(f"the programs take {len(text)} characters, and may take {LARGEST}")
    return text


def loads(text: str) -> dict[str, Program]:
    """The programs that `dumps` wrote. Raises ProgramError where the text holds anything else."""
    if len(text) > LARGEST:
        raise ProgramError(f"more than {LARGEST} characters")
    try:
        machine = zlib.decompressobj()
        data = json.loads(machine.decompress(base64.b85decode(text), LARGEST_PLAIN))
    except (ValueError, zlib.error, binascii.Error, RecursionError) as error:
        raise ProgramError(f"not programs: {type(error).__name__}") from None
    if not isinstance(data, dict):
        raise ProgramError("not programs, but something else")
    return {name: _checked(program) for name, program in data.items()}


def _checked(data: object) -> Program:
    program: Program = decode(data)
    wellformed.check(program, program.inputs)
    return program
