"""Twins are found through renaming, reordering and other numbers; independent solutions are not taken for twins."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from gradekit import reuse
from gradekit.assignment import get
from gradekit.batch.similar import MOST, fingerprint, of_source, render, resemblance
from gradekit.plugin import grade
from gradekit.request import GradingOptions, GradingRequest
from tests.beside import beside

TEXTS = beside(__file__)

ROOT = Path(__file__).parents[2]
STARTER = (ROOT / "assignments/softmax/starter.py").read_text()

ORIGINAL = TEXTS["original"]

DISGUISED = TEXTS["disguised"]


def print_of(path: Path) -> dict[str, Any]:
    """The fingerprint that a quick grading keeps."""
    kept: dict[str, Any] = {}
    grade(
        GradingRequest(get("softmax"), path, GradingOptions(profile="quick", keyword="contiguous_float32")),
        on_subject=lambda subject: kept.update(fingerprint(subject.programs, subject.submission.text)),
    )  # fmt: skip
    return kept


@pytest.fixture(scope="module")
def prints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Independent right solutions, one that was handed in twice in disguise, and its original."""
    folder = tmp_path_factory.mktemp("prints")
    (folder / "original.py").write_text(ORIGINAL)
    (folder / "disguised.py").write_text(DISGUISED)
    names = ("builtin_softmax", "pair_reduction", "tutorial", "two_kernels")
    independent = [ROOT / f"tests/course/right/softmax/{name}.py" for name in names]
    with reuse.kept():
        return {path.stem: print_of(path) for path in [*folder.glob("*.py"), *independent]}


def test_a_twin_in_disguise_is_found_first(prints: dict[str, dict[str, Any]]) -> None:
    found = resemblance(prints, of_source(STARTER))
    assert (found.pairs[0].one, found.pairs[0].other, found.pairs[0].is_twin) == ("disguised", "original", True)
    assert found.pairs[0].source < 0.5
    assert "all constants and block sizes of the kernels" in found.pairs[0].evidence


def test_independent_solutions_are_no_twins(prints: dict[str, dict[str, Any]]) -> None:
    alone = {name: found for name, found in prints.items() if name not in ("original", "disguised")}
    assert resemblance(alone).pairs == ()
    assert not any(pair.is_twin for pair in resemblance(alone, least=0).pairs)


def test_the_order_of_names_changes_no_score(prints: dict[str, dict[str, Any]]) -> None:
    turned = dict(reversed(prints.items()))
    assert resemblance(turned, least=0.3).pairs == resemblance(prints, least=0.3).pairs


def test_the_usual_program_of_a_class_is_no_evidence(prints: dict[str, dict[str, Any]]) -> None:
    own = [prints["original"] | {"names": [f"{n}"], "tokens": [f"{n}"], "comments": []} for n in range(9)]
    found = resemblance({f"s{n}": one for n, one in enumerate(own)} | {"other": prints["tutorial"]})
    assert found.pairs == () and found.usual == (9,)
    assert "9 of them have the same, usual program: that alone says nothing." in render(found)


def test_a_copy_of_the_usual_program_still_shows_in_its_source(prints: dict[str, dict[str, Any]]) -> None:
    own = [prints["original"] | {"names": [f"{n}"], "tokens": [f"{n}"]} for n in range(9)]
    copied = {f"s{n}": one for n, one in enumerate(own)} | {"a": prints["original"], "b": prints["original"]}
    assert [(pair.one, pair.other) for pair in resemblance(copied).pairs] == [("a", "b")]


def test_what_the_starter_has_is_no_evidence() -> None:
    text = STARTER + "\ndone = 1\n"
    program = {"whole": "w", "shingles": {"a": 1}, "numbers": []}
    both = {name: of_source(text) | program | {"whole": name} for name in "xy"}
    with_it, without = (resemblance(both, starter, least=0).pairs[0] for starter in (None, of_source(STARTER)))
    assert with_it.source == without.source == 1.0
    other = both | {"y": of_source(STARTER + "\nfor i in range(3): print(i)\n") | program}
    shares = [resemblance(other, starter, least=0).pairs[0].source for starter in (of_source(STARTER), None)]
    assert shares[0] < 0.2 < shares[1]


