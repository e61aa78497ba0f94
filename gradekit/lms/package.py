"""What an instructor uploads to an LMS: gradekit, one assignment with its hidden tests, and the LMS's own scripts."""

import io
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gradekit
from gradekit.assignment import Assignment, UsageError
from gradekit.credit import PendingPolicy
from gradekit.lms.platforms import PLATFORMS
from gradekit.report import translation
from gradekit.request import new_secret_seed
from gradekit.versions import requirements, supported, version

SECRET_SEED = "secret_seed"  # the file beside the hidden tests that holds the seed of this package's own examples

TIME = (2026, 1, 1, 0, 0, 0)  # of every member: the same input gives the same file


def build(lms: str, assignment: Assignment, target: Path, **more: Any) -> list[str]:
    """Write the package of `assignment` for `lms` to `target` (.zip, or .tar), with `more` as in `contents`; the names
    in it. Raises UsageError as `contents`, and OSError."""
    files = contents(lms, assignment, **more)
    target.write_bytes(_tar(files) if target.suffix == ".tar" else _zip(files))
    return sorted(files)


def contents(
    lms: str, assignment: Assignment, *, cluster: str | None = None, certificates: Path | None = None,
    secret_seed: int | None = None, hidden: bool | None = None, pending: PendingPolicy = PendingPolicy.LEFT_OUT,
) -> dict[str, bytes]:  # fmt: skip
    """Everything in the package, by name: with hidden tests and a secret seed (by default new) unless not `hidden`, or
    students read it. Unmeasured points count as `pending` says, or are timed by the scheduler at `cluster`, with the
    `certificates` in that folder. Raises UsageError for another LMS, and where students would read what is secret."""
    is_read = lms in PLATFORMS and PLATFORMS[lms].is_read_by_students
    if is_read and (hidden or secret_seed is not None):
        raise UsageError(
            f"students read what is uploaded to {lms}, so hidden tests and a secret seed stay at home: leave --hidden"
            " and --secret-seed out, and let `gradekit grade` over their repositories give the grade that counts"
        )
    hidden = not is_read if hidden is None else hidden
    if secret_seed is not None and not hidden:
        raise UsageError("a secret seed stands beside the hidden tests: leave --no-hidden or --secret-seed out")
    words = {"@ASSIGNMENT@": assignment.id, "@PENDING@": pending.value, "@LANG@": translation.language()}
    words |= {"@CLUSTER@": cluster or "", "@NETWORK@": "true" if cluster else "false"}
    files = {name: _filled(text, words) for name, text in _scripts(lms).items()}
    files["requirements.txt"] = "".join(_pins(with_cluster=bool(cluster))).encode()
    if certificates:
        names = ("ca.pem", "cert.pem", "key.pem")
        files |= {f"grader/certificates/{name}": (certificates / name).read_bytes() for name in names}
    for name, file in _grader_files():
        files[f"grader/gradekit/{name}"] = file.read_bytes()
    files |= _metadata()
    for name, file in _assignment_files(assignment, hidden):
        files[f"grader/{name}"] = file.read_bytes()
    if hidden and not assignment.is_quiz:
        seed = new_secret_seed() if secret_seed is None else secret_seed
        files[f"grader/solutions/{assignment.id}/{SECRET_SEED}"] = f"{seed}\n".encode()
    return files


def _pins(*, with_cluster: bool) -> Iterator[str]:
    """The versions that are installed here, as every index has them: `+cpu` is a build that some indexes alone have."""
    for name in [*supported(), *(["distributed"] if with_cluster else [])]:
        if number := version(name):
            yield f"{name}=={number.partition('+')[0]}\n"


def _metadata() -> dict[str, bytes]:
    """By which gradekit is known where it lies uninstalled: reports name its version, the doctor what it accepts."""
    number = version("gradekit")
    lines = ["Metadata-Version: 2.4", "Name: gradekit", f"Version: {number}"]
    lines += [f"Requires-Python: {supported()['python']}", *(f"Requires-Dist: {needed}" for needed in requirements())]
    text = "\n".join([*lines, ""]).encode()
    return {f"grader/gradekit-{number}.dist-info/METADATA": text} if number else {}


def _scripts(lms: str) -> dict[str, bytes]:
    folder = scripts() / lms
    if not folder.is_dir():
        there = ", ".join(sorted(child.name for child in scripts().iterdir() if child.is_dir()))
        raise UsageError(f"there are no scripts for {lms!r}; there are some for {there}")
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def scripts() -> Path:
    """The folder of the LMSes' scripts: autograder/ of a checkout, or its copy in the package."""
    package = Path(gradekit.__file__).parent
    checkout = package.parent / "autograder"
    return checkout if checkout.is_dir() else package / "_autograder"


def _filled(text: bytes, words: Mapping[str, str]) -> bytes:
    for name, value in words.items():
        text = text.replace(name.encode(), value.encode())
    return text


def _grader_files() -> Iterator[tuple[str, Path]]:
    """gradekit itself, without the copies of assignments that an installed one carries."""
    package = Path(gradekit.__file__).parent
    for file in sorted(package.rglob("*")):
        parts = file.relative_to(package).parts
        if file.is_file() and not {"__pycache__", "_assignments", "_autograder"} & set(parts):
            yield "/".join(parts), file


def _assignment_files(assignment: Assignment, hidden: bool) -> Iterator[tuple[str, Path]]:
    yield from ((f"assignments/{assignment.id}/{file.name}", file) for file in assignment.test_files)
    if hidden and assignment.solutions is not None:
        for file in sorted(assignment.solutions.glob("test_*.py")):
            yield f"solutions/{assignment.id}/{file.name}", file


def _mode(data: bytes) -> int:
    return 0o755 if data.startswith(b"#!") else 0o644


def _zip(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            member = zipfile.ZipInfo(name, TIME)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, _mode(data) << 16
            archive.writestr(member, data)
    return stream.getvalue()


def _tar(files: Mapping[str, bytes]) -> bytes:
    stream, made = io.BytesIO(), int(datetime(*TIME, tzinfo=UTC).timestamp())
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(data), _mode(data), made
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()
