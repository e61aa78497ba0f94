"""What gradekit/interpreter computes of calls that were met while submissions were graded, now against an earlier version:

    python benchmarks/evaluations.py record DIR [id ...]       grades beginner's mistakes and right submissions
    python benchmarks/evaluations.py compare DIR             evaluates the same calls again

`record` keeps, for each submission, every call that was evaluated (its source, program and inputs), with each change that
was tried of it, and what came out: results, copies that went out of bounds, values of expressions, work, and how an
evaluation failed. `compare` prints each call where anything of that is another now, and its CPU seconds; its exit
status is 1 where a value differs. Work may differ: it is counted in the last line. DIR is read by `pickle`: use your own alone.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from torch import Tensor

from gradekit import assignment as assignments
from gradekit import interpreter
from gradekit.inputs.spec import Input
from gradekit.interpreter.shown_call import HostCall, HostReplay
from gradekit.interpreter.walked_call import WalkedCall, code_of
from gradekit.subject import subject
from gradekit.submission.parsed_source import ParsedSource
from tests import right
from tests.graded import grade
from tests.repair.corpora import assignments as with_corpus
from tests.repair.corpora import corpus

RIGHT, CALLS = 2, 3
"""Right submissions of each assignment, and calls of each."""

MOST_CHANGES = 40
"""Requests for changes of one call that are kept."""


@dataclass
class Kept:
    """One call: its class and arguments, and each method that was called with what came out."""

    of: type
    args: tuple[Any, ...]
    asked: list[tuple[str, tuple[Any, ...], Any, float]] = field(default_factory=list)


def outcome(call: Any, method: str, args: Sequence[Any], plain: Callable[..., Any]) -> tuple[Any, int]:
    """A digest of what a method of a call gives or raises, and the work that it counts."""
    try:
        found = plain(call, *args)
    except Exception as error:  # noqa: BLE001  (any way to fail is a part of what came out)
        return (type(error).__name__, str(error)[:200]), call.work
    if hasattr(found, "lost"):
        return (_digest([*found.results, found.lost]), "copies"), call.spent
    values: list[Any] = []
    if isinstance(call, WalkedCall):
        values = [(name, _values(begun.watched.values)) for name, begun in call.begun.items()]
    elif call.walk is not None and method == "run":
        values = [_values(call.walk.values)]
    return (_digest(found), call.strays, values), call.work if method == "run" else call.spent


def _values(values: dict[Any, Any]) -> str:
    """Of expressions, by their places."""
    places = sorted((n.lineno, n.col_offset, n.end_lineno, n.end_col_offset, type(n).__name__, _digest(v)) for n, v in values.items()
                    if hasattr(n, "lineno") and not callable(v))  # fmt: skip
    return hashlib.sha256(repr(places).encode()).hexdigest()[:16]


def _digest(value: Any) -> str:
    if isinstance(value, Tensor):
        one = value.detach().contiguous()
        data = one.clone().view(-1).view(dtype=torch.uint8).numpy().tobytes() if one.numel() else b""
        return f"{tuple(one.shape)} {one.dtype} {hashlib.sha256(data).hexdigest()[:16]}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(map(_digest, value))})"
    if hasattr(value, "offset") and hasattr(value, "storage"):
        return f"pointer {value.storage} {value.dtype} {_digest(value.offset)}"
    if isinstance(value, (int, float, str, bool)) or value is None:
        return repr(value)
    return type(value).__name__


@contextlib.contextmanager
def _watched(kept: list[Kept]) -> Iterator[None]:
    """While open, what is asked of calls is kept."""
    plain = {(of, name): of.__dict__[name] for of in (WalkedCall, HostReplay) for name in ("__init__", "run", "changed")}

    def beginning(of: type) -> Callable[..., None]:
        def begin(self: Any, *args: Any, **given: Any) -> None:
            plain[of, "__init__"](self, *args, **given)
            names = ("program", "inputs", "code", "allow", "compared")
            args = (*args, *(given[name] for name in names[len(args) :] if name in given)) if of is WalkedCall else args
            self.kept = Kept(of, args)
            kept.append(self.kept)

        return begin

    def asking(of: type, name: str) -> Callable[..., Any]:
        def ask(self: Any, *args: Any, **given: Any) -> Any:
            args = (*args, *given.values())
            few = len(self.kept.asked) < MOST_CHANGES
            if not few:
                return plain[of, name](self, *args)
            held: list[Any] = []

            def run(*every: Any) -> Any:
                try:
                    held.append(plain[of, name](*every))
                except Exception as error:
                    held.append(error)
                    raise
                return held[0]

            found, work = outcome(self, name, args, run)
            self.kept.asked.append((name, args, found, work))
            if isinstance(held[0], Exception):
                raise held[0]
            return held[0]

        return ask

    for of, name in plain:
        setattr(of, name, beginning(of) if name == "__init__" else asking(of, name))
    try:
        yield
    finally:
        for (of, name), method in plain.items():
            setattr(of, name, method)


def _calls_of_right(assignment: assignments.Assignment, path: Path) -> list[subject.Call]:
    """The first calls that checks make of a right submission."""
    made: list[subject.Call] = []
    plain = subject.Call

    def making(*args: Any, **given: Any) -> subject.Call:
        one = plain(*args, **given)
        if one.observation is not None:
            made.append(one)
        return one

    subject.Call = making  # type: ignore[misc, assignment]
    try:
        grade(assignment, path, device="cpu", profile="quick")
    finally:
        subject.Call = plain  # type: ignore[misc]
    small = [one for one in made if one.observation and sum(r.numel() for r in one.observation.results if isinstance(r, Tensor)) < 1 << 14]
    return list(_some(small, CALLS))


def _evaluate_right(assignment: assignments.Assignment, path: Path) -> None:
    source = ParsedSource(path.read_text(encoding="utf-8"))
    for call in _calls_of_right(assignment, path):
        args = tuple(one.tensor() if isinstance(one, Input) else one for one in call.args)
        tensors = [one for one in args if isinstance(one, Tensor)]
        assert call.observation is not None
        with contextlib.suppress(Exception):
            WalkedCall(call.observation.program, tensors, code_of(source), assignment.allow).run()
        with contextlib.suppress(Exception):
            HostReplay(HostCall(call.entry, args, tuple(call.wanted)), call.observation.program, source, code_of(source)).run()


def record(folder: Path, ids: Sequence[str], mistakes: int) -> None:
    """Grades submissions, and keeps what is evaluated."""
    folder.mkdir(parents=True, exist_ok=True)
    for id in ids or with_corpus():
        assignment = assignments.get(id)
        for mistake in _some(list(corpus(id)), mistakes):
            _keep(folder / f"{id}.{mistake.name}.pickle", partial(_grade_mistake, assignment, mistake.text))
        for path in _some(right.files(id), RIGHT):
            _keep(folder / f"{id}.right_{path.stem}.pickle", partial(_evaluate_right, assignment, path))


def _some(every: Sequence[Any], count: int) -> Sequence[Any]:
    return every[:: max(len(every) // count, 1)][:count]


def _grade_mistake(assignment: assignments.Assignment, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "submission.py"
        path.write_text(text, encoding="utf-8")
        grade(assignment, path, device="cpu", profile="quick", stop=True)


def _keep(path: Path, run: Callable[[], Any]) -> None:
    kept: list[Kept] = []
    with _watched(kept):
        run()
    kept = [one for one in kept if one.asked]
    path.write_bytes(pickle.dumps(kept))
    print(f"{path.stem:60} {len(kept)} calls, {sum(len(one.asked) for one in kept)} evaluations", flush=True)


class _Unpickler(pickle.Unpickler):
    """Finds what has moved to another module of the interpreter by its name."""

    def find_class(self, module: str, name: str) -> Any:
        name = {"Swap": "Substitution"}.get(name, name)
        if module.startswith(interpreter.__name__):
            for file in sorted(Path(interpreter.__path__[0]).glob("*.py")):
                found = __import__(f"{interpreter.__name__}.{file.stem}", fromlist=["x"])
                if getattr(found, name, None) is not None:
                    return getattr(found, name)
        return super().find_class(module, name)


def compare(folder: Path) -> int:
    """Evaluates the calls again; 1 where a value differs."""
    count = differing = others = 0
    before = time.process_time()
    for path in sorted(folder.glob("*.pickle")):
        with path.open("rb") as file:
            kept: list[Kept] = _Unpickler(file).load()
        for one in kept:
            call = one.of(*one.args)
            for name, args, expected, work in one.asked:
                found, spent = outcome(call, name, args, getattr(one.of, name))
                count, others = count + 1, others + (spent != work)
                if found != expected:
                    differing += 1
                    print(f"{path.stem} {one.of.__name__}.{name}: {expected} before, {found} now", flush=True)
    seconds = time.process_time() - before
    print(f"{count} evaluations, {differing} differ, {others} with other work; {seconds:.1f} CPU s")
    return 1 if differing else 0


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--mistakes", type=int, default=4, help="so many of each assignment are recorded")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the order of sums, and so the last bits, depend on it
    if options.what == "record":
        record(options.folder, options.ids, options.mistakes)
    else:
        sys.exit(compare(options.folder))


if __name__ == "__main__":
    main()
