"""The shape of the house: who may import whom, how long functions are, and what is annotated.

Read from the source, so that a module which nothing imports is held to it too.
"""

from __future__ import annotations

import ast
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import GUARD

PACKAGE = Path(__file__).parents[2] / "gradekit"

FLOORS = (
    # 0: data, and reading what was handed in; imports nothing heavy
    {
        "assignment",
        "causes",
        "compat",
        "confine",
        "credit",
        "findings",
        "gradekit",
        "domain",
        "observations",
        "program",
        "reuse",
        "submission",
        "tracer",
        "versions",
        "wellformed",
        "wire",
    },
    # 1: running and judging
    {
        "engine",
        "framework",
        "gpu",
        "inputs",
        "judge",
        "marks",
        "quiz",
        "recorded",
        "request",
        "sandbox",
    },
    # 2: the submission as tests see it; the record's renderings
    {
        "report",
        "subject",
    },
    # 3: the grading run
    {
        "plugin",
    },
    # 4: what uses grading runs
    {
        "batch",
        "bench",
        "checking",
        "course",
        "doctor",
        "inductor",
        "inspector",
        "lms",
        "progress",
        "session",
    },
    # 5: the door
    {
        "__main__",
        "cli",
    },
)
"""Each room's floor: a module imports only from its own room and from lower floors."""

SAME_FLOOR = {
    ("__main__", "cli"),
    ("assignment", "submission"),
    ("domain", "program"),
    ("batch", "checking"),
    ("findings", "causes"),
    ("gpu", "engine"),
    ("gpu", "inputs"),
    ("gpu", "judge"),
    ("gpu", "sandbox"),
    ("inductor", "inspector"),
    ("judge", "framework"),
    ("judge", "inputs"),
    ("lms", "batch"),
    ("lms", "checking"),
    ("request", "sandbox"),
    ("sandbox", "framework"),
    ("observations", "findings"),
    ("submission", "findings"),
    ("tracer", "compat"),
    ("tracer", "confine"),
    ("tracer", "program"),
    ("tracer", "wire"),
    ("wellformed", "program"),
}
"""Neighbours that may be imported beside the lower floors: (who imports, whom). A tuple here costs a thought."""


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    files = [f for f in sorted(PACKAGE.rglob("*.py")) if "_assignments" not in f.parts]
    return {_name(file): file for file in files}


def _name(file: Path) -> str:
    parts = [*file.relative_to(PACKAGE.parent).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    """gradekit.engine.run -> engine; the package itself -> gradekit."""
    return (module.split(".") + [""])[1] or "gradekit"


def floor(name: str) -> int:
    found = [number for number, rooms in enumerate(FLOORS) if name in rooms]
    assert found, f"gradekit/{name} stands on no floor: add it to FLOORS"
    return found[0]


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imports(file: Path) -> Iterator[str]:
    """The modules of gradekit that `file` imports, anywhere in it, also for type checking alone."""
    known = modules()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "gradekit")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gradekit":
            for alias in node.names:
                longer = f"{node.module}.{alias.name}"
                yield longer if longer in known else str(node.module)


def functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(tree(file)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_from_lower_floors_or_its_own_room(module: str) -> None:
    own = room(module)
    for imported in imports(modules()[module]):
        other = room(imported)
        if other in (own, "gradekit") or (own, other) in SAME_FLOOR:
            continue
        assert floor(other) < floor(own), f"{module} (floor {floor(own)}) imports {imported} (floor {floor(other)})"


def test_the_tracer_knows_nothing_of_gradekit_but_programs_wire_compat_and_confine() -> None:
    for module, file in modules().items():
        if room(module) == "tracer":
            known = ("tracer", "program", "wire", "compat", "confine", "gradekit")
            foreign = {name for name in imports(file) if room(name) not in known}
            assert not foreign, f"{module} imports {foreign}"


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {module: _at_import(file) - {module} for module, file in modules().items()}
    while removable := [module for module, needed in graph.items() if not needed & graph.keys()]:
        for module in removable:
            del graph[module]
    assert not graph, f"these import each other: {sorted(graph)}"


def _at_import(file: Path) -> set[str]:
    """What is imported when the module is, and not later inside of a function or for type checking alone."""
    module = tree(file)
    module.body = [node for node in module.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    known = modules()
    found = set()
    for node in module.body:
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        longer = [f"{node.module}.{a.name}" for a in node.names] if isinstance(node, ast.ImportFrom) else []
        found |= {name for name in longer if name in known} or {name for name in names if name in known}
    return found


def test_half_of_all_functions_are_shorter_than_ten_lines() -> None:
    lengths = [(f.end_lineno or f.lineno) - f.lineno + 1 for file in modules().values() for f in functions(file)]
    assert statistics.median(lengths) < 10


def test_every_public_function_is_annotated() -> None:
    bare = [
        f"{module}.{f.name}"
        for module, file in modules().items()
        for f in functions(file)
        if not f.name.startswith("_") and (f.returns is None or not all(map(_annotated, _arguments(f))))
    ]
    assert not bare


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    given = function.args
    return [a for a in (*given.posonlyargs, *given.args, *given.kwonlyargs) if a.arg not in ("self", "cls")]


def _annotated(argument: ast.arg) -> bool:
    return argument.annotation is not None


def test_every_module_says_what_it_is() -> None:
    assert not [module for module, file in modules().items() if not ast.get_docstring(tree(file))]


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        ("gradekit", ("torch", "triton", "pytest", "hypothesis", "click")),
        ("gradekit.cli", ("torch", "triton", "pytest", "hypothesis")),
        ("gradekit.sandbox, gradekit.assignment", ("torch", "triton", "pytest")),
        ("gradekit.plugin", ("torch", "triton")),
        ("gradekit.subject.subject, gradekit.inputs.strategies, gradekit.judge.diagnose", ("triton",)),
        (
            "gradekit.gpu.server, gradekit.gpu.worker, gradekit.gpu.inputs, gradekit.gpu.kernels",
            ("hypothesis", "pytest"),
        ),
        ("gradekit.judge, gradekit.judge.diagnose, gradekit.judge.compare, gradekit.subject.subject", ("hypothesis",)),
    ],
)
def test_what_starts_quickly_imports_nothing_heavy(imported: str, absent: tuple[str, ...]) -> None:
    code = f"import sys, {imported}; print(*[name for name in {absent!r} if name in sys.modules])"
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=GUARD, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_everything_that_is_offered_is_there() -> None:
    import gradekit

    assert [name for name in gradekit.__all__ if getattr(gradekit, name, None) is None] == []


def test_asking_for_what_is_not_offered_names_what_is() -> None:
    import gradekit

    with pytest.raises(AttributeError, match="assert_close"):
        gradekit.assert_clsoe  # noqa: B018  (the attribute access is the test)
