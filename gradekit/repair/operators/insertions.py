"""Statements added: an update that is missing at the end of a loop's step, and what a similar one has beside it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gradekit.interpreter.tile_values import ValueKind
from gradekit.repair.operators.changes import Change, ChangeKind, ChangeSite
from gradekit.repair.operators.together import form_of
from gradekit.repair.operators.words import words
from gradekit.repair.work import Limit
from gradekit.source.kernel import Loop, counter_of, names_of_steps, simple, target_of, value_of
from gradekit.submission.parsed_source import shown


def insertions(site: ChangeSite) -> Iterator[Change]:
    """All of a function, the likeliest first."""
    loops = [loop for loop in site.kernel.loops if loop in site.watched.names]
    every = [one for loop in loops for one in (*_kept(site, loop), *_moved(site, loop), *_begun_anew(site, loop))]
    yield from every[: Limit.INSERTIONS]
    yield from itertools.islice(_as_beside_another(site), Limit.INSERTIONS)


def _as_beside_another(site: ChangeSite) -> Iterator[Change]:
    """`rest = rest // n2` behind `i2 = rest % n2`, where `rest = place // n3` stands beside `i3 = place % n3`: the
    statement that a line's counterpart has beside it, with the names of this line."""
    walked = [one for one in site.kernel.statements if one in site.watched.names and target_of(one) and simple(one)]
    forms = {one: form_of(one) for one in walked}
    names = {one: [part.id for part in ast.walk(one) if isinstance(part, ast.Name)] for one in walked}
    there = {site.source.of(one) for one in walked}
    for (one, beside), like in itertools.product(itertools.pairwise(walked), walked):
        to = dict(zip(names[one], names[like], strict=False))
        is_alike = like is not one and forms[like] == forms[one] and [to[name] for name in names[one]] == names[like]
        if not is_alike or not set(names[one]) & set(names[beside]):
            continue
        new = _renamed(site.source.of(beside), to)
        if new not in there and "\n" not in new:
            says = words("beside", new=new, it=shown(site.source.of(one)), beside=shown(site.source.of(beside)))
            yield site.change(ChangeKind.UPDATE, like, f"{site.source.of(like)}; {new}", says)


def _renamed(text: str, to: Mapping[str, str]) -> str:
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda name: to.get(name[0], name[0]), text)


def _kept(site: ChangeSite, loop: Loop) -> Iterator[Change]:
    """`top = new_top` at the end of a step: the next step goes on with the new value."""
    made = _made_in(loop)
    for name, values in site.kernel.values.items():
        if name in made or not any(name in site.kernel.names(part) for part in loop.body):
            continue
        for other, statement in made.items():
            value = value_of(statement)
            is_next = value is not None and not isinstance(value, ast.Name) and name in site.kernel.names(value)
            if is_next and values and _kind_after(site, name, loop) == _kind_after(site, other, loop) is not None:
                says = words("kept", name=name, other=other)
                yield from _put(site, loop, f"{name} = {other}", says, statement)


def _moved(site: ChangeSite, loop: Loop) -> Iterator[Change]:
    """`p += BLOCK * stride` for a tile of pointers that is the same in every step, `k += BLOCK` for one of indices."""
    made = _made_in(loop)
    like = {site.source.of(s.value) for s in made.values() if isinstance(s, ast.AugAssign)}
    known = {name for name, kind in site.names(loop.body[-1]).items() if kind.of == "integer" and not kind.shape}
    known.discard(counter_of(loop))
    for name in site.kernel.values:
        kind = _kind_after(site, name, loop)
        is_used = any(name in site.kernel.names(part) for part in loop.body)
        is_place = kind is not None and (kind.of.startswith("pointer") or kind.of == "integer" and bool(kind.shape))
        if name in made or not is_place or not is_used:
            continue
        behind = [one for one in site.kernel.strides if one in site.kernel.origins(ast.Name(name, ast.Load()))]
        widths = dict.fromkeys(one for one in (*sorted(names_of_steps(loop)), *site.kernel.constexprs) if one in known)
        ways = [*like, *(f"{width} * {stride}" for width in widths for stride in behind), *widths]
        for way in dict.fromkeys(ways):
            yield from _put(site, loop, f"{name} += {way}", words("advanced", name=name), loop)


def _begun_anew(site: ChangeSite, loop: Loop) -> Iterator[Change]:
    """`total = tl.zeros(...)` before a loop that goes on from what another has left, or in each step of one."""
    block = getattr(site.kernel.parents[loop], "body", [])
    before = [one for one in site.kernel.statements if one.lineno < loop.lineno and isinstance(one, ast.Assign)]
    for name in _made_in(loop):
        begun = next((one for one in before if target_of(one) == name), None)
        if begun is None or site.kernel.names(begun.value) - {*site.kernel.all_params}:
            continue
        earlier = [other for other in site.kernel.loops if begun.lineno < other.lineno < loop.lineno]
        is_again = loop in block[1:] and any(name in _made_in(other) for other in earlier)
        place = block[block.index(loop) - 1] if is_again else loop.body[0]
        text, old = site.source.of(begun), site.source.of(place)
        if simple(place) and "\n" not in text:
            says = words("begun-once", name=name, loop=loop.lineno)
            change = site.change(ChangeKind.UPDATE, place, f"{old}; {text}" if is_again else f"{text}; {old}", says)
            yield replace(change, sentence=f"Line {begun.lineno} {says[0]}", at=begun.lineno)


def _put(site: ChangeSite, loop: Loop, new: str, says: tuple[str, str], blamed: ast.stmt) -> Iterator[Change]:
    """A statement at the end of a step, with a sentence about another line."""
    last = loop.body[-1]
    if simple(last):
        change = site.change(ChangeKind.UPDATE, last, f"{site.source.of(last)}; {new}", says)
        yield replace(change, sentence=f"Line {blamed.lineno} {says[0]}", at=blamed.lineno)


def _made_in(loop: Loop) -> dict[str, ast.stmt]:
    """The names that a loop gives values, with the first statement that does."""
    found: dict[str, ast.stmt] = {}
    for part in ast.walk(loop):
        if isinstance(part, (ast.Assign, ast.AugAssign)) and (name := target_of(part)):
            found.setdefault(name, part)
    return found


def _kind_after(site: ChangeSite, name: str, loop: Loop) -> ValueKind | None:
    """The kind of a name's value at the end of a step; None where it has none."""
    return site.names(loop.body[-1]).get(name)
