"""A name that is gone is told at once, with the package, its version and the name; nothing falls back in silence."""

import ast
import importlib
import importlib.metadata
import json
import runpy
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.configuration import storage_directory

from gradekit import compat
from gradekit.compat import Incompatible, relies_on
from gradekit.compat.hypothesis import ReplayDatabase, examples, home, no_constants_of_modules, strategies
from tests import zygote
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


@pytest.mark.parametrize(("file", "owner", "name"), [
    ("triton", "triton.backends.compiler:", "GPUTarget"),
    ("triton", "triton.runtime.jit:JITCallable", "parse"),
    ("triton", "triton.compiler.compiler:", "IRSource"),
    ("triton", "triton.backends.nvidia.driver:", "make_tensordesc_arg"),
    ("torch", "torch:_C", "_storage_Use_Count"),
    ("torch", "torch:cuda", "_lazy_init"),
    ("torch", "torch._library.triton:", "get_inner_triton_kernels"),
    ("torch", "torch.utils._device:", "_device_constructors"),
    ("hypothesis", "hypothesis.internal.conjecture.providers:", "_get_local_constants"),
])
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


# --- what gradekit expects of Hypothesis's private names --------------------------------------------------------------


def counted(seen: list[int]) -> Callable[[], None]:
    """A test that asks for three examples."""

    @settings(max_examples=3, database=None)
    @given(n=st.integers(0, 10**6))
    def test(n: int) -> None:
        seen.append(n)

    return test


@pytest.mark.parametrize(("count", "at_least", "runs"), [(None, 40, 40), (None, 2, 3), (2, 1, 2), (8, 1, 3), (0, 1, 1)])
def test_a_test_runs_as_many_examples_as_are_wanted_and_as_many_as_before_afterwards(
    count: int | None, at_least: int, runs: int
) -> None:
    seen: list[int] = []
    test = counted(seen)
    with examples(test, count, ReplayDatabase(), at_least=at_least):
        test()
    assert len(seen) == runs
    test()
    assert len(seen) == runs + 3


def test_a_test_that_does_not_use_hypothesis_is_let_be() -> None:
    def plain() -> None:
        pass

    for test in (plain, None):
        with examples(test, 50, ReplayDatabase()):
            assert strategies(test) == {}
    assert vars(plain) == {}


def test_an_example_that_is_given_as_numbers_is_tried_first_and_made_smaller() -> None:
    seen: list[tuple[int, str]] = []
    replay = ReplayDatabase()

    @seed(3)
    @settings(max_examples=5, deadline=None)
    @given(pair=st.tuples(st.sampled_from(range(1000)), st.sampled_from("abc")))
    def test(pair: tuple[int, str]) -> None:
        seen.append(pair)
        assert pair[0] < 700 or pair[1] == "a"

    with examples(test, 5, replay), pytest.raises(AssertionError):
        replay.numbers = [912, 2]
        test()
    assert seen[0] == (912, "c") and seen[-1] == (700, "b")


def test_the_strategies_of_a_test_are_known_by_its_parameters() -> None:
    assert list(strategies(counted([]))) == ["n"]


def files() -> Path:
    """Where Hypothesis keeps what it has read: a Path itself in older releases."""
    found = storage_directory("constants")
    return getattr(found, "path", found)


def test_hypothesis_keeps_its_files_in_the_folder_that_is_its_home(tmp_path: Path) -> None:
    with home(tmp_path):
        assert files().is_relative_to(tmp_path)
    assert not files().is_relative_to(tmp_path)


SECRET = 918_273_645


@pytest.fixture
def module_with_a_constant(tmp_path: Path) -> Iterator[None]:
    """Loaded, beside the sources of its user: Hypothesis reads the constants of such modules."""
    (file := tmp_path / "with_a_constant.py").write_text(f"number = {SECRET}\n")
    module = types.ModuleType("with_a_constant")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    yield
    del sys.modules[module.__name__]


def drawn() -> set[int]:
    """Integers that Hypothesis draws: a few hundred, from one seed."""
    seen = set()

    @seed(7)
    @settings(max_examples=400, database=None, phases=[Phase.generate], deadline=None)
    @given(n=st.integers())
    def test(n: int) -> None:
        seen.add(n)

    test()
    return seen


def test_numbers_in_the_source_of_loaded_modules_are_not_drawn(module_with_a_constant: None) -> None:
    with no_constants_of_modules():
        alone = drawn()
    assert SECRET not in alone
    del sys.modules["with_a_constant"]
    with no_constants_of_modules():
        assert drawn() == alone
    sys.modules["with_a_constant"] = types.ModuleType("with_a_constant")  # for the fixture


# --- the patches that make Triton and torch work for the tracer do what they are for ----------------------------------


@pytest.fixture(scope="module")
def patched() -> dict[str, Any]:
    """What patched.py saw."""
    done = zygote.ran([Path(__file__).with_name("patched.py")])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_launch_has_its_grid_and_arguments(patched: dict[str, Any]) -> None:
    grid, arguments = patched["launched"]
    assert grid == [3, 1, 1] and "17" in arguments


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("watched", ["late"]), ("parsed once", True), ("target", 90), ("code", [3.0, 3.0]), ("wraps", [True, False]),
        ("compiled", ["early", {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}]), ("thrice", [3.0]), ("dynamo after", False),
    ],
    ids=[
        "jit functions are known from then on", "a jit function is parsed once", "Triton asks the driver that was put in place",
        "the code of a custom operator is found", "wrap_triton wraps where it is asked to and nowhere else",
        "Triton compiles with what was put in place of its compiler", "operators run",
        "torch.compile is not imported for them",
    ],
)  # fmt: skip
def test_a_patch_does_what_it_is_for(patched: dict[str, Any], name: str, value: object) -> None:
    assert patched[name] == value


@pytest.mark.parametrize(("kernel", "saved"), [("persistent", 1), ("carrying", 1), ("lagging", -4)])
def test_a_loop_is_visited_once_where_it_carries_what_its_text_says_and_has_the_same_text(
    patched: dict[str, Any], kernel: str, saved: int
) -> None:
    (text, statements), (own, visited) = patched[f"{kernel} twice"], patched[f"{kernel} once"]
    assert (own, visited) == (text, statements - saved) and "scf.for" in text
