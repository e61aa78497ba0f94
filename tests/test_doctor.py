"""The doctor says what is there, what is missing, and how to mend it; it never faints."""

import importlib.metadata
import platform
import sys
from email.message import Message
from pathlib import Path

import pytest

from gradekit import doctor, versions
from gradekit.confine import Means
from gradekit.doctor import Item, State, dependency, examined, interpreter, render, scratch, system, works
from gradekit.gpu.faults import CardFault
from gradekit.sandbox import host
from gradekit.versions import environment, requirements, supported, version
from tests.cards import FakeWorker, device


@pytest.mark.parametrize(("found", "state"), [
    ("2.13.0+cpu", State.GOOD),
    ("2.11.0", State.GOOD),
    ("2.10.1", State.BAD),
    ("2.14.0.dev1", State.GOOD),
    ("3.0.0", State.NOTE),
    (None, State.BAD),
])
def test_a_version_is_judged_against_the_range(
    monkeypatch: pytest.MonkeyPatch, found: str | None, state: State
) -> None:
    monkeypatch.setattr("gradekit.doctor.version", lambda name: found)
    item = dependency("torch")
    assert item.state is state
    assert ('-m pip install "torch>=2.11,<3"' in item.mend) is (state is not State.GOOD)


@pytest.mark.parametrize(("name", "word"), [("Darwin", "Linux container"), ("Windows", "WSL 2"), ("Plan9", "Linux")])
def test_a_system_without_triton_is_told_where_to_go(monkeypatch: pytest.MonkeyPatch, name: str, word: str) -> None:
    monkeypatch.setattr("platform.system", lambda: name)
    item = system()
    assert item.state is State.BAD
    assert word in item.mend


def test_the_interpreters_switch_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert interpreter().state is State.NOTE
    monkeypatch.delenv("TRITON_INTERPRET")
    assert interpreter().state is State.GOOD


def test_a_scratch_folder_that_cannot_be_written_is_bad(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "gone"))
    item = scratch()
    assert (item.state, item.mend) == (State.BAD, "set TMPDIR to a folder that you may write to")


def test_a_part_that_breaks_is_an_item_and_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Item:
        raise RuntimeError("oh\x1b[2J")

    monkeypatch.setattr(doctor, "system", broken)
    items = examined()
    assert items[0] == Item("broken", State.BAD, "could not be examined: RuntimeError: oh\\x1b[2J")
    assert [item.name for item in items[1:4]] == ["gradekit", "python", "torch"]
    assert not works(items)


def test_on_this_machine_check_works() -> None:
    items = examined()
    assert works(items), render(items)
    (tracing,) = [item for item in items if item.name == "tracing"]
    assert tracing.state is State.GOOD and tracing.found.startswith("a kernel with 1 launch")
    names = [item.name for item in items]
    assert {"python", "torch", "triton", "pytest", "hypothesis", "click"} <= set(names) and names.count("torch") == 1


@pytest.mark.parametrize(("means", "state", "found"), [
    (Means(), State.NOTE, "level 0 of 3"),
    (Means(seccomp=True, user=True), State.NOTE, "level 1 of 3"),
    (Means(seccomp=True, user=True, landlock=3), State.GOOD, "level 2 of 3"),
    (Means(seccomp=True, user=True, landlock=3, apart=True), State.GOOD, "level 3 of 3"),
    (Means(seccomp=True, landlock=3, apart=True), State.NOTE, "level 0 of 3"),
])
def test_the_isolation_names_its_level(monkeypatch: pytest.MonkeyPatch, means: Means, state: State, found: str) -> None:
    monkeypatch.setattr(host, "means", lambda: means)
    item = doctor.isolation()
    assert (item.state, item.found[: len(found)]) == (state, found)
    assert bool(item.mend) is (state is State.NOTE)


def test_a_card_is_tried_with_a_kernel() -> None:
    worker = FakeWorker()
    item = doctor.card(device(worker))
    assert item.state is State.GOOD
    assert item.found.startswith("Test Card, driver ") and "a kernel ran there" in item.found
    assert worker.closed


