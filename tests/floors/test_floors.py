"""The shape of the house: who may import whom, how long functions are, and what is annotated.

Read from the source, so that a module which nothing imports is held to it too.
"""

import ast
import functools
import importlib
import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.patience import GUARD
from tests.zygote import python_path

ROOT = Path(__file__).parents[2]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def tool(name: str) -> Any:
    """A script of tools/, with its folder on the path, as when it is run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        return importlib.import_module(name)


imports, rooms = tool("imports"), tool("rooms")
MODULES: dict[str, Path] = imports.modules()


class Trees(Mapping[str, ast.Module]):
    """Each module's tree, read when it is asked for: every process that collects tests imports this file."""

    def __getitem__(self, module: str) -> ast.Module:
        return imports.tree(MODULES[module])

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


TREES = Trees()
PACKAGES = [module for module, file in MODULES.items() if file.name == "__init__.py"]
ORDER = list(rooms.ROOMS)


@functools.cache
def imported(module: str) -> set[str]:
    """The modules of gradekit that `module` imports, anywhere in it."""
    return set(imports.imports(MODULES[module], MODULES))


@functools.cache
def functions(module: str) -> list[Function]:
    """All functions of `module`, nested ones too."""
    return [node for node in ast.walk(TREES[module]) if isinstance(node, Function)]


def test_every_room_is_described_in_its_order() -> None:
    assert sorted(ORDER) == sorted(imports.graph()), "add the room to ROOMS in tools/rooms.py, where it belongs"


def test_a_room_imports_only_rooms_that_stand_before_it() -> None:
    wrong = [
        f"{module} imports {other}"
        for module in MODULES
        for other in imported(module)
        if imports.room(other) not in (imports.room(module), "gradekit")
        and imports.room(module) != "gradekit"
        and ORDER.index(imports.room(other)) > ORDER.index(imports.room(module))
    ]
    assert not wrong, "see ROOMS in tools/rooms.py"


def test_the_tracer_knows_nothing_of_gradekit_but_programs_wire_compat_and_confine() -> None:
    allowed = {"tracer", "program", "origins", "wire", "compat", "confine", "gradekit"}
    foreign = {name for module in MODULES if imports.room(module) == "tracer" for name in imported(module)}
    assert {imports.room(name) for name in foreign} <= allowed


def test_no_module_imports_itself_in_a_circle_nor_inside_of_functions_or_for_types() -> None:
    assert circles({module: imported(module) for module in MODULES}) == []


def test_circles_are_found_and_what_only_leads_to_one_or_from_one_is_not() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"d"}, "e": {"a"}}) == ["b", "c"]


def circles(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules that import each other in a circle of two or more."""
    left = {module: needed - {module} for module, needed in graph.items()}
    while outside := [
        module for module, needed in left.items()
        if not needed & left.keys() or not any(module in others for others in left.values())
    ]:  # fmt: skip
        for module in outside:
            del left[module]
    return sorted(left)


def test_half_of_all_functions_are_shorter_than_ten_lines() -> None:
    lengths = [(f.end_lineno or f.lineno) - f.lineno + 1 for module in MODULES for f in functions(module)]
    assert statistics.median(lengths) < 10


def test_every_public_function_is_annotated() -> None:
    bare = [
        f"{module}.{f.name}"
        for module in MODULES
        for f in functions(module)
        if not f.name.startswith("_") and (f.returns is None or not all(a.annotation for a in _arguments(f)))
    ]
    assert not bare


def _arguments(function: Function) -> list[ast.arg]:
    given = function.args
    return [a for a in (*given.posonlyargs, *given.args, *given.kwonlyargs) if a.arg not in ("self", "cls")]


MANY_PARAMETERS = {"gradekit.tracer.kernels.run"}
"""The parameters of the method of Triton's that it stands in for."""


def test_no_file_is_longer_than_800_lines() -> None:
    assert not [module for module, file in MODULES.items() if len(file.read_text(encoding="utf-8").splitlines()) > 800]


def test_no_function_has_more_than_8_parameters() -> None:
    many = {f"{module}.{f.name}" for module in MODULES for f in functions(module) if len(_arguments(f)) > 8}
    assert many == MANY_PARAMETERS


def bound_by_a_generator(function: Function) -> set[str]:
    """The names that a generator binds by `:=` in a function that uses them beside it, too: they change when it is read."""
    generators = [node for node in ast.walk(function) if isinstance(node, ast.GeneratorExp)]
    inside = {part for one in generators for part in ast.walk(one)}
    bound = {part.target.id for part in inside if isinstance(part, ast.NamedExpr)}
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and node not in inside}
    return bound & (used | {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)})


