"""Runs a submission's top-level statements one by one, in a module of their own.

Definitions must work, but for those that need a package which is not installed here. An experiment (anything else)
that cannot run here, because it reads a value or fails, is left out with a note: a student's
`print(torch.max(...))` below the kernel is no reason to reject the kernel.
"""

import __future__

import ast
import functools
import importlib.util
import inspect
import linecache
import os
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from triton import KernelInterface

from gradekit.origins import TO_THE_SYSTEM
from gradekit.tracer.errors import ReadsValues, Refusal, TimeUp, line_of, refusal

MODULE = "submission"
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
NEEDED = (*SCOPES, ast.Import, ast.ImportFrom)


_MOST_NOTED = 20  # of what a file asks of the system
_OF_PACKAGES = re.compile(rf"^<frozen|-packages/|^{re.escape(str(Path(__file__).parents[1]))}/")


@dataclass
class LoadedModule:
    """A submission whose statements have run: its `module`, the `path` of its text, and `notes` on what was left out.

    `missing` has, for a name that a left-out statement would have defined, the note on the failure behind it; `names`
    are all that the submission defines itself. `accepted` is the function that was last called, how many arguments it
    took, and which of them by name. `asked` is what has turned to the system: line, event, words. `calling` says how
    entries take arguments, as `gradekit.sandbox.Tracer` has it.
    """

    module: types.ModuleType
    path: str
    asked: list[tuple[int, str, str]]
    notes: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    accepted: tuple[Any, int, list[str]] | None = None
    calling: dict[str, dict[str, Any]] = field(default_factory=dict)

    def functions(self) -> dict[str, tuple[int, int]]:
        """Public callables that the submission itself makes, with the number of required and of all parameters."""
        values = {name: vars(self.module).get(name) for name in self.names if not name.startswith("_")}
        return {name: parameter_counts(value) for name, value in values.items() if _is_function(value)}

    def explain(self, found: Refusal) -> Refusal:
        """Puts, before an error about a name that is not defined, that the statement which defines it was left out."""
        match = re.search(r"NameError: (?:global )?(?:name )?'?(\w+)'? is not defined", found.message)
        note = self.missing.get(match[1]) if match else None
        return replace(found, message=f"{note}\n{found.message}") if note else found


def load(text: str, directory: Path) -> LoadedModule:
    """Runs `text`, written to a file in `directory` first, because Triton reads a kernel's source from its file. Raises
    Refusal for a syntax error, for an import, function or class that fails, and where time is up."""
    path = str(directory / "submission.py")
    Path(path).write_text(text, encoding="utf-8")
    tree = _parse(text, path)
    linecache.checkcache(path)
    if "helion" in text and "helion" not in sys.modules and importlib.util.find_spec("helion") is None:
        sys.modules |= _parts_of_helion()
    module = types.ModuleType(MODULE)
    module.__file__ = path
    sys.modules[MODULE] = module
    names = [name for statement in tree.body for name in _assigned(statement)]
    loaded = LoadedModule(module, path, _asked_by(path), names=names)
    flags = _future_flags(tree)
    loaded.asked.clear()
    for statement in tree.body:
        _run(statement, loaded, flags)
    loaded.notes += dict.fromkeys(f"line {line} turned to the system ({what})" for line, _, what in loaded.asked)
    return loaded


@functools.cache
def _asked_by(path: str) -> list[tuple[int, str, str]]:
    """What the file `path` asks of the system from now on; what imports and packages ask for is not its own."""
    asked: list[tuple[int, str, str]] = []

    def hook(event: str, given: tuple[Any, ...]) -> None:
        is_read = event == "open" and not given[2] & (os.O_WRONLY | os.O_RDWR)
        if event not in TO_THE_SYSTEM or is_read or len(asked) == _MOST_NOTED:
            return
        frame = sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename != path and not _OF_PACKAGES.search(frame.f_code.co_filename):
            frame = frame.f_back
        if frame.f_code.co_filename == path:
            asked.append((frame.f_lineno, event, f"open {given[0]!r}, to write" if event == "open" else event))

    sys.addaudithook(hook)  # for good: there is no way to take one back
    return asked


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


