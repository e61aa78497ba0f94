"""Occupancy, against figures that NVIDIA's own calculator gives."""

import re

import pytest

from gradekit.assignment import UsageError
from gradekit.inspector.targets import PARTITIONS, TARGETS, occupancy, target

from .inspected import float16, float32, inspected


@pytest.mark.parametrize(("on", "warps", "registers", "shared", "blocks", "limit"), [
    ("sm_80", 4, 32, 0, 16, "warps"),  # 64 warps of 32 registers are all that there is
    ("sm_80", 1, 16, 0, 32, "blocks"),
    ("sm_80", 8, 64, 0, 4, "registers"),
    ("sm_80", 8, 178, 65536, 1, "registers"),  # 2 warps of 5888 registers in each quarter: one block of eight
    ("sm_80", 4, 32, 160 << 10, 1, "shared memory"),
    ("sm_80", 4, 32, 40 << 10, 4, "shared memory"),  # 41 KiB each, with what the system keeps
    ("sm_90", 4, 32, 227 << 10, 1, "shared memory"),
    ("sm_90", 8, 255, 0, 1, "registers"),
    ("sm_75", 4, 32, 64 << 10, 1, "shared memory"),
    ("sm_75", 4, 32, 0, 8, "warps"),
    ("sm_80", 32, 255, 0, 0, "registers"),
    ("sm_80", 4, 32, 164 << 10, 0, "shared memory"),
    ("gfx942", 4, 32, 0, 8, "warps"),
    ("gfx942", 4, 96, 0, 5, "registers"),  # 512 registers of a SIMD's lane hold five warps of 96
    ("gfx942", 4, 32, 36864, 1, "shared memory"),
])
def test_the_scarcest_resource_limits_the_blocks_of_an_sm(
    on: str, warps: int, registers: int, shared: int, blocks: int, limit: str
) -> None:
    found = occupancy(target(on), warps=warps, registers=registers, shared=shared)
    assert (found.blocks, found.warps, found.limit) == (blocks, blocks * warps, limit)
    assert 0 <= found.warps <= found.most


def test_registers_hold_as_many_of_amds_warps_as_llvm_says() -> None:
    calls = [
        ("matmul", float16(4096, 4096), float16(4096, 4096)),
        ("copy", float32(4096, 16384)),
        ("copy", float16(64, 64)),
    ]
    seen = set()
    for entry, *inputs in calls:
        text = inspected(entry, *inputs, on="gfx942").stages["amdgcn"]
        said = {name: int(n) for name, n in re.findall(r"^; (TotalNumVgprs|Occupancy): (\d+)", text, re.MULTILINE)}
        found = occupancy(target("gfx942"), warps=1, registers=said["TotalNumVgprs"], shared=0)
        assert found.warps == PARTITIONS * said["Occupancy"]
        seen.add(found.limit)
    assert "registers" in seen


@pytest.mark.parametrize("name", ["sm_90", "sm90", "90", "SM_90"])
def test_a_target_is_found_by_any_common_spelling(name: str) -> None:
    assert target(name) is TARGETS["sm_90"]


def test_an_unknown_target_names_a_near_one_or_all() -> None:
    with pytest.raises(UsageError, match="did you mean sm_90"):
        target("sm_91")
    with pytest.raises(UsageError, match="there are sm_75, sm_80"):
        target("hopper")
