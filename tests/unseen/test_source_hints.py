"""What the text of a submission tells of where to look."""

from __future__ import annotations

import pytest

from gradekit.unseen.source_hints import hints


@pytest.mark.parametrize("number", ["0x" + "F" * 9000, "1e400", "-1e400"])
def test_numbers_that_no_size_reaches_tell_nothing(number: str) -> None:
    found = hints(f"def f(n):\n    return n > {number} or n > 4096 or n * 0.5 > 7")
    assert found.whole == (4096, 7)
    assert found.fractions == (4096.0, 7.0, 0.5)
