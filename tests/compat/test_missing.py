"""A name that is gone is told at once, with the package, its version and the name; nothing falls back in silence."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import runpy
from pathlib import Path
from typing import Any

import pytest

from gradekit import compat
from gradekit.compat import Incompatible, relies_on
from tests.floors.test_private_names import private_uses

ROOM = Path(compat.__file__).parent
FILES = sorted(file for file in ROOM.glob("*.py") if file.stem != "__init__")


def test_a_name_that_is_gone_is_told_with_its_package_and_version() -> None:
    with pytest.raises(Incompatible) as raised, relies_on("pytest"):
        from pytest import gone  # type: ignore[attr-defined]  # noqa: F401
    assert f"pytest {importlib.metadata.version('pytest')} lacks a name" in str(raised.value)
    assert "'gone'" in str(raised.value) and "gradekit/compat/pytest.py" in str(raised.value)


def test_a_module_that_is_gone_is_told_as_a_name_is() -> None:
    with pytest.raises(Incompatible, match="_pytest.gone"), relies_on("pytest"):
        importlib.import_module("_pytest.gone")


def test_a_package_that_is_not_installed_is_not_called_incompatible() -> None:
    with pytest.raises(ModuleNotFoundError), relies_on("notinstalled"):
        importlib.import_module("notinstalled")


def test_other_errors_pass_through() -> None:
    with pytest.raises(KeyError), relies_on("pytest"):
        raise KeyError("x")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_private_import_in_compat_fails_loudly(file: Path) -> None:
    module = ast.parse(file.read_text())
    guarded = [node for node in ast.walk(module) if isinstance(node, ast.With) and _is_guard(node)]
    assert guarded
    for node in guarded:
        node.body = [ast.Pass()]
    imports = [node for node in ast.walk(module) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert list(private_uses(ast.Module(list(imports), []))) == []


def _is_guard(node: ast.With) -> bool:
    return any(ast.unparse(item.context_expr).startswith("relies_on(") for item in node.items)


@pytest.mark.parametrize(
    ("file", "owner", "name"),
    [
        ("triton", "triton.backends.compiler:", "GPUTarget"),
        ("triton", "triton.runtime.jit:JITCallable", "parse"),
        ("triton", "triton.compiler.compiler:", "IRSource"),
        ("triton", "triton.backends.nvidia.driver:", "make_tensordesc_arg"),
        ("torch", "torch:_C", "_storage_Use_Count"),
        ("torch", "torch:cuda", "_lazy_init"),
        ("torch", "torch._library.triton:", "get_inner_triton_kernels"),
        ("torch", "torch.utils._device:", "_device_constructors"),
        ("hypothesis", "hypothesis.internal.conjecture.providers:", "_get_local_constants"),
    ],
)
def test_compat_does_not_load_without_a_name_that_it_relies_on(
    monkeypatch: pytest.MonkeyPatch, file: str, owner: str, name: str
) -> None:
    monkeypatch.delattr(_found(owner), name)
    with pytest.raises(Incompatible, match=name) as raised:
        runpy.run_path(str(ROOM / f"{file}.py"))
    assert raised.value.package == file


def _found(path: str) -> Any:
    module, _, attributes = path.partition(":")
    found: Any = importlib.import_module(module)
    for attribute in filter(None, attributes.split(".")):
        found = getattr(found, attribute)
    return found


def test_where_a_function_needs_a_name_of_an_object_that_is_gone_it_says_so() -> None:
    from gradekit.compat import pytest as of_pytest
    from gradekit.compat.triton import launchable

    with pytest.raises(Incompatible, match="_fixtureinfo"):
        of_pytest.arguments(object())  # type: ignore[arg-type]
    with pytest.raises(Incompatible, match="metadata"):
        launchable(object())
