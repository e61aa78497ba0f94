"""The reference of spmm, also for numbers in crow that no submission gets: a diagnosis asks what would come of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gradekit.assignment import beside, get


@pytest.fixture(scope="module")
def spmm() -> Callable[..., torch.Tensor]:
    return beside(get("spmm").tests, "test_spmm").spmm  # type: ignore[no-any-return]


COL, VALUES, DENSE = torch.tensor([0, 2, 1]), torch.tensor([1.0, 2.0, 3.0]), torch.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("crow", [[0, 2, 3], [0, 0, 3], [0, 3, 3], [0, 1, 1, 3, 3]])
def test_it_is_the_product(spmm: Callable[..., torch.Tensor], crow: list[int]) -> None:
    starts = torch.tensor(crow, dtype=torch.int32)
    matrix = torch.zeros(len(crow) - 1, 3)
    for row in range(len(crow) - 1):
        for element in range(crow[row], crow[row + 1]):
            matrix[row, COL[element]] += VALUES[element]
    assert spmm(starts, COL, VALUES, DENSE).equal(matrix @ DENSE)


@pytest.mark.parametrize(("crow", "rows"), [([0, 5, 10**6], 2), ([0, 4, 10**9, 10**9], 3)])
def test_more_elements_than_there_are_write_nowhere(spmm: Callable[..., torch.Tensor], crow: list[int], rows: int) -> None:
    result = spmm(torch.tensor(crow, dtype=torch.int32), COL, VALUES, DENSE)
    assert result.shape == (rows, 2) and result[0].equal((VALUES[:, None] * DENSE[COL]).sum(0)) and not result[1:].any()


@pytest.mark.parametrize("crow", [[0, 1, 2], [0, -5, 1]])
def test_elements_of_no_row_are_an_error(spmm: Callable[..., torch.Tensor], crow: list[int]) -> None:
    with pytest.raises((IndexError, RuntimeError)):
        spmm(torch.tensor(crow, dtype=torch.int32), COL, VALUES, DENSE)
