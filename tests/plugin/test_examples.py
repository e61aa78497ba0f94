"""Hypothesis under control: bounded in examples, never a failure turned into a pass, the same examples for everybody."""

import importlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gradekit import assert_close, reference
from gradekit.findings import Cause
from gradekit.inputs.spec import Input, normal
from gradekit.judge.failure import Failure
from gradekit.plugin.check_run import most_telling
from gradekit.plugin.examples import Example, Examples, controlled
from gradekit.plugin.profiles import PROFILES, Profile, hypothesis_profile

PROFILE = Profile("test", examples=60, drawn=5)


def run(test: Callable[..., Any], profile: Profile = PROFILE, seed: int = 0, **options: Any) -> tuple[Examples, Any]:
    """Runs a Hypothesis test under control: what controlled it, and the error that came out (or None)."""
    with controlled(test, seed, lambda inner: Examples(inner, profile, **options)) as examples:
        assert examples is not None
        try:
            test()
        except Exception as error:  # noqa: BLE001  (what came out is what the tests are about)
            return examples, error
    return examples, None


def drawn(seed: int, profile: Profile = PROFILE) -> list[int]:
    """The numbers that a test gets to see."""
    seen: list[int] = []
    with hypothesis_profile(profile):

        @given(n=st.integers(0, 10**6))
        def test(n: int) -> None:
            seen.append(n)

        run(test, profile, seed)
    return seen


def failing_above(limit: int) -> Callable[..., Any]:
    with hypothesis_profile(PROFILE):

        @given(n=st.integers(0, 10**6))
        def test(n: int) -> None:
            assert n <= limit, f"{n} is too large"

    return test


def test_one_seed_draws_the_same_examples_for_everybody() -> None:
    assert drawn(seed=1) == drawn(seed=1) != drawn(seed=2)


def test_the_examples_do_not_depend_on_what_has_been_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn(seed=1)
    (tmp_path / "full_of_numbers.py").write_text("".join(f"x{n} = {n * 7919}\n" for n in range(100)))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("full_of_numbers")
    assert drawn(seed=1) == before


def test_a_profile_bounds_the_number_of_examples() -> None:
    assert len(drawn(seed=0, profile=Profile("small", examples=7, drawn=5))) == 7


def test_quick_bounds_also_what_a_check_asks_for_itself() -> None:
    seen = []

    @settings(max_examples=100, database=None)
    @given(n=st.integers())
    def test(n: int) -> None:
        seen.append(n)

    run(test, PROFILES["quick"])
    assert len(seen) == 10


def test_a_failure_is_shrunk_and_its_example_known() -> None:
    examples, error = run(failing_above(1234))
    example = examples.failure(error)
    assert isinstance(example, Example)
    assert example.given == {"n": 1235}


@pytest.mark.parametrize("seed", range(10))
def test_shrinking_ends_after_so_many_examples_and_still_fails(seed: int) -> None:
    outcomes: list[BaseException | None] = []
    examples, error = run(failing_above(700), Profile("brief", examples=60, drawn=5, shrinks=4), seed, ended=outcomes.append)
    assert isinstance(error, AssertionError) and "too large" in str(error)
    assert examples.failure(error) is not None
    assert len([*itertools.dropwhile(lambda error: error is None, outcomes)]) <= 5


def test_after_a_hopeless_failure_nothing_more_runs() -> None:
    examples, error = run(failing_above(3), hopeless=lambda error: True)
    assert isinstance(error, AssertionError)
    assert examples.ran <= 60  # one failure: neither shrunk nor sought again
    failures = [e for e in [examples.failure(error)] if e]
    assert len(failures) == 1 and len(examples._failures) == 1


def test_what_cannot_be_decided_is_kept_while_the_search_goes_on() -> None:
    with hypothesis_profile(PROFILE):

        @given(n=st.integers(0, 100))
        def test(n: int) -> None:
            if n % 2:
                raise NotImplementedError("odd")

    examples, error = run(test, deferred=(NotImplementedError,))
    assert error is None and isinstance(examples.undecided, NotImplementedError)


