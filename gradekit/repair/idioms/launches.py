"""Mends of what is exchanged on its way: arguments of a launch, what is saved for the backward pass."""

import ast
import difflib
import itertools
import re
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft, LaunchCall
from gradekit.submission.parsed_source import called


def arguments_swapped(draft: Draft) -> Iterator[Mend]:
    """Two arguments of a launch, exchanged."""
    for launch in draft.launches:
        places = [a for a in launch.call.args if not isinstance(a, ast.Starred)]
        params = {id(v): p for p, v in launch.given.items()}
        for i, first in enumerate(places):
            for second in places[i + 1 : i + 5]:
                if draft.source.of(first) == draft.source.of(second):
                    continue
                p, q = params.get(id(first), ""), params.get(id(second), "")
                fit = lambda one, other: _fit(draft, *one) + _fit(draft, *other)
                gain = fit((first, q), (second, p)) - fit((first, p), (second, q)) if p and q else 0.0
                is_alike = p and q and _kind(launch, p) == _kind(launch, q)
                if is_alike or gain > 1:  # a number for a pointer is seen by the names
                    rank = 6 if gain > 0.2 else 32 if gain > -0.3 else 60
                    rank = 4 if not is_alike or _is_reversed(draft, first, second) else rank
                    yield Mend(
                        Family.STRIDES, rank, first.lineno, draft.source.exchanged(first, second),
                        f"The launch passes {draft.source.of(first)} for {p} and {draft.source.of(second)} for {q} in "
                        f"line {first.lineno}: they are swapped.",
                        "give the launch's arguments in the order of the kernel's parameters",
                    )  # fmt: skip


def _is_reversed(draft: Draft, first: ast.expr, second: ast.expr) -> bool:
    """Whether they are two strides of one tensor, the later dimension first."""
    one, other = (re.fullmatch(r"(.*)\.stride\((-?\d+)\)", draft.source.of(node)) for node in (first, second))
    return one is not None and other is not None and one[1] == other[1] and int(one[2]) > int(other[2])


def _kind(launch: LaunchCall, param: str) -> str:
    kernel = launch.kernel
    if param in kernel.constexprs:
        return "constexpr"
    return "pointer" if param in kernel.pointers else "stride" if param in kernel.strides else "size"


def _fit(draft: Draft, argument: ast.expr, param: str) -> float:
    """How much an argument's text looks like a parameter's name."""
    plain = re.sub(r"(_ptr|_pointer|stride|[^a-z0-9])", "", param.lower())
    text = re.sub(r"(stride|[^a-z0-9])", "", draft.source.of(argument).lower())
    return difflib.SequenceMatcher(None, plain, text).ratio()


def saved_for_another(draft: Draft) -> Iterator[Mend]:
    """What is saved for the backward pass comes back in that order, whatever it is called then: in another order, or
    something else than the argument by whose name it is taken back."""
    names, of = draft.source.differentiated, draft.source.of
    calls = [n for n in draft.source.on_host if isinstance(n, ast.Call) and called(n).endswith(".save_for_backward")]
    back = [n for n in draft.source.on_host if isinstance(n, ast.Assign) and of(n.value).endswith(".saved_tensors")]
    for call, node in itertools.product(calls, back):
        targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else []
        kept, taken = ([of(part) for part in parts] for parts in (call.args, targets))
        if kept != taken and sorted(kept) == sorted(taken):
            yield Mend(
                Family.INDEX, 1, node.lineno, (draft.source.replaced(node.targets[0], ", ".join(kept)),),
                f"Line {node.lineno} takes {', '.join(taken)} from what was saved, and line {call.lineno} saved "
                f"{', '.join(kept)}: the order differs.",
                "saved tensors come back in the order in which they were saved",
            )  # fmt: skip
        function = next((f for f in draft.source.host if f.lineno <= call.lineno <= (f.end_lineno or 0)), None)
        inputs = [a.arg for a in function.args.args][1:2] if function is not None and function.name != "forward" else []
        for one, name in zip(call.args, taken, strict=False) if len(kept) == len(taken) else ():
            own = f"{inputs[0]}[{names.index(name)}]" if inputs and name in names else name
            if name in names and of(one) not in (name, own):
                yield Mend(
                    Family.INDEX, 2, one.lineno, (draft.source.replaced(one, own),),
                    f"Line {one.lineno} saves `{of(one)}`, and line {node.lineno} takes it for `{name}`.",
                    f"save {name}", None,
                )  # fmt: skip


def loaded_in(draft: Draft, node: ast.expr, rank: int) -> tuple[int | None, str]:
    """The first line in which a kernel loads what a launch passes, there or else by the same name, unless that goes by
    as many strides as the tensor has dimensions; and the kernel's name."""
    given = ((one.kernel, *pair) for one in draft.launches for pair in one.given.items())
    loaded = [one for one in given if one[1] in one[0].first_loads and draft.source.of(one[2]) == draft.source.of(node)]
    here = lambda one: draft.source.span(one[2]) == draft.source.span(node)
    kernel, param, _ = max(loaded, key=here, default=(None, "", None))
    if kernel is None:
        return None, ""
    line = kernel.first_loads[param]
    by = (kernel.origins(one.address) & {*kernel.strides} for one in kernel.accesses if one.line == line)
    return None if any(len(strides) >= rank for strides in by) else line, f" {kernel.name}"


RULES = (arguments_swapped, saved_for_another)
