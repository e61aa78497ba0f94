"""Finds the one Python file or notebook in a .zip or .tar.gz, without ever unpacking it to disk.

An archive comes from somebody else: its names may lead out of any folder, its entries may be links and devices, and a
few of its bytes may stand for gigabytes. It is read with the standard library, entry by entry, into memory and within
caps; whatever has no place in a hand-in is refused with the reason.
"""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gradekit.submission.syntax import first_line

SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar")

MAX_BYTES = 64 << 20  # bytes: the largest archive, and the most that its contents may take uncompressed

MAX_ENTRIES = 2000  # the most entries: a hand-in is one file, perhaps with the course's folder around it

_END = b"PK\x05\x06"
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN: tuple[type[Exception], ...] = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, ValueError, NotImplementedError,
    RuntimeError, LookupError, OverflowError,  # what zipfile raises for passwords, and tarfile for headers
)  # fmt: skip


class ArchiveError(ValueError):
    """The archive cannot be read safely, or does not tell which file is meant: one sentence for the student."""


@dataclass(frozen=True)
class Member:
    """A file in an archive: its `name` there, its bytes, and the names of the files beside it that were left out."""

    name: str
    data: bytes
    left_out: tuple[str, ...]


def is_archive(path: Path) -> bool:
    """Whether the name is an archive's."""
    return path.name.lower().endswith(SUFFIXES)


def read(path: Path, choose: Callable[[Sequence[str]], str], limit: Callable[[str], int]) -> Member:
    """The file that `choose` picks from the names of Python files and notebooks closest to the top, of at most `limit`
    bytes (by its name). Raises ArchiveError where it is refused, and OSError where it cannot be opened."""
    with path.open("rb") as file:
        if file.seek(0, io.SEEK_END) > MAX_BYTES:
            raise ArchiveError(f"it is larger than {MAX_BYTES >> 20} MiB")
        file.seek(0)
        try:
            return (_read_zip if path.suffix.lower() == ".zip" else _read_tar)(file, choose, limit)
        except ArchiveError:
            raise
        except _BROKEN as error:
            raise ArchiveError(f"it is damaged, or not what its name says ({first_line(error)})") from None


# --- zip --------------------------------------------------------------------------------------------------------------


def _read_zip(file: io.BufferedIOBase, choose: Callable[[Sequence[str]], str], limit: Callable[[str], int]) -> Member:
    _check_directory(file)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        names = _checked((e.filename, e.file_size, _zip_fault(e)) for e in entries)
        name = choose(_candidates(names))
        with archive.open(entries[names.index(name)]) as stream:
            return _member(name, stream.read(limit(name) + 1), names)


def _check_directory(file: io.BufferedIOBase) -> None:
    """The size of the table of contents, before it is read: it alone could fill the memory."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 65_557))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + 22:
        raise ArchiveError("it is damaged, or not a zip file")
    if int.from_bytes(tail[at + 12 : at + 16], "little") > 1 << 20:  # an entry has 46 bytes and more
        raise ArchiveError(f"it has more than {MAX_ENTRIES} entries")
    file.seek(0)


def _zip_fault(entry: zipfile.ZipInfo) -> str:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        return "is a link" if stat.S_ISLNK(kind) else "is a device"
    if entry.flag_bits & 1:
        return "is encrypted"
    return "" if entry.compress_type in _COMPRESSIONS else "is compressed in an unusual way"


# --- tar --------------------------------------------------------------------------------------------------------------


def _read_tar(file: io.BufferedIOBase, choose: Callable[[Sequence[str]], str], limit: Callable[[str], int]) -> Member:
    plain = io.BytesIO(_uncompressed(file))
    with tarfile.open(fileobj=plain, mode="r:") as archive:
        entries: list[tarfile.TarInfo] = []
        names = _checked(_tar_entries(archive, entries))
        name = choose(_candidates(names))
        stream = archive.extractfile(entries[names.index(name)])
        return _member(name, stream.read(limit(name) + 1) if stream else b"", names)


def _uncompressed(file: io.BufferedIOBase) -> bytes:
    """The bytes of the tar file, decompressed if they are gzipped; refused beyond MAX_BYTES."""
    if file.read(2) != b"\x1f\x8b":
        file.seek(0)
        return file.read()
    file.seek(0)
    try:
        data = gzip.GzipFile(fileobj=file).read(MAX_BYTES + 1)  # of all members
    except EOFError:
        raise ArchiveError("it is damaged: its end is missing") from None
    if len(data) > MAX_BYTES:
        raise ArchiveError(f"it holds more than {MAX_BYTES >> 20} MiB")
    return data


def _tar_entries(archive: tarfile.TarFile, kept: list[tarfile.TarInfo]) -> Iterator[_Entry]:
    for entry in archive:
        kept.append(entry)
        yield entry.name + "/" * entry.isdir(), entry.size, _tar_fault(entry)


def _tar_fault(entry: tarfile.TarInfo) -> str:
    if entry.isdir() or (entry.isreg() and not entry.issparse()):
        return ""
    if entry.issym() or entry.islnk():
        return "is a link"
    return "has holes" if entry.issparse() else "is a device"


# --- what both have ---------------------------------------------------------------------------------------------------


_Entry = tuple[str, int, str]
"""A name, which ends in a slash for a folder; the size; and what is wrong with the entry, if anything is."""


def _checked(entries: Iterator[_Entry]) -> list[str]:
    """The names of all entries. Raises ArchiveError for the first that is refused."""
    names: list[str] = []
    seen: set[str] = set()
    total = 0
    for name, size, fault in entries:
        total += size
        names.append(name)
        _check_name(name, seen)
        if fault:
            raise ArchiveError(f"{_shown(name)} in it {fault}")
        if len(names) > MAX_ENTRIES:
            raise ArchiveError(f"it has more than {MAX_ENTRIES} entries")
        if total > MAX_BYTES:
            raise ArchiveError(f"it holds more than {MAX_BYTES >> 20} MiB")
    return names


def _check_name(name: str, seen: set[str]) -> None:
    """Names that mean something else on another system are refused: two that differ in case, a drive, a backslash."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        raise ArchiveError(f"{_shown(name)} in it would lie outside of the folder that it is unpacked to")
    folded = unicodedata.normalize("NFKC", "/".join(part for part in parts if part not in ("", "."))).casefold()
    if folded in seen and not name.endswith("/"):
        raise ArchiveError(f"it has {_shown(name)} twice")
    seen.add(folded)


def _candidates(names: Sequence[str]) -> list[str]:
    """The Python files and notebooks at the topmost level that has any, tests left out."""
    found = [name for name in names if _is_code(PurePosixPath(name)) and not name.endswith("/")]
    depth = min((name.count("/") for name in found), default=0)
    return [name for name in found if name.count("/") == depth]


def _is_code(name: PurePosixPath) -> bool:
    hidden = any(part.startswith((".", "__MACOSX")) for part in name.parts)
    return name.suffix.lower() in (".py", ".ipynb") and not hidden and not name.name.startswith(("test_", "conftest."))


def _member(name: str, data: bytes, names: Sequence[str]) -> Member:
    others = (other for other in names if other != name and not other.endswith("/"))
    return Member(name, data, tuple(other for other in others if "__MACOSX" not in other))


def _shown(name: str) -> str:
    return repr(name[:100])
