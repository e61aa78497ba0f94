"""Readers of what strangers sent: any input is read or refused, with one kind of error, soon, and in little memory.

For each reader, 200 inputs are tried, and more of them for GRADEKIT_FUZZ_SECONDS (`make fuzz` takes a minute for
each); how many they were is printed.
"""

import io
import json
import logging
import os
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from gradekit import wellformed, wire
from gradekit.engine.ttir import TTIRError, parse
from gradekit.gpu import worker
from gradekit.gpu.timing import Turn
from gradekit.gpu.worker import CardFault
from gradekit.gpu.worker_process import checked
from gradekit.program import Program, ProgramError, View, decode, encode
from gradekit.sandbox import TraceError, Tracer, replies
from gradekit.submission import SubmissionError, notebook, read
from tests.beside import beside
from tests.fuzz import mutations
from tests.patience import GUARD, peak_kilobytes
from tests.tracer.styles import Text

SECONDS = float(os.environ.get("GRADEKIT_FUZZ_SECONDS", "0"))
ROUNDS, EXAMPLES = 4, 50
MEMORY_KILOBYTES = 2 << 20

KERNELS = beside(__file__)["kernels"]

X = View(0, "float16", (64, 64), (64, 1))


@pytest.fixture(scope="session")
def answer() -> dict[str, Any]:
    """What an honest tracer sends."""
    with Tracer(Text(KERNELS)) as tracer:
        return {"program": encode(tracer.trace("entry", [X])), "known": []}


def fuzzed(name: str, inputs: st.SearchStrategy[Any], tried: Callable[[Any], object]) -> None:
    """Tries at least ROUNDS * EXAMPLES inputs, and others until the time is over."""
    deadline, count, number, before = time.monotonic() + SECONDS, 0, 0, peak_kilobytes()

    def once(value: Any) -> None:
        nonlocal count
        began = time.monotonic()
        tried(value)
        count += 1
        assert time.monotonic() - began < GUARD

    quick = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    while number < ROUNDS or time.monotonic() < deadline:
        seed(number)(quick(given(inputs)(once)))()
        number += 1
    print(f"\nfuzz: {name}: {count} inputs")
    assert count >= ROUNDS * EXAMPLES and peak_kilobytes() < max(MEMORY_KILOBYTES, before + 1)


def refused_with(error: type[Exception], read_it: Callable[[Any], object]) -> Callable[[Any], None]:
    """`read_it`, which raises nothing but `error`."""

    def tried(value: Any) -> None:
        try:
            read_it(value)
        except error as refusal:
            str(refusal).encode("utf-8", "backslashreplace")

    return tried


# --- the wire ---------------------------------------------------------------------------------------------------------


def test_the_wires_messages(answer: dict[str, Any]) -> None:
    """Bytes are JSON, or a WireError"""
    bases = [json.dumps({"ok": answer}).encode()[:3000], b'{"error": {"line": 1}}', b"[1, 2.5e3, null, {}]"]
    fuzzed("messages", mutations.data(bases), refused_with(wire.WireError, wire.parse))


def test_the_programs_that_come_over_it(answer: dict[str, Any]) -> None:
    """JSON is a program that can be run, or a ProgramError"""

    def checked(data: Any) -> None:
        program = decode(data)
        wellformed.check(program, [X])
        encode(program)

    fuzzed("programs", _near(answer["program"]), refused_with(ProgramError, checked))


def test_the_answers_around_them() -> None:
    """Any JSON is an answer that is taken, or a TraceError"""
    error = {"cause": "crash", "message": "m", "line": 1, "detail": "d"}
    loaded = {"functions": {"add": [2, 2], "f": [0, -1]}, "notes": ["line 3 was left out"]}

    def taken(data: Any) -> None:
        if isinstance(data, dict):
            replies.error(data)
            replies.loaded(data)

    fuzzed("answers", _near(error) | _near(loaded), refused_with(TraceError, taken))


def test_the_workers_answers() -> None:
    """Any JSON is an answer of the card's process, or a CardFault"""
    trespass = {"storage": 0, "side": "after", "nbytes": 8, "distance": 0}
    reading = {"sm_mhz": 1980, "throttled": False, "reasons": ["too hot"]}
    caught = {"trespass": trespass, "launch": 0, "kernel": "k", "line": 12}
    right = {"ok": {"seconds": [1e-3, 2e-3], "before": reading, "after": None, "caught": caught}}
    fault = {"fault": {"kind": "compile", "message": "m", "kernel": "k", "line": 3}}
    empty = Program((), {}, (), (), "none", {})

    def taken(data: Any) -> None:
        answer = checked(data)
        with worker._sensible():
            Turn(tuple(answer["seconds"]), worker._reading(answer["before"]))
        with worker._sensible():
            worker._finding(answer["caught"], empty, [])

    fuzzed("the worker's answers", _near(right) | _near(fault), refused_with(CardFault, taken))


