"""A check runs its covering design before Hypothesis draws, shrinks what fails there, and says what it covered."""

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gradekit.assignment import Assignment, beside, discover, get
from gradekit.compat.hypothesis import strategies
from gradekit.domain import ANY_DIMENSIONS, EntryDomain, Tensor, load
from gradekit.findings import Check
from gradekit.inputs import layouts
from gradekit.inputs.calls import draws_of
from gradekit.inputs.draws import OVERLAP, PART, SPREAD, TURNED, Draws
from gradekit.inputs.layouts import LAYOUTS, variants
from gradekit.inputs.spec import Input
from gradekit.plugin.design import Design, design_of
from gradekit.plugin.profiles import PROFILES
from tests.graded import grade
from tests.plugin.samples import RIGHT

DOMAIN = """
[double]
arguments = ["x"]
result = { shape = ["N"], dtype = "T" }
dtypes.T = ["float32", "float16", "bfloat16"]
sizes.N = { most = 5000, drawn = 300 }
tensors.x = { shape = ["N"], dtype = "T", values = ["ones", "normal"], layouts = ["contiguous", "offset", "every_second"] }
"""
TESTS = '''
"""Checks of double(x)."""
from hypothesis import given
from gradekit import assert_close, calls, domain_of, points, reference

DOUBLE = domain_of(__file__)["double"]

@points(30)
@given(call=calls(DOUBLE, sizes={"N": [1, 128, 129, 1000, 2048]}))
def test_doubles(submission, call):
    """Doubles every element"""
    assert_close(submission.double(*call), reference(lambda x: x + x, *call))
'''
LISTED = {"1", "128", "129", "1000", "2048"}


@pytest.fixture
def double(assignment: Callable[..., Assignment]) -> Assignment:
    made = assignment(TESTS)
    (made.folder / "domain.toml").write_text(DOMAIN)
    return made


def check_of(report: Any) -> Check:
    (check,) = report.checks
    return check


def test_a_right_submission_is_tried_on_every_level(double: Assignment, submitted: Callable[[str], Path]) -> None:
    check = check_of(grade(double, submitted(RIGHT)))
    coverage = check.details["coverage"]
    assert check.outcome == "passed"
    assert coverage["rows"] == coverage["of"] >= 10 and coverage["strength"] == 2
    assert set(coverage["factors"]["size N"]) == LISTED
    assert set(coverage["factors"]["dtype T"]) == {"float32", "float16", "bfloat16"}
    assert check.details["examples"] == coverage["rows"] + coverage["drawn"] + coverage["solved"] + coverage["long"]


def test_a_failure_in_the_design_is_made_smaller(double: Assignment, submitted: Callable[[str], Path]) -> None:
    capped = RIGHT.replace("double(x):", "double(x):\n    assert x.numel() <= 300")
    assert capped != RIGHT
    check = check_of(grade(double, submitted(capped)))
    assert check.outcome == "failed" and check.counterexample is not None
    shown = check.counterexample["inputs"][0]
    assert (shown["shape"], shown["dtype"]) == ([1000], "float32")
    assert check.details["coverage"]["rows"] < check.details["coverage"]["of"]


@pytest.mark.parametrize("profile", ["quick", "default"])
@pytest.mark.parametrize("body", ["import os; os._exit(0)", "assert x.numel() != 1"])
def test_a_failure_in_the_design_stays_one_if_hypothesis_does_not_repeat_it(
    double: Assignment, submitted: Callable[[str], Path], body: str, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Design, "numbers", lambda self, given: None)
    check = check_of(grade(double, submitted(RIGHT.replace("double(x):", f"double(x):\n    {body}")), profile=profile))
    assert (check.outcome, check.earned) == ("failed", 0)


def test_nothing_is_tried_twice(double: Assignment, submitted: Callable[[str], Path]) -> None:
    from gradekit.plugin.examples import Examples

    seen: list[tuple[str, ...]] = []
    run = Examples._run

    def counting(self: Examples, example: Any) -> None:
        seen.append(example.key)
        run(self, example)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Examples, "_run", counting)
        grade(double, submitted(RIGHT))
    assert len(seen) == len(set(seen)) >= 19


def test_a_quick_look_takes_rows_from_everywhere(double: Assignment, submitted: Callable[[str], Path]) -> None:
    coverage = check_of(grade(double, submitted(RIGHT), profile="quick")).details["coverage"]
    assert coverage["rows"] == 10 and coverage["drawn"] == 0
    assert set(coverage["factors"]["size N"]) == LISTED
    assert set(coverage["factors"]["dtype T"]) == {"float32", "float16", "bfloat16"}


# --- all assignments -------------------------------------------------------------------------------------------------


@functools.cache
def functions(file: Path) -> dict[str, Any]:
    return {name: value for name, value in vars(beside(file, file.stem)).items() if name.startswith("test_") and strategies(value)}


