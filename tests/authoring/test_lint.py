"""What authors get wrong is found by reading, with its file and line and what may have been meant; nothing else is."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gradekit.assignment import discover, get, load, named_folder
from gradekit.authoring.lint import Complaint, lint, reads_well
from gradekit.course.verify import tried
from tests.beside import beside

CASES = beside(__file__)

ALL = discover()


@pytest.mark.parametrize("id", ALL)
def test_nothing_is_said_of_an_assignment_that_is_right(id: str) -> None:
    assert lint(ALL[id].folder) == []


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    """A copy of softmax, with its solutions."""
    one = get("softmax")
    shutil.copytree(one.folder, tmp_path / "assignments" / "softmax")
    assert one.solutions is not None
    shutil.copytree(one.solutions, tmp_path / "solutions" / "softmax")
    return tmp_path / "assignments" / "softmax"


def file_of(softmax: Path, name: str) -> Path:
    """A file of the assignment; the staff's begin with ../."""
    return softmax.parent.parent / "solutions" / "softmax" / name[3:] if name.startswith("../") else softmax / name


@pytest.fixture
def changed(softmax: Path) -> Callable[[str, str, str], list[Complaint]]:
    """What is said once a text stands in place of another in a file."""

    def said(name: str, before: str, after: str) -> list[Complaint]:
        path = file_of(softmax, name)
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after, 1))
        return lint(softmax)

    return said


def test_a_list_of_tensors_has_a_name_of_its_own_in_the_function(tmp_path: Path) -> None:
    from gradekit.authoring.lint import _signature
    from tests.test_domain import read

    domain = """
[f]
arguments = ["x", ["a", "b"], "y", ["c", "d"]]
result = { shape = ["N"], dtype = "float32" }
sizes.N = { most = 9 }
""" + "".join(f'tensors.{name} = {{ shape = ["N"], dtype = "float32" }}\n' for name in "xabycd")
    entry = read(tmp_path, domain)["f"]
    assert list(_signature(ast.parse("def f(x, pair, y, rest): ..."), "f", entry)) == []
    (told,) = _signature(ast.parse("def f(x, pair, z, rest): ..."), "f", entry)
    assert told.message == "f takes ['x', 'pair', 'z', 'rest'], and domain.toml says ['x', 'pair', 'y', 'rest']"
    (told,) = _signature(ast.parse("def f(x, pair, y): ..."), "f", entry)
    assert "says ['x', 'pair', 'y', 'a list of c, d']" in told.message


TESTS = "test_softmax.py"


@pytest.mark.parametrize(("file", "before", "after", "told"), CASES["mistakes"])
def test_a_mistake_of_the_author_has_its_place_and_a_way_out(
    softmax: Path, changed: Callable[[str, str, str], list[Complaint]], file: str, before: str, after: str, told: str
) -> None:
    """The line is that of what was changed: of a decorator that is gone, that of its function"""
    text = file_of(softmax, file).read_text()
    start = (
        text[: text.index(before)].count("\n")
        + before.lstrip("\n").count("\n") * (after == "")
        + before.startswith("\n")
    )
    found = [one.text for one in changed(file, before, after) if not one.is_note]
    assert any(told.replace("LINE", str(start + 1)) in text for text in found), "\n".join(found)


@pytest.mark.parametrize(("before", "after", "told"), [
    ('PLAIN = ("contiguous",)', 'PLAIN = ("contigous",)', "there is no layout 'contigous' (did you mean contiguous?)"),
    ('FINITE = ("ones", "normal"', 'FINITE = ("ones", "norml"', "there is no kind of values 'norml' (did you mean normal?)"),
    ('sizes={"M": [1, 3], "N": WIDE}', "sizes=SOME", "there is no size 'n' (there are M, N)"),
])
def test_a_constant_of_the_module_is_read_where_a_check_draws_by_it(
    changed: Callable[[str, str, str], list[Complaint]], before: str, after: str, told: str
) -> None:
    changed(TESTS, 'PLAIN = ("', 'SOME = {"M": [1, 3], "n": [4]}\nPLAIN = ("')
    assert any(told in one.text for one in changed(TESTS, before, after))


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        (TESTS, "@points(16,", "@points(6,", "the points of its checks sum up to 90, and to 100 as a rule"),
        (TESTS, '@points(8, kind="memory",', "@points(8,", 'test_memory is about memory: write @points(..., kind="memory")'),
        (TESTS, '    """Agrees with torch.softmax on contiguous float32 matrices"""\n', "", "test_contiguous_float32 has no docstring"),
    ],
)  # fmt: skip
def test_what_may_be_a_mistake_is_a_note(
    changed: Callable[[str, str, str], list[Complaint]], file: str, before: str, after: str, told: str
) -> None:
    found = changed(file, before, after)
    assert [told in one.text for one in found if one.is_note] == [True] and all(one.is_note for one in found)


@pytest.mark.parametrize("name", ["README.md", "starter.py", "domain.toml", "test_softmax.py"])
def test_a_file_that_is_missing_is_named(softmax: Path, name: str) -> None:
    (softmax / name).unlink()
    assert any(f"{name}: there is no such file" in one.text and not one.is_note for one in lint(softmax))


def test_a_folder_is_as_good_as_a_name(softmax: Path) -> None:
    assert named_folder(str(softmax)) == softmax and named_folder("matmul") == ALL["matmul"].folder


def test_reading_imports_neither_torch_nor_pytest() -> None:
    code = (
        "import sys; from gradekit.authoring.lint import lint; from gradekit.assignment import folders\n"
        "assert not [c for f in folders().values() for c in lint(f)]\n"
        "assert not {'torch', 'triton', 'pytest', 'hypothesis'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_verify_claims_that_there_is_nothing_to_mend(softmax: Path) -> None:
    assert tried(reads_well(load(softmax))).held
    (softmax / "README.md").unlink()
    result = tried(reads_well(load(softmax)))
    assert not result.held and "README.md: there is no such file: the handout" in result.problem
