"""Texts whose code is the same, but for comments and layout: Python and Triton do the same with both.

Only texts without any means to read their own source or places are compared.
"""

import ast
import functools
import re
from collections.abc import Mapping

from gradekit.submission.reach import reach

_TELLS = re.compile(r"attr='(src|raw_src|fn|hash|cache_key|parse|asm|kernel|\w*file_\w+|\w*_number)'|ExceptHandler\(")
"""Code that could tell its text from a twin's, as could a comment on the file's encoding: what Triton's kernels have of
their source, and errors, whose messages quote lines."""

LINE_IN_WORDS = r"\b[Ll]ines? \d"  # how words name a line


@functools.lru_cache(maxsize=16)
def code_of(text: str) -> str | None:
    """What is the same for all texts with the same code; None where the code could tell them apart."""
    try:
        code, far = ast.dump(ast.parse(text)), reach(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it may be nested more deeply than can be written
        return None
    can_tell = far is not None or _TELLS.search(code) or "coding" in "".join(text.split("\n", 2)[:2])
    return None if can_tell else code


@functools.lru_cache(maxsize=16)
def moved_lines(before: str, after: str) -> Mapping[int, int] | None:
    """Of two texts with the same code: for each line of the one with code the number that it has in the other; nothing
    where all code stands where it stood, to the letter; None where statements share other lines than before."""
    lines = dict[int, int]()
    for one, other in zip(ast.walk(ast.parse(before)), ast.walk(ast.parse(after)), strict=True):
        for place in ("lineno", "end_lineno"):
            line = getattr(other, place, 0)
            if lines.setdefault(getattr(one, place, 0), line) != line:
                return None
    code = slice(min(lines.keys() - {0}, default=1) - 1, max(lines))
    is_same = before.split("\n")[code] == after.split("\n")[code] and all(line == at for line, at in lines.items())
    return {} if is_same else lines
