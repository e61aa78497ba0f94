"""Runs a submission's top-level statements one by one, in a module of their own.

Definitions must work. An experiment (anything else) that cannot run here, because it reads a value or fails, is left
out with a note: a student's `print(torch.max(...))` below the kernel is no reason to reject the kernel.
"""

from __future__ import annotations

import __future__

import ast
import inspect
import linecache
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradekit.tracer.errors import Refusal, TimeUp, line_of, refusal

MODULE = "submission"
NEEDED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


@dataclass
class Loaded:
    """A submission whose statements have run: its `module`, the `path` of its text, and `notes` on what was left out.

    `missing` tells, for a name that a left-out statement would have assigned, which note says so.
    """

    module: types.ModuleType
    path: str
    notes: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def functions(self) -> dict[str, tuple[int, int]]:
        """Public callables that the submission itself makes, with the number of required and of all parameters."""
        names = [name for name, value in vars(self.module).items() if self._is_own(name, value)]
        return {name: parameter_counts(getattr(self.module, name)) for name in names}

    def _is_own(self, name: str, value: Any) -> bool:
        if name.startswith("_") or not callable(value) or isinstance(value, type):
            return False
        return getattr(value, "__module__", MODULE) in (MODULE, None) and not hasattr(value, "arg_names")


def load(text: str, directory: Path) -> Loaded:
    """Runs `text`, written to a file in `directory` first, because Triton reads a kernel's source from its file.

    Raises:
        Refusal: a syntax error; an import, function or class that fails; time is up.
    """
    path = str(directory / "submission.py")
    Path(path).write_text(text, encoding="utf-8")
    tree = _parse(text, path)
    linecache.checkcache(path)
    module = types.ModuleType(MODULE)
    module.__file__ = path
    sys.modules[MODULE] = module
    loaded = Loaded(module, path)
    flags = _future_flags(tree)
    for statement in tree.body:
        _run(statement, loaded, flags)
    return loaded


def parameter_counts(function: Any) -> tuple[int, int]:
    """How many positional parameters are required, and how many there are; -1 for any number."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0, -1
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 0, -1
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return sum(p.default is p.empty for p in positional), len(positional)


def _parse(text: str, path: str) -> ast.Module:
    try:
        return ast.parse(text, path)
    except SyntaxError as error:
        raise Refusal("syntax-error", f"SyntaxError: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refusal("syntax-error", f"Python cannot read this file: {error}") from None


def _future_flags(tree: ast.Module) -> int:
    flags = 0
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                flags |= getattr(getattr(__future__, alias.name, None), "compiler_flag", 0)
    return flags


def _run(statement: ast.stmt, loaded: Loaded, flags: int) -> None:
    try:
        code = compile(ast.Module([statement], []), loaded.path, "exec", flags=flags, dont_inherit=True)
        exec(code, vars(loaded.module))
    except TimeUp as error:
        raise refusal(error, loaded.path, "while the file was loaded") from None
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if isinstance(statement, NEEDED):
            raise _load_error(statement, error, loaded) from None
        _leave_out(statement, error, loaded)


def _load_error(statement: ast.stmt, error: BaseException, loaded: Loaded) -> Refusal:
    found = refusal(error, loaded.path, "while the file was loaded")
    return Refusal(found.cause, found.message, found.line or statement.lineno, found.detail)


def _leave_out(statement: ast.stmt, error: BaseException, loaded: Loaded) -> None:
    line = line_of(error, loaded.path) or statement.lineno
    reason = f"{type(error).__name__}: {error}".partition("\n")[0]
    note = f"line {statement.lineno} was left out ({reason})"
    if line != statement.lineno:
        note = f"line {statement.lineno} was left out (at line {line}, {reason})"
    loaded.notes.append(note)
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            loaded.missing[node.id] = note
