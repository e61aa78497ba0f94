"""An exception that student code raised, as plain data: cause, message, the submission's line, and detail.

Causes are the values of gradekit.findings.Cause as text: this process may import nothing of gradekit but `program`.
"""

import ast
import re
import traceback
from dataclasses import asdict, dataclass
from typing import Any

from triton import CompilationError

from gradekit.compat.triton import CompileTimeAssertionFailure, definition_line, jit_functions
from gradekit.tracer import hints

COMPILATION = "compilation-error"
MESSAGE = 2000
DETAIL = 8000  # the most characters that are kept of what is said, and of what Triton or Python itself said


class ReadsValues(RuntimeError):
    """Host code asked for the value of a tensor on the GPU."""

    def __init__(self, what: str) -> None:
        self.short = f"{what} needs the values of a tensor"
        super().__init__(
            f"{what} needs the values of a tensor. While a submission is graded, its host code sees shapes, strides "
            "and dtypes, but no values: compute with them inside a kernel."
        )


class DeferredOperation(RuntimeError):
    """A tensor is used that torch has only marked as negated or conjugated (torch._neg_view, conj()): whoever reads its
    memory, as a kernel does, gets numbers without that."""

    def __init__(self, how: str) -> None:
        super().__init__(
            f"Computes with torch: a tensor is marked as {how} (as torch._neg_view and conj() do), which torch does "
            "where it is read. Compute that inside a kernel."
        )


class BeyondBudget(RuntimeError):
    """Compiling takes more than grading allows."""


class TimeUp(BaseException):
    """The time limit passed, while the package was imported that it names, if any. Not an Exception, so that `except
    Exception` in a submission does not swallow it."""


@dataclass(unsafe_hash=True)  # not frozen: a context manager sets the traceback of what passes through it
class Refusal(Exception):
    """Why a submission was not loaded or traced: `cause` is a Cause's value, `line` the submission's, 1-based."""

    cause: str
    message: str
    line: int | None = None
    detail: str = ""

    def as_data(self) -> dict[str, Any]:
        """The refusal as JSON data, within limits whatever the submission raised."""
        return asdict(self) | {"message": printable(self.message[:MESSAGE]), "detail": printable(self.detail[:DETAIL])}


class PassesFailed(RuntimeError):
    """The kernel passed Triton's front end and failed in MLIR; `said` is what MLIR wrote about it."""

    def __init__(self, kernel: str, said: str) -> None:
        super().__init__(f"Triton cannot compile `{kernel}`")
        self.kernel = kernel
        self.said = said


_CAUSES = {BeyondBudget: "budget-exceeded", DeferredOperation: "forbidden-op", ReadsValues: "reads-values"}


def refusal(error: BaseException, path: str, where: str = "") -> Refusal:
    """Explains `error`, raised by the submission whose text stands in the file `path`. `where` says what was going on
    ("while the file was loaded"); `line` is the innermost in the submission."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, (CompilationError, PassesFailed)):
        return _not_compiled(error, path)
    line = line_of(error, path)
    if isinstance(error, TimeUp):
        before = where and " " + where
        if package := str(error):
            return Refusal("timeout", f"Time is up{before}: importing {package} takes too long on this machine.", line)
        return Refusal("timeout", f"Time is up{before}: does a loop never end?", line)
    if cause := next((cause for kind, cause in _CAUSES.items() if isinstance(error, kind)), ""):
        return Refusal(cause, str(error), line)
    if isinstance(error, MemoryError) or re.search(r"can't allocate memory|not enough memory\b", str(error)):
        said = str(error).partition("\n")[0] or type(error).__name__
        return Refusal("out-of-memory", f"The host ran out of memory {where}: {said}", line)
    message = f"{type(error).__name__}: {_text(error)}" if str(error) else type(error).__name__
    return Refusal("exception", _with_hint(message), line, detail=own_traceback(error, path))


def _not_compiled(error: CompilationError | PassesFailed, path: str) -> Refusal:
    launched = line_of(error, path)
    if isinstance(error, PassesFailed):
        found = re.search(rf"{re.escape(path)}\W+(\d+):\d+", error.said)
        first = next((line for line in error.said.splitlines() if "error:" in line), "")
        message = f"{error}: {first.partition('error:')[2].strip() or 'a pass failed'}"
        return Refusal(COMPILATION, _with_hint(message), int(found[1]) if found else launched, error.said)
    chain = _chain(error)
    places = [place for place in (_place(link, path) for link in chain) if place is not None]
    kernel, line = places[-1] if places else ("the kernel", launched)
    said = next((link.error_message for link in reversed(chain) if link.error_message), _failed_assertion(error))
    message = ": ".join([f"Triton cannot compile `{kernel}`", _unwrapped(said)])
    if more := _explained(chain[-1], said, line):
        message = f"{message.rstrip('. ')}. {more}"
    return Refusal(COMPILATION, _with_hint(message), line, "\n\n".join(str(link) for link in chain))


def _chain(error: BaseException | None) -> list[CompilationError]:
    links = []
    while isinstance(error, CompilationError):
        links.append(error)
        error = error.__cause__
    return links


def _place(error: CompilationError, path: str) -> tuple[str, int] | None:
    for function in jit_functions():
        if function.fn.__code__.co_filename == path and function.src == error.src:
            line = definition_line(function) + getattr(error.node, "lineno", 1) - 1
            return function.fn.__name__, line
    return None


_OF_THE_HOST = r"Did you forget to add @triton\.jit|'NoneType' object has no attribute 'to_tensor\b"
"""What Triton says of a call of a function not its own; before 3.9, also where that calls a block's method."""


