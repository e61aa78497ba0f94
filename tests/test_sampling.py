"""Of a long list each run tries a sample, of each of its groups, and in time all of it."""

from typing import Any

import pytest

from .sampling import put_off


class Case:
    """What of a parametrized test's case is asked for."""

    def __init__(self, name: str, **marks: int) -> None:
        self.nodeid, self.marks = f"tests/test_a.py::test_b[{name}]", {key: getattr(pytest.mark, key)(value).mark for key, value in marks.items()}

    def get_closest_marker(self, name: str) -> Any:
        return self.marks.get(name)

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.marks[marker.name] = marker.mark


@pytest.mark.parametrize(("count", "names"), [(2, "abcde"), (1, "abc"), (3, "abcdefg"), (4, "abc")])
def test_each_turn_tries_so_many_of_each_group_and_all_turns_try_all(count: int, names: str) -> None:
    seen = set[str]()
    for turn in range(len(names)):
        cases = [Case(f"{group}/{name}", sample=count) for group in ("one", "other") for name in names]
        put_off(cases, turn)  # type: ignore[arg-type]
        tried = [case.nodeid for case in cases if "slow" not in case.marks]
        assert sum("one/" in each for each in tried) == sum("other/" in each for each in tried) == min(count, len(names))
        seen.update(tried)
    assert len(seen) == 2 * len(names)


def test_of_tests_that_belong_together_one_is_tried() -> None:
    cases = [Case("", sample=1) for _ in range(3)]
    for number, case in enumerate(cases):
        case.nodeid, case.marks["sample"] = f"tests/test_{number}.py::test_a", pytest.mark.sample(1, of="containers").mark
    put_off(cases, 2)  # type: ignore[arg-type]
    assert sum("slow" not in case.marks for case in cases) == 1


def test_what_is_not_marked_or_slow_anyway_is_no_part_of_a_sample() -> None:
    cases = [Case("a/b/c d"), Case("c", slow=1, sample=1), Case("d", sample=1)]
    put_off(cases, 7)  # type: ignore[arg-type]
    assert [("slow" in case.marks) for case in cases] == [False, True, False]
