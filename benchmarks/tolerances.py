"""The largest relative error that still passes, for each assignment and dtype: of one run, and of a formula.

    python benchmarks/tolerances.py [assignment ...]

Grades the solutions (quick profile). Of each example that is right, the smallest allowance beside the size of its
element is what an error common to all elements may have: "sampled" by the assignment's own tolerance, "exact" by that of
the exact run (gradekit.exact), which a formula must meet as well. A row has the medians over a check's examples.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from pathlib import Path

import torch

from gradekit.assignment import discover
from gradekit.exact.trial import EXCUSED
from gradekit.judge.reference import reference
from gradekit.plugin import check_run
from gradekit.plugin.beside_examples import RightResults
from gradekit.plugin.runner import grade
from gradekit.request import GradingOptions, GradingRequest

ROOT = Path(__file__).parents[1]
MOST = 8
"""Examples of one check that are looked at."""
Found = dict[str, tuple[list[float], list[float]]]


def smallest(allowance: torch.Tensor, exact: torch.Tensor) -> float | None:
    """The largest error that is allowed of all elements at once, relative to each; None where no element tells."""
    known = exact.isfinite() & (exact != 0)
    return float((allowance[known] / exact[known].abs()).min()) if bool(known.any()) else None


def look(right: RightResults, found: Found) -> None:
    """Enter the examples of one check."""
    for seen, wanted in right.pairs[:MOST]:
        floats = [spec.dtype for spec in seen.inputs if "float" in getattr(spec, "dtype", "")]
        asked = wanted[0].asked
        if not floats or asked is None:
            continue
        given = [spec.tensor() if hasattr(spec, "tensor") else spec for spec in asked.args]
        wide = [x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in given]
        options = {**asked.options, "input_precision": "ieee", "terms": 1}
        exact = reference(asked.function, *wide, **options)
        for one in wanted:
            other = exact[one.place] if isinstance(exact, tuple) else exact
            sampled, strict = smallest(one.allowance, one.exact), smallest(other.allowance * EXCUSED, other.exact)
            if sampled and strict and one.native.is_floating_point():  # of a copy, nothing may be off
                found[floats[0]][0].append(sampled)
                found[floats[0]][1].append(strict)


def main(names: list[str]) -> None:
    """Print the table."""
    print("| assignment | dtype | sampled | exact | tighter |\n|---|---|---|---|---|")
    usual = check_run.exact_runs
    for name, assignment in discover(ROOT / "assignments").items():
        if assignment.is_quiz or names and name not in names:
            continue
        found: Found = defaultdict(lambda: ([], []))

        def watched(item, run, right, found=found):  # type: ignore[no-untyped-def]
            look(right, found)
            return usual(item, run, right)

        check_run.exact_runs = watched
        grade(
            GradingRequest(
                assignment, ROOT / "solutions" / name / "solution.py", GradingOptions(profile="quick", device="cpu")
            )
        )
        for dtype, (sampled, strict) in sorted(found.items()):
            one, other = statistics.median(sampled), statistics.median(strict)
            print(f"| {name} | {dtype} | {one:.1e} | {other:.1e} | {one / other:,.0f} times |", flush=True)
    check_run.exact_runs = usual


if __name__ == "__main__":
    main(sys.argv[1:])
