"""What gradekit expects of Hypothesis's private names."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.configuration import storage_directory

from gradekit.compat.hypothesis import at_least, home, no_constants_of_modules, overrun


def counted(seen: list[int]) -> Callable[[], None]:
    """A test that asks for three examples."""

    @settings(max_examples=3, database=None)
    @given(n=st.integers(0, 10**6))
    def test(n: int) -> None:
        seen.append(n)

    return test


def test_a_test_that_asks_for_few_examples_runs_as_many_as_are_wanted() -> None:
    seen: list[int] = []
    test = counted(seen)
    with at_least(40, test):
        test()
    assert len(seen) == 40


def test_a_test_that_asks_for_more_examples_keeps_its_number() -> None:
    seen: list[int] = []
    test = counted(seen)
    with at_least(2, test):
        test()
    assert len(seen) == 3


def test_afterwards_a_test_has_its_own_number_of_examples_again() -> None:
    seen: list[int] = []
    test = counted(seen)
    with at_least(50, test):
        pass
    test()
    assert len(seen) == 3


def test_a_test_that_does_not_use_hypothesis_is_let_be() -> None:
    def plain() -> None:
        pass

    with at_least(50, plain):
        assert vars(plain) == {}
    with at_least(50, None):
        pass


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


def test_an_example_that_is_overrun_says_nothing_against_the_test() -> None:
    ended: list[int] = []

    @settings(max_examples=10, database=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def test(data: st.DataObject) -> None:
        if data.draw(st.integers(0, 3)) == 3:
            ended.append(1)
            overrun(data)
            raise AssertionError("the example went on")

    test()
    assert ended
