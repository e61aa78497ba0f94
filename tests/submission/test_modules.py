"""A submission of several files is one source, with places that lead back to its files."""

import base64
import zipfile
from pathlib import Path

import pytest

from gradekit.assignment import load
from gradekit.batch.grader import content
from gradekit.batch.intake import HandIn, Wanted, chosen
from gradekit.submission import SubmissionError, read
from gradekit.submission.modules import parts
from gradekit.submission.reach import reach
from tests.batch.clusters import RIGHT, assignments
from tests.graded import grade

KERNELS = RIGHT[: RIGHT.index("def double")]
MAIN = "from __future__ import annotations\nimport torch\nimport triton\nfrom kernels import kernel as run\n\n" + RIGHT[
    RIGHT.index("def double") :
].replace("kernel[", "run[")


def lay(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_the_file_that_defines_the_entry_is_meant_and_brings_its_modules(tmp_path: Path) -> None:
    found = read(lay(tmp_path, main=MAIN, kernels=KERNELS, notes="x = 1\n"), entry="double")
    assert found.path.endswith("main.py") and "x = 1" not in found.text
    assert [name for name, _ in found.cells] == ["kernels.py", "main.py"]
    line = next(n for n, text in enumerate(found.text.split("\n"), 1) if text.startswith("def double"))
    assert found.place(line) == f"main.py:{MAIN.split(chr(10)).index('def double(x):') + 1}"
    assert found.place(next(n for n, text in enumerate(found.text.split("\n"), 1) if "tl.store" in text)) == (
        f"kernels.py:{next(n for n, text in enumerate(KERNELS.split(chr(10)), 1) if 'tl.store' in text)}"
    )


@pytest.mark.parametrize("name", ["triton", "torch"])
def test_a_file_called_as_a_package_that_kernels_need_takes_its_place_nowhere(tmp_path: Path, name: str) -> None:
    alone = read(lay(tmp_path / "a", submission=RIGHT))
    assert read(lay(tmp_path / "b", submission=RIGHT, **{name: "x = 1\n"}) / "submission.py").text == alone.text
    assert read(lay(tmp_path / "c", **{name: RIGHT}) / f"{name}.py").text == alone.text


ALIKE = "import triton\nimport triton.language as tl\n@triton.jit\ndef kernel(out_ptr):\n    tl.store(out_ptr, 0.0)\n"


@pytest.mark.parametrize(
    ("main", "others"), [(MAIN, {}), ("import others\n" + MAIN.partition("\n")[2], {"others": ALIKE})], ids=["alone", "two kernels of one name"]
)
def test_it_is_graded_as_one_file_is(tmp_path: Path, main: str, others: dict[str, str]) -> None:
    (tmp_path / "in").mkdir()
    folder = lay(tmp_path / "in", main=main, kernels=KERNELS, **others)
    report = grade(load(assignments(tmp_path) / "double"), folder, profile="quick", device="cpu")
    assert report.score.earned == 60, report


@pytest.mark.parametrize(("statement", "use"), [
    ("import kernels", "kernels.kernel["),
    ("import kernels as k", "k.kernel["),
    ("from kernels import (\n    kernel,\n)", "kernel["),
    ("from .kernels import kernel", "kernel["),
    ("from kernels import *", "kernel["),
])
def test_every_way_to_import_binds_the_names(tmp_path: Path, statement: str, use: str) -> None:
    text = MAIN.replace("from kernels import kernel as run", statement).replace("run[", use)
    source = read(lay(tmp_path, main=text, kernels="def kernel(n): return n\nMORE = 2\n") / "main.py").text
    namespace: dict[str, object] = {}
    kept = "\n".join(
        line for line in source.split("\n") if "__future__" not in line and not line.startswith("import t")
    )
    exec(kept, namespace)  # noqa: S102  # the test's own text
    assert eval(use.rstrip("["), namespace)(5) == 5


def test_what_is_imported_through_another_module_comes_first(tmp_path: Path) -> None:
    lay(
        tmp_path, main="import a\ndef double(x): return a.f(x)\n", a="from b import g\ndef f(x): return g(x)\n",
        b="def g(x): return x\n",
    )
    assert [name for name, _ in parts(read(tmp_path / "main.py").text)] == ["b.py", "a.py", "main.py"]


def test_modules_that_import_each_other_end(tmp_path: Path) -> None:
    lay(tmp_path, main="import a\n", a="import b\nx = 1\n", b="import a\ny = 1\n")
    assert len(parts(read(tmp_path / "main.py").text)) == 3


def test_folders_beside_the_submission_are_packages(tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops/__init__.py").write_text("from .kernels import kernel\n")
    (tmp_path / "ops/kernels.py").write_text(KERNELS)
    lay(tmp_path, main=MAIN.replace("from kernels import", "from ops import"))
    text = read(tmp_path / "main.py").text
    assert [name for name, _ in parts(text)] == ["ops/kernels.py", "ops/__init__.py", "main.py"]
    compile(text, "main.py", "exec")


@pytest.mark.parametrize(
    "statement", ["from ops import kernels", "import ops.kernels as kernels", "from ops.kernels import f as kernels"],
)
def test_a_module_of_a_package_is_imported_in_any_way(tmp_path: Path, statement: str) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops/kernels.py").write_text("from . import more\nimport math as m\ndef f(n): return more.twice(n)\n")
    (tmp_path / "ops/more.py").write_text("def twice(n): return 2 * n\n")
    text = read(lay(tmp_path, main=f"{statement}\n") / "main.py").text
    namespace: dict[str, object] = {}
    exec(text, namespace)  # noqa: S102  # the test's own text
    used = "kernels(4)" if "f as" in statement else "kernels.f(4)"
    assert eval(used, namespace) == 8


RUN = {
    "an import inside of a function or a branch": (
        {"main": "def double(x):\n    from kernels import f as g\n    return g(x)\nif True:\n    import kernels\n",
         "kernels": "def f(n): return 2 * n\n"},
        "double(2) + kernels.f(1)", 6,
    ),
    "what a module imports itself": (
        {"main": "from a import g, m\n", "a": "from b import g\nimport math as m\n", "b": "def g(x): return x\n"},
        "g(m.floor(2.5))", 2,
    ),
    "two things that two modules call alike": (
        {"main": "from a import k\nimport b\n", "a": "def k(): return 1\n", "b": "def k(): return 2\n"}, "(k(), b.k())", (1, 2),
    ),
    "what a pattern binds": (
        {"main": "import a\nBLOCK = 64\n",
         "a": "BLOCK = 2\ndef rest(of):\n    match of:\n        case {1: _, **BLOCK}:\n            return BLOCK\n"},
        "(a.rest({1: 0, 2: 5}), BLOCK)", ({2: 5}, 64),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "use", "value"), RUN.values(), ids=RUN)
def test_one_source_of_several_files_means_what_they_mean(tmp_path: Path, files: dict[str, str], use: str, value: object) -> None:
    namespace: dict[str, object] = {}
    exec(read(lay(tmp_path, **files) / "main.py").text, namespace)  # noqa: S102  # the test's own text
    assert eval(use, namespace) == value


def test_the_same_line_in_two_files_is_one_definition(tmp_path: Path) -> None:
    lay(tmp_path, main="import a\nBLOCK = 64\n", a="BLOCK = 64\n")
    assert len(parts(read(tmp_path / "main.py").text)) == 2


def test_a_module_that_is_imported_whole_costs_no_trust(tmp_path: Path) -> None:
    text = read(lay(tmp_path, main="import torch\nimport a\n", a="BLOCK = 64\ndef f(): pass\n") / "main.py").text
    assert "ModuleType" in text and reach(text) is None
    assert reach(text.replace("BLOCK=BLOCK", "BLOCK=eval")) is not None


def test_a_linked_folder_is_no_package(tmp_path: Path) -> None:
    for place in ("mine", "theirs"):
        (tmp_path / place).mkdir()
    lay(tmp_path / "theirs", kernels="f = 2\n")
    lay(tmp_path / "mine", main="from them.kernels import f\n")
    (tmp_path / "mine/them").symlink_to(tmp_path / "theirs")
    assert not parts(read(tmp_path / "mine/main.py").text)


def test_an_entry_from_another_students_file_is_named_as_the_reason(tmp_path: Path) -> None:
    double = load(assignments(tmp_path) / "double")
    folder = tmp_path / "in"
    folder.mkdir()
    lay(folder, submission="import sys\nsys.path.insert(0, '../bob')\nfrom bob.main import double\n")
    report = grade(double, folder, profile="quick", device="cpu")
    assert "It imports it from bob.main, which is no file of this submission" in report.message
    lay(folder, submission="import nowhere\n\n\ndef double(x, launcher=nowhere.launcher):\n    return launcher(x)\n")
    report = grade(double, folder, profile="quick", device="cpu")
    assert "defines no function double. What defines it may be among the lines that were left out" in report.message
    lay(folder, submission="from ops.main import double\n")
    (folder / "ops").mkdir()
    lay(folder / "ops", main=RIGHT)
    assert grade(load(tmp_path / "assignments/double"), folder, profile="quick", device="cpu").score.earned == 60


A_HELPER = """
BLOCK = 2
SIZES = [BLOCK for BLOCK in (5, 6)]


def helper(n, BLOCK=BLOCK):
    inner = lambda: scale(n) + BLOCK
    return inner()


def scale(n):
    return n * BLOCK
"""


@pytest.mark.parametrize(("statement", "use"), [
    ("import a", "a.helper(3) + a.BLOCK"),
    ("from a import helper as other, BLOCK as two", "other(3) + two"),
    ("import b", "b.through(3) + b.BLOCK"),
    ("from b import *", "through(3) + 2"),
])
def test_each_file_has_names_of_its_own(tmp_path: Path, statement: str, use: str) -> None:
    """BLOCK is 2 in a.py and 64 in main.py, and scale multiplies there and divides here"""
    lay(tmp_path, a=A_HELPER, b="from a import helper, BLOCK\ndef through(n):\n    return helper(n)\n")
    main = f"{statement}\nBLOCK = 64\ndef scale(n): return n / BLOCK\nFOUND = {use}, scale(64), BLOCK\n"
    found = read(lay(tmp_path, main=main) / "main.py")
    namespace: dict[str, object] = {}
    exec(found.text, namespace)  # noqa: S102  # the test's own text
    assert namespace["FOUND"] == (3 * 2 + 2 + 2, 1, 64)
    assert reach(found.text.replace("import torch", "")) is None or "ModuleType" not in found.text


@pytest.mark.parametrize("use", ["class C:\n    BLOCK = 3\n", "def f():\n    global BLOCK\n    BLOCK = 3\n"])
def test_one_name_for_two_things_that_cannot_be_told_apart_is_refused(tmp_path: Path, use: str) -> None:
    with pytest.raises(SubmissionError, match="a.py and another file both define"):
        read(lay(tmp_path, main="import a\nBLOCK = 1\n", a="BLOCK = 2\n" + use) / "main.py")


def test_a_name_that_its_module_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="a.py does not define g, which is imported from it"):
        read(lay(tmp_path, main="from a import g\n", a="f = 2\n") / "main.py")


def test_a_link_and_a_test_are_no_modules(tmp_path: Path) -> None:
    lay(tmp_path, main="import a, test_it\n", secret="x = 1\n", test_it="y = 1\n")
    (tmp_path / "a.py").symlink_to(tmp_path / "secret.py")
    assert not parts(read(tmp_path / "main.py").text)


def test_a_file_without_modules_stays_as_it_is(tmp_path: Path) -> None:
    lay(tmp_path, main=RIGHT, other="x = 1\n")
    assert read(tmp_path / "main.py").text == RIGHT and content(tmp_path / "main.py") == RIGHT.encode()


def test_a_class_hands_on_all_files_of_a_hand_in(tmp_path: Path) -> None:
    lay(tmp_path, main=MAIN, kernels=KERNELS)
    found = chosen(HandIn("ada", tmp_path), [tmp_path], Wanted(("submission", "double"), entry="double"))
    assert found.path == tmp_path / "main.py" and not found.problem
    sent = base64.b64encode(content(found.path)).decode()
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "submission.py"
    file.write_bytes(base64.b64decode(sent))
    assert [name for name, _ in read(file).cells] == ["kernels.py", "main.py"]


@pytest.mark.parametrize("folder", ["", "homework/"])
def test_an_archive_brings_its_modules_too(tmp_path: Path, folder: str) -> None:
    with zipfile.ZipFile(tmp_path / "hw.zip", "w") as archive:
        for name, text in {"main.py": MAIN, "kernels.py": KERNELS, "essay.txt": "x"}.items():
            archive.writestr(folder + name, text)
    found = read(tmp_path / "hw.zip", entry="double")
    assert found.path.endswith("main.py") and [name for name, _ in found.cells] == ["kernels.py", "main.py"]
    assert found.notes == (f"Left out of the archive: {folder}essay.txt.",)
