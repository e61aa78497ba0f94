"""What TOML files may say, as JSON Schemas, for editors too: an assignment's (`domain.json`, `assignment.json`) and a
course's (`course.json`).

The keywords that these schemas use are checked here, with messages for people. The schemas are ordinary ones (draft
2020-12): a test holds the answers against those of the package jsonschema, which would take a tenth of a second to
import and say "Additional properties are not allowed".

No torch: reading an assignment costs nothing but the file. What no schema can say (a name that must be declared
elsewhere) is a `Problem` too, found by whoever reads the file.
"""

import contextlib
import difflib
import functools
import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Schema = Mapping[str, Any]
Place = tuple[str | int, ...]  # where something stands in a file's data: keys, and places in lists counted from 0


@dataclass(frozen=True)
class Problem:
    """Something that a file must not say, at a `place` of its data: half a sentence that follows the place's name."""

    place: Place
    message: str


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """The schema of files called `name`.toml."""
    found = json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def read(path: Path, error: type[Exception]) -> tuple[str, dict[str, Any]]:
    """The text of the TOML file at `path`, and what it holds. Raises `error` where it cannot be read so."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        return text, tomllib.loads(text)
    except OSError as failed:
        raise error(f"{path} cannot be opened: {failed.strerror}") from None
    except UnicodeDecodeError as failed:
        raise error(f"{path} is not valid TOML: {failed}") from None
    except tomllib.TOMLDecodeError as failed:
        said = str(failed).replace("at end of document", f"in what begins at line {_last_whole(text) + 1}")
        raise error(f"{path} is not valid TOML: {said}") from None


def _last_whole(text: str) -> int:
    """How many lines of a text that is no TOML are TOML by themselves: with the next begins what cannot be read."""
    lines = text.splitlines()
    for count in reversed(range(len(lines))):
        with contextlib.suppress(tomllib.TOMLDecodeError):
            tomllib.loads("\n".join(lines[:count]))
            return count
    return 0


def problems(data: Any, schema: Schema) -> Iterator[Problem]:
    """What of `data` does not fit the schema, in the order of the data."""
    return _problems(data, schema, schema, ())


def nearest(word: str, known: Collection[str]) -> str:
    """What to say behind a word that is none of those `known`: the nearest of them, or all."""
    closest = difflib.get_close_matches(word, known, n=1)
    if closest:
        return f"did you mean {closest[0]}?"
    return f"there {'is' if len(known) == 1 else 'are'} {', '.join(known) or 'none'}"


_TYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "object": (lambda value: isinstance(value, dict), "a table"),
    "array": (lambda value: isinstance(value, list), "a list"),
    "string": (lambda value: isinstance(value, str), "a string"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "integer": (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
    "number": (lambda value: isinstance(value, (int, float)) and not isinstance(value, bool), "a number"),
}


def _problems(data: Any, part: Schema, whole: Schema, place: Place) -> Iterator[Problem]:
    part = whole["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
    wanted = [part["type"]] if isinstance(part.get("type"), str) else part.get("type", [*_TYPES])
    if not any(_TYPES[name][0](data) for name in wanted):
        yield Problem(place, f"is {data!r}, but must be {' or '.join(_TYPES[name][1] for name in wanted)}")
    elif isinstance(data, dict):
        yield from _of_table(data, part, whole, place)
    elif isinstance(data, list):
        yield from _of_list(data, part, whole, place)
    else:
        yield from _of_value(data, part, place)


def _of_table(data: Mapping[str, Any], part: Schema, whole: Schema, place: Place) -> Iterator[Problem]:
    known, other = part.get("properties", {}), part.get("additionalProperties", {})
    for key, value in data.items():
        if key in known or other is not False:
            yield from _problems(value, known.get(key, other), whole, (*place, key))
        else:
            yield Problem((*place, key), f"is no key ({nearest(key, known)})")
    for key in part.get("required", []):
        if key not in data:
            closest = difflib.get_close_matches(key, [one for one in data if one not in known], n=1)
            yield Problem(place, f"has no {key}" + (f" (it has {closest[0]})" if closest else ""))


def _of_list(data: list[Any], part: Schema, whole: Schema, place: Place) -> Iterator[Problem]:
    least, most = part.get("minItems", 0), part.get("maxItems", len(data))
    if not least <= len(data) <= most:
        yield Problem(place, f"has {len(data)} items, but must have {_count(least, part.get('maxItems'))}")
    first = part.get("prefixItems", [])
    for number, item in enumerate(data):
        fits = first[number] if number < len(first) else part.get("items", {})
        yield from _problems(item, fits, whole, (*place, number))


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least}"
    return str(least) if least == most else f"{least} to {most}"


def _of_value(data: Any, part: Schema, place: Place) -> Iterator[Problem]:
    if "enum" in part and data not in part["enum"]:
        yield Problem(place, f"is {data!r}, which it cannot be ({nearest(str(data), part['enum'])})")
    elif "pattern" in part and isinstance(data, str) and not re.search(part["pattern"], data):
        known = f" ({nearest(data, part['examples'])})" if "examples" in part else ""
        yield Problem(place, f"is {data!r}, but must be {part.get('title', part['pattern'])}{known}")
    elif not isinstance(data, str) and not part.get("minimum", data) <= data <= part.get("maximum", data):
        most = f" to {part['maximum']}" if "maximum" in part else " or more"
        yield Problem(place, f"is {data!r}, but must be {part['minimum']}{most}")


# --- the line at which a place stands: tomllib, which reads the file, does not tell -----------------------------------

_WORD = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_WORD}(?:\s*\.\s*{_WORD})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")


def line_of(text: str, place: Place) -> int:
    """The line, from 1, of the key or the header at `place`, or of the nearest around it."""
    names = [str(part) for part in place]
    best, line = 0, 1
    for number, path in _keys(text):
        if path == names[: len(path)] and len(path) > best:
            best, line = len(path), number
    return line


def located(path: object, text: str, problem: Problem) -> str:
    """The problem as one sentence, with the file, the line and the place: "domain.toml:7: f.sizes.N has no most"."""
    named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem.place).lstrip(".")
    return f"{path}:{line_of(text, problem.place)}: {f'{named} {problem.message}'.lstrip()}"


def _keys(text: str) -> Iterator[tuple[int, list[str]]]:
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEADER.match(line):
            table = _split(match[1])
            yield number, table
        elif match := _KEY.match(line):
            yield number, [*table, *_split(match[1])]


def _split(dotted: str) -> list[str]:
    return [word.strip("\"'") for word in re.findall(_WORD, dotted)]
