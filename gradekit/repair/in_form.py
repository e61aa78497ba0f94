"""A result, or gradients, in the form that is asked for, whatever a submission makes: an edit of what is returned. It
shows what is wrong beside a wrong dtype, a wrong shape or a wrong number of gradients, of which a message says all."""

import ast
import re
from collections.abc import Iterator

import torch

from gradekit.causes import Cause
from gradekit.inputs.spec import Input
from gradekit.judge.failure import Failure
from gradekit.repair.mend import Family, Mend
from gradekit.subject.subject import Call
from gradekit.submission.parsed_source import Edit, ParsedSource

_NUMBER_OF_GRADIENTS = re.compile(r"incorrect number of gradients \(expected (\d+), got (\d+)\)")


def in_form(text: str, error: Failure, call: Call) -> Mend | None:
    """The edit, without words: the message has said it. None where it is not known what is asked for."""
    source = ParsedSource.parsed(text)
    if source is None:
        return None
    if error.cause is Cause.EXCEPTION:
        edits = tuple(_of_gradients(source, error.message))
    else:
        function = next((one for one in source.host if one.name == call.entry), None)
        edits = tuple(_of_results(source, function, error, call)) if function is not None else ()
    return Mend(Family.FORMULA, 1, 0, edits, "", error.cause.hint, error.cause) if edits else None


def _form(error: Failure, call: Call, function: ast.FunctionDef) -> str:
    """What gives a tensor the form of an input, or the dtype that is asked for; "" where neither is known."""
    names = [one.arg for one in function.args.args]
    inputs = [(name, one) for name, one in zip(names, call.args, strict=False) if isinstance(one, Input)]
    if error.cause is Cause.WRONG_DTYPE:
        dtype = error.facts.get("expected_dtype", "")
        like = (f".to({name}.dtype)" for name, one in inputs if str(one.dtype).removeprefix("torch.") == dtype)
        return next(like, f".to(torch.{dtype})" if dtype else "")
    shape = error.facts.get("expected_shape")
    return next((f".reshape({name}.shape)" for name, one in inputs if list(one.shape) == shape), "")


def _of_results(source: ParsedSource, function: ast.FunctionDef, error: Failure, call: Call) -> Iterator[Edit]:
    form = _form(error, call, function)
    given, wanted = (getattr(torch, error.facts.get(key, ""), torch.float32) for key in ("dtype", "expected_dtype"))
    allocates = error.cause is Cause.WRONG_DTYPE and given.itemsize <= wanted.itemsize
    for node in ast.walk(function) if form else ():
        if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Tuple):
            dtypes = list(_dtypes(function, source.of(node.value))) if allocates else []
            of_returned = source.replaced(node.value, f"({source.of(node.value)}){form}")
            yield source.replaced(dtypes[0], form[4:-1]) if dtypes else of_returned


def _dtypes(function: ast.FunctionDef, name: str) -> Iterator[ast.expr]:
    """The dtypes with which what has a name is allocated: of one with fewer digits than are asked for, they are lost
    before it is returned; with more, sums are to keep them."""
    for one in ast.walk(function):
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == name and isinstance(one.value, ast.Call):
            yield from (keyword.value for keyword in one.value.keywords if keyword.arg == "dtype")


def _of_gradients(source: ParsedSource, message: str) -> Iterator[Edit]:
    found = _NUMBER_OF_GRADIENTS.search(message)
    wanted, got = (int(found[1]), int(found[2])) if found is not None else (0, 0)
    for function in source.backwards if found is not None else ():
        for node in ast.walk(function):
            value = node.value if isinstance(node, ast.Return) else None
            parts = value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []
            if len(parts) == got < wanted:
                end = source.span(parts[-1])[1]
                yield Edit(end, end, ", None" * (wanted - got), "")
