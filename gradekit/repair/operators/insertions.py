"""Statements added, as an update that is missing at the end of a loop's step, or moved to before the loop."""

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

from gradekit.interpreter.tile_values import ValueKind
from gradekit.repair.operators.changes import Change, ChangeKind, ChangeSite, at_once
from gradekit.repair.operators.words import words
from gradekit.repair.work import Limit
from gradekit.source.kernel import Loop, counter_of, names_of_steps, simple, target_of, value_of


def insertions(site: ChangeSite) -> Iterator[Change]:
    """All of a function: of each way in each loop in turn, its likeliest first."""
    loops = [loop for loop in site.kernel.loops if loop in site.watched.names]
    ways = (_set_back, _kept, _stale, _moved, _begun_anew)
    in_turn = itertools.zip_longest(*(way(site, loop) for loop in loops for way in ways))
    every = (one for turn in in_turn for one in turn if one is not None)
    yield from itertools.islice(every, Limit.INSERTIONS)


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


def _stale(site: ChangeSite, loop: Loop) -> Iterator[Change]:
    """A statement before the loop, such as `inside = i < n`, made anew in each step where the steps change `i`; or with
    `j` for `i`, where each step computes a `j` from `i`."""
    made, block = _made_in(loop), loop.body
    used_from = lambda name: next((at for at, one in enumerate(block) if name in site.kernel.names(one)), len(block))
    for old in (one for one in site.kernel.statements if isinstance(one, ast.Assign) and one.lineno < loop.lineno):
        name, of, text = target_of(old), site.kernel.names(old.value), site.source.of(old)
        if not name or name in made or used_from(name) == len(block) or "\n" in text:
            continue
        news = [(text, place, block[0], True) for place in of if place in made]
        for one in block[: used_from(name)]:
            place = target_of(one)
            pieces = of & site.kernel.names(one.value) if isinstance(one, ast.Assign) and place else ()
            kind = _kind_after(site, place, loop)
            alike = [piece for piece in sorted(pieces) if _kind_after(site, piece, loop) == kind]
            news += [(re.sub(rf"\b{piece}\b", place, text), place, one, False) for piece in alike]
        for new, place, beside, is_first in news:
            there = site.source.of(beside)
            if simple(beside) and "\n" not in there:
                says = words("stale", name=name, loop=loop.lineno, place=place)
                joined = f"{new}; {there}" if is_first else f"{there}; {new}"
                change = site.change(ChangeKind.UPDATE, beside, joined, says)
                yield replace(change, sentence=f"Line {old.lineno} {says[0]}", at=old.lineno)


def _moved(site: ChangeSite, loop: Loop) -> Iterator[Change]:
    """`p += BLOCK * stride` for a tile of pointers that is the same in every step, `k += BLOCK` for one of indices, and
    the masks anew that were made of these before the loop."""
    made = _made_in(loop)
    like = {site.source.of(s.value) for s in made.values() if isinstance(s, ast.AugAssign)}
    known = {name for name, kind in site.names(loop.body[-1]).items() if kind.of == "integer" and not kind.shape}
    known.discard(counter_of(loop))
    for name in site.kernel.values:
        kind = _kind_after(site, name, loop)
        masks = _masks_of(site, name, loop)
        is_used = bool(masks) or any(name in site.kernel.names(part) for part in loop.body)
        is_place = kind is not None and (kind.of.startswith("pointer") or kind.of == "integer" and bool(kind.shape))
        if name in made or not is_place or not is_used:
            continue
        behind = [one for one in site.kernel.strides if one in site.kernel.origins(ast.Name(name, ast.Load()))]
        widths = dict.fromkeys(one for one in (*sorted(names_of_steps(loop)), *site.kernel.constexprs) if one in known)
        ways = [*like, *(f"{width} * {stride}" for width in widths for stride in behind), *widths]
        says = words("advanced-mask", names=", ".join(masks)) if masks else words("advanced", name=name)
        for way in dict.fromkeys(ways):
            yield from _put(site, loop, "; ".join([f"{name} += {way}", *masks.values()]), says, loop)


