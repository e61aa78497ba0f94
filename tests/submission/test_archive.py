"""An archive is read without being unpacked: one file is found in it, or the reason why not is told."""

import gzip
import io
import stat
import struct
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from gradekit.findings import Cause
from gradekit.submission import MAX_SOURCE_BYTES, SubmissionError, archive, read
from tests.patience import steps

CODE = "def softmax(x):\n    return x\n"
KINDS = ("a.zip", "a.tar.gz", "a.tgz", "a.tar")


def packed(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """An archive of the kind that the name says."""
    contents = {name: data.encode() if isinstance(data, str) else data for name, data in files.items()}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name, data in contents.items():
                zipped.writestr(name, data)
        return path
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for name, data in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(SubmissionError) as caught:
        read(path, entry="softmax")
    assert caught.value.cause in (Cause.UNREADABLE, Cause.SYNTAX_ERROR)
    return caught.value.message


def refusal_within(mebibytes: int, path: Path) -> str:
    """The refusal, which takes no more memory than that."""
    tracemalloc.start()
    try:
        said = refusal(path)
        assert tracemalloc.get_traced_memory()[1] < mebibytes << 20
    finally:
        tracemalloc.stop()
    return said


# --- what is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("files", "chosen"), [
    ({"kernel.py": CODE}, "kernel.py"),
    ({"lab/kernel.py": CODE, "lab/": ""}, "lab/kernel.py"),
    ({"a.py": "x = 1\n", "submission.py": CODE}, "submission.py"),
    ({"a.py": "x = 1\n", "softmax.py": CODE}, "softmax.py"),
    ({"kernel.py": CODE, "deep/other.py": "x = 1\n"}, "kernel.py"),
    ({"kernel.py": CODE, "test_softmax.py": "", "conftest.py": "", ".hidden.py": ""}, "kernel.py"),
    ({"kernel.py": CODE, "__MACOSX/._kernel.py": b"\0", "data.csv": "1,2"}, "kernel.py"),
    ({"Übung/Lösung 你好.py": CODE}, "Übung/Lösung 你好.py"),
])
def test_the_file_that_is_meant_is_found(tmp_path: Path, kind: str, files: dict[str, str], chosen: str) -> None:
    found = read(packed(tmp_path / kind, files), entry="softmax")
    assert (found.text, found.path) == (CODE, str(tmp_path / kind / chosen))


def test_a_line_is_named_by_the_file_within(tmp_path: Path) -> None:
    assert read(packed(tmp_path / "a.zip", {"lab/kernel.py": CODE})).place(2) == "kernel.py:2"


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    assert read(packed(tmp_path / "a.zip", {"k.py": CODE, "helper/h.py": "x = 1\n"})).notes == (
        "Left out of the archive: helper/h.py.",
    )


def test_nothing_is_unpacked(tmp_path: Path) -> None:
    read(packed(tmp_path / "a.tar.gz", {"k.py": CODE}))
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("files", "said"), [
    ({}, "no .py file"),
    ({"a.txt": "x"}, "no .py file"),
    ({"a.py": CODE, "b.py": CODE}, "call the one that is meant submission.py"),
    ({"/etc/kernel.py": CODE}, "outside of the folder"),
    ({"../kernel.py": CODE}, "outside of the folder"),
    ({"lab/../../kernel.py": CODE}, "outside of the folder"),
    ({"..\\kernel.py": CODE}, "outside of the folder"),
    ({"C:\\kernel.py": CODE}, "outside of the folder"),
    ({"C:kernel.py": CODE}, "outside of the folder"),
    ({"k.py": CODE, "K.PY": CODE}, "twice"),
    ({"k.py": CODE, "./k.py": CODE}, "twice"),
    ({"k.py": CODE, "a//b.txt": "", "a/b.txt": ""}, "twice"),
    ({"f\u00fc.py": CODE, "fu\u0308.py": CODE}, "twice"),
    ({"k.py": b"\0" * 100}, "NUL"),
    ({"k.py": ""}, "empty"),
    ({"k.py": "x = 1\n" * MAX_SOURCE_BYTES}, "larger than 1 MiB"),
    ({"k.py": "def f(:\n"}, "line 1 of k.py"),
], ids=lambda value: next(iter(value), "nothing")[:12] if isinstance(value, dict) else "")
def test_what_has_no_place_in_a_hand_in_is_refused(
    tmp_path: Path, kind: str, files: dict[str, str | bytes], said: str
) -> None:
    assert said in refusal(packed(tmp_path / kind, files))


@pytest.mark.sample(2, of="bombs")
@pytest.mark.parametrize("kind", ["a.zip", "a.tar.gz"])
def test_entries_that_are_too_many_are_refused_and_not_looked_at(tmp_path: Path, kind: str) -> None:
    few, many = with_entries(3_000, tmp_path / f"few_{kind}"), with_entries(20_000, tmp_path / f"many_{kind}")
    assert "entries" in refusal(many)
    assert steps(lambda: refusal(many)) < 1.5 * steps(lambda: refusal(few))


def with_entries(count: int, path: Path) -> Path:
    return packed(path, {"k.py": CODE, **{f"{number}.txt": "" for number in range(count)}})


