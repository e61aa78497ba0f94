"""Caches keep what was used last within their limits, and a submission shares them only where a grader is kept warm."""

import re
from pathlib import Path

from gradekit import reuse
from gradekit.reuse import LruCache


def test_what_was_asked_for_longest_ago_makes_room() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_all_together_weigh_no_more_than_they_may() -> None:
    cache: LruCache[int, bytes] = LruCache(10, weigh=len)
    for number in range(5):
        cache.put(number, b"four")
    assert len(cache) == 2 and cache.weight == 8


def test_one_that_is_too_large_pushes_nothing_out() -> None:
    cache: LruCache[str, bytes] = LruCache(10, weigh=len, largest=5)
    cache.put("a", b"four")
    cache.put("b", b"larger")
    assert cache.get("a") == b"four" and cache.get("b") is None


def test_a_new_value_takes_the_place_of_the_old_one() -> None:
    cache: LruCache[str, bytes] = LruCache(10, weigh=len)
    for value in (b"four", b"five5"):
        cache.put("a", value)
    assert cache.get("a") == b"five5" and cache.weight == 5


def test_an_old_value_does_not_stay_where_the_new_one_is_too_large() -> None:
    cache: LruCache[str, bytes] = LruCache(4, weigh=len)
    cache.put("a", b"four")
    cache.put("a", b"five5")
    assert cache.get("a") is None and cache.weight == 0


def test_what_is_dropped_is_gone() -> None:
    cache: LruCache[str, bytes] = LruCache(4, weigh=len)
    cache.put("a", b"four")
    cache.discard("a")
    cache.discard("a")
    assert cache.get("a") is None and cache.weight == 0


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
