"""Diagnoses of what a submission's text says of its operators, where torch or autograd would not take one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.causes import Cause
from gradekit.judge.evidence import Diagnosis
from gradekit.submission.parsed_source import ParsedSource, called, dotted

_MAKES_OPERATORS = ("triton_op", "custom_op")


def operator_mistake(text: str, entry: str, cause: Cause) -> Diagnosis | None:
    """What is wrong with how the operator `entry` is made, where that stands in the text.

    Args:
        text: the submission's source.
        entry: the function that was called.
        cause: why the check failed, which the diagnosis keeps.
    """
    source = ParsedSource.parsed(text)
    if source is None:
        return None
    rules = (_unregistered, _claims_to_write, _not_wrapped, _hidden)
    return next((found for rule in rules for found in rule(source, entry, cause)), None)


def _unregistered(source: ParsedSource, entry: str, cause: Cause) -> Iterator[Diagnosis]:
    """A derivative is registered for a function of the submission that is no operator."""
    functions = {function.name: function for function in source.host}
    for node in ast.walk(source.tree):
        name, _, method = called(node).rpartition(".")
        if method == "register_autograd" and name in functions and not _made_by(functions[name]):
            function = functions[name]
            yield Diagnosis(
                cause,
                f"Line {node.lineno} registers a derivative for `{name}`, which is no operator: nothing stands above "  # type: ignore[attr-defined]
                f"its definition in line {function.lineno} that makes it one.",
                function.lineno,
                f'write @triton_op("course::{name}", mutates_args={{}}) above it',
            )


def _not_wrapped(source: ParsedSource, entry: str, cause: Cause) -> Iterator[Diagnosis]:
    """A triton_op launches a kernel as host code does elsewhere."""
    kernels = {kernel.name for kernel in source.kernels}
    for function in source.host:
        if _made_by(function) != "triton_op":
            continue
        for node in ast.walk(function):
            launched = dotted(node.func.value) if _is_launch(node) else ""  # type: ignore[attr-defined]
            if launched in kernels:
                yield Diagnosis(
                    cause,
                    f"Line {node.lineno} launches `{launched}` without wrap_triton: where torch runs an operator "  # type: ignore[attr-defined]
                    "without data, there is nothing to launch on.",
                    node.lineno,  # type: ignore[attr-defined]
                    f"launch with wrap_triton({launched})[grid](...)",
                )


def _claims_to_write(source: ParsedSource, entry: str, cause: Cause) -> Iterator[Diagnosis]:
    """An operator with a derivative whose schema says that it changes an input."""
    for function in source.host:
        for node in function.decorator_list if _made_by(function) else ():
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                changed = getattr(keyword.value, "elts", None)
                if keyword.arg == "mutates_args" and changed:
                    yield Diagnosis(
                        cause,
                        f"Line {keyword.value.lineno} says by mutates_args that `{function.name}` changes "
                        f"{source.of(changed[0])}: torch takes no derivative of such an operator.",
                        keyword.value.lineno,
                        "an operator that writes a new tensor has mutates_args={}",
                    )


def _is_launch(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)


def _hidden(source: ParsedSource, entry: str, cause: Cause) -> Iterator[Diagnosis]:
    """A custom_op whose result nobody describes."""
    described = {name for node in ast.walk(source.tree) if (name := _described(node))}
    for function in source.host:
        if _made_by(function) == "custom_op" and function.name not in described:
            line = function.decorator_list[0].lineno
            yield Diagnosis(
                cause,
                f"Line {line} makes `{function.name}` an operator with custom_op, which hides its body from torch, and "
                "no register_fake says what its result looks like.",
                line,
                f"make it with triton_op, or register a function with @{function.name}.register_fake",
            )


def _described(node: ast.AST) -> str:
    """The operator that a decorator or a call `NAME.register_fake` describes."""
    name, _, method = (called(node) or dotted(node)).rpartition(".")
    return name if method == "register_fake" else ""


def _made_by(function: ast.FunctionDef) -> str:
    """What makes an operator of a function; "" where nothing does."""
    names = ((called(node) or dotted(node)).rpartition(".")[2] for node in function.decorator_list)
    return next((name for name in names if name in _MAKES_OPERATORS), "")
