"""Lists of cases that are too long for each run: a sample is tried, the same each time, so that a failure is the change's own.

A parametrized test that is marked `sample(2)` tries two of its cases, or two of each group where their names begin with one, as
in "softmax/tutorial.py"; of tests that are marked `sample(2, of="containers")`, two are tried. `make test TURN=1` tries
others; all are tried by `make test-slow`, and where a test is named or chosen with -k.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from zlib import crc32

import pytest


def put_off(items: Iterable[pytest.Item], turn: int) -> None:
    """Marks as slow what the samples of this turn leave out; with the turns that follow, every case has its own."""
    groups = defaultdict[tuple[str, str, int], list[pytest.Item]](list)
    for item in items:
        mark = item.get_closest_marker("sample")
        if mark and not item.get_closest_marker("slow"):
            test, _, case = item.nodeid.partition("[")
            group = re.match(r"\w+/", case)
            groups[mark.kwargs.get("of", test), group[0] if group else "", mark.args[0]].append(item)
    for (_, _, count), cases in groups.items():
        cases.sort(key=lambda item: crc32(item.nodeid.encode()))  # neighbours in a list are often alike
        count = min(count, len(cases))
        tried = {(turn + number * len(cases) // count) % len(cases) for number in range(count)}
        for number, item in enumerate(cases):
            if number not in tried:
                item.add_marker(pytest.mark.slow)
