"""A shelf keeps what was asked for last, and no more than it may."""

from gradekit.shelf import Shelf


def test_what_is_kept_is_found() -> None:
    shelf: Shelf[str, int] = Shelf(2)
    shelf.keep("a", 1)
    assert shelf.get("a") == 1 and "a" in shelf and len(shelf) == 1


def test_what_was_never_kept_is_not_there() -> None:
    assert Shelf[str, int](2).get("a") is None


def test_what_was_asked_for_longest_ago_makes_room() -> None:
    shelf: Shelf[str, int] = Shelf(2)
    shelf.keep("a", 1)
    shelf.keep("b", 2)
    shelf.get("a")
    shelf.keep("c", 3)
    assert [shelf.get(key) for key in "abc"] == [1, None, 3]


def test_all_together_weigh_no_more_than_they_may() -> None:
    shelf: Shelf[int, bytes] = Shelf(10, weigh=len)
    for number in range(5):
        shelf.keep(number, b"four")
    assert len(shelf) == 2 and shelf.weight == 8


def test_one_that_is_too_large_pushes_nothing_out() -> None:
    shelf: Shelf[str, bytes] = Shelf(10, weigh=len, largest=5)
    shelf.keep("a", b"four")
    shelf.keep("b", b"larger")
    assert shelf.get("a") == b"four" and shelf.get("b") is None


def test_a_new_value_takes_the_place_of_the_old_one() -> None:
    shelf: Shelf[str, bytes] = Shelf(10, weigh=len)
    for value in (b"four", b"five5"):
        shelf.keep("a", value)
    assert shelf.get("a") == b"five5" and shelf.weight == 5


def test_an_old_value_does_not_stay_where_the_new_one_is_too_large() -> None:
    shelf: Shelf[str, bytes] = Shelf(4, weigh=len)
    shelf.keep("a", b"four")
    shelf.keep("a", b"five5")
    assert shelf.get("a") is None and shelf.weight == 0


def test_what_is_dropped_is_gone() -> None:
    shelf: Shelf[str, bytes] = Shelf(4, weigh=len)
    shelf.keep("a", b"four")
    shelf.drop("a")
    shelf.drop("a")
    assert shelf.get("a") is None and shelf.weight == 0
