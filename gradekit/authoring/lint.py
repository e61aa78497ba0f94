"""All that reading finds wrong with an assignment: its files, their tables, its tests, its mistakes."""

import ast
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gradekit import domain
from gradekit.assignment import Assignment, AssignmentError, load
from gradekit.authoring import python_text
from gradekit.authoring.python_text import Known, Remark
from gradekit.course import mistakes
from gradekit.course.handout import as_shown
from gradekit.course.release import stale
from gradekit.course.verify import Claim
from gradekit.schemas import Problem, line_of, located, nearest, problems, read, schema

PUBLIC = 100  # what the public checks of an assignment sum up to, as a rule


@dataclass(frozen=True)
class Complaint:
    """A sentence that begins with a file, and a line where it has one; a `note` need not be a mistake."""

    text: str
    is_note: bool = False


def lint(folder: Path) -> list[Complaint]:
    """What is wrong with the assignment in `folder`, in the order of its files."""
    return _of_assignment(folder / "assignment.toml") or list(_Lint(load(folder)).complaints())


def reads_well(assignment: Assignment) -> Claim:
    """The claim that reading finds nothing to mend: a missing handout is as bad as a wrong test."""

    return Claim(
        "its files", "have nothing to mend that gradekit lint finds",
        lambda: ("; ".join(one.text for one in lint(assignment.folder) if not one.is_note), ""),
    )  # fmt: skip


def _of_assignment(path: Path) -> list[Complaint]:
    try:
        text, values = read(path, AssignmentError)
    except AssignmentError as error:
        return [Complaint(str(error))]
    return [Complaint(located(path, text, problem)) for problem in problems(values, schema("assignment"))]


