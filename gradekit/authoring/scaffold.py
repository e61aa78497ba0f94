"""The files of a new assignment: after another one, or from a reference."""

import ast
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gradekit.assignment import Assignment, UsageError
from gradekit.authoring.python_text import tests as tests_of
from gradekit.authoring.python_text import titles_and_points
from gradekit.authoring.signature import Signature
from gradekit.course.handout import BEGIN, END, handout
from gradekit.course.regions import starter
from gradekit.domain import ANY_DIMENSIONS, DomainError, EntryDomain, load

STAFF = {
    "staff.answer.py": "solution.py", "staff.edits.toml": "mistakes.toml", "staff.more_tests.py": "test_ID_hidden.py"
}  # fmt: skip
"""Templates of what staff get, and its names there: what students read holds no file that is called so."""

MOST, DRAWN = 65536, (300, 60, 12, 6)
"""The largest size that a new domain promises, and up to which sizes are drawn, by how many there are."""


def write(root: Path, files: Mapping[str, str]) -> list[Path]:
    """Writes a new assignment's files below `root`, beside others. Raises UsageError where one is there, or the domain
    makes no sense; then nothing is written."""
    paths = {root / name: text for name, text in files.items()}
    for path in paths:
        if path.exists():
            raise UsageError(f"{path} is there already")
    entries = {path.parent: _entry(text) for path, text in paths.items() if path.name == "domain.toml"}
    for path, text in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        is_handout = path.name == "README.md" and path.parent in entries
        path.write_text(handout(text, entries[path.parent]) if is_handout else text, encoding="utf-8")
    return list(paths)


def _entry(domain: str) -> EntryDomain:
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(domain)
        file.flush()
        try:
            return next(iter(load(Path(file.name)).values()))
        except DomainError as error:
            raise UsageError(str(error).partition(": ")[2]) from None


def like(id: str, other: Assignment) -> dict[str, str]:
    """The files of a new assignment that begins as a copy of another, with its entry called `id`."""
    folders = {"assignments": other.folder, **({"solutions": other.solutions} if other.solutions else {})}
    return {
        f"{half}/{id}/{file.name}".replace(f"/test_{other.id}", f"/test_{id}"): _renamed(file, other, id)
        for half, folder in folders.items()
        for file in sorted(path for path in folder.iterdir() if path.is_file())
    }


def _renamed(file: Path, other: Assignment, id: str) -> str:
    """The file's text with another name of the entry, but for a function of torch that is called the same."""
    entry, text = re.escape(other.entry), file.read_text(encoding="utf-8")
    return re.sub(rf"(?<![\w.]){entry}\b|(?<=submission\.){entry}\b", id, text)


def from_reference(id: str, found: Signature, reference: str) -> dict[str, str]:
    """The files of a new assignment whose entry computes what the function `found.name` of a text does."""
    words = {
        "ID": id, "ENTRY": found.name, "SUMMARY": found.summary, "TITLE": id.replace("_", " ").capitalize(),
        "ARGUMENTS": ", ".join(found.takes), "DOMAIN": "\n".join(_domain(found)), "BEGIN": BEGIN, "END": END,
        "ROW": found.named[0], "AROUND": ", ".join(f'"{name}": AROUND_POWERS' for name in found.named),
        "UP_TO": f", up_to={found.up_to}" if found.up_to else "",
        "CLAIM": f", {found.up_to.partition('(')[0]}" if found.up_to else "",
    }  # fmt: skip
    files = {f"assignments/{id}/reference.py": _needed(reference, found.name)}
    for template in sorted(Path(__file__).with_name("template").glob("*.txt")):
        half = "solutions" if template.stem in STAFF else "assignments"
        name = STAFF.get(template.stem, template.stem).replace("ID", id)
        text = re.sub(r"@(\w+)@", lambda match: words.get(match[1], match[0]), template.read_text(encoding="utf-8"))
        files[f"{half}/{id}/{name}"] = text
    files[f"assignments/{id}/starter.py"] = starter(files[f"solutions/{id}/solution.py"], words["TITLE"])
    page = f"assignments/{id}/README.md"
    files[page] = files[page].replace("@CHECKS@", _checks(files[f"assignments/{id}/test_{id}.py"]))
    return files


def _needed(text: str, name: str) -> str:
    """A reference's text without functions and classes that `name` does not need: students read what is left."""
    tree, lines = ast.parse(text), text.splitlines(keepends=True)
    own = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    names_in = lambda node: {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    needed, new = set[str](), {name}.union(*(names_in(node) for node in tree.body if node not in own))
    while new := new & {node.name for node in own} - needed:
        needed |= new
        new = set[str]().union(*(names_in(node) for node in own if node.name in new))
    for node in reversed([node for node in own if node.name not in needed]):
        first = min(part.lineno for part in (node, *node.decorator_list)) - 1
        while first and not lines[first - 1].partition("#")[0].strip():
            first -= 1  # a comment above it is about it
        del lines[first : node.end_lineno]
    return "".join(lines)


def _checks(tests: str) -> str:
    return "\n".join(f"| {title} | {points:g} |" for title, points in titles_and_points(tests_of(ast.parse(tests))))


def _domain(found: Signature) -> Iterator[str]:
    yield f"[{found.name}]"
    yield f"arguments = {_toml(found.arguments)}"
    if found.results:
        yield f"result = {_toml(found.results[0] if len(found.results) == 1 else found.results)}"
    if found.limits:
        yield f"limits = {_toml(found.limits)}"
    if any(table["dtype"] == "T" for table in found.tensors.values()):
        yield f'\n[{found.name}.dtypes]\nT = ["float32", "float16", "bfloat16"]'
    yield f"\n[{found.name}.sizes]"
    drawn = DRAWN[min(len(found.sizes), len(DRAWN)) - 1]
    for name in found.sizes:
        key, dims = ('"..."', "dims = [0, 3], ") if name == ANY_DIMENSIONS else (name, "")
        yield f"{key} = {{ {dims}most = {MOST}, drawn = {drawn} }}"
    for kind, tables in (("tensors", found.tensors), ("scalars", found.scalars)):
        for name, table in tables.items():
            yield f"\n[{found.name}.{kind}.{name}]"
            yield from (f"{key} = {_toml(value)}" for key, value in table.items())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
