"""A number that the host wrote down as an address leads to its storage, and nowhere else."""

import torch
import triton
import triton.language as tl
from launching import launched

from gradekit.findings import Cause
from gradekit.program import ADDRESS_GAP

FIRST, SECOND = 5 * ADDRESS_GAP, 9 * ADDRESS_GAP


@triton.jit
def gather_by_table(x, y, table, out, B: tl.constexpr):
    base = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * B + at, tl.load(base + at))


@triton.jit
def copy_from_number(x, out, address, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(address.to(tl.pointer_type(tl.float32)) + at))


X, Y = torch.arange(16.0), torch.arange(16.0) + 100


def test_a_table_of_pointers_leads_to_several_tensors():
    table = torch.tensor([SECOND, FIRST + 16])
    result = launched(gather_by_table, (2,), [X, Y, table], [torch.empty(16)], addresses={0: FIRST, 1: SECOND}, B=8)
    assert not result.findings
    assert torch.equal(result.results[0], torch.cat([Y[:8], X[4:12]]))


def test_an_address_passed_as_a_number_is_a_pointer():
    result = launched(copy_from_number, (1,), [X], [torch.empty(8)], [FIRST + 8], addresses={0: FIRST}, B=8)
    assert torch.equal(result.results[0], X[2:10])


def test_what_lies_beyond_the_tensor_is_out_of_bounds():
    result = launched(copy_from_number, (1,), [X], [torch.empty(8)], [FIRST + 40], addresses={0: FIRST}, B=8)
    found = {finding.cause: finding for finding in result.findings}
    assert found[Cause.OUT_OF_BOUNDS_LOAD].count == 2


def test_an_address_that_no_storage_has_is_out_of_bounds():
    result = launched(copy_from_number, (1,), [X], [torch.empty(8)], [SECOND], addresses={0: FIRST}, B=8)
    assert Cause.OUT_OF_BOUNDS_LOAD in {finding.cause for finding in result.findings}


def test_a_senseless_address_is_not_used():
    for told in (-FIRST, FIRST + 1, 1 << 63, 1 << 90):
        result = launched(copy_from_number, (1,), [X], [torch.empty(8)], [ADDRESS_GAP], addresses={0: told}, B=8)
        assert torch.equal(result.results[0], X[:8])
