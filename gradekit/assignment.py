"""Finds assignments: the folders assignments/<id>/, each described by its assignment.toml, whose keys
`gradekit/schemas/assignment.json` has."""

import contextlib
import difflib
import functools
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from gradekit import domain, schemas
from gradekit.domain import EntryDomain
from gradekit.schemas import located, nearest, problems, schema
from gradekit.submission import MAX_SOURCE_BYTES, SubmissionError, locate, read

COURSE_FILE = "course.toml"
BUILT_IN = "built-in"


class UsageError(Exception):
    """The command asks for something that is not there: one sentence for whoever typed it."""


class AssignmentError(UsageError):
    """No such assignment, or one that is described wrongly: one sentence for whoever typed it."""


@dataclass(frozen=True)
class Assignment:
    """An assignment as its folder has it; `allow` names ATen operations, such as "aten::sum"."""

    id: str
    title: str
    entry: str
    summary: str
    folder: Path
    allow: tuple[str, ...] = ()
    seed: int = 0
    kind: str = "kernel"
    order: float = 1000.0
    bench: dict[str, Any] = field(default_factory=dict)
    cards: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """Where it is from: "built-in", or the folder that it was found in."""
        return BUILT_IN if self.folder.parent in _built_in() else str(self.folder.parent)

    @property
    def points(self) -> float:
        """What its questions or public tests are worth, as far as `points = N` or `@points(N)` says it in numbers."""
        file, said = (self.folder / "questions.toml", "points = ") if self.is_quiz else (self.tests, r"@points\(")
        return sum(map(float, re.findall(rf"(?m)^{said}(\d+(?:\.\d+)?)(?![^\n]*bonus=True)", _text(file))))

    @property
    def handout(self) -> Path:
        """The page that students read."""
        return self.folder / "README.md"

    @property
    def is_quiz(self) -> bool:
        """Whether it asks questions in place of a kernel."""
        return self.kind == "quiz"

    @property
    def suffix(self) -> str:
        """What the names of submissions end with."""
        return ".toml" if self.is_quiz else ".py"

    @property
    def starter(self) -> Path:
        """The file that students begin with."""
        return self.folder / f"starter{self.suffix}"

    @property
    def solution(self) -> Path | None:
        """The staff's own solution; None where only the students' half is installed."""
        return self.solutions / f"solution{self.suffix}" if self.solutions else None

    @property
    def tests(self) -> Path:
        """The public tests."""
        return self.folder / f"test_{self.id}.py"

    @property
    def test_files(self) -> list[Path]:
        """What grading by the public tests takes: the descriptions, the tests, and the Python beside them."""
        python = sorted(path for path in self.folder.glob("*.py") if path not in (self.starter, self.tests))
        descriptions = [self.folder / "assignment.toml", self.folder / "domain.toml"]
        return [path for path in (self.tests, *descriptions, *python) if path.is_file()]

    @functools.cached_property
    def domain(self) -> dict[str, EntryDomain]:
        """What it promises of each entry; empty without a domain.toml. Raises DomainError where that makes no sense."""
        file = self.folder / "domain.toml"
        return domain.load(file) if file.is_file() else {}

    @property
    def lists(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """The arguments that entries take as lists."""
        return {name: one["lists"] for name, one in self.calling.items()}

    @property
    def calling(self) -> dict[str, dict[str, Any]]:
        """How entries take arguments, as `Tracer` has it; nothing where domain.toml makes no sense."""
        with contextlib.suppress(domain.DomainError):
            return {name: {"lists": one.lists, "options": one.options} for name, one in self.domain.items()}
        return {}

    @property
    def pictures(self) -> list[Path]:
        """What the handout shows."""
        return sorted(self.folder.glob("*.svg"))

    @property
    def solutions(self) -> Path | None:
        """The staff's folder: solutions/<id> beside assignments/; None where only the students' half is installed."""
        folder = self.folder.parent.parent / "solutions" / self.id
        return folder if folder.is_dir() else None


# --- reading one ------------------------------------------------------------------------------------------------------


def load(folder: Path) -> Assignment:
    """The assignment in `folder`. Raises AssignmentError, which names the key, where its assignment.toml is wrong."""
    path = folder / "assignment.toml"
    text, values = schemas.read(path, AssignmentError)
    for problem in problems(values, schema("assignment")):
        raise AssignmentError(located(path, text, problem))
    return Assignment(id=folder.name, folder=folder, **{**values, "allow": tuple(values.get("allow", ()))})


def read_toml(path: Path) -> dict[str, Any]:
    """What the TOML file at `path` holds. Raises AssignmentError where it cannot be opened, or is not TOML."""
    return schemas.read(path, AssignmentError)[1]


def public_tests(hidden: str | Path) -> ModuleType:
    """The public tests of an assignment as a module, for its hidden ones to build upon: `public_tests(__file__)`.
    `hidden` is the file solutions/<id>/test_<id>_hidden.py; its own folder's name tells the assignment."""
    id, root = Path(hidden).parent.name, Path(hidden).parents[2]
    return module_of(f"{id}_public", root / "assignments" / id / f"test_{id}.py")


def beside(file: str | Path, name: str) -> ModuleType:
    """The module `name`.py, for one assignment alone, of the folder that a test file lies in: `boxes = beside(__file__,
    "boxes")`. An unchanged file is loaded once. Raises AssignmentError where there is none."""
    path = Path(file).resolve().parent / f"{name}.py"
    try:
        stat = path.stat()
    except OSError as error:
        raise AssignmentError(f"{path} cannot be opened: {error.strerror}") from None
    return _beside(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=64)
def _beside(path: Path, changed: int, size: int) -> ModuleType:
    return module_of(f"gradekit_{path.parent.name}_{path.stem}", path)


def module_of(name: str, path: Path) -> ModuleType:
    """The Python file at `path`, executed as a module of this name, which is then forgotten."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses look for their module there while it is executed
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
    return module


# --- finding them -----------------------------------------------------------------------------------------------------


def discover(root: Path | None = None) -> dict[str, Assignment]:
    """All assignments by id, sorted: those in `root`, or in the folders of the search path; of two with one id, the
    first of the path.

    The path is what GRADEKIT_ASSIGNMENTS says (folders, or the word "built-in", with the system's separator between
    them), else what `path` in course.toml says. Else it is the nearest folder assignments/, in the current folder or
    above it, then those of installed packages with an entry point "gradekit.assignments", then gradekit's own. Raises
    AssignmentError where a folder that was named does not exist, or an assignment in it is described wrongly.
    """
    return {id: load(folder) for id, folder in folders(root).items()}


def folders(root: Path | None = None) -> dict[str, Path]:
    """The folders of all assignments, rightly described or not. Raises AssignmentError for a missing one."""
    places = [root] if root else list(dict.fromkeys(folder.resolve() for folder in search_path()))
    missing = next((folder for folder in places if not folder.is_dir()), None)
    if missing:
        raise AssignmentError(f"there is no folder of assignments at {missing}")
    found = {path.parent.name: path.parent for folder in reversed(places) for path in folder.glob("*/assignment.toml")}
    return {id: found[id] for id in sorted(found)}


def search_path() -> list[Path]:
    """The folders in which assignments are looked for, the first first."""
    named = os.environ.get("GRADEKIT_ASSIGNMENTS")
    if named:
        return [folder for word in named.split(os.pathsep) if word for folder in _folders(word, Path.cwd())]
    course = course_file(Path.cwd())
    words = _course_path(course) if course else ()
    if course and words:
        return [folder for word in words for folder in _folders(word, course.parent)]
    here = Path.cwd()
    near = [folder for above in (here, *here.parents) if _holds_assignments(folder := above / "assignments")][:1]
    return [*near, *_packaged(), *_built_in()]


def _folders(word: str, base: Path) -> list[Path]:
    return [*_packaged(), *_built_in()] if word == BUILT_IN else [base / word]


def _built_in() -> list[Path]:
    package = Path(__file__).parent
    places = (package.parent / "assignments", package / "_assignments")
    return [folder for folder in places if _holds_assignments(folder)][:1]


def _packaged() -> list[Path]:
    """Folders of installed packages, by entry points such as `kernels101:assignments`; no package is imported."""
    found = []
    for point in metadata.entry_points(group="gradekit.assignments"):
        spec = importlib.util.find_spec(point.module)
        places = spec.submodule_search_locations if spec else None
        found += [Path(place, *point.attr.split(".")) for place in places or ()]
    return found


def _holds_assignments(folder: Path) -> bool:
    return next(folder.glob("*/assignment.toml"), None) is not None


def course_file(folder: Path) -> Path | None:
    """The course.toml of the course that `folder` lies in, the nearest with a table [course]; None without one."""
    for above in (folder, *folder.parents):
        path = above / COURSE_FILE
        if path.is_file() and re.search(r"(?m)^\[course\]", _text(path)):
            return path
    return None


def course_setting(folder: Path, key: str) -> str:
    """What the course that `folder` lies in says of `key`, such as its `lang`; "" where it says nothing."""
    path = course_file(folder)
    with contextlib.suppress(AssignmentError, AttributeError):
        return str(read_toml(path).get("course", {}).get(key, "")) if path else ""
    return ""


def _course_path(path: Path) -> list[str]:
    words = read_toml(path).get("course", {}).get("path", [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise AssignmentError(f"{path}: course.path is {words!r}, but must be a list of folders")
    return words


def in_order(known: Mapping[str, Assignment], first: Iterable[str] = ()) -> list[Assignment]:
    """The assignments in the order of learning: those that the course names `first`, then by their `order`."""
    named = {id: place for place, id in enumerate(first)}
    return sorted(known.values(), key=lambda each: (named.get(each.id, len(named)), each.order, each.id))


def named_folder(id: str) -> Path:
    """The folder of the assignment `id`, or the folder `id`. Raises AssignmentError, with the nearest name."""
    known = folders()
    return Path(id).resolve() if id not in known and Path(id).is_dir() else _named(id, known)


T = TypeVar("T")


def get(id: str, known: Mapping[str, Assignment] | None = None) -> Assignment:
    """The assignment called `id`. Raises AssignmentError, which names the nearest that there is."""
    return _named(id, discover() if known is None else known)


def _named(id: str, known: Mapping[str, T]) -> T:
    if id not in known:
        nothing = "no assignments were found at all: set GRADEKIT_ASSIGNMENTS to their folder"
        raise AssignmentError(f"there is no assignment {id!r}; {nearest(id.lower(), known) if known else nothing}")
    return known[id]


# --- which one a submission is for ------------------------------------------------------------------------------------


def of_path(path: Path, given_id: str | None = None) -> Assignment:
    """The assignment that the submission at `path` is for: `given_id`, else as the file or its folder tells, else by
    its entry, whose name syntax errors do not hide. Raises AssignmentError where none fits, or several do, and
    SubmissionError where there is no such file, or it cannot be read and nothing else tells the assignment."""
    known = discover()
    if given_id is not None:
        return get(given_id, known)
    if not path.exists() and str(path) in known:
        raise AssignmentError(f"there is no folder {path} here yet: `gradekit start {path}` makes it")
    folder = path if path.is_dir() else path.parent
    if quiz := known.get(declared(path / "answers.toml" if path.is_dir() else path)):
        return quiz
    return _of_folder(folder, known) or _defining(_names(locate(path)), str(path), known)


def _of_folder(folder: Path, known: Mapping[str, Assignment]) -> Assignment | None:
    """By the folder's name, or that of the one above it, or by the public tests that `gradekit start` laid into it."""
    folder = folder.resolve()
    started = {id for id in known if (folder / f"test_{id}.py").is_file()}
    if len(started) == 1:
        return known[started.pop()]
    return known.get(folder.name) or known.get(folder.parent.name)


def declared(file: Path) -> str:
    """The assignment that a file of answers names; "" where it names none."""
    match = re.search(r'(?m)^assignment = "(\w+)"', _text(file)) if file.suffix == ".toml" else None
    return match[1] if match else ""


def _names(file: Path) -> tuple[str, ...]:
    try:
        return read(file).names()
    except SubmissionError:
        guessed = tuple(re.findall(r"(?m)^(?: *\")?(?:def +)?(\w+) *[(=]", _text(file)))
        if not guessed:
            raise
        return guessed


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_SOURCE_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _defining(names: Sequence[str], path: str, known: Mapping[str, Assignment]) -> Assignment:
    fitting = [assignment for assignment in known.values() if assignment.entry in names]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        ids = ", ".join(assignment.id for assignment in fitting)
        raise AssignmentError(f"{path} fits more than one assignment ({ids}): say which with -a")
    own = "say which with -a, or write one for a kernel of your own with gradekit new ID --reference FILE.py:FUNCTION"
    raise AssignmentError(f"cannot tell which assignment {path} is for: {_why(names, known)}; {own}")


def _why(names: Iterable[str], known: Mapping[str, Assignment]) -> str:
    if not known:
        return "no assignments were found (set GRADEKIT_ASSIGNMENTS to their folder)"
    entries = {assignment.entry: assignment.id for assignment in known.values()}
    for name in names:
        if name in known:
            return f"it defines {name}; the assignment {name} asks for {known[name].entry}"
        if alike := difflib.get_close_matches(name, entries, n=1, cutoff=0.7):
            return f"it defines {name}; the assignment {entries[alike[0]]} asks for {alike[0]}"
    return f"it defines none of {', '.join(entries)}"
