"""What host code compares is known by the sizes of the inputs, through views and copies, however torch lays these out."""

from __future__ import annotations

import pytest

from gradekit.origins import Explored
from gradekit.program import View
from gradekit.sandbox import Form, Tracer

from .helpers import submission

EXPANDED = View(0, "float32", (2, 1, 1, 16), (16, 16, 1, 1), 0)
"""Contiguous, for strides of a single element do not matter; a copy of it has other strides."""


def explored(body: str, view: View) -> Explored:
    """A call of `entry(x)` with such a body."""
    with Tracer(submission(f"def entry(x):\n    {body}\n    return x\n")) as tracer:
        return tracer.explore(Form("entry", (view,)))


@pytest.mark.parametrize(
    "made",
    [
        "x.contiguous().clone().view(-1, *x.shape[2:])",
        "x.clone().reshape(-1, *x.shape[2:])",
        "x.view(-1, x.shape[3])",
        "torch.empty_like(x)",
    ],
)
def test_a_size_of_a_view_or_copy_is_that_of_the_input(made: str) -> None:
    found = explored(f"found = ({made}).shape[-1] <= 64", EXPANDED)
    terms = found.origins.terms
    asked = [
        (terms[one.left], one.relation, terms[one.right]) for one in found.origins.conditions if one.source is not None
    ]
    assert asked == [(("size", 0, 3), "<=", ("number", 64))]