ASSIGNMENTS = [assignment for assignment in discover().values() if not assignment.is_quiz]
FILES = [
    file
    for assignment in ASSIGNMENTS
    for file in (assignment.tests, *sorted(assignment.solutions.glob("test_*.py") if assignment.solutions else []))
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("seed", [0, 1234567])
def test_a_design_has_every_class_of_every_factor_and_square_matrices_transposed(file: Path, seed: int) -> None:
    """A factor is seen in every check that has it, and each matrix that may be square is so where it is transposed"""
    for name, test in functions(file).items():
        (strategy,) = strategies(test).values()
        draws, design = draws_of(strategy), design_of(test, PROFILES["default"], seed)
        assert draws is not None, f"{name} draws from no domain"
        assert design is not None
        for factor, levels in draws.factors.items():
            assert {str(planned.row[factor]) for planned in design.planned} == set(map(str, levels)), (
                f"{name}: {factor}"
            )
        calls = [(planned.row, call) for planned in design.planned for call in planned.given.values()]
        assert [row for row, call in calls if not is_of(call, row, draws)] == [], name
        if not draws.ranks and seed == 0:
            assert list(never_square([call for _, call in calls])) == [], name


def never_square(calls: list[tuple[Any, ...]]) -> Iterator[int]:
    """The places of matrices that are transposed somewhere, square nowhere there, and have a size for both dimensions."""
    matrices = [[one for one in call if isinstance(one, Input) and len(one.shape) == 2] for call in calls]
    for place in range(max(map(len, matrices), default=0)):
        of_place = [each[place] for each in matrices if place < len(each)]
        turned = [one for one in of_place if not one.is_contiguous and one.stride[0] == 1 != one.stride[1]]
        rows, columns = ({one.shape[dim] for one in of_place} - {1} for dim in (0, 1))
        is_listed = len(rows) + len(columns) < 8
        if turned and is_listed and rows & columns and not any(one.shape[0] == one.shape[1] for one in turned):
            yield place


@pytest.mark.parametrize("file", [file for file in FILES if hasattr(beside(file, file.stem), "test_every_dtype")], ids=lambda file: file.stem)
def test_dtypes_that_a_test_is_run_for_share_one_design_and_each_has_every_level(file: Path) -> None:
    test = functions(file)["test_every_dtype"]
    whole = design_of(test, PROFILES["default"])
    parts = [design_of(test, PROFILES["default"], part=number, of=3) for number in range(3)]
    assert whole is not None
    together = set[Any]()
    for part in parts:
        assert part is not None
        assert len(part.planned) < len(whole.planned) / 2
        assert levels(part, 1) >= levels(whole, 1)
        together |= levels(part, 2)
    assert together >= levels(whole, 2)


def levels(design: Design, strength: int) -> set[tuple[tuple[str, str], ...]]:
    """The levels of so many factors that are met in a row."""
    rows = [[(name, str(level)) for name, level in planned.row.items() if name != PART] for planned in design.planned]
    return {found for row in rows for found in itertools.combinations(row, strength)}


def test_a_check_of_one_dtype_runs_its_part() -> None:
    softmax = get("softmax")
    assert softmax.solutions is not None
    report = grade(softmax, softmax.solutions / "solution.py", keyword="test_every_dtype", device="cpu")
    test = functions(softmax.tests)["test_every_dtype"]
    parts = [design_of(test, PROFILES["default"], part=number, of=3) for number in range(3)]
    assert [check.details["coverage"]["of"] for check in report.checks] == [len(part.planned) for part in parts if part]
    assert {check.outcome for check in report.checks} == {"passed"}


@pytest.mark.parametrize("file", FILES[:4], ids=lambda file: file.stem)
def test_a_quick_look_runs_as_many_rows_as_it_may_and_has_each_level_that_so_few_can_have(file: Path) -> None:
    for name, test in functions(file).items():
        quick, whole = design_of(test, PROFILES["quick"]), design_of(test, PROFILES["default"])
        assert quick is not None and whole is not None
        assert len(quick.planned) == min(10, len(whole.planned)), name
        places = [whole.given.index(given) for given in quick.given]
        assert places == sorted(places), name
        for factor in whole.planned[0].row:
            levels = {str(planned.row[factor]) for planned in whole.planned}
            seen = {str(planned.row[factor]) for planned in quick.planned}
            assert len(seen) >= min(len(levels), 5), f"{name}: {factor}"


def is_of(call: tuple[Any, ...], row: Mapping[str, Any], draws: Draws) -> bool:
    """Whether a call has the dtypes, sizes, layouts and kinds of values that a row of the design says."""
    inputs = [arg for arg in call if isinstance(arg, Input)]
    if OVERLAP in str(row.get("alias")) and {len({x.offset for x in inputs if x.base}), len({x.base for x in inputs} - {0})} != {2, 1}:
        return False
    if str(row.get("alias")).endswith((SPREAD, TURNED)) and len({x.offset for x in inputs if x.base}) > 1:
        return False
    return all(_is_of(x, tensor, row, draws) for x, tensor in zip(inputs, draws.tensors, strict=True))


def _is_of(x: Input, tensor: Tensor, row: Mapping[str, Any], draws: Draws) -> bool:
    alias = str(row.get("alias") or "")
    if tensor.name in alias.split()[OVERLAP not in alias :]:
        return True  # it is the other one, or lies before it or behind it
    layout, _, only = str(row[f"layout {tensor.name}"]).partition(":")
    count = range(variants(layout, len(x.shape)))
    places = [layouts.place(layout, x.shape, number) for number in ([int(only)] if only else count)]
    kinds = next(row[f"values {names}"] for names, _ in draws.values if tensor.name in names.split())
    names = next(names for names, _ in draws.values if tensor.name in names.split()).split()
    kind = kinds if len(names) == 1 else kinds[names.index(tensor.name)]
    sizes = [row[f"size {part}"] for part in tensor.shape if f"size {part}" in row and part != ANY_DIMENSIONS]
    dtype = row.get(f"dtype {tensor.dtype}", tensor.dtype)
    return (
        (x.stride, x.offset) in places
        and x.dtype == dtype
        and x.profile.split(":")[0] == kind.split(":")[0]
        and all(set(size.members) & set(x.shape) for size in sizes)
    )


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.id)
def test_every_class_that_a_domain_declares_is_drawn_by_a_check(assignment: Assignment) -> None:
    hidden = sorted(assignment.solutions.glob("test_*.py")) if assignment.solutions else []
    drawn: dict[str, set[tuple[str, str]]] = {}
    for file in (assignment.tests, *hidden):
        for test in functions(file).values():
            (strategy,) = strategies(test).values()
            draws = draws_of(strategy)
            assert draws is not None
            drawn.setdefault(draws.entry.name, set()).update(levels_of(draws))
    for name, entry in load(assignment.folder / "domain.toml").items():
        assert set(declared(entry)) <= drawn[name]