def member(path: Path, name: str, **changes: object) -> Path:
    """A tar file with one unusual entry beside an ordinary file."""
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(_file("k.py"), io.BytesIO(CODE.encode()))
        entry = tarfile.TarInfo(name)
        for attribute, value in changes.items():
            setattr(entry, attribute, value)
        tar.addfile(entry)
    return path


def _file(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = len(CODE)
    return entry


@pytest.mark.parametrize(("changes", "said"), [
    ({"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "is a link"),
    ({"type": tarfile.SYMTYPE, "linkname": "k.py"}, "is a link"),
    ({"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}, "is a link"),
    ({"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5}, "is a device"),
    ({"type": tarfile.BLKTYPE}, "is a device"),
    ({"type": tarfile.FIFOTYPE}, "is a device"),
])
def test_links_and_devices_are_refused(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    assert said in refusal(member(tmp_path / "a.tar.gz", "submission.py", **changes))


@pytest.mark.parametrize(("kind", "said"), [(stat.S_IFLNK, "is a link"), (stat.S_IFCHR, "is a device")])
def test_links_and_devices_in_a_zip_are_refused(tmp_path: Path, kind: int, said: str) -> None:
    entry = zipfile.ZipInfo("submission.py")
    entry.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        zipped.writestr(entry, "/etc/passwd")
    assert said in refusal(tmp_path / "a.zip")


# --- bombs ------------------------------------------------------------------------------------------------------------


@pytest.mark.sample(2, of="bombs")
def test_a_zip_bomb_is_refused_by_what_it_declares(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("submission.py", b" " * (100 << 20))
    assert "holds more than 64 MiB" in refusal_within(8, tmp_path / "a.zip")


@pytest.mark.sample(2, of="bombs")
def test_a_zip_bomb_that_declares_little_stays_little(tmp_path: Path) -> None:
    data = bytearray(packed(tmp_path / "a.zip", {"submission.py": b" " * (60 << 20)}).read_bytes())
    for at in (data.index(b"PK\x03\x04") + 22, data.index(b"PK\x01\x02") + 24):
        data[at : at + 4] = struct.pack("<I", 10)
    (tmp_path / "a.zip").write_bytes(bytes(data))
    assert "damaged" in refusal_within(8, tmp_path / "a.zip")


def test_a_gzip_of_several_members_is_read_to_the_end_of_the_last(tmp_path: Path) -> None:
    whole = gzip.decompress(packed(tmp_path / "a.tar.gz", {"k.py": CODE}).read_bytes())
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(whole[:700]) + gzip.compress(whole[700:]))
    assert read(tmp_path / "b.tar.gz").text == CODE


@pytest.mark.sample(2, of="bombs")
def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(b"\0" * (256 << 20), 1))
    assert "holds more than 64 MiB" in refusal_within(3 * 64, tmp_path / "a.tar.gz")


def test_a_table_of_contents_without_end_is_not_read(tmp_path: Path) -> None:
    end = b"PK\x05\x06" + struct.pack("<4H2IH", 0, 0, 65535, 65535, 40 << 20, 0, 0)
    (tmp_path / "a.zip").write_bytes(b"PK\x01\x02" + b"\0" * (40 << 20) + end)
    assert "entries" in refusal_within(8, tmp_path / "a.zip")


def test_an_archive_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.zip").open("wb") as file:
        file.truncate(archive.MAX_BYTES + 1)
    assert "larger than 64 MiB" in refusal(tmp_path / "a.zip")


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("submission.py")
    entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "999999999"}
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        entry.size = 512
        tar.addfile(entry, io.BytesIO(b"0\n".ljust(512, b"\0")))
    assert refusal(tmp_path / "a.tar")


# --- what is no archive -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "data",
    [b"", b"x", CODE.encode(), b"PK\x05\x06", b"PK\x05\x06" + bytes(18), b"\x1f\x8b", gzip.compress(b"x"), b"\0" * 1024,
     zlib.compress(b"x" * 600)],
    ids=["nothing", "a letter", "code", "half an end", "an end", "half gzip", "gzip of a letter", "zeros", "zlib"],
)  # fmt: skip
def test_what_is_no_archive_is_refused(tmp_path: Path, kind: str, data: bytes) -> None:
    (tmp_path / kind).write_bytes(data)
    assert refusal(tmp_path / kind)


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_that_was_cut_off_is_refused(tmp_path: Path, kind: str) -> None:
    whole = packed(tmp_path / kind, {"submission.py": CODE + "# " + "comment " * 300}).read_bytes()
    for size in range(0, min(len(whole), 1000), 37):
        (tmp_path / kind).write_bytes(whole[:size])
        assert refusal(tmp_path / kind)


def test_a_password_is_refused(tmp_path: Path) -> None:
    data = bytearray(packed(tmp_path / "a.zip", {"submission.py": CODE}).read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    (tmp_path / "a.zip").write_bytes(bytes(data))
    assert "is encrypted" in refusal(tmp_path / "a.zip")


def test_a_notebook_in_an_archive_is_read_as_one(tmp_path: Path) -> None:
    book = '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", "id": "a", '
    book += '"metadata": {}, "execution_count": null, "outputs": [], "source": "def softmax(x):\\n    return x"}]}'
    found = read(packed(tmp_path / "a.zip", {"lab.ipynb": book}))
    assert found.cells == ((1, 2),) and "def softmax" in found.text
