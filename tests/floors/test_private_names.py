"""Private names of other packages are used in gradekit/compat alone, read from the source."""

import ast
from collections.abc import Iterable, Iterator

import pytest

from tests.beside import beside

from .test_floors import MODULES, TREES, imports

CASES = beside(__file__)

PACKAGES = ("triton", "torch", "hypothesis", "pytest", "_pytest", "pluggy", "distributed", "sqlalchemy", "nbformat")
"""Whose names are looked at where they are imported."""

PUBLIC_TRITON = ("triton", "triton.language", "triton.testing", "triton.tools.tensor_descriptor")
"""The modules of Triton that its users import. All others are Triton's own, whatever they are called."""

PRIVATE_HYPOTHESIS = ("hypothesis.internal", "hypothesis.configuration")

GRANTED = {"_exit", "_getframe", "_replace", "_asdict", "_fields", "_value_"}
"""Documented names of the standard library."""


def private_uses(module: ast.Module, own: frozenset[str] = frozenset()) -> Iterator[str]:
    """What a module uses of other packages that is not public; `own` are the private names of its own package."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_private(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from [node.module] if _is_private(node.module) else filter(_is_private_member, names)
        elif isinstance(node, ast.Attribute):
            own_name = _begins_private(node.attr) and node.attr not in own
            if own_name or (_root(node) == "triton" and _is_private_path(ast.unparse(node))):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call):
            yield from (name for name in _named_attribute(node) if _begins_private(name) and name not in own)


def _is_private(module: str) -> bool:
    root = module.partition(".")[0]
    if root not in PACKAGES:
        return False
    if root == "triton" and not module.startswith("triton.language."):
        return module not in PUBLIC_TRITON
    return any(map(_begins_private, module.split("."))) or module.startswith(PRIVATE_HYPOTHESIS)


def _is_private_member(path: str) -> bool:
    """Of `from package import name`: a private name, or a module that is private itself."""
    if path.partition(".")[0] not in PACKAGES:
        return False
    return _begins_private(path.rpartition(".")[2]) or _is_private_path(path) or path in PRIVATE_HYPOTHESIS


def _is_private_path(path: str) -> bool:
    """Of an attribute such as triton.runtime.driver: whether it leads through a module that is Triton's own."""
    own = ("backends", "compiler", "knobs", "runtime")
    return path.startswith("triton.") and path.split(".")[1] in own


def _root(node: ast.expr) -> str:
    """The name that an expression such as `a.b.c` begins with; "" for any other."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _begins_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in GRANTED


def _named_attribute(call: ast.Call) -> Iterator[str]:
    """The name that getattr, hasattr, setattr or delattr is given as text."""
    by_name = _root(call.func) in ("getattr", "hasattr", "setattr", "delattr")
    if by_name and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
        yield str(call.args[1].value)


def defined(modules: Iterable[str]) -> frozenset[str]:
    """The private names that the package gives to its own functions, classes, fields and attributes."""
    found = set()
    for module in modules:
        for node in ast.walk(TREES[module]):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found |= {node.attr} if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") else set()
    return frozenset(found)


CHECKED = [module for module in MODULES if imports.room(module) != "compat"]


@pytest.fixture(scope="module")
def own() -> frozenset[str]:
    return defined(CHECKED)


def test_private_names_of_other_packages_stand_in_compat_alone(own: frozenset[str]) -> None:
    assert not [(module, use) for module in CHECKED for use in private_uses(TREES[module], own)]


@pytest.mark.parametrize("text", CASES["private"])
def test_a_private_name_is_seen(text: str) -> None:
    assert list(private_uses(ast.parse(text))) != []


@pytest.mark.parametrize("text", CASES["public"])
def test_public_names_and_names_of_ones_own_are_let_be(text: str) -> None:
    assert list(private_uses(ast.parse(text), frozenset({"_own"}))) == []


def test_a_file_of_compat_imports_its_own_package_and_nothing_of_gradekit() -> None:
    for module, file in MODULES.items():
        if imports.room(module) == "compat":
            stem = file.stem.partition("_")[0]
            roots = {name.partition(".")[0] for name in _imported(TREES[module])} & {*PACKAGES, "gradekit"}
            assert roots <= {stem, f"_{stem}", "gradekit"}, f"{module} imports {roots}"
            ours = {name for name in _imported(TREES[module]) if name.startswith("gradekit")}
            assert ours <= {"gradekit.compat"}, f"{module} imports {ours}"


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