def test_a_failure_is_stronger_than_what_cannot_be_decided() -> None:
    with hypothesis_profile(PROFILE):

        @given(n=st.integers(0, 100))
        def test(n: int) -> None:
            if n < 50:
                raise NotImplementedError("small")
            raise AssertionError("large")

    _, error = run(test, deferred=(NotImplementedError,))
    assert str(error) == "large"


def test_an_example_that_assume_refuses_neither_passes_nor_fails() -> None:
    ended = []
    with hypothesis_profile(PROFILE):

        @given(n=st.integers(0, 1000))
        def test(n: int) -> None:
            assume(n % 2 == 0)

    examples, error = run(test, ended=ended.append)
    assert error is None and set(ended) == {None}
    assert len(ended) < examples.ran


def test_each_example_begins_and_ends_with_its_outcome() -> None:
    events: list[Any] = []
    run(failing_above(5), begin=lambda: events.append("begin"), ended=events.append)
    outcomes = [one for one in events if one != "begin"]
    assert events[:1] == ["begin"] and any(isinstance(one, AssertionError) for one in outcomes)
    assert 2 * len(outcomes) == len(events)


def limited(limit: int, **options: Any) -> Examples:
    def test(n: int) -> None:
        assert n <= limit, f"{n} is too large"

    return Examples(test, PROFILE, **options)


def test_drawing_alone_gives_the_examples_that_running_gives() -> None:
    test = failing_above(10**7)
    ran, _ = run(test)
    with controlled(test, 0, lambda inner: Examples(inner, PROFILE)) as examples:
        assert examples is not None
        assert examples.drawn(test) == [example.given for example in ran._passed.values()]
        assert examples.ran == 0


def test_a_test_that_draws_on_its_way_fails_as_its_authors_fault() -> None:
    with hypothesis_profile(PROFILE):

        @given(data=st.data())
        def test(data: Any) -> None:
            raise AssertionError(data.draw(st.integers()))

    _, error = run(test)
    assert isinstance(error, TypeError) and "in @given, not data()" in str(error)


def test_a_test_without_hypothesis_is_left_alone() -> None:
    def test() -> None: ...

    with controlled(test, 0, lambda inner: Examples(inner, PROFILE)) as examples:
        assert examples is None


# --- of failures that are equally small, the one whose numbers show the mistake is reported ---------------------------


def failing(actual: list[float], expected: list[float]) -> Failure:
    with pytest.raises(Failure) as caught:
        assert_close(torch.tensor(actual).float(), reference(lambda x: x, torch.tensor(expected).float()))
    return caught.value


DULL, SMALL, CLEAR = failing([0.999, 1], [1, 1]), failing([1.02, 1], [1, 1]), failing([4.0, 2], [1, 2])


def told(errors: dict[int, BaseException], **forms: Input) -> int:
    """The seed of the example that is reported where that of seed 0 is the smallest, and these fail."""

    def test(x: Input) -> None:
        raise errors[x.seed]

    examples = Examples(test, PROFILES["quick"])
    drawn: list[dict[str, Any]] = [{"x": forms.get(f"seed_{seed}", normal((2,), seed=seed))} for seed in errors]
    for example in drawn:
        with pytest.raises(Failure):
            examples._run(Example(example, frozenset()))
    found: int = most_telling(examples.failures[0].example, examples).given["x"].seed
    return found


def test_the_largest_error_with_the_most_different_numbers_is_told_of_those_with_the_form_and_cause_of_the_smallest() -> None:
    assert told({0: DULL, 1: SMALL, 2: CLEAR}) == 2
    assert told({0: CLEAR, 1: failing([4.0, 2], [1, 2])}) == 0
    assert told({0: failing([4.0, 1], [1, 1]), 1: CLEAR}) == 1
    assert told({0: DULL, 1: CLEAR}, seed_1=normal((3,), seed=1)) == 0
    assert told({0: Failure(Cause.WRONG_SHAPE, "wrong shape"), 1: CLEAR}) == 0
