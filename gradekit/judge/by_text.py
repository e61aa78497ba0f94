"""Diagnoses of what a submission's text says, whatever values it was given: what nothing uses or nothing changes, and
what is kept between calls."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence

from gradekit.causes import Cause
from gradekit.judge.evidence import Diagnosis, Evidence
from gradekit.source.draft import draft_of
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import ParsedSource, called


def _kernels(evidence: Evidence) -> Sequence[KernelDraft]:
    """The kernels of a wrong result, as they are written; none where no result was compared."""
    draft = draft_of(evidence.text) if evidence.comparison is not None else None
    launched = {kernel.name for kernel in evidence.program.kernels.values()} if evidence.program is not None else set()
    return [kernel for kernel in draft.kernels if kernel.name in launched] if draft is not None else []


def never_used(evidence: Evidence) -> Diagnosis | None:
    """A kernel of a wrong result computes something that nothing uses."""
    for kernel in _kernels(evidence):
        idle = {name: value.lineno for name, value in kernel.assigned if name not in kernel.uses and name[0] != "_"}
        if idle:
            (name, line), *others = idle.items()
            more = f", nor `{others[0][0]}`" if len(others) == 1 else f", nor {len(others)} others" if others else ""
            return Diagnosis(
                evidence.failure.cause,
                f"Nothing in {kernel.name} uses `{name}`, which line {line} computes{more}.",
                line,
                "compare with the formula: is a part of it missing? What is not needed may be deleted",
            )
    return None


def same_twice(evidence: Evidence) -> Diagnosis | None:
    """A kernel of a wrong result computes one expression under two names, one line after the other, as where a line was
    copied and not changed. What is added to a name is another value each time."""
    for kernel in _kernels(evidence):
        added = {id(one.value) for one in kernel.statements if isinstance(one, ast.AugAssign)}
        for (one, first), (other, second) in itertools.pairwise(kernel.assigned):
            if id(first) in added or id(second) in added:
                continue
            is_formula = any(isinstance(part, ast.BinOp) for part in ast.walk(first)) and not called(first)
            if one != other and is_formula and ast.dump(first) == ast.dump(second):
                return Diagnosis(
                    evidence.failure.cause,
                    f"Lines {first.lineno} and {second.lineno} compute the same, and call it `{one}` and `{other}`.",
                    second.lineno,
                    "compare both with the formula: was one copied from the other?",
                )
    return None


def same_steps(evidence: Evidence) -> Diagnosis | None:
    """A kernel of a wrong result has a loop in which nothing that it loads changes from step to step."""
    for kernel in _kernels(evidence):
        for loop in kernel.loops:
            inside = [access for access in kernel.accesses if access.is_load and kernel.is_within(access.call, loop)]
            made = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            head = loop.target if isinstance(loop, ast.For) else loop.test
            counters = [n.id for n in ast.walk(head) if isinstance(n, ast.Name) and n.id in made]
            if inside and counters and not any(kernel.names(access.call) & made for access in inside):
                return Diagnosis(
                    evidence.failure.cause,
                    f"Every step of the loop in line {loop.lineno} loads the same: no address goes by `{counters[0]}`.",
                    inside[0].line,
                    "let the addresses follow the step of the loop",
                )
    return None


_REFUSED = re.compile(r"invalid gradient at index (\d+) - got (\[.*?\]) but expected shape compatible with (\[.*?\])")


def line_of_refused(text: str, message: str) -> int | None:
    """Where gradients are returned of which autograd has refused one for its shape; None where that is not clear."""
    source = ParsedSource.parsed(text) if _REFUSED.search(message) is not None else None
    lines = [statement.lineno for statement in _returns(source)] if source is not None else []
    return lines[0] if len(lines) == 1 else None


def _returns(source: ParsedSource) -> list[ast.Return]:
    return [node for function in source.backwards for node in ast.walk(function) if isinstance(node, ast.Return)]


def right_alone(text: str) -> Diagnosis | None:
    """What to say of a call that is wrong after others and right in a process of its own; None where the submission's
    `text` keeps nothing between calls, so that none need be tried."""
    line = next(iter(_keeping(text)), None)
    return None if line is None else Diagnosis(
        Cause.DEPENDS_ON_EARLIER_CALLS,
        "As the first call of a new process, this very call is right: what an earlier call has left behind (a compiled "
        f"kernel, a choice, a tensor) does not fit it. Does line {line} keep something for too many calls?",
        line,
        "let what is kept stand for all that it depends on: each size, dtype, stride and argument; or keep nothing",
    )  # fmt: skip


def _keeping(text: str) -> Iterator[int]:
    """Lines at which something is kept for later calls: in a name of the module, by a tuner or a cache of results."""
    try:
        module = ast.parse(text)
    except SyntaxError:
        return
    stored = (node.id for each in module.body for node in ast.walk(each) if isinstance(node, ast.Name) and _sets(node))
    names = {*stored, *(each.name for each in module.body if isinstance(each, (ast.FunctionDef, ast.ClassDef)))}
    for each in filter(lambda node: isinstance(node, ast.FunctionDef), ast.walk(module)):
        assert isinstance(each, ast.FunctionDef)
        yield from (one.lineno for one in each.decorator_list if re.search("cache|autotune", ast.unparse(one)))
        inside = (node for node in ast.walk(each) if isinstance(node, (ast.stmt, ast.expr)))
        yield from (node.lineno for node in inside if isinstance(node, ast.Global) or _changes(node, names))


def _sets(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _changes(node: ast.AST, names: set[str]) -> bool:
    """Whether a part of one of the `names` is set, or one of their methods called that add something."""
    adds = isinstance(node, ast.Attribute) and node.attr in ("append", "add", "setdefault", "update", "extend")
    of = node.value if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    return isinstance(of, ast.Name) and of.id in names and (adds or _sets(node))