def _explained(error: CompilationError, said: str, line: int | None) -> str:
    """What the refused expression, on the submission's `line`, adds to what Triton `said`; "" where it adds nothing."""
    first_line = (line or 0) - getattr(error.node, "lineno", 1) + 1
    if line and re.search(hints.SHAPES, said):
        return origins(error.src, error.node, first_line, said)
    if line and (changed := re.search(r"Loop-carried variable (\w+) has initial type", said)):
        return beginning(error.src, changed[1], error.node, first_line)
    if line and (unknown := re.search(r"\b(\w+) is not defined", said)):
        return made_below(error.src, unknown[1], error.node, first_line)
    if re.search(_OF_THE_HOST, said):
        return of_the_host(error.src, error.node)
    return ""


def _failed_assertion(error: CompilationError) -> str:
    if isinstance(error, CompileTimeAssertionFailure):
        return "a static_assert failed"
    return f"it refuses `{ast.unparse(error.node)[:200]}`" if isinstance(error.node, ast.expr) else "no reason is given"


def _unwrapped(said: str) -> str:
    """NameError: x for NameError('x'), because shows the repr of errors that are not its own."""
    said = re.sub(r"(?<=incompatible function arguments\.).*", "", said, flags=re.DOTALL)  # a page of C++ types
    match = re.fullmatch(r"""(\w+)\((["'])(.*)\2\)""", said, re.DOTALL)
    return f"{match[1]}: {match[3]}" if match and match[3] else said


def _text(error: BaseException) -> str:
    """What the error says, at most MESSAGE characters of it (a KeyError would quote it)."""
    return str(error.args[0] if isinstance(error, KeyError) and error.args else error)[:MESSAGE]


def _with_hint(message: str) -> str:
    hint = hints.hint(message)
    return f"{message}\n{hint}" if hint else message


def line_of(error: BaseException, path: str) -> int | None:
    """The innermost line of the file `path` in the error's traceback, or in that of its causes."""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
    if lines:
        return lines[-1]
    chained = error.__cause__ or error.__context__
    return line_of(chained, path) if chained is not None else None


def own_traceback(error: BaseException, path: str) -> str:
    """The traceback as the student would see it: their own lines alone, then the error."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    lines = [f"line {frame.lineno}, in {frame.name}: {frame.line}" for frame in frames]
    return "\n".join([*lines, f"{type(error).__name__}: {_text(error)}"])


# --- names and text that travel ---------------------------------------------------------------------------------------


LONGEST_NAME = 1_000
"""Characters of a name that travels; Python takes names of any length, and what reads programs does not."""


def shortened(name: str) -> str:
    """The name, or its beginning where it is longer than LONGEST_NAME."""
    return name[:LONGEST_NAME]


def quoted(text: str) -> str:
    """What torch or Triton says itself, in whatever language the report is."""
    return text


def printable(text: str) -> str:
    """The text with what no encoding can carry (lone surrogates) replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


# --- operands ---------------------------------------------------------------------------------------------------------


REDUCTIONS = frozenset({"sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce"})


