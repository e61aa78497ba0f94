"""The body of each loop is read once, where Triton's front end reads it twice.

Triton makes the operations of a loop's body to see which variables it changes, throws them away, and makes them again
with these variables as the loop's own. Here the variables are foretold, as those that live before the loop and are
assigned in its body, and what the body has made of them is looked at afterwards. What comes otherwise than foretold, every
error, and every word that a kernel prints while it is compiled, is left to Triton: `once` then begins anew.
"""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import triton
from triton.compiler import code_generator
from triton.compiler.code_generator import CodeGenerator, flatten_values_to_ir
from triton.language.semantic import TritonSemantic
from triton.runtime.jit import JITFunction

RELEASES = ("3.6.", "3.9.")
"""Those whose front end is known to do no more than that."""

HINTS = ("multiple_of", "max_contiguous", "max_constancy")
"""What marks a value that is there already: one from before the loop, when a body is read for the first time."""

_ASSIGNED = "_gradekit_assigned"
"""The attribute of a loop, as parsed, that remembers what its body assigns."""


class _Reading(threading.local):
    """The kernel that is being read, if it is read once: whether a loop was `spared` a second time, or was `otherwise`
    than foretold; how many `hints` were given; the variables `foretold` for bodies that come next, by the body's id; the
    values that were `there` before the bodies that are open."""

    def __init__(self) -> None:
        self.active = False
        self.begin()

    def begin(self) -> None:
        self.spared = self.otherwise = False
        self.hints = 0
        self.foretold: dict[int, list[str]] = {}
        self.there: list[set[int]] = []


_reading = _Reading()
_by_triton: dict[int, JITFunction] = {}
"""Kernels that were otherwise than foretold, by their ids: Triton alone reads them from then on."""


def once(function: JITFunction, read: Callable[[], Any]) -> Any:
    """What `read`, which makes a module of the kernel `function`, gives."""
    if _reading.active or id(function) in _by_triton:
        return read()
    said = io.StringIO()
    _reading.begin()
    _reading.active = True
    try:
        with contextlib.redirect_stdout(said):
            module = read()
        if not (_reading.spared and said.getvalue()):
            return module
    except Exception:
        if not _reading.spared:
            raise
    finally:
        _reading.active = False
        if not _reading.spared:
            sys.stdout.write(said.getvalue())
    if _reading.otherwise:
        _by_triton[id(function)] = function
    return read()


def install() -> None:
    """Has it so from now on, where the release is known."""
    if not triton.__version__.startswith(RELEASES):
        return
    for name, ours in (
        ("_find_carries", _foretell),
        ("visit_compound_statement", _visit_body),
        ("_maybe_set_loc_to_name", _name),
    ):
        setattr(CodeGenerator, name, _while_active(getattr(CodeGenerator, name), ours))
    for name in HINTS:
        setattr(TritonSemantic, name, _counted(getattr(TritonSemantic, name)))


def _while_active(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(*args: Any, **named: Any) -> Any:
        return ours(theirs, *args, **named) if _reading.active else theirs(*args, **named)

    return chosen


def _counted(hint: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*args: Any, **named: Any) -> Any:
        _reading.hints += 1
        return hint(*args, **named)

    return counted


def _require(foretold: bool) -> None:
    if not foretold:
        _reading.otherwise = True
        raise RuntimeError("otherwise than foretold")


def _foretell(
    theirs: Any, generator: CodeGenerator, loop: Any, live: dict[str, Any], ignore: Sequence[str] = ()
) -> tuple[list[str], list[Any], list[Any]]:
    """The names of the loop's variables, the values that they begin with, and their types; none of these values is
    another variable's too."""
    _reading.spared = True
    assigned = _assigned(loop)
    names = [name for name in live if name in assigned and name not in ignore]
    values = [live[name] for name in names]
    _require(all(map(code_generator._is_triton_value, values)))
    handles, count = flatten_values_to_ir(values), Counter(_ids(live.values()))
    _require(all(count[handle.id()] == 1 for handle in handles))
    _reading.foretold[id(loop.body)] = names
    generator.lscope, generator.local_defs = live.copy(), {}
    return names, handles, [value.type for value in values]


def _ids(values: Iterable[Any]) -> list[int]:
    return [handle.id() for handle in flatten_values_to_ir(filter(code_generator._is_triton_value, values))]


def _assigned(loop: Any) -> frozenset[str]:
    found = getattr(loop, _ASSIGNED, None)
    if found is None:
        found = frozenset(_targets(loop))
        setattr(loop, _ASSIGNED, found)
    return found


def _targets(loop: Any) -> list[str]:
    parts = [part for statement in loop.body for part in ast.walk(statement)]
    _require(
        not any(isinstance(part, ast.AnnAssign) and part.value is None for part in parts)
    )  # it is about a later one
    return [part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def _visit_body(theirs: Callable[..., Any], generator: CodeGenerator, statements: Any) -> Any:
    names = _reading.foretold.pop(id(statements), None)
    if names is None:  # not of a loop
        return theirs(generator, statements)
    hints, before = _reading.hints, {name: generator.lscope[name] for name in names}
    _reading.there.append(set(_ids(generator.lscope.values())))
    theirs(generator, statements)
    _reading.there.pop()
    _require(not names or hints == _reading.hints)
    for name, value in before.items():
        after = generator.lscope[name]
        generator._verify_loop_carried_variable(name, after, value)
        _require(flatten_values_to_ir([after]) != flatten_values_to_ir([value]))


def _name(theirs: Callable[..., Any], generator: CodeGenerator, value: Any, name: str) -> None:
    """A name is added to those that the value has: twice, if Triton comes by twice."""
    if _reading.there:
        ids = _ids([value]) if code_generator._is_triton_value(value) else [value.id()]
        _require(not any(number in there for number in ids for there in _reading.there))
    theirs(generator, value, name)
