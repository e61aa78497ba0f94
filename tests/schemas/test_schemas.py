"""Claims about the schemas: the package jsonschema, which editors' tools follow, refuses the same files."""

import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gradekit.assignment import discover
from gradekit.inputs.layouts import LAYOUTS
from gradekit.inputs.value_kinds import PROFILES, WHOLE
from gradekit.schemas import Place, Problem, line_of, located, problems, read, schema

NAMES = ("domain", "assignment", "course")
FILES = [path for one in discover().values() for name in NAMES if (path := one.folder / f"{name}.toml").is_file()]


def places(data: Any, name: str) -> set[Place]:
    """Where jsonschema finds something wrong."""
    return {tuple(error.absolute_path) for error in jsonschema.Draft202012Validator(schema(name)).iter_errors(data)}


@pytest.mark.parametrize("name", NAMES)
def test_the_schemas_are_json_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_file_of_an_assignment_fits_its_schema(path: Path) -> None:
    data = tomllib.loads(path.read_text())
    assert not places(data, path.stem) and not list(problems(data, schema(path.stem)))


ENTRY: dict[str, Any] = {"arguments": ["x"], "result": {"shape": [], "dtype": "float32"}}


@pytest.mark.parametrize("change", [
    {"arguments": "x"},
    {"arguments": [1]},
    {"result": 3},
    {"result": [{"shape": "N"}]},
    {"result": {"shape": [], "dtype": "float32", "x": 1}},
    {"limit": []},
    {"dtypes": {"T": []}},
    {"sizes": {"N": {"least": 1}}},
    {"sizes": {"N": {"most": -1}}},
    {"sizes": {"N": {"most": True}}},
    {"sizes": {"N": {"most": 3, "dims": [1, 2, 3]}}},
    {"tensors": {"x": {"shape": [], "dtype": "float32", "layouts": ["transpose"]}}},
    {"tensors": {"x": {"shape": [], "dtype": "float32", "ascending": 1}}},
    {"scalars": {"p": {"type": "str", "values": [1]}}},
    {"scalars": {"p": {"type": "int", "values": [[]]}}},
    {"relations": {"independent": "no"}},
], ids=str)
def test_what_jsonschema_refuses_is_refused_at_the_same_place(change: dict[str, Any]) -> None:
    data = {"f": {**ENTRY, **change}}
    theirs, ours = places(data, "domain"), {problem.place for problem in problems(data, schema("domain"))}
    assert theirs and {place[: len(one)] for one in theirs for place in ours} >= theirs  # a key's own place is deeper


@pytest.mark.parametrize("policy", [
    {"late": {"percent_a_day": 101}}, {"late": {"percent_a_day": -1}}, {"late": {"steps": [["1d", 10], [10, "1d"]]}},
    {"late": {"steps": [["1d"]]}}, {"late": {"steps": [["1d", 10, 3]]}}, {"extensions": {"ada": "2 days"}},
    {"late": {"steps": [["1d", 10], ["3d 2h", 100]], "at_most": 0}, "extensions": {"ada": "2026-12-24T00:00:00Z"}},
])  # fmt: skip
def test_rules_of_a_course_are_held_against_their_schema_as_by_jsonschema(policy: dict[str, Any]) -> None:
    data = {"assignments": {"softmax": policy}}
    assert {problem.place for problem in problems(data, schema("course"))} == places(data, "course")


def test_what_jsonschema_takes_is_taken() -> None:
    data = {"f": {**ENTRY, "result": [ENTRY["result"]], "scalars": {"p": {"type": "int", "values": [1, "N", True]}}}}
    assert not places(data, "domain") and not list(problems(data, schema("domain")))


def test_layouts_of_the_schema_are_those_that_there_are() -> None:
    layout = schema("domain")["$defs"]["tensor"]["properties"]["layouts"]["items"]
    assert tuple(layout["examples"]) == LAYOUTS
    assert layout["pattern"] == f"^({'|'.join(LAYOUTS)})(:[0-9]+)?$"


def test_kinds_of_values_of_the_schema_are_those_that_there_are() -> None:
    kinds = schema("domain")["$defs"]["tensor"]["properties"]["values"]["items"]["examples"]
    assert kinds == [*PROFILES, *WHOLE]


TEXT = """\
# a comment
[f]
result = { shape = ["M"], dtype = "T" }
limits = [
    "M <= 3",
]
sizes.M = { most = 3 }
[f.sizes."..."]
most = 5
"""


@pytest.mark.parametrize(("place", "line"), [
    ((), 1),
    (("f",), 2),
    (("f", "result", "shape"), 3),
    (("f", "limits", 0), 4),
    (("f", "sizes", "M", "most"), 7),
    (("f", "sizes", "...", "most"), 9),
    (("f", "nothing"), 2),
])
def test_a_place_has_the_line_of_its_key(place: Place, line: int) -> None:
    assert line_of(TEXT, place) == line


def test_a_problem_is_told_with_file_line_and_place() -> None:
    told = located("domain.toml", TEXT, Problem(("f", "limits", 0), "is 3, but must be a string"))
    assert told == "domain.toml:4: f.limits[0] is 3, but must be a string"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = 1\nb = = 2\n", "Invalid value (at line 2, column 5)"),
        ("a = 1\nb = [\n  1,\n", "Invalid value (in what begins at line 2)"),
        ('[f]\nedit = """\n- a = 1\n[g]\n', "Unterminated string (in what begins at line 2)"),
        ("a = [[1],\n[2]\n", "(in what begins at line 1)"),
    ],
)
def test_of_what_has_no_end_the_line_is_told_where_it_begins(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(ValueError, match=re.escape(told)):
        read(tmp_path / "a.toml", ValueError)