def _near(data: Any) -> st.SearchStrategy[Any]:
    """The data with some of its parts replaced by others, of its own or strange ones."""
    parts = [part for part in _parts(data) if not isinstance(part, (dict, list)) or len(json.dumps(part)) < 500]
    strange = [None, -1, 1 << 70, 1.5, "\ud800", [], {}, [[]], {"is": "View"}, {"is": "dict", "items": [[[], 1]]}, True]
    choices = st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(parts + strange)), min_size=1, max_size=4)
    return choices.map(lambda chosen: _replaced(data, chosen))


def _parts(data: Any) -> list[Any]:
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [data, *(part for value in inner for part in _parts(value))]


def _replaced(data: Any, chosen: list[tuple[int, Any]]) -> Any:
    copy = json.loads(json.dumps(data))
    holders = [part for part in _parts(copy) if isinstance(part, (dict, list)) and part]
    for number, value in chosen:
        holder = holders[number % len(holders)]
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        holder[keys[number // len(holders) % len(keys)]] = value
    return copy


# --- the engine's reader ----------------------------------------------------------------------------------------------


def test_ttir(answer: dict[str, Any]) -> None:
    """Text is TTIR, or a TTIRError"""
    bases = [kernel["ttir"] for _, kernel in answer["program"]["kernels"]["items"]]
    bases += ["\n".join(line for line in base.split("\n") if not line.startswith("#")) for base in bases]
    pieces = [
        "<", ">", "{", "}", "(", ")", '"', "loc(", "tensor<", "!tt.ptr<", "%", "#loc", "^bb0", "\0", "é", "9" * 30,
    ]
    fuzzed("TTIR", mutations.texts(bases, pieces), refused_with(TTIRError, parse))


# --- files ------------------------------------------------------------------------------------------------------------

CODE = (
    "import triton\n\n@triton.jit\ndef kernel(x):\n    pass\n\nclass A:\n    x = [1, 2]\n\ndef add(x, y):\n"
    "    return x\n"
)
BOOK = json.dumps(
    {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": {"language": "python", "name": "p"}}, "cells": [
        {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": 1, "outputs": [],
         "source": ["%time x = 1\n", "!ls\n"]},
        {"cell_type": "markdown", "id": "b", "metadata": {}, "source": "# Title"},
        {"cell_type": "code", "id": "c", "metadata": {}, "execution_count": None, "source": CODE, "outputs": [
            {"output_type": "stream", "name": "stdout", "text": "hello"}]},
    ]}
)  # fmt: skip
OLD = json.dumps(
    {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": [{"metadata": {}, "cells": [
        {"cell_type": "code", "collapsed": False, "input": CODE, "language": "python", "metadata": {}, "outputs": []},
    ]}]}
)  # fmt: skip


def test_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text is a notebook with a function, or a NotebookError"""
    # nbformat logs what is invalid, also what no other process can be sent
    monkeypatch.setattr(logging.getLogger("traitlets"), "disabled", True)
    pieces = ["[", "{", "]", "}", '"', "null", "-1", "%%", "\\n", "\\ud800", "def ", "cells", "1e999", "(" * 50]
    fuzzed("notebooks", mutations.texts([BOOK, OLD], pieces), refused_with(notebook.NotebookError, notebook.read))


def test_python_files(tmp_path: Path) -> None:
    """Bytes are Python source, or a SubmissionError"""
    path = tmp_path / "a.py"

    def read_it(data: bytes) -> None:
        path.write_bytes(data)
        found = read(path)
        found.names()
        found.text.encode()

    bases = [CODE.encode(), b"# coding: latin-1\nx = '\xe9'\n", "\ufeffx = 1\n".encode(), CODE.encode("utf-16")]
    fuzzed("Python files", mutations.data(bases), refused_with(SubmissionError, read_it))


def test_archives(tmp_path: Path) -> None:
    """Bytes are an archive with one submission, or a SubmissionError"""

    def read_it(given_: tuple[str, bytes]) -> None:
        path = tmp_path / given_[0]
        path.write_bytes(given_[1])
        read(path)

    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("lab/submission.py", CODE)
        archive.writestr("lab/readme.txt", "hello " * 50)
    with tarfile.open(fileobj=tarred, mode="w") as archive:
        entry = tarfile.TarInfo("submission.py")
        entry.size = len(CODE)
        archive.addfile(entry, io.BytesIO(CODE.encode()))
    names = st.sampled_from(["a.zip", "a.tar.gz", "a.tar"])
    near = mutations.data([zipped.getvalue(), tarred.getvalue()[:2048]])
    fuzzed("archives", st.tuples(names, near), refused_with(SubmissionError, read_it))
