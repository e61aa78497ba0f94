"""The failing call of a check as data: its inputs, its numbers where they are few, and Python that makes them again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import CO_VARARGS
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gradekit.domain import lists_in
from gradekit.plugin.run_state import GradingRun

if TYPE_CHECKING:
    from gradekit.inputs.spec import Input
    from gradekit.plugin.check_evidence import CheckEvidence
    from gradekit.subject.subject import Call

SHOWN = 8
"""The most elements of a tensor whose numbers are shown."""


def counterexample(
    item: pytest.Item, run: GradingRun, error: BaseException | None, evidence: CheckEvidence
) -> dict[str, Any] | None:  # fmt: skip
    """The counterexample of a check that failed with `error`, as its record has it; None where nothing was called."""
    from gradekit.inputs import example_text

    if not (evidence.call or evidence.drawn):
        return None
    found: dict[str, Any] = {"inputs": _inputs(run, evidence), "replay": replay(item, run, evidence)}
    found |= {"origin": evidence.origin} if evidence.origin else {}
    found |= {"example": text} if (text := example_text.dumps(evidence.drawn)) else {}
    code = _code(item, run, evidence.call, error) if evidence.call else {}
    return found | _results(error) | code


def replay(item: pytest.Item, run: GradingRun, evidence: CheckEvidence) -> str:
    """The command that shows the same failure again; it names the inputs where the seed that drew them is secret."""
    from gradekit.inputs import example_text

    words = ["gradekit", "check", str(run.request.path), "-a", run.request.assignment.id, "-k", item.name]
    inputs = run.request.options.inputs or (example_text.dumps(evidence.drawn) if evidence.is_secret else None)
    words += ["--inputs", inputs] if inputs else ["--seed", str(run.request.seed)]
    words += ["--quick"] if run.profile.name == "quick" else []
    words += ["--device", run.request.options.device] if run.request.options.device != "auto" else []
    return shlex.join(words)


def names(call: Call, run: GradingRun) -> tuple[str, ...]:
    """What the student calls the arguments of `call`; "" where that is not known."""
    from gradekit.subject.rules import argument_names

    if run.submission is None:
        return ("",) * len(call.args)
    return argument_names(call.args, call.entry, run.submission, lists_in(run.request.assignment.folder))


# --- inputs and results -----------------------------------------------------------------------------------------------


def _inputs(run: GradingRun, evidence: CheckEvidence) -> list[dict[str, Any]]:
    if evidence.call is None:
        return [_input(value, name) for name, value in evidence.drawn.items()]
    return [_input(arg, name) for arg, name in zip(evidence.call.args, names(evidence.call, run), strict=True)]


def _input(value: Any, name: str) -> dict[str, Any]:
    """One argument as JSON data: a spec field by field, a tensor by its form, anything else by its value."""
    if hasattr(value, "to_json"):
        return value.to_json() | {"name": name} | _values(value)
    if hasattr(value, "stride"):
        dtype = str(value.dtype).removeprefix("torch.")
        return {"name": name, "shape": list(value.shape), "stride": list(value.stride()), "dtype": dtype}
    plain = value is None or isinstance(value, (bool, int, float, str))
    return {"name": name, "value": value if plain else repr(value)}


def _values(spec: Input) -> dict[str, Any]:
    from gradekit.inputs.snippets import few

    found = few(spec.tensor(), SHOWN) if 0 < spec.numel <= SHOWN else None
    return {"values": found} if found else {}


def _results(error: BaseException | None) -> dict[str, Any]:
    """What came out and what should have, where values were compared and are few."""
    from gradekit.inputs.snippets import few

    comparison = getattr(error, "comparison", None)
    if comparison is None or not 0 < comparison.actual.numel() <= SHOWN:
        return {}
    return {"got": few(comparison.actual.detach(), SHOWN), "expected": few(comparison.reference.rounded, SHOWN)}


# --- Python -----------------------------------------------------------------------------------------------------------


def _code(item: pytest.Item, run: GradingRun, call: Call, error: BaseException | None) -> dict[str, str]:
    """`snippet` makes the arguments, `call` calls the submission with them, `reference` the function of the
    assignment's tests that says what is right; the last is left out where no function there does."""
    parameters = [name if name.isidentifier() else f"argument_{n}" for n, name in enumerate(names(call, run), 1)]
    parameters[-1:] = ["upstream"] if call.wanted else parameters[-1:]
    lines = [*_makers(parameters, call.args)]
    if any("= Input(" in line for line in lines):
        from gradekit.inputs.snippets import MADE_BY_GRADEKIT

        lines.insert(0, MADE_BY_GRADEKIT)
    lines += [f"{parameters[place]}.requires_grad_()" for place in call.wanted]
    comparison = getattr(error, "comparison", None)
    tensors = sum(hasattr(arg, "stride") for arg in call.args)
    if comparison is not None and call.wanted and len(comparison.reference.inputs) == tensors - 1:
        call = replace(call, args=call.args[:-1], wanted=())  # the result itself is wrong, and no gradient
    given = parameters[: len(call.args)]
    lists = lists_in(run.request.assignment.folder).get(call.entry, ())
    found = {"snippet": "\n".join(lines), "call": _called(call, given, lists)}
    named = _reference(comparison.reference.function) if comparison is not None else ""
    reference = f"{named}({', '.join(given)})" if named else _of_the_tests(item, call, given)
    return found | ({"reference": reference} if reference else {})


