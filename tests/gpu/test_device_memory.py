"""Addresses that the host was told lead to real ones, and stores beside a storage are seen."""

import pytest
import torch

from gradekit.gpu.device_memory import ZONE, DeviceMemory
from gradekit.program import ADDRESS_GAP, ProgramError, View

CPU = torch.device("cpu")
TOLD = {0: 5 * ADDRESS_GAP, 7: 9 * ADDRESS_GAP}


def place(told: dict[int, int] | None = None, *, careful: bool = True) -> DeviceMemory:
    return DeviceMemory(CPU, told or {}, lambda number, data: data.data_ptr(), careful=careful)


# --- addresses -------------------------------------------------------------------------------------------------------


def test_addresses_that_were_told_become_the_real_ones() -> None:
    known = place(TOLD)
    known.allocate(0, 64)
    known.allocate(7, 64)
    assert known.relocated(5 * ADDRESS_GAP + 16) == known.storages[0].data_ptr() + 16
    assert known.relocated(9 * ADDRESS_GAP) == known.storages[7].data_ptr()


@pytest.mark.parametrize("value", [0, -1, 7, ADDRESS_GAP, 6 * ADDRESS_GAP, 1 << 62])
def test_other_numbers_stay_as_they_are(value: int) -> None:
    known = place(TOLD)
    known.allocate(0, 64)
    assert known.relocated(value) == value


def test_the_address_of_a_view_counts_its_offset_in_elements() -> None:
    known = place()
    known.allocate(3, 64)
    assert known.address(View(3, "float16", (4,), (1,), 5)) == known.storages[3].data_ptr() + 10


def test_storages_are_aligned_as_torch_would() -> None:
    known = place()
    for number, nbytes in enumerate((1, 3, 100)):
        known.allocate(number, nbytes)
        assert known.address(View(number, "uint8", (1,), (1,))) % 16 == 0


# --- views -----------------------------------------------------------------------------------------------------------


def test_a_view_shares_the_memory_of_its_storage() -> None:
    known = place()
    known.allocate(0, 24)
    known.view(View(0, "float32", (2,), (2,), 1)).fill_(1.0)
    assert known.view(View(0, "float32", (6,), (1,))).tolist()[1:4:2] == [1.0, 1.0]


@pytest.mark.parametrize(
    "view",
    [View(0, "float32", (7,), (1,)), View(0, "float32", (2,), (6,)), View(0, "float32", (1,), (1,), 6),
     View(0, "float32", (2,), (-1,), 1), View(1, "float32", (1,), (1,))],
)  # fmt: skip
def test_a_view_beyond_its_storage_is_no_view(view: View) -> None:
    known = place()
    known.allocate(0, 24)
    with pytest.raises(ProgramError):
        known.view(view)


# --- poison and red zones --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_what_nobody_has_written_is_nan(dtype: str) -> None:
    known = place()
    known.allocate(0, 24)
    size = getattr(torch, dtype).itemsize
    assert known.view(View(0, dtype, (24 // size,), (1,))).isnan().all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_what_lies_beside_a_storage_is_nan(dtype: str) -> None:
    known = place()
    for number in range(8):
        known.allocate(number, 24)
        whole = known.storages[number].untyped_storage()
        beside = torch.empty(0, dtype=torch.uint8).set_(whole, ZONE + 24, (ZONE,))
        assert beside.view(getattr(torch, dtype)).isnan().all()


def beside(known: DeviceMemory, number: int, at: int) -> torch.Tensor:
    """The byte `at` bytes after the beginning of a storage, which may be before it or past its end."""
    return torch.empty(0, dtype=torch.uint8).set_(known.storages[number].untyped_storage(), ZONE + at, (1,))


def test_stores_within_a_storage_are_nobodys_concern() -> None:
    known = place()
    known.allocate(0, 25)
    known.storages[0].fill_(1)
    assert known.red_zone_writes() == []


@pytest.mark.parametrize(
    ("at", "side", "distance"), [(25, "after", 0), (40, "after", 15), (-1, "before", 0), (-9, "before", 8)]
)
def test_a_store_beside_a_storage_is_seen(at: int, side: str, distance: int) -> None:
    known = place()
    known.allocate(0, 25)
    known.allocate(1, 25)
    beside(known, 1, at).fill_(1)
    (seen,) = known.red_zone_writes()
    assert (seen.storage, seen.side, seen.nbytes, seen.distance) == (1, side, 1, distance)
    assert known.red_zone_writes() == [], "it is told once"


def test_copying_one_red_zone_over_another_is_seen() -> None:
    """A kernel without a mask copies what lies behind its input to what lies behind its output"""
    known = place()
    known.allocate(0, 24)
    known.allocate(1, 24)
    for at in range(24, 32):
        beside(known, 1, at).copy_(beside(known, 0, at))
    assert [seen.storage for seen in known.red_zone_writes()] == [1]


def test_an_input_between_red_zones_is_a_copy_and_a_timed_run_has_it_where_it_is() -> None:
    careful, timed, given = place(), place(careful=False), torch.arange(8, dtype=torch.uint8)
    careful.put(0, given)
    careful.storages[0].fill_(0)
    assert given[7] == 7
    timed.put(0, given)
    assert timed.storages[0].data_ptr() == given.data_ptr()
