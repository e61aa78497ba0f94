"""What gradekit expects of Hypothesis's private names."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.configuration import storage_directory

from gradekit.compat.hypothesis import ReplayDatabase, examples, home, no_constants_of_modules, strategies


def counted(seen: list[int]) -> Callable[[], None]:
    """A test that asks for three examples."""

    @settings(max_examples=3, database=None)
    @given(n=st.integers(0, 10**6))
    def test(n: int) -> None:
        seen.append(n)

    return test


@pytest.mark.parametrize(("count", "at_least", "runs"), [(None, 40, 40), (None, 2, 3), (2, 1, 2), (8, 1, 3), (0, 1, 1)])
def test_a_test_runs_as_many_examples_as_are_wanted(count: int | None, at_least: int, runs: int) -> None:
    seen: list[int] = []
    test = counted(seen)
    with examples(test, count, ReplayDatabase(), at_least=at_least):
        test()
    assert len(seen) == runs


def test_afterwards_a_test_has_its_own_number_of_examples_again() -> None:
    seen: list[int] = []
    test = counted(seen)
    with examples(test, 50, ReplayDatabase()):
        pass
    test()
    assert len(seen) == 3


def test_a_test_that_does_not_use_hypothesis_is_let_be() -> None:
    def plain() -> None:
        pass

    for test in (plain, None):
        with examples(test, 50, ReplayDatabase()):
            assert strategies(test) == {}
    assert vars(plain) == {}


def test_an_example_that_is_given_as_numbers_is_tried_first_and_made_smaller() -> None:
    seen: list[tuple[int, str]] = []
    replay = ReplayDatabase()

    @seed(3)
    @settings(max_examples=5, deadline=None)
    @given(pair=st.tuples(st.sampled_from(range(1000)), st.sampled_from("abc")))
    def test(pair: tuple[int, str]) -> None:
        seen.append(pair)
        assert pair[0] < 700 or pair[1] == "a"

    with examples(test, 5, replay), pytest.raises(AssertionError):
        replay.numbers = [912, 2]
        test()
    assert seen[0] == (912, "c") and seen[-1] == (700, "b")


def test_the_strategies_of_a_test_are_known_by_its_parameters() -> None:
    assert list(strategies(counted([]))) == ["n"]


def files() -> Path:
    """Where Hypothesis keeps what it has read: a Path itself in older releases."""
    found = storage_directory("constants")
    return getattr(found, "path", found)


def test_hypothesis_keeps_its_files_in_the_folder_that_is_its_home(tmp_path: Path) -> None:
    with home(tmp_path):
        assert files().is_relative_to(tmp_path)
    assert not files().is_relative_to(tmp_path)


SECRET = 918_273_645


@pytest.fixture
def module_with_a_constant(tmp_path: Path) -> Iterator[None]:
    """Loaded, beside the sources of its user: Hypothesis reads the constants of such modules."""
    (file := tmp_path / "with_a_constant.py").write_text(f"number = {SECRET}\n")
    module = types.ModuleType("with_a_constant")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    yield
    del sys.modules[module.__name__]


def drawn() -> set[int]:
    """Integers that Hypothesis draws: a few hundred, from one seed."""
    seen = set()

    @seed(7)
    @settings(max_examples=400, database=None, phases=[Phase.generate], deadline=None)
    @given(n=st.integers())
    def test(n: int) -> None:
        seen.add(n)

    test()
    return seen


def test_numbers_in_the_source_of_loaded_modules_are_not_drawn(module_with_a_constant: None) -> None:
    with no_constants_of_modules():
        alone = drawn()
    assert SECRET not in alone
    del sys.modules["with_a_constant"]
    with no_constants_of_modules():
        assert drawn() == alone
    sys.modules["with_a_constant"] = types.ModuleType("with_a_constant")  # for the fixture
