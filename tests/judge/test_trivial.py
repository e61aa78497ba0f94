"""Claims about the trivial results that no test may accept."""

import pytest
import torch

from gradekit.judge.trivial import TRIVIAL_RESULTS, round_lower


@pytest.mark.parametrize("name", TRIVIAL_RESULTS)
@pytest.mark.parametrize("inputs", [[], [torch.empty(0)], [torch.arange(5)], [torch.linspace(-1, 1, 6).view(2, 3)]])
def test_a_trivial_result_has_the_form_of_the_expected_results(name: str, inputs: list[torch.Tensor]) -> None:
    expected = [torch.linspace(-2, 2, 6).view(2, 3).half(), torch.arange(4), torch.tensor(1.5), torch.empty(0, 2)]
    before = [e.clone() for e in expected]
    substituted = TRIVIAL_RESULTS[name](expected, inputs)
    assert [(m.shape, m.dtype) for m in substituted] == [(e.shape, e.dtype) for e in expected]
    assert all(map(torch.equal, expected, before))


def test_trivial_results_are_what_their_names_say() -> None:
    expected, inputs = [torch.tensor([[1.0, 2.0], [3.0, 6.0]])], [torch.tensor([7.0, 8.0, 9.0])]
    assert TRIVIAL_RESULTS["zeros"](expected, inputs)[0].tolist() == [[0, 0], [0, 0]]
    assert TRIVIAL_RESULTS["constant"](expected, inputs)[0].tolist() == [[3, 3], [3, 3]]
    assert TRIVIAL_RESULTS["first_input"](expected, inputs)[0].tolist() == [[7, 8], [9, 7]]


@pytest.mark.parametrize(
    ("dtype", "eps"),
    [(torch.float64, 2**-24), (torch.float32, 2**-8), (torch.float16, 2**-5), (torch.bfloat16, 2**-5)],
)
def test_lower_precision_keeps_fewer_digits(dtype: torch.dtype, eps: float) -> None:
    value = (1 + torch.arange(2000, dtype=torch.float64) / 2000).to(dtype)
    error = ((round_lower(value) - value).double() / value.double()).abs().max().item()
    assert eps / 2 <= error <= eps
    special = torch.tensor([0.0, -torch.inf, torch.inf, min(torch.finfo(dtype).max, 1e38) / 2], dtype=dtype)
    assert round_lower(special)[:3].tolist() == special[:3].tolist()
    assert abs(round_lower(special)[3].item() / special[3].item() - 1) <= eps
    assert torch.equal(round_lower(torch.arange(5)), torch.arange(5))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_integers_lose_what_float32_cannot_hold(dtype: torch.dtype) -> None:
    value = torch.tensor([-(2**24), 2**24, 2**24 + 1, torch.iinfo(dtype).max, torch.iinfo(dtype).min], dtype=dtype)
    largest = {torch.int32: 2**31 - 2**7, torch.int64: 2**63 - 2**39}[dtype]
    assert round_lower(value).tolist() == [-(2**24), 2**24, 2**24, largest, torch.iinfo(dtype).min]
