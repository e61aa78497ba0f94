"""Mends of kernels that draw random numbers: seed, counter, distribution, and what becomes of what is kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.source.expressions import calls, is_call
from gradekit.source.kernel import KernelDraft
from gradekit.submission.parsed_source import Edit, called

_DRAWS = ("tl.rand", "tl.randn", "tl.randint")


def drawn_otherwise(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """tl.rand with another counter or seed; another distribution."""
    for call in calls(kernel.nodes, *_DRAWS):
        line, of = call.lineno, kernel.source.of
        if called(call) != "tl.rand":
            yield _drawn(
                kernel, line, 3, (kernel.replaced(call.func, "tl.rand"),),
                f"Line {line} draws with {called(call)}, whose numbers are not uniform between 0 and 1.",
                "a number from 0 to 1 that is held against a probability comes from tl.rand(seed, offsets)",
            )  # fmt: skip
        if len(call.args) < 2:
            continue
        seed, counter = call.args[:2]
        for name in _seeds(kernel):
            if not (isinstance(seed, ast.Name) and seed.id == name):
                yield _drawn(
                    kernel, line, 3, (kernel.replaced(seed, name),),
                    f"Line {line} draws with the seed `{of(seed)}`, and not with {name}.",
                    f"give tl.rand {name} first, then the offsets",
                )  # fmt: skip
        for index in _stored_at(kernel):
            if of(counter) != index:
                yield _drawn(
                    kernel, line, 3, (kernel.replaced(counter, index),),
                    f"Line {line} draws by the counter `{of(counter)}`, and elements with the same counter get the "
                    "same number.",
                    f"each element needs a counter of its own: {index}",
                )  # fmt: skip


def _drawn(kernel: KernelDraft, line: int, rank: int, edits: tuple[Edit, ...], sentence: str, hint: str) -> Mend:
    return Mend(Family.FORMULA, rank, line, edits, sentence, hint, None, kernel.name)


def _seeds(kernel: KernelDraft) -> list[str]:
    return [name for name in kernel.params if "seed" in name.lower()]


def _stored_at(kernel: KernelDraft) -> list[str]:
    """The names of offsets in the addresses of stores."""
    places = [atom.name for access in kernel.accesses if not access.is_load for atom in kernel.atoms(access.address)]
    return list(dict.fromkeys(places))[:2]


def kept_otherwise(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    """What is kept is not divided by the probability to be kept; what is kept and dropped exchanged; a number in the
    place of the probability."""
    for node in kernel.nodes:
        number = node.comparators[0] if isinstance(node, ast.Compare) else None
        if isinstance(number, ast.Constant) and isinstance(node, ast.Compare) and _draws(kernel, node):
            text = kernel.source.of(kernel.node)
            for p in (n for n in kernel.sizes if n not in _seeds(kernel) and f"1 - {n}" in text):
                yield _drawn(
                    kernel, node.lineno, 3, (kernel.replaced(number, p),),
                    f"Line {node.lineno} holds the numbers that are drawn against {kernel.source.of(number)}, "
                    f"whatever `{p}` is.",
                    f"compare with {p}",
                )  # fmt: skip
    for call in calls(kernel.nodes, "tl.where"):
        if len(call.args) < 3 or not kernel.calls_behind(call.args[0]) & set(_DRAWS):
            continue
        kept, dropped = call.args[1:3]
        if isinstance(kept, ast.Constant):
            kept, dropped = dropped, kept
        line = _line_of(kernel, call.args[0])
        of_line = f", or line {line} the condition the wrong way round" if line != call.lineno else ""
        yield _drawn(
            kernel, line, 5, (
                kernel.replaced(kept, kernel.source.of(dropped)), kernel.replaced(dropped, kernel.source.of(kept)),
            ),
            f"tl.where in line {call.lineno} has what is kept and what is dropped exchanged{of_line}.",
            "tl.where(condition, a, b) is a where the condition holds",
        )  # fmt: skip
        for p in _probabilities(kernel):
            divided = isinstance(kept, ast.BinOp) and isinstance(kept.op, (ast.Div, ast.Mult))
            part = kept.left if divided and isinstance(kept, ast.BinOp) else kept
            loaded = [n for n in sorted(kernel.names(kept)) if any(map(_is_loaded, kernel.values.get(n, ())))]
            loaded = loaded if isinstance(kept, ast.Call) else []
            line = next((_line_of(kernel, n) for n in ast.walk(kept) if _is_made_of(kernel, n, p)), call.lineno)
            for name in loaded:
                yield _drawn(
                    kernel, line, 5, (kernel.replaced(kept, f"{name} / (1 - {p})"),),
                    f"Line {line} does not divide what is kept by 1 - {p}, the probability to be kept.",
                    f"divide by 1 - {p}, so that the expected value stays what it was",
                )  # fmt: skip
            yield _drawn(
                kernel, line, 4,
                (kernel.replaced(kept, f"{kernel.source.operand(part)} / (1 - {p})"),),
                f"Line {line} does not divide what is kept by 1 - {p}, the probability to be kept.",
                f"divide by 1 - {p}, so that the expected value stays what it was",
            )  # fmt: skip


def _line_of(kernel: KernelDraft, node: ast.AST) -> int:
    """Where a name is given what it is, if that is one place; else the node's own line."""
    values = kernel.values.get(node.id, ()) if isinstance(node, ast.Name) else ()
    return values[0].lineno if len(values) == 1 else getattr(node, "lineno", 0)


def _is_made_of(kernel: KernelDraft, node: ast.AST, parameter: str) -> bool:
    """Whether a node is a name that is computed from a parameter."""
    values = kernel.values.get(node.id, ()) if isinstance(node, ast.Name) else ()
    return any(parameter in kernel.names(value) for value in values)


