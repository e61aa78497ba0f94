"""Caches keep what was used last within their limits, and a submission shares them only where a grader is kept warm."""

import re
from pathlib import Path

import pytest

from gradekit import reuse
from gradekit.judge import compare, reference
from gradekit.processes import ForkedProcess
from gradekit.reuse import LruCache
from tests.patience import GUARD


def test_what_was_asked_for_longest_ago_makes_room() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


@pytest.mark.parametrize(("most", "put", "kept"), [
    (10, [(number, b"four") for number in range(5)], {3: b"four", 4: b"four"}),
    (10, [(0, b"four"), (1, b"larger")], {0: b"four"}),
    (10, [(0, b"four"), (0, b"five5")], {0: b"five5"}),
    (4, [(0, b"four"), (0, b"five5")], {}),
], ids=["the last", "none that is too large", "the new one", "not the old one where the new one is too large"])
def test_what_is_kept_weighs_no_more_than_it_may(most: int, put: list[tuple[int, bytes]], kept: dict[int, bytes]) -> None:
    cache: LruCache[int, bytes] = LruCache(most, weigh=len, largest=5)
    for key, value in put:
        cache.put(key, value)
    assert {key: cache.get(key) for key, _ in put if cache.get(key) is not None} == kept
    assert cache.weight == sum(map(len, kept.values()))


def test_each_submission_begins_with_empty_caches() -> None:
    squares: reuse.SharedCache[int, int] = reuse.shared(4)
    for _ in range(2):
        with reuse.kept(False), reuse.per_submission():
            assert squares.get(3) is None
            squares.put(3, 9)
            assert squares.get(3) == 9


def test_a_warm_grader_keeps_them_from_one_submission_to_the_next() -> None:
    squares: reuse.SharedCache[int, int] = reuse.shared(4)
    with reuse.kept():
        with reuse.per_submission():
            squares.put(3, 9)
        with reuse.per_submission():
            assert squares.get(3) == 9


def test_every_cache_that_outlives_a_submission_is_declared_in_one_way() -> None:
    """A module-level LruCache would not obey the switch."""
    package = Path(reuse.__file__).parent
    assert not [
        file for file in package.rglob("*.py") if re.search(r"^\w+.*= LruCache\(", file.read_text(), re.MULTILINE)
    ]


def test_what_a_fork_has_learned_is_handed_on_but_for_tests_and_what_is_known_better() -> None:
    code = test_each_submission_begins_with_empty_caches.__code__
    with reuse.kept():
        compare._right.put("before", True)
        before = reuse.known()

        def learn(message: bytes) -> bytes:
            reference._known.put((code, "asked"), (7, 1))
            compare._right.put("here, too", False)
            compare._right.put(test_each_submission_begins_with_empty_caches, True)
            return reuse.learned(before)

        fork = ForkedProcess(learn)
        fork.ask(b".")
        reuse.receive(fork.take(GUARD))
        fork.end()
        compare._right.put("here, too", True)
        assert reference._known.get((code, "asked")) is None
        reuse.merge_received()
        assert reference._known.get((code, "asked")) == (7, 1)
        assert compare._right.get("here, too") is True
        assert compare._right.get(test_each_submission_begins_with_empty_caches) is None