def _with_members_asked(statement: ast.stmt) -> ast.stmt:
    """With tuples in place of the sets of constants that something is looked for in: a hash does not remember the size
    that it is of, and comparisons do."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Compare) and isinstance(node.ops[-1], (ast.In, ast.NotIn)):
            match node.comparators[-1]:
                case ast.Set(elts=members) as found if all(isinstance(one, ast.Constant) for one in members):
                    node.comparators[-1] = ast.copy_location(ast.Tuple(members, ast.Load()), found)
    return statement


def _run(statement: ast.stmt, loaded: LoadedModule, flags: int) -> None:
    try:
        tree = ast.Module([_with_members_asked(statement)], [])
        code = compile(tree, loaded.path, "exec", flags=flags, dont_inherit=True)
        exec(code, vars(loaded.module))  # noqa: S102  (this process is for nothing else)
    except TimeUp as error:
        raise refusal(error, loaded.path, "while the file was loaded") from None
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  (a submission may raise anything)
        if isinstance(statement, NEEDED) and not _can_do_without(error, loaded):
            found = refusal(error, loaded.path, "while the file was loaded")
            raise replace(found, line=found.line or statement.lineno) from None
        _leave_out(statement, error, loaded)


def _can_do_without(error: BaseException, loaded: LoadedModule) -> bool:
    """A package that is not installed here (for plots and tables, mostly), or a definition that needs one."""
    return isinstance(error, ModuleNotFoundError) or (isinstance(error, NameError) and error.name in loaded.missing)


def _leave_out(statement: ast.stmt, error: BaseException, loaded: LoadedModule) -> None:
    line = line_of(error, loaded.path) or statement.lineno
    reason = error.short if isinstance(error, ReadsValues) else f"{type(error).__name__}: {error}".partition("\n")[0]
    note = f"line {statement.lineno} was left out ({reason})"
    if line != statement.lineno:
        note = f"line {statement.lineno} was left out (at line {line}, {reason})"
    loaded.notes.append(note)
    first = loaded.missing.get(error.name or "") if isinstance(error, NameError) else None
    loaded.missing.update(dict.fromkeys(_defined(statement), first or note))


def _defined(statement: ast.stmt) -> Iterator[str]:
    yield from _assigned(statement)
    for node in _without_bodies(statement):
        if isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def _assigned(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement defines, those inside its branches included, but not what is local to a function."""
    for node in _without_bodies(statement):
        if isinstance(node, SCOPES):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _without_bodies(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(node, (*SCOPES, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from _without_bodies(child)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, (type, types.ModuleType, KernelInterface))


# --- where helion is not installed ------------------------------------------------------------------------------------


class _PartOfHelion(types.ModuleType):
    """A module that has what Triton code generated by helion takes from it; for all else it tells the way out."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what is asked of any module
            raise AttributeError(name)
        raise ModuleNotFoundError(
            f"`{self.__name__}.{name}` is not there, for helion is not installed here. Hand in the Triton code that it "
            "makes of your kernel: print(kernel.bind(arguments).to_triton_code())"
        )


def _parts_of_helion() -> dict[str, types.ModuleType]:
    whole, runtime, language = parts = [_PartOfHelion(f"helion{name}") for name in ("", ".runtime", ".language")]
    vars(whole).update(runtime=runtime, language=language, __path__=[])
    vars(runtime).update(default_launcher=_launch, get_num_sm=_processors)
    vars(runtime).update(get_num_xcd=lambda device: 1, set_triton_allocator=lambda: None)
    return {part.__name__: part for part in parts}


def _launch(kernel: Any, grid: tuple[int, ...], *args: Any, ptx_options: str | None = None, **options: Any) -> Any:
    return kernel[grid](*args, **options, **({"ptx_options": ptx_options} if ptx_options else {}))


def _processors(device: Any, *, reserved_sms: int = 0) -> int:
    return max(torch.cuda.get_device_properties(device).multi_processor_count - reserved_sms, 1)
