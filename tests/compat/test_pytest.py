"""What gradekit expects of pytest's private names."""

from pathlib import Path

import pytest

from gradekit.compat.pytest import arguments


@pytest.fixture(autouse=True)
def unnamed() -> str:
    return "not an argument"


@pytest.mark.parametrize("number", [1])
def test_the_arguments_are_the_values_of_the_fixtures_that_the_test_names(
    request: pytest.FixtureRequest, tmp_path: Path, number: int
) -> None:
    assert arguments(request.node) == {"request": request, "tmp_path": tmp_path, "number": number}