def test_a_fingerprint_is_small(prints: dict[str, dict[str, Any]]) -> None:
    import json

    assert max(len(json.dumps(found)) for found in prints.values()) < 20_000
    assert max(len(found["shingles"]) for found in prints.values()) <= MOST


def test_a_source_that_python_cannot_read_has_no_tokens() -> None:
    assert of_source("def f(:\n  '''") == {"tokens": [], "names": [], "comments": []}


def test_the_list_says_what_it_is() -> None:
    assert render(resemblance({})) == (
        "Students compared: 0. A list to look at, and no verdict: short tasks have few solutions.\nNo two stand out.\n"
    )


def test_equal_programs_are_one_line_and_none_is_no_program() -> None:
    found: dict[str, Any] = {"whole": "w", "shingles": {"a": 3}, "numbers": ["n"]} | {"tokens": ["t"], "names": ["n"], "comments": []}
    prints = {name: found | {"names": ["n", *more]} for name, more in (("ada", "a"), ("bob", "b"), ("cyd", "c"))} | {
        name: found | {"whole": "nothing", "shingles": {}} for name in ("eve", "fay")
    }
    others = {f"other{i}": found | {"whole": str(i), "shingles": {str(i): 3}} for i in range(20)}
    lines = render(resemblance(prints | others)).splitlines()
    assert lines[0].startswith("Students compared: 23.") and lines[1] == "2 have no program to compare."
    assert [line for line in lines[2:] if line] == [
        "same program  ada, bob, cyd: each two share at least 67% of the source, all constants and block sizes of the kernels"
    ]


def test_copies_come_first_and_pairs_with_a_group_are_one_line() -> None:
    found: dict[str, Any] = {"whole": "w", "shingles": {"a": 9}, "numbers": [], "tokens": ["t"], "names": [], "comments": []}
    own = {"ada": ("w", "n"), "bob": ("w", "n"), "cyd": ("w", "m"), "dan": ("v", "d"), "eve": ("v", "e")}
    prints = {name: found | {"whole": whole, "names": [other]} for name, (whole, other) in own.items()}
    others = {f"other{i}": found | {"whole": str(i), "shingles": {str(i): 30}} for i in range(20)}
    lines = [line for line in render(resemblance(prints | others)).splitlines()[1:] if line]
    assert [line[:40].rstrip() for line in lines] == [
        "same source   ada, bob: program, names a", "same program  ada, cyd, bob: each two sh",
        "same program  dan, eve: they share 100%", "0.99 alike    ada, bob, cyd / dan, eve:",
    ]


def test_other_numbers_in_one_of_several_kernels_are_no_equal_constants() -> None:
    """... although another kernel of both has them; and those who share them stand apart"""
    two = ORIGINAL + "\n@triton.jit\ndef more(x, BLOCK: tl.constexpr):\n    tl.store(x + tl.arange(0, BLOCK), 0.5)"
    launch = "\n    more[(1,)](out, BLOCK=SIZE)\n    return out"
    assert two.count("    return out") == 1
    text = two.replace("\n    return out", launch)
    texts = {"ada": text.replace("SIZE", "16"), "bob": text.replace("SIZE", "16").replace("more", "rest"), "cyd": text.replace("SIZE", "32"),
             "dan": text.replace("SIZE", "16").replace("0.5", "0.25")}  # fmt: skip
    with reuse.kept(), tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, each in texts.items():
            (path := Path(folder) / f"{name}.py").write_text(each)
            found[name] = print_of(path)
    lines = [line for line in render(resemblance(found)).splitlines() if line.startswith("same program")]
    same = [line for line in lines if "all constants and block sizes of the kernels" in line]
    assert [line.split(":")[0] for line in same] == ["same program  ada, bob"]
    (across,) = set(lines) - set(same)
    assert across.startswith("same program  ada, bob / ") and ": any two that a stroke parts share" in across
    assert {"cyd", "dan"} < set(across.replace(",", " ").replace(":", " ").split())