@pytest.mark.parametrize(("worker", "said"), [
    (FakeWorker(offset=1.0), "wrong results"),
    (FakeWorker(fault=CardFault("compile", "no C compiler")), "no C compiler"),
    (FakeWorker(fault=CardFault("compile", "no C compiler", "kernel", 9)), "does not compile"),
])
def test_a_card_that_does_not_work_is_a_note(worker: FakeWorker, said: str) -> None:
    item = doctor.card(device(worker))
    assert item.state is State.NOTE and said in item.found and item.mend


def test_a_cards_process_names_its_level() -> None:
    assert doctor.card(device(FakeWorker())).found.endswith("isolated at level 2")
    item = doctor.card(device(FakeWorker(means=Means(seccomp=True, user=True))))
    assert item.state is State.NOTE and "isolated at level 1; your own code is safe" in item.found
    assert item.mend == "the filesystem is open: use a kernel with Landlock (5.13 or newer)"


def test_the_report_is_this_text() -> None:
    items = [Item("python", State.GOOD, "3.12.1"), Item("gpu", State.NOTE, "none", "nothing to mend")]
    assert (
        render(items)
        == """\
  ok    python  3.12.1
  note  gpu     none
                -> nothing to mend

Measured here:      correctness, memory, structure
Not measured here:  speed (it is measured on a GPU): such points stay pending here, and are never a zero
"""
    )
    assert render([Item("torch", State.BAD, "not installed", "install it")]).endswith(
        "gradekit check does not work here until this is mended: torch\n"
    )
    with_a_card = render([Item("gpu", State.GOOD, "NVIDIA H200")])
    assert with_a_card.endswith("Measured here:      correctness, memory, structure, speed\n")


def test_where_gradekit_itself_is_not_installed_that_is_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> None:
        raise importlib.metadata.PackageNotFoundError("gradekit")

    monkeypatch.setattr(doctor, "supported", unknown)
    monkeypatch.setattr(doctor, "version", lambda name: None)
    items = examined()
    assert items[1] == Item("gradekit", State.BAD, "not installed", items[1].mend) and "pip" in items[1].mend
    assert not works(items)


def test_a_private_name_that_a_release_dropped_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gradekit.compat.hypothesis")
    monkeypatch.delattr("hypothesis.internal.conjecture.providers._get_local_constants")
    item = doctor.private_names()
    assert item.state is State.BAD and "_get_local_constants" in item.found and "hypothesis" in item.mend


# --- Versions come from package metadata ------------------------------------------------------------------------------


def test_what_is_not_installed_has_no_version() -> None:
    assert version("surely-not-installed") is None


def test_the_environment_names_what_a_result_depends_on() -> None:
    found = environment(gpu="NVIDIA H200")
    assert set(found) == {"gradekit", "torch", "triton", "hypothesis", "python", "gpu"}
    assert found["python"] == platform.python_version()
    assert found["gpu"] == "NVIDIA H200"
    assert found["torch"] == version("torch")


def test_a_checkout_says_which_versions_it_accepts() -> None:
    found = supported()
    assert found["python"].contains("3.13") and not found["python"].contains("3.14")
    assert found["triton"].contains("3.6.0") and not found["triton"].contains("3.5.1")
    assert found["torch"].contains("2.13.0+cpu")


def test_what_an_extra_alone_needs_is_not_needed() -> None:
    assert "sqlalchemy" not in supported() and not any("sqlalchemy" in line for line in requirements())


def test_without_a_checkout_the_metadata_says_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    metadata = Message()
    for name, value in (
        ("Requires-Python", "<3.14,>=3.11"),
        ("Requires-Dist", "click<9,>=8.1"),
        ("Requires-Dist", "sqlalchemy>=2; extra == 'batch'"),
    ):
        metadata[name] = value
    monkeypatch.setattr(versions, "PROJECT", tmp_path / "gone.toml")
    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: metadata)
    assert {name: str(accepted) for name, accepted in supported().items()} == {
        "python": "<3.14,>=3.11", "click": "<9,>=8.1",
    }