def _draws(kernel: KernelDraft, node: ast.expr) -> bool:
    return bool(kernel.calls_behind(node) & set(_DRAWS))


def _is_loaded(value: ast.expr) -> bool:
    return any(is_call(part, "tl.load") for part in ast.walk(value))


def _probabilities(kernel: KernelDraft) -> list[str]:
    """The parameters that random numbers are held against."""
    compared = [n for n in kernel.nodes if isinstance(n, ast.Compare) and kernel.calls_behind(n) & set(_DRAWS)]
    beside = {name for node in compared for side in (node.left, *node.comparators) for name in kernel.names(side)}
    return [name for name in kernel.sizes if name in beside and name not in _seeds(kernel)]


def gradient_passed_on(draft: Draft) -> Iterator[Mend]:
    """A backward pass that returns the gradient as it came, where it could call what the forward pass calls."""
    by_name = {function.name: function for function in draft.source.host}
    forward, backward = by_name.get("forward"), by_name.get("backward")
    if forward is None or backward is None or len(backward.args.args) < 2:
        return
    given, kept = backward.args.args[1].arg, _kept(draft)
    result = next((n.value for n in ast.walk(forward) if isinstance(n, ast.Return)), None)
    returned = next((n.value for n in ast.walk(backward) if isinstance(n, ast.Return)), None)
    first = returned.elts[0] if isinstance(returned, ast.Tuple) and returned.elts else returned
    if not (isinstance(first, ast.Name) and first.id == given and isinstance(result, ast.Call) and result.args):
        return
    others = [
        f"ctx.{draft.source.of(a)}" if draft.source.of(a) in kept else draft.source.of(a) for a in result.args[1:]
    ]
    new = f"{draft.source.of(result.func)}({', '.join([given, *others])})"
    yield Mend(
        Family.FORMULA, 5, first.lineno, (draft.source.replaced(first, new),),
        f"Line {first.lineno} returns the gradient of the result as it came: the backward pass does not do what the "
        "forward pass did to x.",
        "the backward pass drops and scales the same elements: draw them again with the same seed",
    )  # fmt: skip


def constant_for_what_was_kept(draft: Draft) -> Iterator[Mend]:
    """Something else in the backward pass where the forward pass gives the same function, or the same kernel, what is
    kept: as `ctx.name`, or with others in one attribute that is unpacked again."""
    by_name, kept = {function.name: function for function in draft.source.host}, _kept(draft)
    forward, backward = by_name.get("forward"), by_name.get("backward")
    if forward is None or backward is None:
        return
    local = {n.id for n in ast.walk(backward) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own = {*by_name, *(kernel.name for kernel in draft.kernels)}
    made = [node for node in ast.walk(forward) if isinstance(node, ast.Call) and _callee(node) in own]
    for call in [node for node in ast.walk(backward) if isinstance(node, ast.Call)]:
        for like in (one for one in made if _callee(one) == _callee(call) and len(one.args) == len(call.args)):
            for given, wanted in zip(call.args, like.args, strict=True):
                name = wanted.id if isinstance(wanted, ast.Name) else ""
                new = f"ctx.{name}" if name in kept else name if name in local else ""
                text = draft.source.of(given)
                is_other = isinstance(given, ast.Constant) or isinstance(given, ast.BinOp) and _has(given, new)
                if new and text != new and is_other:
                    yield Mend(
                        Family.FORMULA, 5, given.lineno, (draft.source.replaced(given, new),),
                        f"Line {given.lineno} of the backward pass has {text} where the forward pass has {name}, which "
                        f"{'is kept' if name in kept else 'comes back'} as {new}.",
                        f"give it {new}: the backward pass does what the forward pass did",
                    )  # fmt: skip


def _callee(call: ast.Call) -> str:
    """The name of the function that is called, or of the kernel that is launched."""
    return called(call) or (ast.unparse(call.func.value) if isinstance(call.func, ast.Subscript) else "")


def _has(node: ast.expr, text: str) -> bool:
    """Whether an expression computes something from what has this text."""
    return any(isinstance(one, ast.expr) and ast.unparse(one) == text for one in ast.walk(node))


def _kept(draft: Draft) -> set[str]:
    """The names of what is kept as `ctx.name`."""
    found = [n for n in draft.host_nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)]
    return {n.attr for n in found if isinstance(n.ctx, ast.Store) and n.value.id == "ctx"}  # type: ignore[attr-defined]


def one_more_on_the_host(draft: Draft) -> Iterator[Mend]:
    """`ctx.seed + 1` among the arguments of a call; a grid of one program less."""
    in_grids = {id(node) for launch in draft.launches for node in ast.walk(draft.grid_of(launch))}
    for call in draft.host_nodes:
        for node in call.args if isinstance(call, ast.Call) and not is_call(call, "triton.cdiv") else ():
            if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and node.right.value == 1:
                text, rest = draft.source.of(node), draft.source.of(node.left)
                sentence = f"Line {node.lineno} passes `{text}`, and {rest} belongs there."
                if id(node) in in_grids:
                    sentence = f"The grid in line {node.lineno} has the wrong number of programs: it counts `{text}`."
                family = Family.GRID if id(node) in in_grids else Family.INDEX
                edit = draft.source.replaced(node, rest)
                yield Mend(family, 9, node.lineno, (edit,), sentence, f"pass {rest} as it is")


RULES = (drawn_otherwise, kept_otherwise)
HOST_RULES = (gradient_passed_on, one_more_on_the_host, constant_for_what_was_kept)
