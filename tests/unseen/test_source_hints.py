"""What the text of a submission tells of where to look."""

from __future__ import annotations

import pytest

from gradekit.unseen.source_hints import hints


@pytest.mark.parametrize("number", ["0x" + "F" * 9000, "1e400", "-1e400"])
def test_numbers_that_no_size_reaches_tell_nothing(number: str) -> None:
    found = hints(f"def f(n):\n    return n > {number} or n > 4096 or n * 0.5 > 7")
    assert found.whole == (4096, 7)
    assert found.fractions == (4096.0, 7.0, 0.5)


def test_conditions_beside_a_question_for_a_dtype_are_known_by_their_lines() -> None:
    text = "def f(x):\n    if len(x) > 5:\n        if x.dtype == g:\n            pass\n    if len(x) > 7:\n        pass"
    assert hints(text).by_dtype == {2, 3, 4}
