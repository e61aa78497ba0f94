"""Every common mistake is explained at the student's line, with Triton's own words and a hint."""

from __future__ import annotations

import pytest

from gradekit.findings import Cause
from gradekit.program import View
from gradekit.sandbox import TraceError, Tracer

from .broken import MISTAKES, Broken

X = View(0, "float32", (300,), (1,))


def refused(submission: Broken) -> TraceError:
    with Tracer(submission) as tracer:
        tracer.load()
        with pytest.raises(TraceError) as caught:
            tracer.trace("entry", [X])
    return caught.value


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_common_mistake_is_explained_at_its_line(mistake: Broken) -> None:
    """The line is the student's, and the message ends in a hint"""
    error = refused(mistake)
    assert error.cause in (Cause.COMPILATION_ERROR, Cause.EXCEPTION)
    assert error.line == mistake.line
    said, _, hint = error.message.partition("\n")
    assert mistake.hint in hint, error.message
    assert said and said not in hint


def test_a_compilation_error_shows_what_triton_tells() -> None:
    """Triton's own text, with its excerpt of the source, stands in the detail"""
    mistake = next(mistake for mistake in MISTAKES if mistake.name == "arange size")
    error = refused(mistake)
    assert error.cause is Cause.COMPILATION_ERROR
    assert "arange's range must be a power of 2" in error.message
    assert "y = tl.arange(0, 100)\n        ^" in error.detail


def test_of_shapes_that_do_not_fit_the_lines_that_made_them_are_named() -> None:
    """... and the reduction that lost a dimension is named with its cure"""
    body = "tile = tl.zeros([128, 16], tl.float32)\ntotal = tl.sum(tile, axis=1)\ntl.store(out_ptr + offsets, tile / total)"
    mistake = Broken("lost dimension", "", "tile / total", body=body)
    message = refused(mistake).message
    assert f"`tile` is made on line {mistake.line - 2} and `total` is made on line {mistake.line - 1}." in message
    assert "`total` removes a dimension: give it keep_dims=True, or write total[:, None]." in message