class _Lint:
    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment

    def complaints(self) -> Iterator[Complaint]:
        """In the order of files."""
        yield from self._files()
        if self.assignment.is_quiz:
            return
        yield from self._domain()
        for path in self._python:
            yield from self._of_python(path)
        yield from self._points()
        yield from self._signatures()
        yield from self._mistakes()

    def _files(self) -> Iterator[Complaint]:
        one = self.assignment
        needed = [(one.handout, "the handout"), (one.starter, "what students begin with")]
        needed += (
            [] if one.is_quiz else [(one.folder / "domain.toml", "what the entry promises"), (one.tests, "the tests")]
        )
        for path, what in needed:
            if not path.is_file():
                yield Complaint(f"{path}: there is no such file: {what}")
        solutions = one.folder.parent.parent / "solutions" / one.id
        staffs = [] if one.is_quiz else [f"test_{one.id}_hidden.py", "mistakes.toml"]
        for name in [f"solution{one.suffix}", *staffs]:
            if not (solutions / name).is_file():
                yield Complaint(f"{solutions / name}: there is no such file", is_note=True)

    # --- domain ------------------------------------------------------------------------------------------------------

    @property
    def _domain_file(self) -> Path:
        return self.assignment.folder / "domain.toml"

    @functools.cached_property
    def _entries(self) -> dict[str, domain.EntryDomain]:
        try:
            return domain.load(self._domain_file)
        except domain.DomainError:
            return {}

    def _domain(self) -> Iterator[Complaint]:
        if not self._domain_file.is_file():
            return
        yield from map(Complaint, domain.complaints(self._domain_file))
        text = self._domain_file.read_text(encoding="utf-8", errors="replace")
        entry = self.assignment.entry
        if self._entries and entry not in self._entries:
            told = f"there is no [{entry}], the entry of assignment.toml ({nearest(entry, self._entries)})"
            yield Complaint(f"{self._domain_file}:1: {told}")
        for name, tensor, message in python_text.unknown_kinds(self._entries, self._known.kinds):
            yield Complaint(located(self._domain_file, text, Problem((name, "tensors", tensor, "values"), message)))

    # --- Python ------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _python(self) -> list[Path]:
        one = self.assignment
        own = [path for path in sorted(one.folder.glob("*.py")) if path != one.starter]
        hidden = one.solutions / f"test_{one.id}_hidden.py" if one.solutions else None
        return [*own, *([hidden] if hidden and hidden.is_file() else [])]

    @property
    def _trees(self) -> list[ast.Module]:
        return [tree for path in self._python if isinstance(tree := _parsed(path), ast.Module)]

    @functools.cached_property
    def _known(self) -> Known:
        added = {kind for tree in self._trees for kind in python_text.own_kinds(tree)}
        return Known(self._entries, python_text.all_kinds(added), as_shown(self.assignment.handout))

    def _of_python(self, path: Path) -> Iterator[Complaint]:
        tree = _parsed(path)
        if not isinstance(tree, ast.Module):
            yield from _told(path, [tree])
            return
        yield from _told(path, [*python_text.imports(tree), *python_text.undefined(tree)])
        if path.stem.startswith("test_"):
            yield from _told(path, python_text.of_tests(tree, self._known))

    def _points(self) -> Iterator[Complaint]:
        points = self.assignment.points
        if isinstance(_parsed(self.assignment.tests), ast.Module) and points != PUBLIC:
            said = f"the points of its checks sum up to {points:g}, and to {PUBLIC} as a rule"
            yield Complaint(f"{self.assignment.tests}: {said}", is_note=True)

    def _signatures(self) -> Iterator[Complaint]:
        """The entry takes what the domain says, in the starter and in the solution."""
        entry, solution = self._entries.get(self.assignment.entry), self.assignment.solution
        for path in filter(None, (self.assignment.starter, solution)):
            tree = _parsed(path) if path.is_file() else None
            if isinstance(tree, Remark):
                yield from _told(path, [tree])
            elif tree is not None:
                yield from _told(path, _signature(tree, self.assignment.entry, entry))
        if solution and not isinstance(tree, Remark) and (entry is not None or not self._domain_file.is_file()):
            try:
                if stale(self.assignment):
                    told = f"the starter, or the handout's table, is out of date: gradekit release {self.assignment.id}"
                    yield Complaint(f"{self.assignment.folder}: {told}")
            except AssignmentError as error:
                yield Complaint(str(error), is_note=True)

    # --- mistakes ----------------------------------------------------------------------------------------------------

    def _mistakes(self) -> Iterator[Complaint]:
        if self.assignment.solutions is None:
            return
        tests, path = [test.name for tree in self._trees for test in python_text.tests(tree)], self.assignment.solutions
        for name, found in mistakes.read_or_refused(self.assignment):
            if isinstance(found, mistakes.MistakeError):
                yield Complaint(str(found))
            elif tests and found.check not in ("", *tests):
                line = line_of((path / mistakes.FILE).read_text(encoding="utf-8"), (name, "expect"))
                told = f"{name} expects {found.check}, which is no test ({nearest(found.check, tests)})"
                yield Complaint(f"{path / mistakes.FILE}:{line}: {told}")


def _signature(tree: ast.Module, name: str, entry: domain.EntryDomain | None) -> Iterator[Remark]:
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name not in python_text.bound_names(tree):
        yield Remark(1, f"it does not define {name}, the entry of assignment.toml ({nearest(name, list(functions))})")
    elif name in functions and entry is not None:
        takes = [argument.arg for argument in functions[name].args.args]
        promised = [argument.name for argument in entry.arguments]
        for place, length in reversed(entry.lists):  # a list has a name of its own in the function alone
            own = place - sum(count - 1 for first, count in entry.lists if first < place)
            whole = takes[own : own + 1] or [f"a list of {', '.join(promised[place : place + length])}"]
            promised[place : place + length] = whole
        if takes != promised[: len(takes)] or len(takes) < len(promised):
            yield Remark(functions[name].lineno, f"{name} takes {takes}, and domain.toml says {promised}")


def _parsed(path: Path) -> ast.Module | Remark:
    try:
        return _tree(path.read_text(encoding="utf-8"))
    except OSError as error:
        return Remark(1, f"cannot be opened: {error.strerror}")
    except SyntaxError as error:
        return Remark(error.lineno or 1, f"is no Python: {error.msg}")
    except UnicodeDecodeError as error:
        return Remark(1, f"is no Python: {error}")


_tree = functools.lru_cache(maxsize=64)(ast.parse)


def _told(path: Path, remarks: Iterable[Remark]) -> Iterator[Complaint]:
    for remark in sorted(remarks, key=lambda remark: remark.line):
        yield Complaint(f"{path}:{remark.line}: {remark.message}", remark.is_note)