def test_no_generator_binds_a_name_that_its_function_uses() -> None:
    functions = [(module, node) for module, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, Function)]
    assert [(module, node.name, names) for module, node in functions if (names := bound_by_a_generator(node))] == []


def test_every_public_function_has_a_docstring() -> None:
    bare = [f"{module}.{f.name}" for module in MODULES for f in public(module) if not ast.get_docstring(f)]
    assert not bare


def public(module: str) -> Iterator[Function]:
    """The functions of a module, and the methods of its public classes, whose names do not begin with an underscore."""
    classes = [n for n in TREES[module].body if isinstance(n, ast.ClassDef) and not n.name.startswith("_")]
    nodes = [*TREES[module].body, *(node for each in classes for node in each.body)]
    yield from (node for node in nodes if isinstance(node, Function) and not node.name.startswith("_"))


def test_every_module_says_what_it_is() -> None:
    assert not [module for module in MODULES if not ast.get_docstring(TREES[module])]


LIGHT = [
    ("gradekit", ("torch", "triton", "pytest", "hypothesis", "click")),
    ("gradekit.cli", ("torch", "triton", "pytest", "hypothesis")),
    ("gradekit.sandbox, gradekit.assignment", ("torch", "triton", "pytest")),
    ("gradekit.plugin", ("torch", "triton")),
]
HEAVIER = [
    ("gradekit.judge, gradekit.judge.diagnose, gradekit.judge.compare, gradekit.subject.subject", ("hypothesis", "triton")),
    ("gradekit.inputs.strategies", ("triton",)),
]
"""What is imported, and what is still absent then: one after the other, for whatever comes later may import more."""


@pytest.mark.parametrize("steps", [LIGHT, HEAVIER], ids=["light", "heavier"])
def test_what_starts_quickly_imports_nothing_heavy(steps: list[tuple[str, tuple[str, ...]]]) -> None:
    looks = [f"import {one}\nprint(*[name for name in {absent!r} if name in sys.modules])" for one, absent in steps]
    environment = os.environ | {"PYTHONPATH": python_path(), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", "\n".join(["import sys", *looks])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GUARD, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [""] * len(steps)


def test_a_name_of_a_class_stands_once_in_its_package() -> None:
    classes = Counter(
        (module if module in PACKAGES else module.rpartition(".")[0], node.name)
        for module, tree in TREES.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in classes.items() if count > 1] == []


def test_a_package_that_lists_its_files_lists_them_all() -> None:
    texts = {package: ast.get_docstring(TREES[package]) or "" for package in PACKAGES}
    listed = {package: set(re.findall(r"(?<![\w/])[a-z]\w*\.py\b", text)) for package, text in texts.items()}
    files = {package: {f.name for f in MODULES[package].parent.glob("*.py")} for package in PACKAGES}
    shown = {package: files[package] - {"__init__.py", "__main__.py"} for package in PACKAGES}
    wrong = {package: sorted(listed[package] ^ shown[package]) for package in PACKAGES if len(listed[package]) > 1}
    assert {package: names for package, names in wrong.items() if names} == {}


def test_everything_that_is_offered_is_there() -> None:
    import gradekit

    assert [name for name in gradekit.__all__ if getattr(gradekit, name, None) is None] == []


def test_asking_for_what_is_not_offered_names_what_is() -> None:
    import gradekit

    with pytest.raises(AttributeError, match="assert_close"):
        gradekit.assert_clsoe  # noqa: B018  (the attribute access is the test)