def levels_of(draws: Draws) -> Iterator[tuple[str, str]]:
    """All factors of a check with their levels, those of several tensors each by itself."""
    for factor, levels in draws.factors.items():
        what, _, names = factor.partition(" ")
        for level in levels:
            if what == "values" and " " in names:
                yield from ((f"values {name}", kind) for name, kind in zip(names.split(), level, strict=True))
            else:
                yield factor, str(level)
                yield factor, str(level).partition(":")[0]  # one variant of a layout


def declared(entry: EntryDomain) -> Iterator[tuple[str, str]]:
    """The classes of an entry's domain: dtypes, choices, scalars, aliases, overlaps, and each tensor's kinds of values and layouts."""
    named = {**{f"dtype {name}": options for name, options in entry.dtypes.items()}, **entry.choices}
    named |= {scalar.name: scalar.values for scalar in entry.scalars if not scalar.optional}
    named |= {"alias": [*entry.aliases, *(f"{pair} {how}" for pair in entry.aliases for how in (OVERLAP, SPREAD, TURNED))]}
    named |= {**{f"values {tensor.name}": tensor.values for tensor in entry.tensors}}
    named |= {f"size {size.name}": size.only for size in entry.sizes.values()}
    for tensor in entry.tensors:
        rank = 3 if ANY_DIMENSIONS in tensor.shape else len(tensor.shape)
        every = tensor.layouts or LAYOUTS
        possible = [one for one in every if variants(one.partition(":")[0], rank)]
        named[f"layout {tensor.name}"] = layouts.told_apart(possible, rank)
    for factor, levels in named.items():
        yield from ((factor, str(level)) for level in levels)


RANK_4 = {
    "test_flash_attention": ("test_any_stride_and_offset", "test_inputs_unmodified"),
    "test_decode_attention": ("test_any_stride_and_offset", "test_memory"),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("file", [file for file in FILES if file.stem in RANK_4], ids=lambda file: file.stem)
def test_a_thorough_run_stores_the_dimensions_of_a_tensor_of_rank_4_in_nearly_every_order(file: Path) -> None:
    tests = functions(file)
    for name in RANK_4[file.stem]:
        design = design_of(tests[name], PROFILES["thorough"])
        assert design is not None
        calls = [given["call"] for given in design.given]
        rank_4 = [place for place, arg in enumerate(calls[0]) if len(getattr(arg, "shape", ())) == 4]
        assert rank_4
        for place in rank_4:
            orders = {
                tuple(sorted(range(4), key=lambda dim: -strides[dim]))
                for call in calls
                if len({*(strides := call[place].stride)}) == 4
            }
            assert len(orders) >= 20, f"{name}: argument {place}"


def test_the_next_row_of_a_layout_has_its_next_variant(double: Assignment) -> None:
    (test,) = functions(double.tests).values()
    design = design_of(test, PROFILES["default"])
    assert design is not None
    calls = sorted((planned for planned in design.planned), key=lambda planned: planned.numbers)
    assert len({planned.given["call"][0].offset for planned in calls if planned.row["layout x"] == "offset"}) >= 3