def origins(source: str, node: ast.AST | None, first_line: int, said: str = "") -> str:
    """A sentence on the variables in `node` that earlier lines assign, and on a dimension that a reduction removed; ""
    where there are none. `source` is the kernel's text from its `def` on, which stands at `first_line` of the
    submission; `node` is of its tree, and `said` is Triton's message."""
    advice = _other_axis if "at index 0" in said else _keeps
    if node is None:
        return ""
    made = {name: line for name in _names(node) if (line := _assignment(source, name, getattr(node, "lineno", 0)))}
    lines = " and ".join(f"`{name}` is made on line {first_line + each.lineno - 1}" for name, each in made.items())
    reduced = [advice(name, each.value) for name, each in made.items() if _reduces(each.value)]
    reduced += [advice(ast.unparse(call), call) for call in ast.walk(node) if _reduces(call)]
    ranges = [name for name, each in made.items() if _is_range(each.value)]
    return " ".join([f"{lines}." if lines else "", *reduced, _crossed(ranges)]).strip()


def beginning(source: str, name: str, node: ast.AST, first_line: int) -> str:
    """A sentence on the line above `node` that gives `name` its first value; "" where there is none."""
    made = _assignment(source, name, getattr(node, "lineno", 0))
    return f"`{name}` begins on line {first_line + made.lineno - 1}: `{ast.unparse(made)}`." if made else ""


def made_below(source: str, name: str, node: ast.AST, first_line: int) -> str:
    """A sentence on the line below `node` that alone gives `name` a value; "" where there is none, or a line above."""
    own = getattr(node, "lineno", 0)
    lines = [one.lineno for one in _assignments(source, name) if one.lineno != own]
    return f"`{name}` gets its value below, on line {first_line + lines[0] - 1}." if lines and lines[0] > own else ""


def of_the_host(source: str, node: ast.AST | None) -> str:
    """A sentence on the function in `node` that is none of Triton's, by its name; "" where there is none. A method of
    what the kernel, whose text is `source`, calls by a name of its own is none."""
    own = {name for each in ast.walk(ast.parse(source)) if (name := _bound(each))}
    calls = (each for each in ast.walk(node or ast.Pass()) if isinstance(each, ast.Call))
    names = (ast.unparse(call.func) for call in calls if isinstance(call.func, ast.Attribute))
    names = (name for name in names if name.partition(".")[0] not in own)
    name = next((name for name in names if not name.startswith(("tl.", "triton.language."))), "")
    return f"`{name}` works on the host, not in a kernel." if name else ""


def _bound(node: ast.AST) -> str:
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""


def _names(node: ast.AST) -> list[str]:
    """The variables that the expression reads, in order, each once; functions such as tl.exp are none."""
    called = {id(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
    roots = [n for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in called and n.id != "tl"]
    return list(dict.fromkeys(root.id for root in sorted(roots, key=lambda root: (root.lineno, root.col_offset))))


def _assignment(source: str, name: str, before: int) -> ast.Assign | None:
    """The last line above `before` that assigns `name` alone; None where it is a parameter, or made in another way."""
    return next((one for one in reversed(_assignments(source, name)) if one.lineno < before), None)


def _assignments(source: str, name: str) -> list[ast.Assign]:
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assign))
    return sorted((node for node in nodes if _target(node) == name), key=lambda node: node.lineno)


def _target(node: ast.Assign) -> str:
    first = node.targets[0]
    return first.id if isinstance(first, ast.Name) else ""


def _is_range(made: ast.AST) -> bool:
    """Whether the value is a range of one dimension, or one beside a number: start + tl.arange(0, BLOCK)."""
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Add):
        return _is_range(made.right) or _is_range(made.left)
    return isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "arange"


def _crossed(ranges: list[str]) -> str:
    if len(ranges) != 2:
        return ""
    down, across = ranges
    return (
        f"Each has one dimension: for a tile, write one as a column and one as a row, as in {down}[:, None] and "
        f"{across}[None, :]."
    )


def _reduces(made: ast.AST) -> bool:
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute) or made.func.attr not in REDUCTIONS:
        return False
    return not any(word.arg == "keep_dims" for word in made.keywords)


def _other_axis(name: str, made: ast.AST) -> str:
    """Where sizes differ in the first dimension, none is missing: what lacks one has the size 1 there, and fits."""
    return f"Does the reduction that makes `{name}` go along the right axis?"


def _keeps(name: str, made: ast.AST) -> str:
    index = "[None, :]" if _along_the_first(made) else "[:, None]"
    return f"The reduction that makes `{name}` removes a dimension: give it keep_dims=True, or write {name}{index}."


def _along_the_first(made: ast.AST) -> bool:
    assert isinstance(made, ast.Call)
    axes = [word.value for word in made.keywords if word.arg == "axis"] or made.args[1:2]
    return any(isinstance(axis, ast.Constant) and axis.value == 0 for axis in axes)
