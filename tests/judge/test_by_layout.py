"""Loads outside of a strided tensor: the rule speaks where they are what ignoring the strides makes, and not beside that."""

from __future__ import annotations

import pytest

from gradekit.findings import Cause, Finding
from gradekit.inputs.spec import Input
from gradekit.judge.by_layout import touches_what_strides_leave_out
from gradekit.judge.evidence import Diagnosis, Evidence
from gradekit.judge.failure import Failure

GAPS = Input("float32", (2, 32), (40, 1), 4, name="x")  # 32 to 39 are between the rows
EXPANDED = Input("float32", (32, 49), (0, 1), name="x")
STEPS = Input("float32", (4,), (2,), name="x")
WHOLE = Input("float32", (2, 32), (32, 1), name="x")


def diagnosed(
    spec: Input, elements: list[int], count: int, cause: Cause = Cause.OUT_OF_BOUNDS_LOAD
) -> Diagnosis | None:
    finding = Finding(cause, "outside", 10, tensor="x", elements=tuple((e,) for e in elements), count=count)
    return touches_what_strides_leave_out(Evidence(Failure(cause, "outside", line=10), (spec,), (finding,)))


@pytest.mark.parametrize(
    ("spec", "elements", "count"),
    [(GAPS, [32, 33], 8), (EXPANDED, [49, 50, 51], 1519), (EXPANDED, [49], 2 * 1519), (STEPS, [1, 3], 2)],
)
def test_the_places_of_a_contiguous_tensor_name_the_strides(spec: Input, elements: list[int], count: int) -> None:
    found = diagnosed(spec, elements, count)
    assert found is not None and found.cause is Cause.IGNORES_STRIDES and found.line == 10
    assert f"strides are {spec.stride}" in found.sentence


@pytest.mark.parametrize(
    ("spec", "elements", "count"),
    [
        (GAPS, [72, 73], 8),  # past the end: a mask
        (GAPS, [33, 34], 8),  # not from the first of them on
        (GAPS, [32, 33], 7),  # not all of them
        (Input("float32", (2, 1), (0, 1), name="x"), [1], 1),  # one place, which any address that is too large hits
        (WHOLE, [64], 8),  # a contiguous tensor has no strides to be ignored
    ],
)
def test_other_places_do_not(spec: Input, elements: list[int], count: int) -> None:
    assert diagnosed(spec, elements, count) is None


def test_a_store_is_another_matter() -> None:
    assert diagnosed(GAPS, [32, 33], 8, Cause.OUT_OF_BOUNDS_STORE) is None