def _makers(parameters: Sequence[str], args: Sequence[Any]) -> Iterator[str]:
    """A line that makes each argument; those that lie in one storage are made from the first of them."""
    storages: dict[Any, str] = {}
    for name, arg in zip(parameters, args, strict=True):
        identity = getattr(arg, "identity", None)
        base = getattr(arg, "base", 0)
        if base and identity not in storages:
            yield f"storage_of_{name} = {_made(arg.whole)}"
        first = storages.setdefault(identity, f"storage_of_{name}" if base else name)
        if base:
            yield f"{name} = {first}.as_strided({list(arg.shape)}, {list(arg.stride)}, {arg.offset})"
        else:
            yield f"{name} = {_made(arg) if identity is None or first == name else first}"


def _made(argument: Any) -> str:
    from gradekit.inputs.snippets import expression

    if hasattr(argument, "to_json"):
        return expression(argument)
    if hasattr(argument, "stride"):
        return f'torch.randn({list(argument.shape)}).to({argument.dtype}).to("cuda")'
    return repr(argument)


def _called(call: Call, parameters: Sequence[str], lists: Sequence[tuple[int, int]]) -> str:
    given = list(parameters[:-1] if call.wanted else parameters)
    for first, length in reversed(lists):
        given[first : first + length] = [f"[{', '.join(given[first : first + length])}]"]
    called = f"{call.entry}({', '.join(given)})"
    if not call.wanted:
        return called
    leaves = ", ".join(parameters[place] for place in call.wanted)
    return f"torch.autograd.grad({called}, [{leaves}], {parameters[-1]})"


def _of_the_tests(item: pytest.Item, call: Call, given: Sequence[str]) -> str:
    """A call of what the check's own file says is right: `expected`, whose result has `rounded`, or, for gradients,
    `gradients` or `gradient` with as many parameters; "" where it has none."""
    tests = getattr(item, "module", None)
    if not call.wanted:
        return f"{item.path.stem}.expected({', '.join(given)}).rounded" if hasattr(tests, "expected") else ""
    for name in ("gradients", "gradient"):
        code = getattr(getattr(tests, name, None), "__code__", None)
        if code is not None and code.co_argcount == len(given) and not code.co_flags & CO_VARARGS:
            return f"{item.path.stem}.{name}({', '.join(given)})"
    return ""


def _reference(function: Any) -> str:
    """ "test_softmax.softmax", the module's file and the function's name; "" for a function without one."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", "")
    return f"{Path(code.co_filename).stem}.{name}" if code is not None and name.isidentifier() else ""