def _masks_of(site: ChangeSite, name: str, loop: Loop) -> dict[str, str]:
    """The masks that are made of a name before a loop, and stay the same in its steps: what makes them."""
    made = (one for one in site.kernel.statements if isinstance(one, ast.Assign) and one.lineno < loop.lineno)
    mine = {target_of(one): site.source.of(one) for one in made if name in site.kernel.names(one.value)}
    used = {one for part in loop.body for one in site.kernel.names(part)} - _made_in(loop).keys()
    is_mask = lambda one: (kind := _kind_after(site, one, loop)) is not None and kind.of == "condition"
    return {one: text for one, text in mine.items() if one in used and is_mask(one) and "\n" not in text}


def _begun_anew(site: ChangeSite, loop: Loop) -> Iterator[Change]:
    """`total = tl.zeros(...)` before a loop that goes on from what another has left, or in each step of one; of several
    that go on in each step, each and all at once."""
    block, made = getattr(site.kernel.parents[loop], "body", []), _made_in(loop)
    before = [one for one in site.kernel.statements if one.lineno < loop.lineno and isinstance(one, ast.Assign)]
    first = {target_of(one): one for one in reversed(before) if target_of(one) in made}
    begun = [one for one in first.values() if not site.kernel.names(one.value) & {*site.kernel.values}][::-1]
    earlier = [other for other in site.kernel.loops if other.lineno < loop.lineno and loop in block[1:]]
    is_again = lambda one: any(one.lineno < other.lineno and target_of(one) in _made_in(other) for other in earlier)
    again = [*filter(is_again, begun)]
    in_steps = [one for one in begun if one not in again]
    groups = [([one], block[block.index(loop) - 1]) for one in again] + [([one], loop.body[0]) for one in in_steps]
    for group, place in [*groups, *([(in_steps, loop.body[0])] if len(in_steps) > 1 else [])]:
        texts, old = [site.source.of(one) for one in group], site.source.of(place)
        if simple(place) and "\n" not in "".join(texts):
            names = " and ".join(f"`{target_of(one)}`" for one in group)
            says = words("begun-once", names=names, loop=loop.lineno)
            new = "; ".join([old, *texts] if group[0] in again else [*texts, old])
            change = site.change(ChangeKind.UPDATE, place, new, says)
            yield replace(change, sentence=f"Line {group[0].lineno} {says[0]}", at=group[0].lineno)


def _set_back(site: ChangeSite, loop: Loop) -> Iterator[Change]:
    """`total = tl.zeros(...)` before a loop, in each step of which it begins anew; of several, each and all at once."""
    block, of = getattr(site.kernel.parents[loop], "body", []), site.kernel.names
    inside = [one for part in loop.body for one in ast.walk(part) if isinstance(one, (ast.Assign, ast.AugAssign))]
    goes_on = {target_of(one) for one in inside if isinstance(one, ast.AugAssign) or target_of(one) in of(one.value)}
    begun = [one for one in loop.body if isinstance(one, ast.Assign) and target_of(one) in goes_on]
    begun = [one for one in begun if not of(one.value) & {*_made_in(loop), counter_of(loop)}]
    before = [one for one in block[: block.index(loop)] if simple(one)][-1:] if loop in block else []
    for group in [*([one] for one in begun), *([begun] if len(begun) > 1 else [])] if before else []:
        texts = [site.source.of(one) for one in (*before, *group)]
        names = " and ".join(f"`{target_of(one)}`" for one in group)
        says = words("set-back-first", names=names, loop=loop.lineno)
        dropped = [site.change(ChangeKind.UPDATE, one, "pass", says) for one in group]
        if "\n" not in "".join(texts):
            yield at_once([*dropped, site.change(ChangeKind.UPDATE, before[0], "; ".join(texts), ("", ""))])


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
